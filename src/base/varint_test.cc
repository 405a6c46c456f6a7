// What LEB128 promises: shortest encodings, exact limits, never a byte past the end.
// SPDX-License-Identifier: Apache-2.0
#include "base/varint.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

namespace dial9 {
namespace {

std::vector<std::uint8_t> encoded(std::uint64_t value) {
  std::array<std::uint8_t, kMaxVarintBytes> buffer{};
  const std::size_t length = encode_varint(value, buffer.data());
  return {buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(length)};
}

DecodedVarint decoded(const std::vector<std::uint8_t>& bytes) {
  return decode_varint(bytes.data(), bytes.data() + bytes.size());
}

TEST(Varint, WritesTheKnownEncodings) {
  EXPECT_EQ(encoded(0), (std::vector<std::uint8_t>{0x00}));
  EXPECT_EQ(encoded(127), (std::vector<std::uint8_t>{0x7f}));
  EXPECT_EQ(encoded(128), (std::vector<std::uint8_t>{0x80, 0x01}));
  EXPECT_EQ(encoded(300), (std::vector<std::uint8_t>{0xac, 0x02}));
  EXPECT_EQ(
      encoded(std::numeric_limits<std::uint64_t>::max()),
      (std::vector<std::uint8_t>{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}));
}

TEST(Varint, ComesBackAtEveryPowerOfTwoAndItsNeighbours) {
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    for (const std::uint64_t value : {power - 1, power, power + 1}) {
      const std::vector<std::uint8_t> bytes = encoded(value);
      EXPECT_EQ(bytes.size(), varint_size(value)) << value;
      const DecodedVarint back = decoded(bytes);
      EXPECT_EQ(back.value, value);
      EXPECT_EQ(back.length, static_cast<int>(bytes.size()));
    }
  }
}

TEST(Varint, AsksForMoreAtEveryCut) {
  std::vector<std::uint8_t> bytes = encoded(std::numeric_limits<std::uint64_t>::max());
  while (!bytes.empty()) {
    bytes.pop_back();
    EXPECT_EQ(decoded(bytes).length, DecodedVarint::kNeedsMore);
  }
}

TEST(Varint, TakesNeedlessZeroGroups) {
  const DecodedVarint back = decoded({0x81, 0x80, 0x00, 0x55});
  EXPECT_EQ(back.value, 1u);
  EXPECT_EQ(back.length, 3);
}

TEST(Varint, RefusesMoreThanSixtyFourBits) {
  EXPECT_EQ(decoded(std::vector<std::uint8_t>(10, 0x80)).length, DecodedVarint::kMalformed);
  std::vector<std::uint8_t> two(10, 0x80);
  two[9] = 0x02;
  EXPECT_EQ(decoded(two).length, DecodedVarint::kMalformed);
}

TEST(Varint, WorksAtCompileTime) {
  constexpr auto round_trip = [](std::uint64_t value) {
    std::uint8_t buffer[kMaxVarintBytes] = {};
    const std::size_t length = encode_varint(value, buffer);
    return decode_varint(buffer, buffer + length).value;
  };
  static_assert(round_trip(0x123456789abcdefULL) == 0x123456789abcdefULL);
}

}  // namespace
}  // namespace dial9
