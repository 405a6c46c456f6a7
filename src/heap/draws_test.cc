// The arithmetic of sampling: gaps that are exponential, and the estimate that undoes them. All
// with fixed seeds.
// SPDX-License-Identifier: Apache-2.0
#include "heap/draws.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace dial9::heap {
namespace {

TEST(Draws, TheLogarithmIsTheLibrarys) {
  for (double x = 0x1p-53; x <= 1; x *= 1.37) {
    EXPECT_NEAR(natural_log(x), std::log(x), 1e-13 * (1 + std::abs(std::log(x)))) << x;
  }
  EXPECT_EQ(natural_log(1), 0);
}

TEST(Draws, GapsHaveTheMeanAndTheTailOfAnExponential) {
  constexpr std::uint64_t kRate = 512 * 1024;
  constexpr int kDraws = 1'000'000;
  std::uint64_t state = 42;
  double sum = 0;
  int beyond_one = 0;
  int beyond_three = 0;
  for (int i = 0; i < kDraws; ++i) {
    const auto gap = static_cast<double>(draw_gap(&state, kRate));
    sum += gap;
    beyond_one += gap > kRate ? 1 : 0;
    beyond_three += gap > 3.0 * kRate ? 1 : 0;
  }
  // Five standard errors.
  EXPECT_NEAR(sum / kDraws / kRate, 1, 5.0 / std::sqrt(kDraws));
  EXPECT_NEAR(beyond_one, kDraws * std::exp(-1), 5 * std::sqrt(kDraws * 0.2325));
  EXPECT_NEAR(beyond_three, kDraws * std::exp(-3), 5 * std::sqrt(kDraws * 0.0473));
}

TEST(Draws, AGapIsNeverNothingAndNeverBeyondItsBound) {
  std::uint64_t state = 7;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_GE(draw_gap(&state, 2), 1U);
    EXPECT_LE(draw_gap(&state, std::uint64_t{1} << 44), kMostGap);
  }
}

// The textbook formula, on the very countdown of the hooks: 1/(1-exp(-s/R)) allocations a sample.
TEST(Draws, CountsAndBytesOfEverySizeAreEstimatedWithoutBias) {
  constexpr std::uint64_t kRate = 64 * 1024;
  constexpr double kBytes = 4e9;
  for (const std::uint64_t size : {16, 100, 1'000, 10'000, 65'536, 300'000, 5'000'000}) {
    const auto allocations = static_cast<std::uint64_t>(kBytes / static_cast<double>(size));
    std::uint64_t state = size;
    std::uint64_t samples = 0;
    auto left = static_cast<std::int64_t>(draw_gap(&state, kRate));
    for (std::uint64_t i = 0; i < allocations; ++i) {
      left -= static_cast<std::int64_t>(size);
      if (left >= 0) continue;
      ++samples;
      while (left < 0) left += static_cast<std::int64_t>(draw_gap(&state, kRate));
    }
    const double chance = -std::expm1(-static_cast<double>(size) / kRate);
    const double estimate = static_cast<double>(samples) / chance;
    const auto truth = static_cast<double>(allocations);
    // Four standard errors of a sum of `allocations` chances, and what rounding gaps to whole bytes
    // may do to the smallest sizes.
    const double error = 4 * std::sqrt(truth * chance * (1 - chance)) / chance;
    EXPECT_NEAR(estimate, truth, error + 1e-3 * truth) << size;
  }
}

}  // namespace
}  // namespace dial9::heap
