// SPDX-License-Identifier: Apache-2.0
#include "sources/sample_grain.h"

#include <gtest/gtest.h>

namespace dial9::internal {
namespace {

// Looks after each of `looks` steps of so many samples; how often they were called coarse.
int times_coarse(SampleGrain& grain, int looks, std::uint64_t samples, std::uint64_t periods) {
  static std::uint64_t all_samples = 0;
  static std::uint64_t all_periods = 0;
  grain.restart(all_samples, all_periods);
  int times = 0;
  for (int i = 0; i < looks; ++i) {
    times += grain.is_coarse(all_samples += samples, all_periods += periods) ? 1 : 0;
  }
  return times;
}

TEST(SampleGrain, FindsThoseCoarseThatComeOneInALongTime) {
  SampleGrain grain;
  EXPECT_EQ(times_coarse(grain, 49, 1, 20), 0);
  EXPECT_EQ(times_coarse(grain, 50, 1, 20), 1);
  EXPECT_EQ(times_coarse(grain, 100, 1, 2), 2);
}

TEST(SampleGrain, CallsNoFewSamplesNorFineOnesCoarse) {
  SampleGrain grain;
  EXPECT_EQ(times_coarse(grain, 7, 7, 700), 0);
  EXPECT_EQ(times_coarse(grain, 1'000, 2, 3), 0) << "1.5 at most";
}

TEST(SampleGrain, ForgetsWhatWasBeforeARestart) {
  SampleGrain grain;
  EXPECT_FALSE(grain.is_coarse(49, 490));
  grain.restart(49, 490);
  EXPECT_FALSE(grain.is_coarse(98, 980));
  EXPECT_TRUE(grain.is_coarse(99, 990));
}

}  // namespace
}  // namespace dial9::internal
