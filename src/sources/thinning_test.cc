// What thinned samples stand for, by counting.
// SPDX-License-Identifier: Apache-2.0
#include "sources/thinning.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace dial9::internal {
namespace {

std::uint64_t next(std::uint64_t& random) {
  random = random * 6364136223846793005 + 1442695040888963407;
  return random >> 33;
}

TEST(Thinning, TakesEveryPeriodWhereNothingIsLeftOut) {
  Thinning thinning{};
  EXPECT_EQ(thinning.take(1, 1, 7), 1U);
  EXPECT_EQ(thinning.take(5, 1, 7), 5U);
}

TEST(Thinning, TakesOneInSoManyForAllOfThem) {
  Thinning thinning{};
  std::uint64_t samples = 0;
  std::uint64_t weight = 0;
  for (int i = 0; i < 8'000; ++i) {
    const std::uint32_t stands_for = thinning.take(1, 8, 3);
    samples += stands_for == 0 ? 0 : 1;
    weight += stands_for;
  }
  EXPECT_EQ(samples, 1'000U);
  EXPECT_EQ(weight, 8'000U);
}

TEST(Thinning, SumsUpToThePeriodsWhateverTheyComeIn) {
  Thinning thinning{};
  std::uint64_t random = 1;
  std::uint64_t periods = 0;
  std::uint64_t weight = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto some = static_cast<std::uint32_t>(1 + next(random) % 40);
    periods += some;
    weight += thinning.take(some, 16, 5);
  }
  EXPECT_LE(weight > periods ? weight - periods : periods - weight, 16U);
}

TEST(Thinning, IsUnbiasedForThreadsThatEndWithinAFewPeriods) {
  std::uint64_t random = 1;
  std::uint64_t weight = 0;
  for (int thread = 0; thread < 100'000; ++thread) {
    Thinning thinning{};
    for (int i = 0; i < 3; ++i) weight += thinning.take(1, 16, next(random));
  }
  EXPECT_NEAR(static_cast<double>(weight), 300'000, 9'000);
}

TEST(Thinning, IsUnbiasedWhereTheRateKeepsChanging) {
  Thinning thinning{};
  std::uint64_t random = 1;
  std::uint64_t weight = 0;
  constexpr std::uint32_t kRates[] = {1, 2, 8, 4, 16, 2};
  for (int i = 0; i < 600'000; ++i) weight += thinning.take(1, kRates[i / 5 % 6], next(random));
  EXPECT_NEAR(static_cast<double>(weight), 600'000, 9'000);
}

TEST(Thinning, OfMoreThanANumberHoldsStopsAtTheLargest) {
  Thinning thinning{};
  EXPECT_EQ(thinning.take(~std::uint32_t{0}, 64, 0), ~std::uint32_t{0});
}

}  // namespace
}  // namespace dial9::internal
