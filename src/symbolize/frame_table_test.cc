// Frames of many addresses: as they were put in, by bytes and back, and whole or nothing.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/frame_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

FrameTable some() {
  FrameTable table;
  table.add(7, two());
  table.add(~std::uint64_t{0}, two());
  table.add(8, {});
  return table;
}

Bytes written(const FrameTable& table) {
  ByteWriter out;
  table.write(out);
  return out.bytes();
}

FrameTable read(std::span<const std::uint8_t> bytes, std::size_t most = 100) {
  ByteReader in(bytes);
  FrameTable table = FrameTable::read(in, most);
  EXPECT_TRUE(in.is_whole() || table.empty());
  return table;
}

TEST(FrameTable, GivesBackTheFramesOfEachAddress) {
  const FrameTable table = some();
  EXPECT_EQ(table.frames(7), two());
  EXPECT_EQ(table.frames(~std::uint64_t{0}), two());
  EXPECT_TRUE(table.frames(8).empty());
  EXPECT_TRUE(table.contains(8)) << "that nothing is known of it is known";
  EXPECT_FALSE(table.contains(9));
  EXPECT_TRUE(table.frames(9).empty());
  EXPECT_EQ(table.size(), 3U);
}

TEST(FrameTable, KeepsWhatAnAddressHadFirst) {
  FrameTable table = some();
  table.add(8, two());
  EXPECT_TRUE(table.frames(8).empty());
}

TEST(FrameTable, ComesBackFromItsBytes) {
  const FrameTable table = some();
  const Bytes bytes = written(table);
  EXPECT_EQ(bytes.size(), table.written_bytes());
  const FrameTable again = read(bytes);
  EXPECT_TRUE(again == table);
  EXPECT_EQ(again.written_bytes(), table.written_bytes());
  EXPECT_TRUE(read(bytes, 2).empty()) << "more addresses than were asked for";
}

TEST(FrameTable, CutAnywhereIsEmpty) {
  const Bytes bytes = written(some());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(read(std::span(bytes).first(size)).empty()) << size;
  }
}

TEST(FrameTable, TakesFromAnotherWhatItDoesNotHave) {
  FrameTable table;
  table.add(8, std::vector<Frame>{{.name = "outer"}});
  table.take(some());
  EXPECT_EQ(table.size(), 3U);
  EXPECT_EQ(table.frames(7), two());
  EXPECT_EQ(table.frames(8).at(0).name, "outer");
  EXPECT_TRUE(read(written(table)) == table) << "each text is in it once";
}

TEST(FrameTable, StaysWholeWhenItIsMoved) {
  FrameTable table = some();
  FrameTable moved = std::move(table);
  moved.add(20, two());
  EXPECT_EQ(moved.frames(7), two());
  FrameTable assigned;
  assigned.add(1, two());
  assigned = std::move(moved);
  assigned.add(21, two());
  EXPECT_EQ(assigned.frames(21), two());
  EXPECT_EQ(assigned.size(), 5U);
}

TEST(FrameTable, HoldsATextOnceAndCountsItsBytes) {
  const std::string name(10'000, 'n');
  FrameTable table;
  table.add(0, std::vector<Frame>{{.name = name}});
  const std::size_t one = table.bytes();
  EXPECT_GE(one, name.size());
  for (std::uint64_t i = 1; i < 100; ++i) table.add(i, std::vector<Frame>{{.name = name}});
  EXPECT_LT(table.bytes(), one + 100 * 200);
  EXPECT_LT(table.written_bytes(), 2 * name.size());
}

TEST(FrameTable, HoldsNoMoreOfAnAddressThanItsBounds) {
  FrameTable table;
  table.add(1, std::vector<Frame>(100, Frame{.name = std::string(20'000, 'n')}));
  const std::vector<Frame> frames = table.frames(1);
  ASSERT_EQ(frames.size(), kMostFramesOfAddress);
  table.add(2, std::vector<Frame>{{.name = std::string(20'000, 'n') + "2"}});
  EXPECT_NE(table.frames(2).at(0).name, frames[0].name) << "they begin alike";
  EXPECT_EQ(frames[0].name.size(), kMostTextBytes);
}

TEST(FrameTable, RefusesCountsAndNumbersThatCanNotBe) {
  const auto bytes_of = [](std::initializer_list<std::uint32_t> numbers) {
    ByteWriter out;
    for (const std::uint32_t number : numbers) out.u32(number);
    return out.bytes();
  };
  EXPECT_EQ(read(bytes_of({1, 0, 5, 0, 0})).size(), 1U) << "address 5, no frames";
  EXPECT_TRUE(read(bytes_of({2, 0, 5, 0, 0})).empty()) << "an address that isn't there";
  EXPECT_TRUE(read(bytes_of({~0U, ~0U, 5, 0, 0}), ~std::size_t{0}).empty());
  EXPECT_TRUE(read(bytes_of({1, 0, 5, 0, 65})).empty()) << "more frames than an address has";
  EXPECT_TRUE(read(bytes_of({2, 0, 5, 0, 0, 5, 0, 0})).empty()) << "one address twice";
  EXPECT_TRUE(read(bytes_of({1, 1, 0, 5, 0, 0})).empty()) << "an empty text";
  EXPECT_EQ(read(bytes_of({1, 0, 5, 0, 1, 0, 0, 9, 0, 9, 1})).frames(5).size(), 1U);
  EXPECT_TRUE(read(bytes_of({1, 0, 5, 0, 1, 1, 0, 9, 0, 9, 1})).empty()) << "a text that isn't";
  EXPECT_TRUE(read(bytes_of({1, 0, 5, 0, 1, 0, 0, 9, 0, 9, 2})).empty()) << "neither yes nor no";
}

}  // namespace
}  // namespace dial9::symbolize
