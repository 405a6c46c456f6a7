// Threads whose switches are followed: sleeps, preemption and a lock's holder come back with their
// moments; rings and descriptors stay within their bounds; where perf is denied looks go on alone.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <thread>

#include "base/unique_fd.h"
#include "dial9/off_cpu.h"
#include "recorder/recording_state.h"
#include "recorder/test_support.h"
#include "sources/switch_watch.h"
#include "sources/testing/blocked_worker.h"
#include "sources/testing/in_child.h"
#include "sources/testing/sampled.h"
#include "sources/wall_sampler.h"

namespace dial9::internal {
namespace {

using namespace testing;

void sleep_ns(long ns) {
  const timespec time{0, ns};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

// The system's probe with switches, of the threads that a test names.
class OnlyProbe final : public ThreadProbe {
 public:
  explicit OnlyProbe(const PerfPlan& plan) : probe_(make_thread_probe(&plan)) {}
  std::vector<std::uint32_t> only;
  std::uint64_t now_ns() override { return probe_->now_ns(); }
  std::uint64_t cpu_ns() override { return 0; }
  bool list(std::vector<std::uint32_t>* tids) override {
    const bool is_listed = probe_->list(tids);
    *tids = only;
    return is_listed;
  }
  std::optional<SchedReading> account(std::uint32_t tid) override { return probe_->account(tid); }
  Look look(std::uint32_t tid, const SchedReading& reading, BlockedThread* thread) override {
    return probe_->look(tid, reading, thread);
  }
  std::string name(std::uint32_t tid) override { return probe_->name(tid); }
  void forget(std::uint32_t tid) override { probe_->forget(tid); }
  bool switches(std::uint32_t tid, std::vector<ThreadSwitch>* to,
                std::vector<SwitchStack>* stacks) override {
    return probe_->switches(tid, to, stacks);
  }
  SwitchCounts switch_counts() const override { return probe_->switch_counts(); }
  std::string trouble() const override { return probe_->trouble(); }

 private:
  std::unique_ptr<ThreadProbe> probe_;
};

class Switches : public OffCpuTest {
 protected:
  void SetUp() override {
    OffCpuTest::SetUp();
    const PerfProbe probed = probe_perf_switches();
    if (!probed.refusal.empty()) GTEST_SKIP() << probed.refusal;
    plan = probed.plan;
    watch.emplace(plan);
  }
  void follow(std::uint32_t tid) { watch->follow({tid}, this_tid(), now_ns()); }
  // Its account over all switches until now, which begins with the thread known to run.
  void book(std::uint32_t tid, SwitchAccount* account) {
    const auto reading = probe->account(tid);
    ASSERT_TRUE(reading);
    const std::uint64_t at_ns = now_ns();
    std::vector<ThreadSwitch> switches;
    std::vector<SwitchStack> none;
    ASSERT_TRUE(watch->take(tid, &switches, &none));
    account->book(switches, at_ns, *reading);
  }
  PerfPlan plan;
  std::optional<SwitchWatch> watch;
};

struct Moment {
  std::uint64_t at_ns = now_ns();
  std::uint64_t cpu_ns = thread_cpu_ns();
};

// A moment of the calling thread's, and the kernel's own count of how long it was runnable but not
// running until then. Time that a hypervisor took from a running thread is in neither this nor the
// switches, but off the thread's CPU time.
struct DelayMoment {
  std::uint64_t at_ns = 0;
  std::uint64_t delay_ns = 0;
};

std::uint64_t run_delay_ns(int schedstat) {
  char text[128] = {};
  unsigned long long cpu = 0;
  unsigned long long delay = 0;
  const bool is_read = ::pread(schedstat, text, sizeof text - 1, 0) > 0;
  EXPECT_TRUE(is_read && std::sscanf(text, "%llu %llu", &cpu, &delay) == 2);
  return delay;
}

// The two belong together: the thread wasn't preempted between the readings around the stamp.
DelayMoment delay_now() {
  const UniqueFd schedstat(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
  for (std::uint64_t before = run_delay_ns(schedstat.get());;) {
    const DelayMoment moment{now_ns(), before};
    before = run_delay_ns(schedstat.get());
    if (before == moment.delay_ns) return moment;
  }
}

TEST_F(Switches, SleepsComeBackWithTheirMomentsAndTheRestIsRunning) {
  constexpr int kSleeps = 5;
  constexpr std::uint64_t kSleepNs = 3 * kTestMs;
  Pipe begin;
  Pipe end;
  Moment before[kSleeps];
  Moment after[kSleeps];
  std::atomic<bool> is_done{false};  // what is above may be read
  const Worker worker([&] {
    wait_for_byte(begin.out.get());
    for (int i = 0; i < kSleeps; ++i) {
      before[i] = {};
      sleep_ns(kSleepNs);
      after[i] = {};
    }
    is_done = true;
    wait_for_byte(end.out.get());
  });
  look(worker.tid(), "read");
  follow(worker.tid());
  begin.release();
  while (look(worker.tid(), "read").fd != static_cast<std::uint64_t>(end.out.get())) {
  }
  ASSERT_TRUE(is_done);
  SwitchAccount account;
  book(worker.tid(), &account);
  std::vector<OffStretch> stretches;
  account.take_all(true, &stretches);
  end.release();
  int exact = 0;
  for (int i = 0; i < kSleeps; ++i) {
    std::uint64_t blocked_ns = 0;
    std::uint64_t off_ns = 0;
    for (const OffStretch& stretch : stretches) {
      if (stretch.from_ns < before[i].at_ns || stretch.to_ns > after[i].at_ns) continue;
      off_ns += stretch.length_ns();
      blocked_ns = std::max(blocked_ns, stretch.is_preempted ? 0 : stretch.length_ns());
    }
    const std::uint64_t passed_ns = after[i].at_ns - before[i].at_ns;
    const std::uint64_t cpu_ns = after[i].cpu_ns - before[i].cpu_ns;
    EXPECT_LE(blocked_ns, passed_ns);
    EXPECT_GE(blocked_ns, kSleepNs * 9 / 10) << i;
    EXPECT_LE(cpu_ns + off_ns, passed_ns + kTestMs);
    if (passed_ns - off_ns <= cpu_ns + kTestMs) ++exact;
  }
  EXPECT_GT(exact, kSleeps / 2) << "what it wasn't off it ran, unless a hypervisor took the time";
}

// On one CPU of those allowed, for good.
void stay_on_one_cpu() {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_ZERO(&allowed);
    CPU_SET(cpu, &allowed);
    break;
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof allowed, &allowed), 0);
}

TEST_F(Switches, AThreadThatSharesACpuWithABusyOneIsPreemptedNotBlocked) {
  Pipe begin;
  Pipe end;
  std::atomic<bool> is_done{false};
  std::atomic<bool> is_there{false};
  DelayMoment before;
  DelayMoment after;
  const Worker rival([&] {
    stay_on_one_cpu();
    is_there = true;
    while (!is_done.load(std::memory_order_relaxed)) {
    }
  });
  const Worker victim([&] {
    stay_on_one_cpu();
    wait_for_byte(begin.out.get());
    before = delay_now();
    burn_one(60);
    after = delay_now();
    is_done = true;
    wait_for_byte(end.out.get());
  });
  look(victim.tid(), "read");
  follow(victim.tid());
  while (!is_there) std::this_thread::yield();
  begin.release();
  while (look(victim.tid(), "read").fd != static_cast<std::uint64_t>(end.out.get())) {
  }
  ASSERT_TRUE(is_done);  // what it wrote may be read
  SwitchAccount account;
  book(victim.tid(), &account);
  std::vector<OffStretch> stretches;
  account.take_all(true, &stretches);
  end.release();
  std::uint64_t preempted_ns = 0;
  std::uint64_t blocked_ns = 0;
  for (const OffStretch& stretch : stretches) {
    if (stretch.from_ns < before.at_ns || stretch.to_ns > after.at_ns) continue;
    (stretch.is_preempted ? preempted_ns : blocked_ns) += stretch.length_ns();
  }
  const std::uint64_t delay_ns = after.delay_ns - before.delay_ns;
  EXPECT_GT(preempted_ns, 20 * kTestMs);
  EXPECT_LT(blocked_ns, preempted_ns / 10);
  EXPECT_NEAR(static_cast<double>(preempted_ns), static_cast<double>(delay_ns),
              0.02 * static_cast<double>(delay_ns) + kTestMs);
}

std::vector<ThreadSwitch> taken(SwitchWatch& watch, std::uint32_t tid) {
  std::vector<ThreadSwitch> switches;
  std::vector<SwitchStack> none;
  EXPECT_TRUE(watch.take(tid, &switches, &none));
  return switches;
}

template <class Values, class Value>
std::ptrdiff_t count_of(const Values& values, const Value& value) {
  return std::count(values.begin(), values.end(), value);
}

TEST_F(Switches, AWaitForALockIsExactAndHasItsCallAndItsStack) {
  std::mutex mutex;
  Pipe begin;
  Pipe end;
  OnlyProbe only(plan);
  OffCpuEncoder encoder;
  WallSampler sampler(only, encoder, 100);
  std::atomic<std::uint64_t> before_ns{0};
  std::atomic<std::uint64_t> after_ns{0};
  const Worker worker([&] {
    wait_for_byte(begin.out.get());
    before_ns = now_ns();
    mutex.lock();
    after_ns = now_ns();
    mutex.unlock();
    wait_for_byte(end.out.get());
  });
  only.only = {worker.tid()};
  mutex.lock();
  look(worker.tid(), "read");
  const auto step = [&] { sampler.step(std::max(now_ns(), sampler.due_ns())); };
  step();
  begin.release();
  look(worker.tid(), "futex");
  step();
  const std::uint64_t held_from_ns = now_ns();
  step();
  const std::uint64_t held_to_ns = now_ns();
  mutex.unlock();
  while (look(worker.tid(), "read").fd != static_cast<std::uint64_t>(end.out.get())) {
  }
  step();
  sampler.finish();
  end.release();
  std::vector<std::uint8_t> bytes;
  for (const SourceStream& stream : encoder.take()) {
    bytes.insert(bytes.end(), stream.bytes.begin(), stream.bytes.end());
  }
  const Trace trace = Trace::of(bytes);
  const auto stamps = trace.stamps("OffCpuEvent");
  const auto lengths = trace.numbers("OffCpuEvent", "duration_ns");
  const auto exact = trace.numbers("OffCpuEvent", "exact");
  const auto causes = trace.texts("OffCpuEvent", "cause");
  std::uint64_t from_ns = ~std::uint64_t{0};  // over the pieces, where it was slow
  std::uint64_t to_ns = 0;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    if (causes[i] != "lock") continue;
    EXPECT_EQ(exact[i], 1U);
    EXPECT_EQ(trace.texts("OffCpuEvent", "call")[i], "futex");
    EXPECT_TRUE(to_ns == 0 || stamps[i] == to_ns);
    from_ns = std::min(from_ns, stamps[i]);
    to_ns = stamps[i] + lengths[i];
  }
  EXPECT_GE(from_ns, before_ns.load());
  EXPECT_LE(from_ns, held_from_ns);
  EXPECT_GE(to_ns, held_to_ns) << "it covers the time in which the lock was held";
  EXPECT_LE(to_ns, after_ns.load());
}

TEST_F(Switches, WhatARingHasNoRoomForIsCountedAndTheTimeAroundItNotSaid) {
  Pipe begin;
  Pipe end;
  const Worker worker([&] {
    ::prctl(PR_SET_TIMERSLACK, 1);
    wait_for_byte(begin.out.get());
    for (std::size_t i = 0; i < kSwitchRingBytes / kPerfSwitchBytes; ++i) sleep_ns(20'000);
    wait_for_byte(end.out.get());
  });
  look(worker.tid(), "read");
  follow(worker.tid());
  begin.release();
  while (look(worker.tid(), "read").fd != static_cast<std::uint64_t>(end.out.get())) {
  }
  SwitchAccount account;
  book(worker.tid(), &account);
  EXPECT_FALSE(account.is_known()) << "the ring was full: what came last isn't in it";
  EXPECT_GE(account.losses(), 1U);
  EXPECT_FALSE(account.take_times());
  end.release();
}

TEST_F(Switches, ThreadsBeyondTheDescriptorsThatMayBeTakenAreCountedWithTheReason) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{64, before.rlim_max};
  Pipe pipe;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::uint32_t> tids;
  for (int i = 0; i < 20; ++i) {
    workers.push_back(std::make_unique<Worker>([&] { wait_for_byte(pipe.out.get()); }));
    tids.push_back(workers.back()->tid());
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  watch->follow(tids, this_tid(), now_ns());
  EXPECT_GT(watch->counts().refused, 0U);
  EXPECT_LE(watch->counts().sampled, 15U);
  EXPECT_NE(watch->refusal().find("RLIMIT_NOFILE=64"), std::string::npos) << watch->refusal();
  EXPECT_LE(open_perf_events(), 15);
  ::setrlimit(RLIMIT_NOFILE, &before);
  watch.reset();
  EXPECT_EQ(open_perf_events(), 0);
  for (std::size_t i = 0; i < workers.size(); ++i) pipe.release();
}

TEST_F(Switches, AThreadThatEndsLeavesItsLastSwitchesAndNoDescriptor) {
  Pipe pipe;
  std::uint32_t tid = 0;
  {
    const Worker worker([&] { wait_for_byte(pipe.out.get()); });
    tid = worker.tid();
    look(tid, "read");
    follow(tid);
    pipe.release();
  }
  watch->follow({}, this_tid(), now_ns());
  const auto switches = taken(*watch, tid);
  ASSERT_FALSE(switches.empty());
  EXPECT_EQ(switches.front().kind, SwitchKind::kIn);
  std::vector<ThreadSwitch> again;
  std::vector<SwitchStack> none;
  EXPECT_FALSE(watch->take(tid, &again, &none));
  watch.reset();
  EXPECT_EQ(open_perf_events(), 0);
}

TEST_F(Switches, NobodyWithoutCapabilitiesMayFollowItsOwnThreads) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can become nobody";
  if (plan.paranoid > 2) GTEST_SKIP() << "kernel.perf_event_paranoid is " << plan.paranoid;
  EXPECT_EQ(
      in_child([] {
        if (::setresgid(65'534, 65'534, 65'534) != 0 || ::setresuid(65'534, 65'534, 65'534) != 0) {
          return 77;
        }
        return probe_perf_switches().refusal.empty() ? 0 : 1;
      }),
      0);
}

TEST(SwitchesDenied, LooksGoOnAloneAndStatusAndMetadataSaySo) {
  EXPECT_EQ(in_child([] {
              if (!deny_perf(EPERM)) return 77;
              if (!add_off_cpu_samples({.has_switches = true})) return 1;
              if (off_cpu_status().message.find("perf_event_open") == std::string::npos) return 2;
              return 0;
            }),
            0);
}

TEST(SwitchesSource, AreRecordedBesideTheLooksAndTheMetadataSaysSo) {
  if (const PerfProbe probed = probe_perf_switches(); !probed.refusal.empty()) {
    GTEST_SKIP() << probed.refusal;
  }
  ASSERT_TRUE(add_off_cpu_samples({.frequency_hz = 100, .has_switches = true}));
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(kTestBudget));
  ASSERT_TRUE(status);
  std::atomic<bool> is_done{false};
  const Worker worker([&] {
    while (!is_done) sleep_ns(2 * kTestMs);
  });
  while (off_cpu_status().switch_threads == 0 || off_cpu_status().stacks < 20) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(remove_off_cpu_samples());
  while (open_perf_events() != 0) std::this_thread::yield();
  is_done = true;
  EXPECT_TRUE(recorder.rotate(std::chrono::seconds(30)));
  const Trace trace = Trace::of(recorder.sealed_segments());
  EXPECT_GT(count_of(trace.numbers("OffCpuEvent", "exact"), 1U), 10);
  EXPECT_EQ(trace.metadata("off_cpu.switches"), "perf");
  recorder.stop(std::chrono::seconds(30));
}

}  // namespace
}  // namespace dial9::internal
