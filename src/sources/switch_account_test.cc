// A thread's time by its switches: the split is exact while none is lost, and what a wake-up's wait
// for a CPU was is told only where it can be.
// SPDX-License-Identifier: Apache-2.0
#include "sources/switch_account.h"

#include <gtest/gtest.h>

#include <random>

namespace dial9::internal {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

ThreadSwitch in(std::uint64_t ms) { return {.at_ns = ms * kMs, .kind = SwitchKind::kIn}; }
ThreadSwitch blocked(std::uint64_t ms) { return {.at_ns = ms * kMs, .kind = SwitchKind::kBlocked}; }
ThreadSwitch preempted(std::uint64_t ms) {
  return {.at_ns = ms * kMs, .kind = SwitchKind::kPreempted};
}
ThreadSwitch lost(std::uint64_t ms) {
  return {.at_ns = ms * kMs, .lost = 3, .kind = SwitchKind::kLost};
}

SchedReading reading(std::uint64_t wait_ms, std::uint64_t slices) {
  return {0, wait_ms * kMs, slices};
}

class SwitchAccountTest : public ::testing::Test {
 protected:
  void book(const std::vector<ThreadSwitch>& switches, std::uint64_t at_ms,
            const SchedReading& account) {
    subject.book(switches, at_ms * kMs, account);
  }
  std::vector<OffStretch> ended() {
    std::vector<OffStretch> stretches;
    subject.take_ended(&stretches);
    return stretches;
  }
  std::vector<OffStretch> all() {
    std::vector<OffStretch> stretches;
    subject.take_all(true, &stretches);
    return stretches;
  }
  // Running from 10 ms on, all before that taken.
  void start_running() {
    book({in(10)}, 10, reading(0, 1));
    all();
    subject.take_times();
  }
  SwitchAccount subject;
};

TEST_F(SwitchAccountTest, NothingIsSaidBeforeTheFirstSwitch) {
  book({}, 5, reading(0, 1));
  EXPECT_FALSE(subject.is_known());
  EXPECT_FALSE(subject.take_times());
  EXPECT_TRUE(all().empty());
}

TEST_F(SwitchAccountTest, TheFirstSwitchInEndsAStretchWhoseBeginIsNotKnown) {
  book({in(10)}, 12, reading(0, 1));
  const auto stretches = ended();
  ASSERT_EQ(stretches.size(), 1U);
  EXPECT_EQ(stretches[0].from_ns, 0U);
  EXPECT_EQ(stretches[0].to_ns, 10 * kMs);
  EXPECT_FALSE(subject.take_times()) << "it isn't known throughout";
}

TEST_F(SwitchAccountTest, ABlockedStretchIsFromSwitchToSwitchAndItsWaitForACpuFromTheAccount) {
  start_running();
  book({blocked(20), in(50)}, 60, reading(4, 2));
  const auto stretches = ended();
  ASSERT_EQ(stretches.size(), 1U);
  EXPECT_EQ(stretches[0].from_ns, 20 * kMs);
  EXPECT_EQ(stretches[0].to_ns, 50 * kMs);
  EXPECT_FALSE(stretches[0].is_preempted);
  EXPECT_EQ(stretches[0].runnable_ns, 4 * kMs);
  subject.add_seen(stretches[0]);
  const auto times = subject.take_times();
  ASSERT_TRUE(times);
  EXPECT_EQ(times->elapsed_ns, 50 * kMs);
  EXPECT_EQ(times->running_ns, 20 * kMs);
  EXPECT_EQ(times->blocked_ns, 26 * kMs);
  EXPECT_EQ(times->runnable_ns, 4 * kMs);
  EXPECT_EQ(times->seen_ns, 26 * kMs);
}

TEST_F(SwitchAccountTest, APreemptedStretchIsRunnableAndNoneOfAWakeUps) {
  start_running();
  book({preempted(20), in(27), blocked(30), in(40)}, 40, reading(7 + 2, 3));
  const auto stretches = ended();
  ASSERT_EQ(stretches.size(), 2U);
  EXPECT_TRUE(stretches[0].is_preempted);
  EXPECT_EQ(stretches[0].length_ns(), 7 * kMs);
  EXPECT_FALSE(stretches[0].runnable_ns);
  EXPECT_EQ(stretches[1].runnable_ns, 2 * kMs);
  const auto times = subject.take_times();
  ASSERT_TRUE(times);
  EXPECT_EQ(times->runnable_ns, 9 * kMs);
  EXPECT_EQ(times->blocked_ns, 8 * kMs);
  EXPECT_EQ(times->running_ns, 13 * kMs);
}

TEST_F(SwitchAccountTest, OfSeveralWakeUpsTheWaitForACpuIsTheThreadsAndOfNoneOfThem) {
  start_running();
  book({blocked(20), in(30), blocked(31), in(40)}, 40, reading(5, 3));
  for (const OffStretch& stretch : ended()) {
    EXPECT_FALSE(stretch.runnable_ns);
    subject.add_seen(stretch);
  }
  const auto times = subject.take_times();
  ASSERT_TRUE(times);
  EXPECT_EQ(times->runnable_ns, 5 * kMs);
  EXPECT_EQ(times->blocked_ns, 14 * kMs);
  EXPECT_EQ(times->seen_ns, 14 * kMs) << "never more than blocked";
}

TEST_F(SwitchAccountTest, AnAccountThatIsBehindTheSwitchesIsWaitedForOnce) {
  start_running();
  book({blocked(20), in(30)}, 30, reading(0, 1));  // read before the switch in
  EXPECT_TRUE(ended().empty());
  book({}, 40, reading(3, 2));
  const auto stretches = ended();
  ASSERT_EQ(stretches.size(), 1U);
  EXPECT_EQ(stretches[0].runnable_ns, 3 * kMs);
  book({blocked(50), in(60)}, 60, reading(3, 9));
  EXPECT_TRUE(ended().empty());
  book({}, 70, reading(3, 9));
  const auto unmatched = ended();
  ASSERT_EQ(unmatched.size(), 1U);
  EXPECT_FALSE(unmatched[0].runnable_ns) << "slices that aren't switches: nothing is said";
}

TEST_F(SwitchAccountTest, WhatGoesOnIsTakenInPiecesThatFollowOnEachOther) {
  start_running();
  book({blocked(20)}, 40, reading(0, 1));
  const auto first = all();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_TRUE(first[0].goes_on);
  EXPECT_FALSE(first[0].is_continued);
  EXPECT_EQ(first[0].to_ns, 40 * kMs);
  book({in(55)}, 60, reading(2, 2));
  const auto last = all();
  ASSERT_EQ(last.size(), 1U);
  EXPECT_TRUE(last[0].is_continued);
  EXPECT_FALSE(last[0].goes_on);
  EXPECT_EQ(last[0].from_ns, 40 * kMs);
  EXPECT_EQ(last[0].to_ns, 55 * kMs);
  EXPECT_EQ(last[0].runnable_ns, 2 * kMs);
}

TEST_F(SwitchAccountTest, SwitchesAfterTheReadingWaitForTheNext) {
  start_running();
  book({blocked(20), in(30)}, 25, reading(0, 1));
  EXPECT_TRUE(ended().empty());
  auto times = subject.take_times();
  ASSERT_TRUE(times);
  EXPECT_EQ(times->running_ns, 10 * kMs);
  EXPECT_EQ(times->blocked_ns, 5 * kMs);
  book({}, 35, reading(0, 2));
  EXPECT_EQ(ended().size(), 1U);
  times = subject.take_times();
  ASSERT_TRUE(times);
  EXPECT_EQ(times->running_ns, 5 * kMs);
  EXPECT_EQ(times->blocked_ns, 5 * kMs);
}

TEST_F(SwitchAccountTest, AfterALossNothingIsSaidUntilTheNextSwitch) {
  start_running();
  book({blocked(20), lost(30)}, 40, reading(0, 5));
  EXPECT_FALSE(subject.is_known());
  EXPECT_EQ(subject.losses(), 1U);
  EXPECT_TRUE(all().empty()) << "when it ended isn't known";
  EXPECT_FALSE(subject.take_times());
  book({in(50), blocked(60), in(65)}, 70, reading(0, 7));
  const auto stretches = ended();
  ASSERT_EQ(stretches.size(), 2U);
  EXPECT_EQ(stretches[0].from_ns, 0U);
  EXPECT_EQ(stretches[1].from_ns, 60 * kMs);
  EXPECT_FALSE(subject.take_times());
  book({}, 80, reading(0, 7));
  EXPECT_TRUE(subject.take_times());
}

TEST_F(SwitchAccountTest, TheSameSwitchTwiceIsALoss) {
  start_running();
  book({in(20)}, 30, reading(0, 2));
  EXPECT_EQ(subject.losses(), 1U);
  EXPECT_TRUE(subject.is_known());
  EXPECT_FALSE(subject.take_times());
}

TEST_F(SwitchAccountTest, AnySwitchesAndReadingsLeaveExactSumsAndStretchesInOrder) {
  std::mt19937_64 random(9);
  std::uint64_t now_ms = 1;
  SchedReading account;
  for (int i = 0; i < 2'000; ++i) {
    std::vector<ThreadSwitch> switches;
    for (std::uint64_t n = random() % 6; n > 0; --n) {
      now_ms += random() % 3;
      const auto kind = static_cast<SwitchKind>(random() % 20 == 0 ? 3 : random() % 3);
      switches.push_back({.at_ns = now_ms * kMs, .kind = kind});
      account.slices += random() % 4 == 0 ? 0 : 1;
      account.wait_ns += random() % 3 * kMs;
    }
    book(switches, now_ms + random() % 4 - random() % 2, account);
    std::uint64_t last_ns = 0;
    for (const OffStretch& stretch : random() % 2 == 0 ? ended() : all()) {
      EXPECT_LE(stretch.from_ns, stretch.to_ns);
      if (stretch.from_ns != 0) {
        EXPECT_LE(last_ns, stretch.from_ns);
      }
      last_ns = stretch.to_ns;
      subject.add_seen(stretch);
    }
    if (random() % 3 != 0) continue;
    if (const auto times = subject.take_times()) {
      EXPECT_EQ(times->running_ns + times->runnable_ns + times->blocked_ns, times->elapsed_ns);
      EXPECT_LE(times->seen_ns, times->blocked_ns);
    }
  }
}

}  // namespace
}  // namespace dial9::internal
