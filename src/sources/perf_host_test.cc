// A host that perf samples and must not notice: no signal, descriptors and locked memory within
// their bounds and given back, children without any of it.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "recorder/recording_state.h"
#include "sources/perf_event.h"
#include "sources/perf_threads.h"
#include "sources/testing/in_child.h"
#include "sources/testing/sampled.h"

namespace dial9::internal {
namespace {

using namespace testing;

CpuSampleOptions with_perf(std::uint32_t hz = 500) {
  return {.frequency_hz = hz, .backend = CpuSampleBackend::kPerf};
}

// Threads that wait until they are let go.
class Waiting {
 public:
  explicit Waiting(int count) {
    gate_.lock();
    for (int i = 0; i < count; ++i)
      threads_.emplace_back([this] { const std::lock_guard in(gate_); });
  }
  ~Waiting() {
    gate_.unlock();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::mutex gate_;
  std::vector<std::thread> threads_;
};

class PerfHost : public ::testing::Test {
 protected:
  void SetUp() override {
    probe = probe_perf(2'000'000);
    if (!probe.refusal.empty()) GTEST_SKIP() << probe.refusal;
  }
  PerfProbe probe;
  const std::uint32_t nobody = 0;  // no thread's id
};

TEST_F(PerfHost, NoSignalIsTakenAndNoneIsSent) {
  struct sigaction before{};
  struct sigaction own{};
  static std::atomic<int> signals{0};
  own.sa_handler = [](int) { ++signals; };
  ::sigaction(SIGPROF, &own, &before);
  {
    Sampled sampled(with_perf());
    sampled.wait_until_sampled();
    burn_one(100);
    EXPECT_GT(sampled.finish().size(), 20U);
  }
  EXPECT_EQ(signals, 0);
  struct sigaction now{};
  ::sigaction(SIGPROF, &before, &now);
  EXPECT_EQ(now.sa_handler, own.sa_handler) << "and it stays";
}

TEST_F(PerfHost, WhileOffNothingIsOpenAndNothingSampled) {
  Sampled sampled(with_perf());
  sampled.wait_until_sampled();
  EXPECT_GE(open_perf_events(), 1);
  sampled.recorder().disable();
  while (cpu_sample_status().is_sampling) burn_one(5);
  EXPECT_EQ(open_perf_events(), 0);
  const std::uint64_t from = now_ns();
  burn_one(50);
  const std::uint64_t to = now_ns();
  sampled.recorder().enable();
  sampled.wait_until_sampled();
  EXPECT_EQ(periods(sampled.finish(),
                    [&](const SampleRow& row) { return row.at_ns >= from && row.at_ns < to; }),
            0U);
}

TEST_F(PerfHost, EverythingIsClosedAtTheEndHoweverOftenItStarts) {
  for (int i = 0; i < 20; ++i) {
    Sampled sampled(with_perf());
    burn_one(2);
  }
  EXPECT_EQ(open_perf_events(), 0);
}

TEST_F(PerfHost, RemovedWhileRecordingItIsClosedAtOnceAndWhatWasSampledIsKept) {
  Sampled sampled(with_perf());
  sampled.wait_until_sampled();
  const std::uint64_t from = now_ns();
  burn_one(100);
  const std::uint64_t to = now_ns();
  ASSERT_TRUE(remove_cpu_samples());
  EXPECT_EQ(open_perf_events(), 0);
  EXPECT_GT(periods(samples_of(sampled.read()),
                    [&](const SampleRow& row) { return row.at_ns >= from && row.at_ns < to; }),
            40U);
}

std::vector<int> perf_event_numbers() {
  std::vector<int> numbers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const auto target = std::filesystem::read_symlink(entry.path(), ignored);
    if (target == "anon_inode:[perf_event]") numbers.push_back(std::stoi(entry.path().filename()));
  }
  return numbers;
}

// An eventfd has the same inode as a perf event.
TEST_F(PerfHost, WhereTheHostTookADescriptorItsOwnIsLeftAloneAndSamplingGoesOn) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "TSan has a thread of its own";
#endif
  PerfThreads threads(probe.plan);
  const Waiting waiting(3);
  threads.scan(nobody);
  const std::vector<int> numbers = perf_event_numbers();
  ASSERT_EQ(numbers.size(), 4U);
  const UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  std::vector<UniqueFd> taken;
  for (const int number : numbers) {
    ASSERT_EQ(::dup3(event.get(), number, O_CLOEXEC), number);
    taken.emplace_back(number);
  }
  // Another perf event, of the host's own, is none of ours either.
  UniqueFd perf_of_host = open_perf_event(0, probe.plan);
  ASSERT_EQ(::dup3(perf_of_host.get(), numbers[0], O_CLOEXEC), numbers[0]);
  perf_of_host.reset();
  EXPECT_EQ(in_child([&] {
              const auto is_open = [](const UniqueFd& fd) {
                return ::fcntl(fd.get(), F_GETFD) >= 0;
              };
              return std::all_of(taken.begin(), taken.end(), is_open) ? 0 : 1;
            }),
            0);
  threads.scan(nobody);
  EXPECT_EQ(threads.counts().sampled, 4U);
  EXPECT_EQ(perf_event_numbers().size(), 5U) << "opened again, and the host's";
  std::uint64_t samples = 0;
  const auto count = [&](const PerfSample&, const std::string&, PerfProgress&) { ++samples; };
  burn_one(50);
  threads.drain(count, [](std::uint64_t, std::uint64_t) {});
  EXPECT_GT(samples, 0U);
  threads.halt();
  threads.drain(count, [](std::uint64_t, std::uint64_t) {});
  EXPECT_EQ(perf_event_numbers(), std::vector<int>{numbers[0]});
  for (const UniqueFd& fd : taken) EXPECT_GE(::fcntl(fd.get(), F_GETFD), 0) << fd.get();
}

TEST_F(PerfHost, ThreadsThatComeAndGoLeaveNothingBehind) {
  Sampled sampled(with_perf());
  sampled.wait_until_sampled();
  for (int i = 0; i < 2'000; ++i) {
    std::thread([] {}).join();
  }
  while (cpu_sample_status().threads > 2) burn_one(5);
  sampled.wait_until_sampled();
  EXPECT_LE(open_perf_events(), 2);
}

// The name that the first sample has of a thread that gives itself the name "late" once it was
// found. Nothing: the first one came before, since the thread had no CPU for so long in between.
std::optional<std::string> name_of_first_sample(const PerfPlan& plan) {
  std::mutex gate;
  gate.lock();
  std::atomic<std::uint32_t> tid{0};
  std::atomic<std::uint64_t> named_ns{0};
  std::thread late([&] {
    tid = this_tid();
    const std::lock_guard in(gate);
    ::pthread_setname_np(::pthread_self(), "late");
    named_ns = kernel_now_ns();
    burn_one(20);
  });
  while (tid == 0) std::this_thread::yield();
  PerfThreads threads(plan);
  threads.scan(0);  // no thread's id
  gate.unlock();
  std::optional<std::string> first;
  std::uint64_t first_ns = 0;
  while (!first) {
    threads.drain(
        [&](const PerfSample& sample, const std::string& name, PerfProgress&) {
          if (sample.tid != tid || first) return;
          first = name;
          first_ns = sample.at_ns;
        },
        [](std::uint64_t, std::uint64_t) {});
  }
  late.join();
  return first_ns > named_ns ? first : std::nullopt;
}

TEST_F(PerfHost, AThreadThatNamesItselfAfterItWasFoundHasThatNameFromItsFirstSampleOn) {
  std::optional<std::string> name;
  while (!name) name = name_of_first_sample(probe.plan);
  EXPECT_EQ(*name, "late");
}

TEST_F(PerfHost, DescriptorsAreOutOfTheHostsWayAndClosedByExec) {
  PerfThreads threads(probe.plan);
  threads.scan(nobody);
  ASSERT_GE(threads.counts().sampled, 1U);
  const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_LT(lowest, 512) << "the numbers below are still the host's";
  ::close(lowest);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur <= 2'048) GTEST_SKIP() << "ulimit -n is low";
  int events = 0;
  for (int fd = 1'024; fd < 1'024 + 300; ++fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags < 0) continue;
    ++events;
    EXPECT_NE(flags & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(events, open_perf_events());
}

TEST_F(PerfHost, BeyondItsRoomForDescriptorsThreadsAreCountedAndLaterItGoesOn) {
  Waiting others(6);
  PerfThreads threads(probe.plan);
  const PerfRoom plenty = perf_room(0);
  threads.scan(nobody, {.descriptors = 3, .ring_bytes = plenty.ring_bytes});
  EXPECT_EQ(threads.counts().sampled, 3U);
  const std::uint32_t all = threads.counts().sampled + threads.counts().refused;
  EXPECT_GE(all, 7U);
  EXPECT_NE(threads.counts().refusal.find("RLIMIT_NOFILE="), std::string::npos);
  threads.scan(nobody, plenty);
  EXPECT_EQ(threads.counts().sampled, all);
  // What the host takes for itself it gets back.
  threads.scan(nobody, {.descriptors = 2, .ring_bytes = plenty.ring_bytes});
  EXPECT_EQ(threads.counts().sampled, 2U);
  threads.drain([](const PerfSample&, const std::string&, PerfProgress&) {},
                [](std::uint64_t, std::uint64_t) {});
  EXPECT_EQ(open_perf_events(), 2);
}

TEST_F(PerfHost, BeyondItsRoomForLockedMemoryRingsAreSmallerThenThreadsAreCounted) {
  Waiting others(6);
  PerfThreads threads(probe.plan);
  threads.scan(nobody, {.descriptors = 100, .ring_bytes = std::size_t{96} << 10});
  EXPECT_EQ(threads.counts().sampled, 2U) << "one of 64 KiB, one of 32";
  EXPECT_EQ(threads.counts().smallest_ring, std::size_t{32} << 10);
  EXPECT_NE(threads.counts().refusal.find("RLIMIT_MEMLOCK="), std::string::npos)
      << threads.counts().refusal;
}

TEST_F(PerfHost, TakesAQuarterOfTheDescriptorsThatOthersLeave) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  std::vector<int> held;
  rlimit small = before;
  small.rlim_cur = 100;
  ::setrlimit(RLIMIT_NOFILE, &small);
  const std::size_t free = perf_room(0).descriptors;
  for (int i = 0; i < 40; ++i) held.push_back(::dup(0));
  const std::size_t fewer = perf_room(0).descriptors;
  const std::size_t with_own = perf_room(40).descriptors;
  for (const int fd : held) ::close(fd);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_LE(free, 25U);
  EXPECT_EQ(free - fewer, 10U);
  EXPECT_EQ(with_own, free);
  EXPECT_LE(perf_room(0).descriptors, kMostPerfDescriptors);
}

// Of the calling thread, from now on: what its sampled event counts, too.
class CpuClock {
 public:
  explicit CpuClock(const PerfPlan& plan) : event_(open_perf_event(0, plan)) {}
  std::uint64_t count_ns() const {
    std::uint64_t words[2] = {};
    return ::read(event_.get(), words, sizeof words) > 0 ? words[0] : 0;
  }

 private:
  UniqueFd event_;
};

// The truth is the kernel's count: a machine that isn't there for some periods samples them at
// once.
TEST_F(PerfHost, WhatARingHadNoRoomForIsCountedAndNotChargedToWhatCameNext) {
  if (!probe.plan.has_kernel) GTEST_SKIP() << "weights need samples in the kernel";
  PerfPlan fast = probe.plan;
  fast.period_ns = 1'000'000;
  PerfThreads threads(fast);
  const CpuClock outer(fast);
  threads.scan(nobody, {.descriptors = 100, .ring_bytes = std::size_t{32} << 10});
  ASSERT_EQ(threads.counts().sampled, 1U) << "this thread alone";
  const CpuClock inner(fast);
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;
  std::uint64_t kept_periods = 0;
  std::uint64_t lost_periods = 0;
  const auto drain = [&] {
    threads.drain(
        [&](const PerfSample& sample, const std::string&, PerfProgress& progress) {
          ++samples;
          kept_periods += progress.weigh(sample.count_ns, fast);
        },
        [&](std::uint64_t more, std::uint64_t periods) {
          lost += more;
          lost_periods += periods;
        });
  };
  burn_one(200);
  const std::uint64_t least = inner.count_ns() / fast.period_ns;
  threads.halt();
  const std::uint64_t most = outer.count_ns() / fast.period_ns;
  drain();
  EXPECT_LE(samples, 4U) << "a ring of 32 KiB";
  EXPECT_GT(lost, 0U);
  EXPECT_LE(lost, lost_periods);
  EXPECT_GE(kept_periods + lost_periods + 2, least);
  EXPECT_LE(kept_periods + lost_periods, most + 2);
}

TEST_F(PerfHost, TheChildOfAForkHasNoEventsUntilItRestarts) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer starts no threads after a fork";
#endif
  Sampled sampled(with_perf());
  sampled.wait_until_sampled();
  EXPECT_EQ(in_child(
                [&] {
                  if (open_perf_events() != 0) return 1;
                  burn_one(50);
                  if (cpu_sample_status().is_sampling) return 2;
                  if (!sampled.recorder().restart_in_child()) return 3;
                  sampled.wait_until_sampled();
                  return 42;
                },
                false),
            42)
      << "sampling goes on in a child that records";
  sampled.wait_until_sampled();
}

}  // namespace
}  // namespace dial9::internal
