// SPDX-License-Identifier: Apache-2.0
#include "symbolize/frame_bytes.h"

#include <gtest/gtest.h>

namespace dial9::symbolize {
namespace {

std::vector<Frame> two() {
  return {{.name = "inner",
           .file = "/a.h",
           .line = 3,
           .at_file = "/a.h",
           .at_line = 4,
           .is_inlined = true},
          {.name = "outer", .at_file = "/b.cc", .at_line = ~std::uint32_t{0}}};
}

TEST(FrameBytes, ComeBackAsTheyWere) {
  ByteWriter out;
  out.u64(~std::uint64_t{0});
  out.frames(two());
  out.frames({});
  ByteReader in(out.bytes());
  EXPECT_EQ(in.u64(), ~std::uint64_t{0});
  EXPECT_EQ(in.frames(), two());
  EXPECT_TRUE(in.frames().empty());
  EXPECT_TRUE(in.is_whole());
  EXPECT_TRUE(in.is_at_end());
}

TEST(FrameBytes, CutAnywhereAreNotWholeAndEmpty) {
  ByteWriter out;
  out.frames(two());
  for (std::size_t size = 0; size < out.bytes().size(); ++size) {
    ByteReader in(std::span(out.bytes()).first(size));
    EXPECT_TRUE(in.frames().empty());
    EXPECT_FALSE(in.is_whole());
    EXPECT_EQ(in.u32(), 0U) << "nothing more is read";
  }
}

TEST(FrameBytes, HoldNoMoreThanTheirBounds) {
  ByteWriter out;
  out.frames(std::vector<Frame>(100, Frame{.name = std::string(20'000, 'n')}));
  ByteReader in(out.bytes());
  const auto frames = in.frames();
  EXPECT_EQ(frames.size(), kMostFramesOfAddress);
  EXPECT_EQ(frames[0].name.size(), kMostTextBytes);
  ByteWriter lie;
  lie.u32(1'000'000);
  ByteReader liar(lie.bytes());
  EXPECT_TRUE(liar.frames().empty());
  EXPECT_FALSE(liar.is_whole());
  ByteWriter long_text;
  long_text.u32(~std::uint32_t{0});
  ByteReader text(long_text.bytes());
  EXPECT_EQ(text.text(), "");
  EXPECT_FALSE(text.is_whole());
}

}  // namespace
}  // namespace dial9::symbolize
