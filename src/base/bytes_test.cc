// Little-endian whatever the machine, at any alignment.
// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <gtest/gtest.h>

namespace dial9 {
namespace {

TEST(Bytes, LoadsLeastSignificantFirstAtAnyAlignment) {
  const std::uint8_t bytes[] = {0xff, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08};
  EXPECT_EQ(load_le<std::uint8_t>(bytes + 1), 0x01);
  EXPECT_EQ(load_le<std::uint16_t>(bytes + 1), 0x0201);
  EXPECT_EQ(load_le<std::uint32_t>(bytes + 1), 0x04030201u);
  EXPECT_EQ(load_le<std::uint64_t>(bytes + 1), 0x0807060504030201u);
}

TEST(Bytes, StoresWhatItLoadsAndNothingBeside) {
  std::uint8_t bytes[10] = {};
  store_le(bytes + 1, std::uint64_t{0x1122334455667788});
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(bytes[1], 0x88);
  EXPECT_EQ(bytes[8], 0x11);
  EXPECT_EQ(bytes[9], 0);
  EXPECT_EQ(load_le<std::uint64_t>(bytes + 1), 0x1122334455667788u);
}

}  // namespace
}  // namespace dial9
