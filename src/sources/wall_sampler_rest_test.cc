// A thread that rests is told by its CPU clock, its account looked at now and then: what is written
// of it is what looks at the account alone would write, but for what its clock can't prove.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "recorder/test_support.h"
#include "sources/testing/fake_probe.h"
#include "sources/wall_sampler.h"

namespace dial9::internal {
namespace {

using namespace testing;

constexpr std::uint64_t kStartNs = 1'000 * kMs;

class WallSamplerRest : public ::testing::Test {
 protected:
  WallSamplerRest() { probe.now = kStartNs; }
  // Steps whenever a step is due, for so long.
  void run(std::uint64_t ns) {
    const std::uint64_t end = probe.now + ns;
    while (sampler.due_ns() <= end) {
      probe.now = std::max(probe.now, sampler.due_ns());
      sampler.step(probe.now);
    }
    probe.now = end;
  }
  // The same, with looks as often as where threads run.
  void run_beside_one_that_runs(std::uint64_t ns) {
    for (std::uint64_t passed = 0; passed < ns; passed += 10 * kMs) {
      ++probe.threads[1].account.slices;
      probe.threads[1].state = Look::kRunning;
      run(10 * kMs);
    }
  }
  void finish() {
    sampler.finish();
    std::vector<std::uint8_t> bytes;
    for (const SourceStream& stream : encoder.take()) {
      bytes.insert(bytes.end(), stream.bytes.begin(), stream.bytes.end());
    }
    trace = Trace::of(bytes);
  }
  // Of the thread, summed over its events.
  std::uint64_t sum(const char* event, const char* field, std::uint64_t tid) const {
    const auto tids = trace.numbers(event, "tid");
    const auto values = trace.numbers(event, field);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < tids.size(); ++i) total += tids[i] == tid ? values[i] : 0;
    return total;
  }

  FakeProbe probe;
  OffCpuEncoder encoder;
  WallSampler sampler{probe, encoder, 50};
  Trace trace;
};

TEST_F(WallSamplerRest, AMinuteOfRestTakesFewAccountsAndIsProvenToItsEnd) {
  probe.threads[7] = {};
  run_beside_one_that_runs(60'000 * kMs);
  const std::uint64_t looks = sampler.totals().looks / 2;
  const std::uint64_t accounts = probe.accounts - looks;  // the other has one a look
  EXPECT_GT(looks, 2'500U);
  EXPECT_LT(accounts, looks / 10);
  EXPECT_GT(probe.clocks, looks * 9 / 10);
  EXPECT_EQ(probe.looks, 1 + looks) << "one stack";
  finish();
  EXPECT_EQ(sum("OffCpuEvent", "duration_ns", 7), probe.now - trace.stamps("OffCpuEvent").at(0));
  EXPECT_EQ(sum("OffCpuEvent", "share_ns", 7), 0U);
  EXPECT_EQ(sum("ThreadTimesEvent", "elapsed_ns", 7), sum("ThreadTimesEvent", "blocked_ns", 7));
}

TEST_F(WallSamplerRest, ShortWaitsAreNeverToldByTheClock) {
  FakeThread& thread = probe.threads[7];
  for (int i = 0; i < 50; ++i) {
    ++thread.account.slices;
    run(100 * kMs);
  }
  EXPECT_EQ(probe.clocks, 0U);
}

TEST_F(WallSamplerRest, OneSliceEndsAWaitThatIsProvenUpToTheLastLookBeforeIt) {
  FakeThread& thread = probe.threads[7];
  run_beside_one_that_runs(10'000 * kMs);
  const std::uint64_t ran_ns = probe.now;
  ++thread.account.slices;
  thread.account.run_ns += kMs;
  run_beside_one_that_runs(100 * kMs);
  finish();
  const auto stamps = trace.stamps("OffCpuEvent");
  const auto lengths = trace.numbers("OffCpuEvent", "duration_ns");
  std::uint64_t proven_until = 0;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    if (stamps[i] < ran_ns) proven_until = std::max(proven_until, stamps[i] + lengths[i]);
  }
  EXPECT_LE(proven_until, ran_ns);
  EXPECT_GE(proven_until, ran_ns - 30 * kMs) << "not more than the time between two looks";
}

TEST_F(WallSamplerRest, WhereSeveralSlicesEndAWaitAThirtySecondOfItIsAnEstimateAtMost) {
  FakeThread& thread = probe.threads[7];
  run_beside_one_that_runs(10'000 * kMs);
  const std::uint64_t ran_ns = probe.now;
  thread.account.slices += 3;
  thread.account.run_ns += kMs;
  run_beside_one_that_runs(100 * kMs);
  finish();
  const auto stamps = trace.stamps("OffCpuEvent");
  const auto lengths = trace.numbers("OffCpuEvent", "duration_ns");
  const auto shares = trace.numbers("OffCpuEvent", "share_ns");
  std::uint64_t proven_until = 0;
  std::uint64_t told = 0;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    if (stamps[i] >= ran_ns) continue;
    proven_until = std::max(proven_until, stamps[i] + lengths[i]);
    told += lengths[i] + shares[i];
  }
  EXPECT_LE(proven_until, ran_ns);
  EXPECT_GE(proven_until, ran_ns - 10'000 * kMs / WallSampler::kClockShare - 60 * kMs);
  EXPECT_GE(told, 9'950 * kMs) << "what isn't proven is this wait's by estimate";
  EXPECT_EQ(sum("OffCpuEvent", "share_ns", 7), sum("ThreadTimesEvent", "share_ns", 7));
  EXPECT_EQ(sum("OffCpuEvent", "duration_ns", 7), sum("ThreadTimesEvent", "seen_ns", 7));
}

// It woke, looked and slept again, within what the kernel took off for an interrupt.
TEST_F(WallSamplerRest, ASliceThatWasNotChargedIsFoundByTheNextAccountAndNothingIsProvenAcrossIt) {
  FakeThread& thread = probe.threads[7];
  run_beside_one_that_runs(10'000 * kMs);
  const std::uint64_t ran_ns = probe.now;
  ++thread.account.slices;
  ++thread.uncharged_slices;
  run_beside_one_that_runs(5'000 * kMs);
  finish();
  const auto tids = trace.numbers("OffCpuEvent", "tid");
  const auto stamps = trace.stamps("OffCpuEvent");
  const auto lengths = trace.numbers("OffCpuEvent", "duration_ns");
  std::uint64_t next = ~std::uint64_t{0};
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    if (tids[i] != 7) continue;
    if (stamps[i] > ran_ns) next = std::min(next, stamps[i]);
    EXPECT_FALSE(stamps[i] < ran_ns && stamps[i] + lengths[i] > ran_ns) << i;
  }
  EXPECT_LE(next, ran_ns + 10'000 * kMs / WallSampler::kClockShare + 60 * kMs);
}

// For want of a descriptor, say.
TEST_F(WallSamplerRest, AClockThatMovedIsNoMeasureUntilAnAccountSaysWhatItWasOf) {
  FakeThread& thread = probe.threads[7];
  run_beside_one_that_runs(12'000 * kMs);
  const std::uint64_t ran_ns = probe.now;
  ++thread.account.slices;
  thread.account.run_ns += kMs;
  probe.has_accounts = false;
  run_beside_one_that_runs(100 * kMs);
  probe.has_accounts = true;
  run_beside_one_that_runs(1'000 * kMs);
  finish();
  const auto tids = trace.numbers("OffCpuEvent", "tid");
  const auto stamps = trace.stamps("OffCpuEvent");
  const auto lengths = trace.numbers("OffCpuEvent", "duration_ns");
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    EXPECT_FALSE(tids[i] == 7 && stamps[i] < ran_ns && stamps[i] + lengths[i] > ran_ns) << i;
  }
}

TEST_F(WallSamplerRest, AThreadIdThatIsUsedAgainWithTheSameChargeIsFoundByItsAccount) {
  FakeThread& thread = probe.threads[7];
  thread.account = {0, 0, 90};
  run_beside_one_that_runs(10'000 * kMs);
  const std::uint64_t ended_ns = probe.now;
  thread.account = {(90 - 2) * kLookCostNs, 0, 2};
  ASSERT_EQ(probe.charged_ns(7), 90 * kLookCostNs);
  run_beside_one_that_runs(2'000 * kMs);
  finish();
  const auto tids = trace.numbers("OffCpuEvent", "tid");
  const auto stamps = trace.stamps("OffCpuEvent");
  const auto lengths = trace.numbers("OffCpuEvent", "duration_ns");
  bool has_new = false;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    if (tids[i] != 7) continue;
    has_new |= stamps[i] > ended_ns;
    EXPECT_FALSE(stamps[i] < ended_ns && stamps[i] + lengths[i] > ended_ns) << i;
  }
  EXPECT_TRUE(has_new);
}

// Its account is no lower than that of the one before it.
TEST_F(WallSamplerRest, AnotherThreadWithTheIdOfOneThatEndedDoesntGoOnWithItsTimes) {
  FakeThread& thread = probe.threads[7];
  run_beside_one_that_runs(1'000 * kMs);
  const std::uint64_t ended_ns = probe.now;
  probe.replaced = 7;
  thread.account = {300 * kMs, 0, 50};
  run_beside_one_that_runs(1'000 * kMs);
  finish();
  EXPECT_EQ(probe.forgotten.front(), 7U);
  EXPECT_EQ(sum("ThreadTimesEvent", "running_ns", 7), 0U) << "it ran before it was looked at";
  const auto tids = trace.numbers("OffCpuEvent", "tid");
  const auto stamps = trace.stamps("OffCpuEvent");
  const auto lengths = trace.numbers("OffCpuEvent", "duration_ns");
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    EXPECT_FALSE(tids[i] == 7 && stamps[i] < ended_ns && stamps[i] + lengths[i] > ended_ns) << i;
  }
}

// What is kept under the id may be another's, who ended before this one was known.
TEST_F(WallSamplerRest, AThreadThatIsNotKnownAndHasNoAccountIsForgotten) {
  probe.has_accounts = false;
  probe.threads[7] = {};
  run(100 * kMs);
  EXPECT_TRUE(std::ranges::count(probe.forgotten, 7U) > 0);
}

TEST_F(WallSamplerRest, WhatAThreadThatEndedRestedSinceItsAccountIsAnEstimate) {
  probe.threads[7] = {};
  run_beside_one_that_runs(10'000 * kMs);
  const std::uint64_t ended_ns = probe.now;
  probe.threads.erase(7);
  run_beside_one_that_runs(500 * kMs);
  finish();
  const std::uint64_t proven = sum("OffCpuEvent", "duration_ns", 7);
  const std::uint64_t estimated = sum("OffCpuEvent", "share_ns", 7);
  EXPECT_GT(estimated, 0U);
  EXPECT_LE(estimated, proven / WallSampler::kClockShare);
  EXPECT_LE(kStartNs + proven + estimated, ended_ns);
  EXPECT_GE(kStartNs + proven + estimated, ended_ns - 60 * kMs);
  EXPECT_EQ(sum("ThreadTimesEvent", "elapsed_ns", 7), sum("ThreadTimesEvent", "blocked_ns", 7));
}

TEST_F(WallSamplerRest, WhereClocksAreRefusedEachLookReadsTheAccountAndTheSameIsWritten) {
  probe.has_clocks = false;
  probe.threads[7] = {};
  run(60'000 * kMs);
  EXPECT_GE(probe.accounts, sampler.totals().looks);
  finish();
  EXPECT_EQ(sum("OffCpuEvent", "duration_ns", 7), probe.now - trace.stamps("OffCpuEvent").at(0));
}

TEST_F(WallSamplerRest, AThreadWhoseSwitchesAreFollowedIsToldByThem) {
  probe.threads[7] = {.is_followed = true};
  run(60'000 * kMs);
  EXPECT_EQ(probe.clocks, 0U);
}

TEST_F(WallSamplerRest, ASlowConnectionIsReadWhenItIsDueWithItsAccount) {
  probe.threads[7].has_socket = true;
  run_beside_one_that_runs(30'000 * kMs);
  finish();
  const auto waited = trace.numbers("SocketWaitEvent", "waited_ns");
  ASSERT_GE(waited.size(), 8U);
  for (std::size_t i = 1; i < waited.size(); ++i) {
    EXPECT_LE(waited[i], 2 * waited[i - 1] + 30 * kMs) << "not later than the next look";
  }
}

TEST_F(WallSamplerRest, ThreadsThatStayAreListedSeldom) {
  for (std::uint32_t tid = 2; tid < 20; ++tid) probe.threads[tid] = {};
  run_beside_one_that_runs(60'000 * kMs);
  EXPECT_LE(probe.lists, 20U);
  EXPECT_GE(probe.lists, 12U) << "now and then, whatever their number says";
}

TEST_F(WallSamplerRest, WhereTheyCantBeCountedThreadsAreListedTenTimesASecond) {
  probe.has_count = false;
  probe.threads[7] = {};
  run_beside_one_that_runs(10'000 * kMs);
  EXPECT_GT(probe.lists, 75U);
}

TEST_F(WallSamplerRest, AThreadThatComesIsSeenWithTheNextList) {
  probe.threads[7] = {};
  run_beside_one_that_runs(5'000 * kMs);
  probe.threads[8] = {};
  run_beside_one_that_runs(130 * kMs);
  EXPECT_EQ(sampler.totals().threads, 3U);
  EXPECT_EQ(sampler.totals().stacks, 2U);
}

TEST_F(WallSamplerRest, AThreadThatTakesTheOnlyPlaceOfAnotherIsSeenWithTheListAfter) {
  probe.threads[7] = {};
  run_beside_one_that_runs(5'000 * kMs);
  probe.threads.erase(7);
  probe.threads[8] = {};
  run_beside_one_that_runs(250 * kMs);
  EXPECT_EQ(sampler.totals().stacks, 2U);
  EXPECT_EQ(probe.forgotten, std::vector<std::uint32_t>{7});
}

TEST_F(WallSamplerRest, WhereThreadsTakeEachOthersPlacesAllTheTimeTheyAreListedAsOftenAsEver) {
  std::uint32_t tid = 10;
  run_beside_one_that_runs(2'000 * kMs);
  for (int i = 0; i < 20; ++i) {
    probe.threads.erase(tid);
    probe.threads[++tid] = {};
    run_beside_one_that_runs(500 * kMs);
  }
  EXPECT_GE(sampler.totals().stacks, 20U);
  EXPECT_GT(probe.lists, 75U);
}

}  // namespace
}  // namespace dial9::internal
