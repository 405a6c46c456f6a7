// SPDX-License-Identifier: Apache-2.0
#include "recorder/heartbeat.h"

#include <gtest/gtest.h>

namespace dial9::internal {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

struct Clocks {
  std::uint64_t now_ns = 1'000 * kMs;
  std::uint64_t cpu_ns = 70 * kMs;
  std::uint64_t cpu_reading_ns = 0;  // takes so long
  int cpu_readings = 0;
  Heartbeat heartbeat{[this] { return now_ns; },
                      [this] {
                        ++cpu_readings;
                        now_ns += cpu_reading_ns;
                        return cpu_ns;
                      }};
  std::optional<LateWake> nap(std::uint64_t planned_ms, std::uint64_t real_ms,
                              std::uint64_t ran_ms) {
    heartbeat.sleeps(planned_ms * kMs);
    now_ns += real_ms * kMs;
    cpu_ns += ran_ms * kMs;
    return heartbeat.wakes();
  }
};

TEST(Heartbeat, AWakeUpInTimeOrEarlyIsNoStall) {
  Clocks clocks;
  EXPECT_FALSE(clocks.nap(250, 250, 0));
  EXPECT_FALSE(clocks.nap(250, 259, 0));
  EXPECT_FALSE(clocks.nap(250, 3, 0));     // asked to rotate
  EXPECT_FALSE(clocks.heartbeat.wakes());  // wasn't asleep
}

TEST(Heartbeat, ALateWakeUpOfAnIdleProcessIsAStallFromTheDueMomentOn) {
  Clocks clocks;
  const auto late = clocks.nap(5, 305, 0);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->due_ns, 1'005 * kMs);
  EXPECT_EQ(late->woke_ns, 1'305 * kMs);
  EXPECT_EQ(late->stalled_ns, 300 * kMs);
}

TEST(Heartbeat, WhatTheProcessRanMeanwhileIsTakenOff) {
  Clocks clocks;
  const auto late = clocks.nap(5, 305, 120);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->stalled_ns, 180 * kMs);
}

TEST(Heartbeat, AProcessThatKeepsTheCpuBusyItselfIsNotStalled) {
  Clocks clocks;
  EXPECT_FALSE(clocks.nap(5, 305, 300));
  EXPECT_FALSE(clocks.nap(5, 305, 9'000)) << "on many CPUs";
}

TEST(Heartbeat, CpuTimeSinceTheLastReadingCountsAgainstTheStallAndIsReadSeldom) {
  Clocks clocks;
  EXPECT_FALSE(clocks.nap(2, 2, 2));
  EXPECT_FALSE(clocks.nap(2, 2, 2));
  EXPECT_FALSE(clocks.nap(2, 2, 2));
  EXPECT_EQ(clocks.cpu_readings, 1);
  const auto late = clocks.nap(2, 102, 0);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->stalled_ns, 94 * kMs) << "the 6 ms before may have run in the late time";
  EXPECT_EQ(clocks.cpu_readings, 2);
}

TEST(Heartbeat, ADearCpuClockIsReadAsSeldomAsThatTakesATwoThousandthOfTheTime) {
  Clocks clocks;
  clocks.cpu_reading_ns = 50'000;  // 100 ms apart
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(clocks.nap(10, 10, 0));
  EXPECT_EQ(clocks.cpu_readings, 4) << "so many it takes to know";
  for (int i = 0; i < 38; ++i) EXPECT_FALSE(clocks.nap(10, 10, 1));
  EXPECT_EQ(clocks.cpu_readings, 7) << "three in the 380 ms since";
  const auto late = clocks.nap(10, 110, 0);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->stalled_ns, 91 * kMs) << "of 100 ms, what ran since the last reading off";
  const int readings = clocks.cpu_readings;
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(clocks.nap(1, 12, 0)) << "late, and too dear to ask why";
  EXPECT_EQ(clocks.cpu_readings, readings);
}

TEST(Heartbeat, OneReadingThatWasInterruptedMakesNoneSeldom) {
  Clocks clocks;
  clocks.cpu_reading_ns = 50 * kMs;
  EXPECT_FALSE(clocks.nap(10, 10, 0));
  clocks.cpu_reading_ns = 500;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(clocks.nap(10, 10, 0));
  EXPECT_EQ(clocks.cpu_readings, 11);
}

}  // namespace
}  // namespace dial9::internal
