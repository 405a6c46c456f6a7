// The expected bytes are written down from the specification, not by our reader.
// SPDX-License-Identifier: Apache-2.0
#include "server/columns.h"

#include <gtest/gtest.h>

#include <cstring>

#include "server/testing/column_reader.h"

namespace dial9::server {
namespace {

template <class T>
T load(const std::string& bytes, std::size_t at) {
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

TEST(ColumnWriter, WritesTheLayoutOfTheSpecification) {
  ColumnWriter writer;
  writer.add("start", std::vector<double>{1.5, -2});
  writer.add("kind", std::vector<std::uint8_t>{0, 2, 0});
  writer.add_text("names", {"a", "bc"});
  const std::string bytes = writer.finish(7);
  EXPECT_EQ(bytes.substr(0, 4), "D9C1");
  EXPECT_EQ(load<std::uint32_t>(bytes, 4), 3u);
  EXPECT_EQ(load<std::uint64_t>(bytes, 8), 7u);
  EXPECT_EQ(bytes.substr(16, 8), std::string("start\0\0\0", 8));
  EXPECT_EQ(load<std::uint32_t>(bytes, 24), 1u);   // Float64
  EXPECT_EQ(load<std::uint32_t>(bytes, 28), 2u);   // rows
  EXPECT_EQ(load<std::uint32_t>(bytes, 32), 88u);  // offset: 16 + 3 × 24
  EXPECT_EQ(load<double>(bytes, 96), -2.0);
  EXPECT_EQ(load<std::uint32_t>(bytes, 16 + 24 + 16), 104u);
  EXPECT_EQ(bytes.substr(104, 3), std::string("\0\2\0", 3));
  EXPECT_EQ(load<std::uint32_t>(bytes, 112 + 8), 3u);  // where "bc" ends
  EXPECT_EQ(bytes.substr(124, 3), "abc");
  EXPECT_EQ(bytes.size() % 8, 0u);
}

TEST(ColumnWriter, KeepsEmptyColumns) {
  ColumnWriter writer;
  writer.add("a", std::vector<float>{});
  writer.add_text("b", {});
  writer.add("c", std::vector<std::uint32_t>{9});
  const testing::ColumnReader reader(writer.finish(1));
  EXPECT_TRUE(reader.f32("a").empty());
  EXPECT_TRUE(reader.text("b").empty());
  EXPECT_EQ(reader.u32("c"), (std::vector<std::uint32_t>{9}));
}

TEST(ColumnWriter, IsEmptyAfterItHasFinished) {
  ColumnWriter writer;
  writer.add("a", std::vector<double>{1});
  (void)writer.finish(1);
  EXPECT_EQ(writer.finish(1).size(), 16u);
}

}  // namespace
}  // namespace dial9::server
