// Of handlers in between: src/recorder/interrupted_test.cc, at every instruction.
// SPDX-License-Identifier: Apache-2.0
#include "base/thread_word.h"

#include <gtest/gtest.h>

namespace dial9 {
namespace {

TEST(ThreadWord, IsStoredWhereItIsWhatWasExpected) {
  std::uint64_t word = 5;
  std::uint64_t expected = 5;
  EXPECT_TRUE(exchange_on_thread(word, &expected, 7));
  EXPECT_EQ(word, 7U);
  EXPECT_EQ(expected, 5U);
}

TEST(ThreadWord, OfAnotherValueIsToldAndLeft) {
  std::uint64_t word = ~std::uint64_t{0};
  std::uint64_t expected = 5;
  EXPECT_FALSE(exchange_on_thread(word, &expected, 7));
  EXPECT_EQ(word, ~std::uint64_t{0});
  EXPECT_EQ(expected, ~std::uint64_t{0});
}

}  // namespace
}  // namespace dial9
