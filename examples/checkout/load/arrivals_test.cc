// The arrival schedules: rate, order, shape.
// SPDX-License-Identifier: Apache-2.0
#include "load/arrivals.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace checkout::load {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::vector<std::uint64_t> schedule(Pattern pattern, double rate_hz, std::uint64_t duration_ns) {
  Arrivals arrivals(pattern, rate_hz, duration_ns, 42);
  std::vector<std::uint64_t> times;
  for (std::uint64_t at = arrivals.next_ns(); at < duration_ns; at = arrivals.next_ns()) {
    times.push_back(at);
  }
  return times;
}

TEST(Arrivals, AreEquallySpacedWhenConstant) {
  const auto times = schedule(Pattern::kConstant, 1000, kSecond);
  ASSERT_EQ(times.size(), 1000u);
  EXPECT_EQ(times[0], 0u);
  EXPECT_EQ(times[1], 1'000'000u);
  EXPECT_EQ(times[999], 999'000'000u);
}

TEST(Arrivals, KeepThePoissonRateAndItsVariance) {
  const auto times = schedule(Pattern::kPoisson, 2000, 10 * kSecond);
  EXPECT_NEAR(static_cast<double>(times.size()), 20000, 600);
  std::vector<int> per_tenth(100);
  for (std::uint64_t at : times) ++per_tenth[at / (kSecond / 10)];
  double variance = 0;
  for (int count : per_tenth) variance += (count - 200.0) * (count - 200.0) / 100;
  EXPECT_GT(variance, 100);  // constant arrivals would have none
  EXPECT_LT(variance, 400);
}

TEST(Arrivals, NeverGoBack) {
  for (Pattern pattern : {Pattern::kConstant, Pattern::kPoisson, Pattern::kStep, Pattern::kBurst}) {
    std::uint64_t last = 0;
    for (std::uint64_t at : schedule(pattern, 500, 3 * kSecond)) {
      EXPECT_GE(at, last);
      last = at;
    }
  }
}

TEST(Arrivals, TripleInTheMiddleThirdOfAStep) {
  int outer = 0;
  int middle = 0;
  for (std::uint64_t at : schedule(Pattern::kStep, 1000, 9 * kSecond)) {
    (at >= 3 * kSecond && at < 6 * kSecond ? middle : outer) += 1;
  }
  EXPECT_NEAR(middle, 9000, 400);
  EXPECT_NEAR(outer, 6000, 400);
}

TEST(Arrivals, ComeASecondsWorthAtOnceInABurst) {
  const auto times = schedule(Pattern::kBurst, 50, 2 * kSecond);
  ASSERT_EQ(times.size(), 100u);
  EXPECT_EQ(times[49], 0u);
  EXPECT_EQ(times[50], kSecond);
}

TEST(Arrivals, NameThePatternsThatExistWhenAskedForAnother) {
  EXPECT_EQ(parse_pattern("burst"), Pattern::kBurst);
  const auto wrong = parse_pattern("ramp");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().find("'ramp'"), std::string::npos);
  EXPECT_NE(wrong.error().find("poisson"), std::string::npos);
}

}  // namespace
}  // namespace checkout::load
