// SPDX-License-Identifier: Apache-2.0
#include "symbolize/frame_bytes.h"

#include <gtest/gtest.h>

namespace dial9::symbolize {
namespace {

TEST(FrameBytes, ComeBackAsTheyWere) {
  ByteWriter out;
  out.u64(~std::uint64_t{0});
  out.text("name");
  out.text("");
  out.u32(7);
  ByteReader in(out.bytes());
  EXPECT_EQ(in.u64(), ~std::uint64_t{0});
  EXPECT_EQ(in.text(), "name");
  EXPECT_EQ(in.text(), "");
  EXPECT_EQ(in.u32(), 7U);
  EXPECT_TRUE(in.is_whole());
  EXPECT_TRUE(in.is_at_end());
}

TEST(FrameBytes, CutAnywhereAreNotWholeAndEmpty) {
  ByteWriter out;
  out.text("name");
  for (std::size_t size = 0; size < out.bytes().size(); ++size) {
    ByteReader in(std::span(out.bytes()).first(size));
    EXPECT_EQ(in.text(), "");
    EXPECT_FALSE(in.is_whole());
    EXPECT_EQ(in.u32(), 0U) << "nothing more is read";
  }
}

TEST(FrameBytes, HoldNoLongerTextsThanTheirBound) {
  ByteWriter out;
  out.text(std::string(20'000, 'n'));
  ByteReader in(out.bytes());
  EXPECT_EQ(in.text().size(), kMostTextBytes);
  EXPECT_NE(bounded_text(std::string(20'000, 'n') + "1"),
            bounded_text(std::string(20'000, 'n') + "2"))
      << "two functions whose names begin alike";
  EXPECT_EQ(bounded_text(bounded_text(std::string(20'000, 'n'))),
            bounded_text(std::string(20'000, 'n')));
  ByteWriter lie;
  lie.u32(~std::uint32_t{0});
  ByteReader liar(lie.bytes());
  EXPECT_EQ(liar.text(), "");
  EXPECT_FALSE(liar.is_whole());
}

}  // namespace
}  // namespace dial9::symbolize
