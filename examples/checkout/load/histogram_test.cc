// The load generator's histogram against exact quantiles of the same values.
// SPDX-License-Identifier: Apache-2.0
#include "load/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace checkout::load {
namespace {

TEST(Histogram, AnswersZeroWhileItIsEmpty) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.quantile(0.5), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.mean(), 0);
}

TEST(Histogram, KeepsSmallValuesExactly) {
  Histogram histogram;
  for (std::uint64_t value = 1; value <= 100; ++value) histogram.record(value);
  EXPECT_EQ(histogram.quantile(0.50), 50u);
  EXPECT_EQ(histogram.quantile(0.99), 99u);
  EXPECT_EQ(histogram.quantile(1), 100u);
  EXPECT_EQ(histogram.quantile(0), 1u);
  EXPECT_DOUBLE_EQ(histogram.mean(), 50.5);
}

TEST(Histogram, IsNeverBelowTheExactQuantileAndWithinOneHundredTwentyEighthAboveIt) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> latency(13, 2);
  Histogram histogram;
  std::vector<std::uint64_t> exact;
  for (int i = 0; i < 20000; ++i) {
    const auto value = static_cast<std::uint64_t>(latency(random));
    exact.push_back(value);
    histogram.record(value);
  }
  std::ranges::sort(exact);
  for (double quantile : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(quantile * 20000)) - 1;
    const std::uint64_t got = histogram.quantile(quantile);
    EXPECT_GE(got, exact[rank]) << quantile;
    EXPECT_LE(got, exact[rank] + exact[rank] / 128 + 1) << quantile;
  }
}

TEST(Histogram, TakesTheWholeRangeOfItsType) {
  Histogram histogram;
  histogram.record(0);
  histogram.record(~std::uint64_t{0});
  EXPECT_EQ(histogram.quantile(0.5), 0u);
  EXPECT_EQ(histogram.quantile(1), ~std::uint64_t{0});
}

TEST(Histogram, MergedEqualsRecordedInOne) {
  Histogram odd;
  Histogram even;
  Histogram all;
  for (std::uint64_t value = 1; value < 5000; ++value) {
    (value % 2 == 1 ? odd : even).record(value * 977);
    all.record(value * 977);
  }
  odd.merge(even);
  EXPECT_EQ(odd.count(), all.count());
  EXPECT_EQ(odd.max(), all.max());
  for (double quantile : {0.1, 0.5, 0.999}) {
    EXPECT_EQ(odd.quantile(quantile), all.quantile(quantile));
  }
}

}  // namespace
}  // namespace checkout::load
