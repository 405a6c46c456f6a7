// Stacks at switches: each is given to its own switch or to none; what threads really left the CPU
// with comes back, also from waits that no look saw; where they are denied all else goes on.
// SPDX-License-Identifier: Apache-2.0
#include "sources/switch_stacks.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "dial9/off_cpu.h"
#include "recorder/test_support.h"
#include "sources/switch_watch.h"
#include "sources/testing/blocked_worker.h"
#include "sources/testing/in_child.h"
#include "unwind/unwind.h"

namespace dial9::internal {
namespace {

using namespace testing;

SwitchStack taken_at(std::uint64_t at_ns) {
  SwitchStack stack;
  stack.at_ns = at_ns;
  stack.frames = {at_ns};
  return stack;
}

// Which stack each switch off the CPU got, as "at:frame", without one "at:-".
std::string matched(StackMatcher& matcher, std::vector<ThreadSwitch> switches,
                    std::size_t* missing = nullptr) {
  std::vector<SwitchStack> stacks;
  const std::size_t count = matcher.match(switches, &stacks);
  if (missing != nullptr) *missing = count;
  std::string text;
  for (const ThreadSwitch& one : switches) {
    if (one.kind == SwitchKind::kIn || one.kind == SwitchKind::kLost) continue;
    const auto stack = std::ranges::find(stacks, one.stack, &SwitchStack::number);
    const bool has_one = one.stack != 0 && stack != stacks.end();
    text += std::to_string(one.at_ns) + ":" +
            (has_one ? std::to_string(stack->frames.front()) : "-") + " ";
  }
  return text;
}

constexpr ThreadSwitch in(std::uint64_t at_ns) { return {.at_ns = at_ns, .kind = SwitchKind::kIn}; }
constexpr ThreadSwitch out(std::uint64_t at_ns) {
  return {.at_ns = at_ns, .kind = SwitchKind::kBlocked};
}

TEST(StackMatcher, EachSwitchOffTheCpuHasTheStackThatWasTakenJustBefore) {
  StackMatcher matcher;
  for (const std::uint64_t at_ns : {19U, 39U, 59U}) matcher.add(taken_at(at_ns));
  EXPECT_EQ(matched(matcher, {in(10), out(20), in(30), out(40)}), "20:19 40:39 ");
  matcher.add(taken_at(79));
  EXPECT_EQ(matched(matcher, {in(50), out(60), in(70), out(80)}), "60:59 80:79 ")
      << "one that came before its switch was told waits for it";
}

TEST(StackMatcher, ASwitchWhoseStackWasLostHasNoneAndIsCounted) {
  StackMatcher matcher;
  matcher.add(taken_at(19));
  matcher.add(taken_at(59));
  std::size_t missing = 0;
  EXPECT_EQ(matched(matcher, {in(10), out(20), in(30), out(40), in(50), out(60)}, &missing),
            "20:19 40:- 60:59 ");
  EXPECT_EQ(missing, 1U);
}

TEST(StackMatcher, KeepsNoMoreThanSoManyWhereNobodyReadsTheSwitches) {
  StackMatcher matcher;
  std::vector<SwitchStack> found;
  std::vector<ThreadSwitch> begin{{.at_ns = 1, .kind = SwitchKind::kIn}};
  matcher.match(begin, &found);
  constexpr std::uint64_t kStacks = 10'000;
  std::vector<ThreadSwitch> switches;
  for (std::uint64_t i = 2; i < kStacks; ++i) {
    SwitchStack stack;
    stack.at_ns = i;
    matcher.add(std::move(stack));
    switches.push_back({.at_ns = i, .kind = SwitchKind::kBlocked});
    switches.push_back({.at_ns = i, .kind = SwitchKind::kIn});
  }
  const std::size_t missing = matcher.match(switches, &found);
  EXPECT_EQ(found.size() + missing, kStacks - 2);
  EXPECT_LE(found.size(), 256U);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.back().at_ns, kStacks - 1) << "the newest are kept";
}

TEST(StackMatcher, WhereASwitchIsMissingNoStackIsGuessed) {
  StackMatcher two;
  for (const std::uint64_t at_ns : {19U, 39U}) two.add(taken_at(at_ns));
  EXPECT_EQ(matched(two, {in(10), out(40), in(50)}), "40:- ") << "that of 19 is of one in between";
  StackMatcher after_loss;
  for (const std::uint64_t at_ns : {19U, 39U}) after_loss.add(taken_at(at_ns));
  EXPECT_EQ(matched(after_loss,
                    {in(10), {.at_ns = 0, .kind = SwitchKind::kLost}, out(20), in(30), out(40)}),
            "20:- 40:39 ");
  StackMatcher first;
  first.add(taken_at(19));
  EXPECT_EQ(matched(first, {out(20)}), "20:- ") << "what came before isn't known";
}

class SwitchStacksTest : public OffCpuTest {
 protected:
  void SetUp() override {
    OffCpuTest::SetUp();
    const PerfProbe switches = probe_perf_switches();
    const PerfProbe stacks = probe_perf_switch_stacks();
    if (!switches.refusal.empty()) GTEST_SKIP() << switches.refusal;
    if (!stacks.refusal.empty()) GTEST_SKIP() << stacks.refusal;
    unwind::prepare();
    watch.emplace(switches.plan, &stacks.plan);
  }
  std::optional<SwitchWatch> watch;

  // The stacks of a thread that was seen in a read, did `wait`, and is in a read again. The wait
  // goes on until `release`, once the thread is in the kernel for it; no look is the sampler's
  // meanwhile.
  std::vector<SwitchStack> stacks_of(const std::function<void()>& wait,
                                     const std::function<void()>& release) {
    const PerfProbe switches = probe_perf_switches();
    const PerfProbe stacks = probe_perf_switch_stacks();
    EXPECT_TRUE(add_off_cpu_samples({.has_switch_stacks = true, .requires_switches = true}));
    remove_off_cpu_samples();  // it has learnt the C library's functions
    const auto own = make_thread_probe(&switches.plan, &stacks.plan);
    Pipe begin;
    Pipe end;
    const Worker worker([&] {
      wait_for_byte(begin.out.get());
      wait();
      wait_for_byte(end.out.get());
    });
    look(worker.tid(), "read");
    std::vector<std::uint32_t> tids;
    EXPECT_TRUE(own->list(&tids));
    begin.release();
    look(worker.tid(), "futex");
    release();
    while (look(worker.tid(), "read").fd != static_cast<std::uint64_t>(end.out.get())) {
    }
    std::vector<ThreadSwitch> told;
    std::vector<SwitchStack> left;
    EXPECT_TRUE(own->switches(worker.tid(), &told, &left));
    end.release();
    return left;
  }
};

void sleep_ns(long ns) {
  const timespec time{0, ns};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

// Until the calling thread has left the CPU so often by itself, as the kernel counts it: a sleep
// that is over at once, since the machine stood, is no switch.
void sleep_until_switched(long times) {
  const auto switched = [] {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  };
  const long begin = switched();
  while (switched() - begin < times) sleep_ns(20'000);
}

TEST_F(SwitchStacksTest, AWaitTooShortForALookHasTheStackOfItsOwnPlace) {
  constexpr long kWaits = 5;
  Pipe begin;
  Pipe middle;
  Pipe end;
  const Worker worker([&] {
    wait_for_byte(begin.out.get());
    sleep_until_switched(kWaits);
    wait_for_byte(middle.out.get());
    wait_for_byte(end.out.get());
  });
  look(worker.tid(), "read");
  watch->follow({worker.tid()}, static_cast<std::uint32_t>(::gettid()), now_ns());
  begin.release();
  while (look(worker.tid(), "read").fd != static_cast<std::uint64_t>(middle.out.get())) {
  }
  middle.release();
  while (look(worker.tid(), "read").fd != static_cast<std::uint64_t>(end.out.get())) {
  }
  std::vector<ThreadSwitch> switches;
  std::vector<SwitchStack> stacks;
  ASSERT_TRUE(watch->take(worker.tid(), &switches, &stacks));
  end.release();
  std::ptrdiff_t in_sleep = 0;
  std::ptrdiff_t in_wait = 0;
  for (const ThreadSwitch& one : switches) {
    if (one.kind != SwitchKind::kBlocked) continue;
    EXPECT_NE(one.stack, 0U) << "each has one";
    const auto stack = std::ranges::find(stacks, one.stack, &SwitchStack::number);
    ASSERT_NE(stack, stacks.end());
    EXPECT_LE(stack->at_ns, one.at_ns);
    EXPECT_FALSE(stack->frames.empty());
    const bool waits = frame_of(stack->frames, wait_for_byte) != npos;
    (waits ? in_wait : in_sleep) += 1;
  }
  EXPECT_GE(in_sleep, kWaits);
  EXPECT_GE(in_wait, 1);
  EXPECT_EQ(watch->stacks()->lost(), 0U);
  EXPECT_EQ(watch->stacks()->taken(), stacks.size());
}

TEST_F(SwitchStacksTest, WhatARingHasNoRoomForIsCountedAndTheSwitchesStayExact) {
  constexpr long kRoom = kSwitchStackRingBytes / kPerfRecordBytes;
  Pipe begin;
  Pipe end;
  const Worker worker([&] {
    ::prctl(PR_SET_TIMERSLACK, 1);
    wait_for_byte(begin.out.get());
    sleep_until_switched(4 * kRoom);
    wait_for_byte(end.out.get());
  });
  look(worker.tid(), "read");
  watch->follow({worker.tid()}, static_cast<std::uint32_t>(::gettid()), now_ns());
  begin.release();
  while (look(worker.tid(), "read").fd != static_cast<std::uint64_t>(end.out.get())) {
  }
  std::vector<ThreadSwitch> switches;
  std::vector<SwitchStack> stacks;
  ASSERT_TRUE(watch->take(worker.tid(), &switches, &stacks));
  end.release();
  const auto outs = std::ranges::count_if(
      switches, [](const ThreadSwitch& one) { return one.kind == SwitchKind::kBlocked; });
  EXPECT_GE(outs, 4 * kRoom);
  EXPECT_LE(stacks.size(), static_cast<std::size_t>(kRoom));
  EXPECT_GT(stacks.size(), 5U);
  EXPECT_GT(watch->stacks()->lost(), 0U);
  EXPECT_EQ(watch->lost(), 0U) << "switches have a ring of their own";
}

TEST_F(SwitchStacksTest, AThreadThatEndsGivesBothDescriptorsBack) {
  Pipe pipe;
  {
    const Worker worker([&] { wait_for_byte(pipe.out.get()); });
    look(worker.tid(), "read");
    watch->follow({worker.tid()}, static_cast<std::uint32_t>(::gettid()), now_ns());
    EXPECT_GE(open_perf_events(), 2);
    pipe.release();
  }
  watch->follow({}, static_cast<std::uint32_t>(::gettid()), now_ns());
  watch.reset();
  EXPECT_EQ(open_perf_events(), 0);
}

// Its events are gone as its switches are taken: what its ring held was read before.
TEST_F(SwitchStacksTest, OfAThreadThatHasEndedAreToldAndThoseMissingCounted) {
  constexpr long kRoom = kSwitchStackRingBytes / kPerfRecordBytes;
  Pipe begin;
  std::uint32_t tid = 0;
  {
    const Worker worker([&] {
      ::prctl(PR_SET_TIMERSLACK, 1);
      wait_for_byte(begin.out.get());
      sleep_until_switched(2 * kRoom);
    });
    tid = worker.tid();
    look(tid, "read");
    watch->follow({tid}, static_cast<std::uint32_t>(::gettid()), now_ns());
    begin.release();
  }
  watch->follow({}, static_cast<std::uint32_t>(::gettid()), now_ns());
  std::vector<ThreadSwitch> switches;
  std::vector<SwitchStack> stacks;
  ASSERT_TRUE(watch->take(tid, &switches, &stacks));
  EXPECT_EQ(watch->lost(), 0U);
  const auto outs = static_cast<std::uint64_t>(std::ranges::count_if(
      switches, [](const ThreadSwitch& one) { return one.kind != SwitchKind::kIn; }));
  EXPECT_GT(stacks.size(), 5U);
  EXPECT_EQ(watch->stacks()->taken(), stacks.size());
  EXPECT_GT(watch->stacks()->lost(), 0U);
  // Of the first one nobody knows whether it had a stack.
  EXPECT_GE(watch->stacks()->taken() + watch->stacks()->lost(), outs - 1);
  EXPECT_LE(watch->stacks()->taken() + watch->stacks()->lost(), outs);
}

TEST_F(SwitchStacksTest, AContendedLockIsALockThoughNoLookSawTheWait) {
  std::mutex mutex;
  mutex.lock();
  const auto stacks = stacks_of(
      [&] {
        mutex.lock();
        mutex.unlock();
      },
      [&] { mutex.unlock(); });
  EXPECT_GE(std::ranges::count(stacks, "lock", &SwitchStack::cause), 1);
  EXPECT_GE(std::ranges::count(stacks, "", &SwitchStack::cause), 1) << "a read is none";
}

TEST_F(SwitchStacksTest, AConditionIsAConditionThoughNoLookSawTheWait) {
  std::mutex mutex;
  std::condition_variable condition;
  bool is_released = false;
  const auto stacks = stacks_of(
      [&] {
        std::unique_lock lock(mutex);
        condition.wait(lock, [&] { return is_released; });
      },
      [&] {
        {
          const std::lock_guard lock(mutex);
          is_released = true;
        }
        condition.notify_one();
      });
  EXPECT_GE(std::ranges::count(stacks, "condition", &SwitchStack::cause), 1);
  EXPECT_GE(std::ranges::count(stacks, "", &SwitchStack::cause), 1) << "a read is none";
}

TEST_F(SwitchStacksTest, AreInTheTraceWithTheMetadataThatSaysSo) {
  ASSERT_TRUE(add_off_cpu_samples({.frequency_hz = 100, .has_switch_stacks = true}));
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(kTestBudget));
  ASSERT_TRUE(status);
  std::atomic<bool> is_done{false};
  const Worker worker([&] {
    while (!is_done) sleep_ns(1'000'000);
  });
  while (off_cpu_status().switch_stacks < 20) std::this_thread::yield();
  EXPECT_TRUE(remove_off_cpu_samples());
  while (open_perf_events() != 0) std::this_thread::yield();
  is_done = true;
  EXPECT_TRUE(recorder.rotate(std::chrono::seconds(30)));
  const Trace trace = Trace::of(recorder.sealed_segments());
  EXPECT_EQ(trace.metadata("off_cpu.switches"), "perf");
  EXPECT_EQ(trace.metadata("off_cpu.switch_stacks"), "perf");
  std::uint64_t recorded = 0;
  for (const auto count : trace.numbers("OffCpuProfileEvent", "switch_stacks")) recorded += count;
  EXPECT_GE(recorded, 20U);
  recorder.stop(std::chrono::seconds(30));
}

TEST(SwitchStacksDenied, WhereTheyAreRefusedAllElseGoesOnAndAForcedChoiceFails) {
  EXPECT_EQ(in_child([] {
              if (!deny_perf(EPERM)) return 77;
              const Status forced =
                  add_off_cpu_samples({.has_switch_stacks = true, .requires_switches = true});
              if (forced.ok()) return 1;
              if (forced.message().find("perf_event_open") == std::string::npos) return 2;
              if (!add_off_cpu_samples({.has_switch_stacks = true})) return 3;
              if (off_cpu_status().message.find("perf_event_open") == std::string::npos) return 4;
              return 0;
            }),
            0);
}

TEST(SwitchStacksDenied, NobodyWithoutCapabilitiesIsToldTheSettingThatItTakes) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can become nobody";
  const PerfProbe own = probe_perf_switch_stacks();
  if (own.plan.paranoid <= 1) GTEST_SKIP() << "kernel.perf_event_paranoid allows it";
  if (!probe_perf_switches().refusal.empty()) GTEST_SKIP() << "perf is denied altogether";
  EXPECT_EQ(
      in_child([] {
        if (::setresgid(65'534, 65'534, 65'534) != 0 || ::setresuid(65'534, 65'534, 65'534) != 0) {
          return 77;
        }
        const std::string refusal = probe_perf_switch_stacks().refusal;
        return refusal.find("paranoid<=1") != std::string::npos ? 0 : 1;
      }),
      0);
}

}  // namespace
}  // namespace dial9::internal
