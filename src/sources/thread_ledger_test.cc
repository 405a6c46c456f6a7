// A thread's time is split exactly, and only what is proven is called seen.
// SPDX-License-Identifier: Apache-2.0
#include "sources/thread_ledger.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace dial9::internal {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

SchedReading account(std::uint64_t run_ms, std::uint64_t wait_ms, std::uint64_t slices) {
  return {run_ms * kMs, wait_ms * kMs, slices};
}

void expect_sums(const ThreadTimes& times) {
  EXPECT_EQ(times.running_ns + times.runnable_ns + times.blocked_ns, times.elapsed_ns);
  EXPECT_LE(times.seen_ns + times.share_ns, times.blocked_ns);
}

TEST(ThreadLedger, AWaitThatGoesOnIsProvenForAsLongAsTheSliceCountStands) {
  ThreadLedger ledger(0, account(5, 1, 7));
  EXPECT_FALSE(ledger.look(0, account(5, 1, 7), true));
  EXPECT_FALSE(ledger.look(20 * kMs, account(5, 1, 7), true));
  EXPECT_FALSE(ledger.look(1'000 * kMs, account(5, 1, 7), true));
  // 30 ms later it runs: 10 on a CPU and 2 in the queue are the kernel's; 18 it was blocked still.
  const auto ended = ledger.look(1'030 * kMs, account(15, 3, 8), false);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->since_ns, 0U);
  EXPECT_EQ(ended->seen_ns, 1'000 * kMs);
  EXPECT_EQ(ended->share_ns, 18 * kMs);
  const ThreadTimes times = ledger.take_times();
  expect_sums(times);
  EXPECT_EQ(times.blocked_ns, 1'018 * kMs);
  EXPECT_EQ(times.running_ns, 10 * kMs);
  EXPECT_EQ(times.runnable_ns, 2 * kMs);
}

TEST(ThreadLedger, TheTimeBetweenTwoWaitsIsSharedByBothAndProvenOfNeither) {
  ThreadLedger ledger(0, account(0, 0, 1));
  ledger.look(0, account(0, 0, 1), true);
  ledger.look(100 * kMs, account(0, 0, 1), true);
  const auto first = ledger.look(120 * kMs, account(4, 0, 2), true);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->seen_ns, 100 * kMs);
  EXPECT_EQ(first->share_ns, 8 * kMs);
  EXPECT_TRUE(ledger.is_waiting());
  const auto second = ledger.look(130 * kMs, account(14, 0, 3), false);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->since_ns, 120 * kMs);
  EXPECT_EQ(second->seen_ns, 0U);
  EXPECT_EQ(second->share_ns, 8 * kMs);
  expect_sums(ledger.take_times());
}

TEST(ThreadLedger, AWaitBetweenTwoLooksIsBlockedTimeOfNoStack) {
  ThreadLedger ledger(0, account(0, 0, 1));
  EXPECT_FALSE(ledger.look(20 * kMs, account(5, 0, 9), false));
  const ThreadTimes times = ledger.take_times();
  expect_sums(times);
  EXPECT_EQ(times.blocked_ns, 15 * kMs);
  EXPECT_EQ(times.seen_ns + times.share_ns, 0U);
}

TEST(ThreadLedger, WaitingForACpuThatTheKernelTellsLateIsTakenOffTheWaitThatWasSeen) {
  ThreadLedger ledger(0, account(0, 0, 1));
  ledger.look(0, account(0, 0, 1), true);
  ledger.look(100 * kMs, account(0, 0, 1), true);
  // Woken 60 ms ago, 50 of them before the last look.
  const auto ended = ledger.look(110 * kMs, account(0, 60, 2), false);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->seen_ns, 50 * kMs);
  EXPECT_EQ(ended->share_ns, 0U);
  const ThreadTimes times = ledger.take_times();
  expect_sums(times);
  EXPECT_EQ(times.runnable_ns, 60 * kMs);
  EXPECT_EQ(times.blocked_ns, 50 * kMs);
  EXPECT_EQ(times.seen_ns, 50 * kMs);
}

TEST(ThreadLedger, RunTimeThatTheKernelTellsLateIsBookedLaterAndNeverTwice) {
  ThreadLedger ledger(0, account(0, 0, 1));
  ledger.look(10 * kMs, account(0, 0, 1), false);   // ran all along
  ledger.look(20 * kMs, account(16, 0, 1), false);  // the tick told
  ledger.look(40 * kMs, account(16, 0, 1), false);
  const ThreadTimes times = ledger.take_times();
  expect_sums(times);
  EXPECT_EQ(times.running_ns, 16 * kMs);
  EXPECT_EQ(times.elapsed_ns, 40 * kMs);
}

TEST(ThreadLedger, PiecesOfAWaitAddUpToIt) {
  ThreadLedger ledger(0, account(0, 0, 1));
  ledger.look(0, account(0, 0, 1), true);
  ledger.look(5'000 * kMs, account(0, 0, 1), true);
  const SeenWait piece = ledger.take_piece();
  EXPECT_FALSE(piece.is_continued);
  EXPECT_EQ(piece.seen_ns, 5'000 * kMs);
  ledger.look(7'000 * kMs, account(0, 0, 1), true);
  const auto rest = ledger.look(7'000 * kMs, account(0, 0, 2), false);
  ASSERT_TRUE(rest);
  EXPECT_TRUE(rest->is_continued);
  EXPECT_EQ(rest->since_ns, 5'000 * kMs);
  EXPECT_EQ(rest->seen_ns, 2'000 * kMs);
}

// A wait that was seen for 100 ms, and whose thread was charged for nothing up to 140.
ThreadLedger stayed() {
  ThreadLedger ledger(0, account(0, 0, 1));
  ledger.look(0, account(0, 0, 1), true);
  ledger.look(100 * kMs, account(0, 0, 1), true);
  ledger.stay(120 * kMs);
  ledger.stay(140 * kMs);
  return ledger;
}

TEST(ThreadLedger, AStayIsProvenByASliceCountThatStandsAfterIt) {
  ThreadLedger ledger = stayed();
  EXPECT_FALSE(ledger.look(160 * kMs, account(0, 0, 1), true));
  const ThreadTimes times = ledger.take_times();
  expect_sums(times);
  EXPECT_EQ(times.seen_ns, 160 * kMs);
  EXPECT_EQ(times.elapsed_ns, 160 * kMs);
}

TEST(ThreadLedger, AStayIsProvenByTheOnlySliceAfterItWhichWasCharged) {
  ThreadLedger ledger = stayed();
  const auto ended = ledger.look(160 * kMs, account(5, 0, 2), false);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->seen_ns, 140 * kMs);
  EXPECT_EQ(ended->share_ns, 15 * kMs);
  expect_sums(ledger.take_times());
}

TEST(ThreadLedger, AStayBeforeSeveralSlicesIsAnEstimateAndThatWaitsAlone) {
  ThreadLedger ledger = stayed();
  const auto ended = ledger.look(160 * kMs, account(4, 0, 4), true);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->seen_ns, 100 * kMs) << "an earlier slice may have been too short for the clock";
  EXPECT_EQ(ended->share_ns, (40 + 8) * kMs);
  const auto next = ledger.look(160 * kMs, account(4, 0, 5), false);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->share_ns, 8 * kMs);
  const ThreadTimes times = ledger.take_times();
  expect_sums(times);
  EXPECT_EQ(times.elapsed_ns, 160 * kMs);
}

TEST(ThreadLedger, ASliceThatWasNotChargedProvesNothingOfTheStayBeforeIt) {
  ThreadLedger ledger = stayed();
  const auto ended = ledger.look(160 * kMs, account(0, 0, 2), false);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->seen_ns, 100 * kMs);
  EXPECT_EQ(ended->share_ns, 60 * kMs);
  expect_sums(ledger.take_times());
}

TEST(ThreadLedger, WaitingForACpuComesOffAStayThatItBeganIn) {
  ThreadLedger ledger = stayed();
  const auto ended = ledger.look(160 * kMs, account(10, 30, 2), false);  // woken at 120
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->seen_ns, 120 * kMs);
  EXPECT_EQ(ended->share_ns, 0U);
  const ThreadTimes times = ledger.take_times();
  expect_sums(times);
  EXPECT_EQ(times.runnable_ns, 30 * kMs);
  EXPECT_EQ(times.blocked_ns, 120 * kMs);
}

TEST(ThreadLedger, OfAThreadThatEndedWhileItStayedThatIsAnEstimate) {
  ThreadLedger ledger = stayed();
  ledger.end();
  ledger.end();
  const SeenWait wait = ledger.take_piece();
  EXPECT_EQ(wait.seen_ns, 100 * kMs);
  EXPECT_EQ(wait.share_ns, 40 * kMs);
  const ThreadTimes times = ledger.take_times();
  expect_sums(times);
  EXPECT_EQ(times.elapsed_ns, 140 * kMs);
  EXPECT_EQ(ledger.at_ns(), 140 * kMs);
}

TEST(ThreadLedger, AnAccountThatFallsIsAnotherThreads) {
  ThreadLedger ledger(0, account(5, 1, 7));
  EXPECT_TRUE(ledger.is_other(account(5, 1, 6)));
  EXPECT_TRUE(ledger.is_other(account(4, 1, 8)));
  EXPECT_FALSE(ledger.is_other(account(5, 1, 7)));
}

// The slow reference: a thread's true states, millisecond by millisecond, looked at at random. The
// kernel's account of it is kept as the kernel does: a slice counts as it ends, or at the tick.
TEST(ThreadLedger, OverRandomLivesSumsAreExactAndTotalsAreTheTrueOnes) {
  std::minstd_rand random(11);
  for (int life = 0; life < 200; ++life) {
    SchedReading now{0, 0, 1};
    std::uint64_t true_run = 0;
    std::uint64_t true_wait = 0;
    std::uint64_t looked_at_run = 0;
    std::uint64_t pending_run = 0;
    std::uint64_t pending_wait = 0;
    int state = 0;  // 0 runs, 1 blocked, 2 in the queue
    ThreadLedger ledger(0, now);
    ThreadTimes sum;
    const auto add = [&] {
      const ThreadTimes times = ledger.take_times();
      expect_sums(times);
      sum.elapsed_ns += times.elapsed_ns;
      sum.running_ns += times.running_ns;
      sum.runnable_ns += times.runnable_ns;
      sum.blocked_ns += times.blocked_ns;
    };
    std::uint64_t ms = 0;
    const auto tick = [&](int to) {
      true_run += state == 0 ? kMs : 0;
      true_wait += state == 2 ? kMs : 0;
      (state == 0 ? pending_run : pending_wait) += state == 1 ? 0 : kMs;
      ++ms;
      if (state == 0 && to != 0) now.run_ns += std::exchange(pending_run, 0);
      if (state == 2 && to == 0) now.wait_ns += std::exchange(pending_wait, 0);
      if (state != 0 && to == 0) ++now.slices;
      state = to;
    };
    for (int i = 0; i < 2'000; ++i) {
      const auto draw = random() % 20;
      const int to = draw == 0 ? (state == 0 ? 1 : (state == 1 ? 2 : 0)) : state;
      tick(to);
      if (random() % 7 == 0) {
        if (ledger.is_waiting() && true_run == looked_at_run && random() % 2 == 0) {
          ledger.stay(ms * kMs);
        } else {
          ledger.look(ms * kMs, now, state == 1);
          looked_at_run = true_run;
        }
      }
      if (random() % 50 == 0) add();
    }
    // A long wait at the end, and a run: all is told by then.
    while (state != 1) tick((state + 1) % 3 == 0 ? 0 : 1);
    for (int i = 0; i < 3'000; ++i) tick(1);
    tick(0);
    tick(1);
    ledger.look(ms * kMs, now, false);
    add();
    EXPECT_EQ(sum.elapsed_ns, ms * kMs);
    EXPECT_EQ(sum.running_ns, true_run);
    EXPECT_EQ(sum.runnable_ns, true_wait);
  }
}

// A thread that waits, and runs now and then without a charge or with one; looked at or seen to
// stay at random. The slow references: each slice, and a ledger that looks each time.
TEST(ThreadLedger, NoSliceLiesInWhatIsProvenWhateverTheClockMisses) {
  std::minstd_rand random(29);
  std::uint64_t proven = 0;
  std::uint64_t most = 0;
  for (int life = 0; life < 300; ++life) {
    SchedReading now{kMs, 0, 1};
    std::uint64_t looked_at_run = now.run_ns;
    std::vector<std::uint64_t> slices;
    ThreadLedger ledger(0, now);
    ThreadLedger looking(0, now);
    ledger.look(0, now, true);
    looking.look(0, now, true);
    for (std::uint64_t at = 1; at < 3'000; ++at) {
      const auto draw = random() % 100;
      if (draw < 2) {
        ++now.slices;
        if (draw == 0) now.run_ns += 1;
        slices.push_back(at);
      }
      if (random() % 5 != 0) continue;
      if (const auto ended = looking.look(at, now, true)) most += ended->seen_ns;
      if (now.run_ns == looked_at_run && random() % 4 != 0) {
        ledger.stay(at);
        continue;
      }
      looked_at_run = now.run_ns;
      const auto ended = ledger.look(at, now, true);
      if (!ended) continue;
      proven += ended->seen_ns;
      for (const std::uint64_t slice : slices) {
        EXPECT_FALSE(slice > ended->since_ns && slice <= ended->since_ns + ended->seen_ns);
      }
    }
    expect_sums(ledger.take_times());
  }
  EXPECT_LE(proven, most);
  EXPECT_GT(proven, most / 2) << "a stay is worth something";
}

}  // namespace
}  // namespace dial9::internal
