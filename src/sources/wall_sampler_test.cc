// The schedule of looks, and what is written of them, over threads that a test makes up.
// SPDX-License-Identifier: Apache-2.0
#include "sources/wall_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "recorder/test_support.h"
#include "sources/testing/fake_probe.h"

namespace dial9::internal {
namespace {

using namespace testing;

class WallSamplerTest : public ::testing::Test {
 protected:
  // Steps whenever a step is due, for so long.
  void run(std::uint64_t ns) {
    const std::uint64_t end = probe.now + ns;
    while (sampler.due_ns() <= end) {
      probe.now = std::max(probe.now, sampler.due_ns());
      sampler.step(probe.now);
    }
    probe.now = end;
  }
  Trace written() {
    std::vector<std::uint8_t> bytes;
    for (const SourceStream& stream : encoder.take()) {
      bytes.insert(bytes.end(), stream.bytes.begin(), stream.bytes.end());
    }
    return Trace::of(bytes);
  }
  static std::uint64_t sum(const std::vector<std::uint64_t>& values) {
    std::uint64_t total = 0;
    for (const std::uint64_t value : values) total += value;
    return total;
  }

  // The thread runs for 1 ms and is blocked for 29.
  void run_once(FakeThread& thread) {
    probe.now += kMs;
    thread.switches.push_back({.at_ns = probe.now - kMs, .kind = SwitchKind::kIn});
    thread.switches.push_back({.at_ns = probe.now, .kind = SwitchKind::kBlocked});
    ++thread.account.slices;
    thread.account.run_ns += kMs;
    thread.account.wait_ns += kMs / 2;
    run(29 * kMs);
  }

  FakeProbe probe;
  OffCpuEncoder encoder;
  WallSampler sampler{probe, encoder, 50};
};

TEST_F(WallSamplerTest, AThreadThatDoesntRunIsLookedAtOnceAndReadFromThenOn) {
  probe.threads[7] = {};
  run(5'000 * kMs);
  EXPECT_EQ(probe.looks, 1U);
  EXPECT_GT(probe.accounts, 10U);
  sampler.finish();
  const Trace trace = written();
  EXPECT_EQ(trace.texts("OffCpuEvent", "call").at(0), "recv");
  EXPECT_EQ(trace.texts("OffCpuEvent", "peer").at(0), "10.0.0.7:6379");
  EXPECT_EQ(trace.numbers("OffCpuEvent", "fd").at(0), 12U);
  EXPECT_EQ(trace.texts("OffCpuEvent", "thread_name").at(0), "made-up");
  const std::uint64_t from = trace.stamps("OffCpuEvent").at(0);
  EXPECT_EQ(sum(trace.numbers("OffCpuEvent", "duration_ns")), probe.now - from);
}

TEST_F(WallSamplerTest, WhereNothingMovesLooksBecomeRareAndComeBackWithTheFirstMove) {
  probe.threads[7] = {};
  run(3'000 * kMs);
  EXPECT_TRUE(sampler.is_idle());
  const std::uint64_t before = probe.accounts;
  run(2'000 * kMs);
  EXPECT_LE(probe.accounts - before, 12U);  // of 250 ms, jittered
  for (int i = 0; i < 100; ++i) {
    ++probe.threads[7].account.slices;
    run(20 * kMs);
  }
  EXPECT_FALSE(sampler.is_idle());
  const std::uint64_t busy = probe.accounts;
  for (int i = 0; i < 100; ++i) {
    ++probe.threads[7].account.slices;
    run(20 * kMs);
  }
  EXPECT_NEAR(static_cast<double>(probe.accounts - busy), 100, 15);
}

TEST_F(WallSamplerTest, UnderABudgetTakesAQuarterOfItAtTheMost) {
  constexpr double kTenthOfAPercentNs = 1e6;
  for (std::uint32_t tid = 1; tid <= 1'000; ++tid) probe.threads[tid] = {};
  sampler.set_budget(kTenthOfAPercentNs);
  const std::uint64_t cpu = probe.cpu;
  const std::uint64_t begin = probe.now;
  for (int i = 0; i < 1'000; ++i) {
    for (auto& [tid, thread] : probe.threads) ++thread.account.slices;
    run(200 * kMs);
  }
  EXPECT_GT(sampler.totals().looks, 100U);
  EXPECT_LE((probe.cpu - cpu) * 4'000, (probe.now - begin) * 11 / 10);
}

TEST_F(WallSamplerTest, TenThousandThreadsThatAllMoveStayWithinATwoHundredthOfACpu) {
  for (std::uint32_t tid = 1; tid <= 10'000; ++tid) probe.threads[tid] = {};
  const std::uint64_t cpu = probe.cpu;
  const std::uint64_t begin = probe.now;
  for (int i = 0; i < 100; ++i) {
    for (auto& [tid, thread] : probe.threads) ++thread.account.slices;
    run(200 * kMs);
  }
  EXPECT_LE((probe.cpu - cpu) * WallSampler::kBudgetShare, (probe.now - begin) * 11 / 10);
  EXPECT_GT(sampler.totals().looks, 10'000U);
  sampler.finish();
  const Trace trace = written();
  EXPECT_GE(trace.count("ThreadTimesEvent"), 10'000U);
  const auto elapsed = trace.numbers("ThreadTimesEvent", "elapsed_ns");
  const auto running = trace.numbers("ThreadTimesEvent", "running_ns");
  const auto runnable = trace.numbers("ThreadTimesEvent", "runnable_ns");
  const auto blocked = trace.numbers("ThreadTimesEvent", "blocked_ns");
  for (std::size_t i = 0; i < elapsed.size(); ++i) {
    ASSERT_EQ(running[i] + runnable[i] + blocked[i], elapsed[i]);
  }
}

TEST_F(WallSamplerTest, EveryBlockedNanosecondIsInOneWaitOrCountedWithoutOne) {
  probe.threads[7] = {};
  probe.threads[8] = {};
  probe.threads[8].state = Look::kMoved;
  for (int i = 0; i < 300; ++i) {
    FakeThread& thread = probe.threads[7];
    thread.account.run_ns += 3 * kMs;
    thread.account.wait_ns += kMs;
    ++thread.account.slices;
    thread.state = i % 3 == 0 ? Look::kRunning : Look::kBlocked;
    run(i % 5 == 0 ? 200 * kMs : 15 * kMs);
  }
  sampler.finish();
  const Trace trace = written();
  EXPECT_EQ(sum(trace.numbers("OffCpuEvent", "duration_ns")),
            sum(trace.numbers("ThreadTimesEvent", "seen_ns")));
  EXPECT_EQ(sum(trace.numbers("OffCpuEvent", "share_ns")),
            sum(trace.numbers("ThreadTimesEvent", "share_ns")));
  EXPECT_GT(sampler.totals().moved, 0U);
  EXPECT_LE(sum(trace.numbers("ThreadTimesEvent", "seen_ns")) +
                sum(trace.numbers("ThreadTimesEvent", "share_ns")),
            sum(trace.numbers("ThreadTimesEvent", "blocked_ns")));
}

TEST_F(WallSamplerTest, AThreadThatEndsLeavesWhatIsKnownOfItAndNothingKept) {
  probe.threads[7] = {};
  run(1'000 * kMs);
  probe.threads.erase(7);
  run(1'000 * kMs);
  EXPECT_EQ(probe.forgotten, std::vector<std::uint32_t>{7});
  const Trace trace = written();
  EXPECT_EQ(trace.count("OffCpuEvent"), 1U);
  EXPECT_LE(trace.numbers("OffCpuEvent", "duration_ns").at(0), 1'000 * kMs);
  EXPECT_EQ(sampler.totals().threads, 0U);
}

TEST_F(WallSamplerTest, AWaitOfMinutesIsWrittenInPiecesThatFollowOnEachOther) {
  probe.threads[7] = {};
  run(60'000 * kMs);
  sampler.finish();
  const Trace trace = written();
  const auto stamps = trace.stamps("OffCpuEvent");
  const auto durations = trace.numbers("OffCpuEvent", "duration_ns");
  const auto continued = trace.numbers("OffCpuEvent", "continued");
  ASSERT_GE(stamps.size(), 8U);
  EXPECT_EQ(continued[0], 0U);
  for (std::size_t i = 1; i < stamps.size(); ++i) {
    EXPECT_EQ(stamps[i], stamps[i - 1] + durations[i - 1]);
    EXPECT_EQ(continued[i], 1U);
  }
}

TEST_F(WallSamplerTest, AThreadIdThatIsUsedAgainBeginsAnew) {
  probe.threads[7] = {};
  probe.threads[7].account = {50 * kMs, 0, 90};
  run(500 * kMs);
  probe.threads[7].account = {1 * kMs, 0, 2};
  run(500 * kMs);
  sampler.finish();
  const Trace trace = written();
  for (const std::uint64_t running : trace.numbers("ThreadTimesEvent", "running_ns")) {
    EXPECT_LE(running, 1 * kMs);
  }
}

TEST_F(WallSamplerTest, TheFirstRoundTookNoLongerThanTheSamplerHasBeenThere) {
  for (std::uint32_t tid = 1; tid <= 1'000; ++tid) probe.threads[tid] = {};
  const std::uint64_t begin = probe.now;
  while (sampler.totals().round_ns == 0) {
    probe.now = std::max(probe.now, sampler.due_ns());
    sampler.step(probe.now);
  }
  EXPECT_LE(sampler.totals().round_ns, probe.now - begin);
}

TEST_F(WallSamplerTest, ThreadsBeyondTheBoundAreCounted) {
  for (std::uint32_t tid = 1; tid <= WallSampler::kMostThreads + 5; ++tid) probe.threads[tid] = {};
  sampler.step(probe.now);
  EXPECT_EQ(sampler.totals().threads_unsampled, 5U);
}

TEST_F(WallSamplerTest, WhereSwitchesAreFollowedWaitsAreExactAndNoneIsAnEstimate) {
  FakeThread& thread = probe.threads[7] = {.is_followed = true};
  run(30 * kMs);
  for (int i = 0; i < 100; ++i) run_once(thread);
  sampler.finish();
  const Trace trace = written();
  const auto stamps = trace.stamps("OffCpuEvent");
  const auto lengths = trace.numbers("OffCpuEvent", "duration_ns");
  const auto exact = trace.numbers("OffCpuEvent", "exact");
  const auto calls = trace.texts("OffCpuEvent", "call");
  EXPECT_EQ(exact.at(0), 0U) << "its begin was before";
  std::uint64_t waits = 0;
  std::uint64_t looks = 0;
  for (std::size_t i = 1; i < stamps.size(); ++i) {
    EXPECT_EQ(exact[i], 1U);
    looks += calls[i] == "recv" ? 1 : 0;
    const bool follows = stamps[i] == stamps[i - 1] + lengths[i - 1];  // a piece
    EXPECT_TRUE(follows || stamps[i] == stamps[i - 1] + lengths[i - 1] + kMs) << i;
    waits += follows ? 0 : 1;
  }
  EXPECT_EQ(waits, 100U) << "a look saw them or not";
  EXPECT_GT(looks, 50U);
  EXPECT_EQ(looks, sampler.totals().stacks - 1 + stamps.size() - 1 - waits);
  EXPECT_EQ(sum(trace.numbers("OffCpuEvent", "share_ns")), 0U);
}

TEST_F(WallSamplerTest, TimesByASwitchesSumExactlyAndWhatIsSeenIsInEvents) {
  FakeThread& thread = probe.threads[7] = {.is_followed = true};
  run(30 * kMs);
  for (int i = 0; i < 200; ++i) run_once(thread);
  sampler.finish();
  const Trace trace = written();
  const auto exact = trace.numbers("ThreadTimesEvent", "exact");
  const auto elapsed = trace.numbers("ThreadTimesEvent", "elapsed_ns");
  const auto running = trace.numbers("ThreadTimesEvent", "running_ns");
  const auto runnable = trace.numbers("ThreadTimesEvent", "runnable_ns");
  const auto blocked = trace.numbers("ThreadTimesEvent", "blocked_ns");
  const auto seen = trace.numbers("ThreadTimesEvent", "seen_ns");
  ASSERT_GE(exact.size(), 4U);
  EXPECT_EQ(exact[0], 0U) << "what it did before its first switch isn't known";
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_EQ(running[i] + runnable[i] + blocked[i], elapsed[i]);
    if (i == 0) continue;
    EXPECT_EQ(exact[i], 1U);
    EXPECT_EQ(seen[i], blocked[i]) << "every wait is told";
    EXPECT_NEAR(static_cast<double>(running[i]) * 30, static_cast<double>(elapsed[i]), 40 * kMs);
    EXPECT_NEAR(static_cast<double>(runnable[i]) * 60, static_cast<double>(elapsed[i]), 40 * kMs);
  }
}

TEST_F(WallSamplerTest, AfterALossTheWaitIsTheLooksAgain) {
  FakeThread& thread = probe.threads[7] = {.is_followed = true};
  run(30 * kMs);
  for (int i = 0; i < 10; ++i) run_once(thread);
  thread.switches.push_back({.at_ns = 0, .lost = 5, .kind = SwitchKind::kLost});
  ++thread.account.slices;
  run(100 * kMs);
  ++thread.account.slices;
  thread.state = Look::kRunning;
  run(100 * kMs);
  sampler.finish();
  const Trace trace = written();
  const auto exact = trace.numbers("OffCpuEvent", "exact");
  const auto share = trace.numbers("OffCpuEvent", "share_ns");
  ASSERT_GE(exact.size(), 2U);
  EXPECT_EQ(exact.back(), 0U);
  EXPECT_GT(share.back(), 0U);
}

// The wait may have ended among what was lost: the stretch behind it is another one.
TEST_F(WallSamplerTest, AStretchBehindALossIsNotTheWaitThatWasSeenBeforeIt) {
  FakeThread& thread = probe.threads[7] = {.is_followed = true};
  run(30 * kMs);
  for (int i = 0; i < 10; ++i) run_once(thread);
  run(100 * kMs);  // a wait is seen
  const std::uint64_t at_ns = probe.now_ns();
  thread.switches.push_back({.at_ns = 0, .lost = 5, .kind = SwitchKind::kLost});
  thread.switches.push_back({.at_ns = at_ns - 2 * kMs, .kind = SwitchKind::kBlocked});
  thread.switches.push_back({.at_ns = at_ns - kMs, .kind = SwitchKind::kIn});
  thread.account.slices += 2;
  thread.state = Look::kRunning;
  run(100 * kMs);
  sampler.finish();
  const Trace trace = written();
  const auto exact = trace.numbers("OffCpuEvent", "exact");
  const auto length = trace.numbers("OffCpuEvent", "duration_ns");
  const auto share = trace.numbers("OffCpuEvent", "share_ns");
  bool has_looks = false;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    has_looks |= exact[i] == 0 && length[i] + share[i] > 50 * kMs;
  }
  EXPECT_TRUE(has_looks) << "the wait that was seen is told by looks";
}

// Runs for 1 ms and is off the CPU for 1 ms so often. `first_stack` 0: without stacks.
void churn(FakeThread& thread, std::uint64_t from_ns, int times, std::uint32_t first_stack) {
  for (int i = 0; i < times; ++i) {
    const std::uint64_t at_ns = from_ns + static_cast<std::uint64_t>(i) * 2 * kMs;
    const std::uint32_t number = first_stack == 0 ? 0 : first_stack + static_cast<std::uint32_t>(i);
    thread.switches.push_back({.at_ns = at_ns, .kind = SwitchKind::kIn});
    thread.switches.push_back(
        {.at_ns = at_ns + kMs, .kind = SwitchKind::kBlocked, .stack = number});
    if (number != 0) {
      thread.stacks.push_back({.at_ns = at_ns + kMs,
                               .number = number,
                               .frames = {0x1000 + number, 0x2000},
                               .unwound_by = "tables",
                               .cause = "lock"});
    }
    ++thread.account.slices;
  }
}

TEST_F(WallSamplerTest, EachStretchThatNoLookSawHasTheStackThatItWasLeftWith) {
  FakeThread& thread = probe.threads[7] = {.is_followed = true};
  thread.state = Look::kRunning;
  run(100 * kMs);
  churn(thread, probe.now, 5, 1);  // the last one goes on until what follows
  run(100 * kMs);
  churn(thread, probe.now, 3, 0);
  run(100 * kMs);
  sampler.finish();
  const Trace trace = written();
  const auto& raw = trace.raw();
  std::vector<std::uint64_t> leaves;
  std::size_t locks = 0;
  for (const format::OwnedEvent& event : raw.events) {
    const format::Schema& schema = raw.schemas[event.schema];
    if (schema.name != "OffCpuEvent") continue;
    std::uint64_t leaf = 0;
    for (std::size_t i = 0; i < schema.fields.size(); ++i) {
      if (schema.fields[i].name == "callchain" && !event.values[i].frames.empty()) {
        leaf = event.values[i].frames.front();
      }
      if (schema.fields[i].name == "cause") locks += event.values[i].text == "lock" ? 1 : 0;
    }
    leaves.push_back(leaf);
  }
  for (std::uint64_t number = 1; number <= 5; ++number) {
    EXPECT_GE(std::ranges::count(leaves, 0x1000 + number), 1) << number;
  }
  EXPECT_GE(std::ranges::count(leaves, 0U), 3) << "a switch without a stack has none";
  EXPECT_GE(locks, 5U) << "what the stack tells of the reason";
}

SwitchStack stack_of(std::uint32_t number, std::uint64_t frame) {
  SwitchStack stack;
  stack.number = number;
  stack.frames.assign(100, frame);
  return stack;
}

TEST_F(WallSamplerTest, StacksOfSwitchesThatAreNeverToldAreGivenBack) {
  FakeThread& thread = probe.threads[7] = {.is_followed = true};
  thread.state = Look::kRunning;
  run(100 * kMs);
  for (std::uint32_t i = 0; i < 20; ++i) {  // stacks without their switches
    for (std::uint32_t n = 0; n < 100; ++n) {
      const std::uint32_t number = 100 * i + n + 1;
      thread.stacks.push_back(stack_of(number, number));
    }
    thread.account.slices += 1;
    run(50 * kMs);
  }
  EXPECT_GT(sampler.totals().lost, 0U) << "more than it keeps, and counted";
  thread.is_followed = false;  // no more: what is kept goes
  thread.account.slices += 1;
  run(50 * kMs);
  const std::uint64_t lost = sampler.totals().lost;
  thread.is_followed = true;
  thread.stacks.push_back(stack_of(1, 7));
  thread.account.slices += 1;
  run(50 * kMs);
  EXPECT_EQ(sampler.totals().lost, lost) << "there is room again";
}

TEST_F(WallSamplerTest, AConnectionIsReadWhenItsWaitIsSlowAndEachTimeThatHasDoubled) {
  probe.threads[7].has_socket = true;
  probe.threads[8] = {};
  run(10'000 * kMs);
  const Trace trace = written();
  const auto waited = trace.numbers("SocketWaitEvent", "waited_ns");
  ASSERT_GE(waited.size(), 4U);
  EXPECT_LE(waited.size(), 8U);
  EXPECT_GE(waited[0], WallSampler::kSlowWaitNs);
  for (std::size_t i = 1; i < waited.size(); ++i) EXPECT_GE(waited[i], 2 * waited[i - 1]);
  EXPECT_EQ(trace.numbers("SocketWaitEvent", "tid").at(0), 7U);
  EXPECT_EQ(trace.numbers("SocketWaitEvent", "rtt_ns").at(0), 300'000U);
  EXPECT_EQ(trace.numbers("SocketWaitEvent", "since_received_ns").at(0), 70 * kMs);
  EXPECT_EQ(trace.texts("SocketWaitEvent", "call").at(0), "recv");
  EXPECT_EQ(trace.texts("SocketWaitEvent", "peer").at(0), "10.0.0.7:6379");
}

TEST_F(WallSamplerTest, OfVeryManyConnectionsSoManyASecondAreReadAndTheOthersCounted) {
  for (std::uint32_t tid = 1; tid <= 500; ++tid) probe.threads[tid].has_socket = true;
  run(3'000 * kMs);
  sampler.finish();
  const Trace trace = written();
  EXPECT_LE(trace.count("SocketWaitEvent"), 4 * WallSampler::kMostSockets);
  EXPECT_GE(sum(trace.numbers("OffCpuProfileEvent", "sockets_unread")), 500U);
}

TEST_F(WallSamplerTest, OfVeryManyWaitsTheLongestAreToldAndTheOthersCounted) {
  FakeThread& thread = probe.threads[7] = {.is_followed = true};
  thread.state = Look::kRunning;
  run(30 * kMs);
  constexpr std::uint64_t kUs = 1'000;
  constexpr std::uint64_t kRounds = 400;
  constexpr std::uint64_t kWaits = 500;  // of 5 us, and one of 2 ms, each 10 ms
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    std::uint64_t at_ns = probe.now;
    for (std::uint64_t n = 0; n <= kWaits; ++n) {
      thread.switches.push_back({.at_ns = at_ns, .kind = SwitchKind::kIn});
      thread.switches.push_back({.at_ns = at_ns + 5 * kUs, .kind = SwitchKind::kBlocked});
      at_ns += n == kWaits - 1 ? 2 * kMs : 10 * kUs;
    }
    thread.account.slices += kWaits + 1;
    run(10 * kMs);
  }
  sampler.finish();
  const Trace trace = written();
  const auto lengths = trace.numbers("OffCpuEvent", "duration_ns");
  const auto most = WallSampler::kMostListed * 2 * (kRounds / 100 + 2);
  EXPECT_LE(lengths.size(), most);
  EXPECT_GE(
      std::count_if(lengths.begin(), lengths.end(), [](std::uint64_t ns) { return ns > kMs; }),
      static_cast<std::ptrdiff_t>(kRounds * 2 / 3))
      << "in the first second long ones may be cut, too";
  const std::uint64_t unlisted = sum(trace.numbers("OffCpuProfileEvent", "unlisted"));
  EXPECT_NEAR(static_cast<double>(unlisted + lengths.size()),
              static_cast<double>(kRounds * (kWaits + 1)), 20);
}

}  // namespace
}  // namespace dial9::internal
