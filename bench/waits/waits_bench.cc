// What the interposed functions cost, beside the C library's own in the same run: a mutex that is
// free and one that isn't, a read of one byte, each outside a poll and inside a recorded one; what
// is written of a slow wait for a lock, without and with its stack 20 frames deep; and a worker's
// park. A wait for a lock is timed by two threads on one CPU that walk around three mutexes: the
// CPU time of both by the number of waits, the C library's and ours in turn. Run:
//   waits_bench --benchmark_min_time=0.2
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "bench_support.h"
#include "dial9/lock_stacks.h"
#include "dial9/recorder.h"
#include "dial9/runtime.h"
#include "recorder/kept_files.h"
#include "recorder/wait_stacks.h"

namespace {

using namespace dial9;
using namespace dial9::bench;
using namespace dial9::internal;

using Lock = int (*)(pthread_mutex_t*) noexcept;
using Read = ssize_t (*)(int, void*, std::size_t);

// The C library's, behind ours.
template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

constinit runtime::Place g_place{"waits_bench"};

// A recorder, a runtime, and the calling thread in a poll of it if so asked.
class InPoll {
 public:
  explicit InPoll(bool has_poll) : has_poll_(has_poll) {
    static const runtime::RuntimeId id = runtime::register_runtime("bench");
    runtime::enter_worker(id);
    if (has_poll_) runtime::poll_start(poll_, id, {runtime::new_task_id(), &g_place});
  }
  ~InPoll() {
    if (has_poll_) runtime::poll_end(poll_);
  }
  InPoll(const InPoll&) = delete;
  InPoll& operator=(const InPoll&) = delete;

 private:
  const bool has_poll_;
  runtime::Poll poll_;
};

Recorder start_recorder() {
  return Recorder::start(RecorderOptions::memory(std::uint64_t{32} << 20)).first;
}

enum class Where { kLibc, kOutside, kInPoll };

void free_mutex(benchmark::State& state, Where where) {
  const Recorder recorder = start_recorder();
  const InPoll in_poll(where == Where::kInPoll);
  const Lock lock =
      where == Where::kLibc ? real<Lock>("pthread_mutex_lock") : Lock{::pthread_mutex_lock};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) {
    lock(&mutex);
    ::pthread_mutex_unlock(&mutex);
  }
  set_ns(state, begin_ns);
}

void short_read(benchmark::State& state, Where where) {
  const Recorder recorder = start_recorder();
  const InPoll in_poll(where == Where::kInPoll);
  const Read read = where == Where::kLibc ? real<Read>("read") : Read{::read};
  const UniqueFd zeros(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  char byte = 0;
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) benchmark::DoNotOptimize(read(zeros.get(), &byte, 1));
  set_ns(state, begin_ns);
}

// Each thread holds one of three mutexes and takes the next before it gives that back: with two
// threads on one CPU at least every other lock waits for the other's step.
class Ring {
 public:
  static constexpr int kTurns = 200;  // of each

  struct Cost {
    std::uint64_t cpu_ns = 0;
    std::uint64_t waits = 0;
  };
  // Of both threads.
  Cost run(Lock lock, bool has_polls) {
    Cost costs[2];
    std::thread other([&] { costs[1] = walk(lock, has_polls, 1); });
    std::thread([&] { costs[0] = walk(lock, has_polls, 0); }).join();
    other.join();
    return {costs[0].cpu_ns + costs[1].cpu_ns, costs[0].waits + costs[1].waits};
  }

 private:
  static std::uint64_t waits_of_this_thread() {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return static_cast<std::uint64_t>(usage.ru_nvcsw);
  }

  Cost walk(Lock lock, bool has_polls, std::size_t at) {
    const InPoll in_poll(has_polls);
    lock(&mutexes_[at]);
    both_.arrive_and_wait();
    const std::uint64_t waits = waits_of_this_thread();
    const std::uint64_t begin_ns = thread_cpu_ns();
    for (int i = 0; i < kTurns; ++i) {
      const std::size_t next = (at + 1) % 3;
      lock(&mutexes_[next]);
      ::pthread_mutex_unlock(&mutexes_[at]);
      at = next;
    }
    const Cost cost{thread_cpu_ns() - begin_ns, waits_of_this_thread() - waits};
    ::pthread_mutex_unlock(&mutexes_[at]);
    return cost;
  }

  pthread_mutex_t mutexes_[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                 PTHREAD_MUTEX_INITIALIZER};
  std::barrier<> both_{2};
};

// The medians of batches of libc's and of ours, in turn, each a wait. Every wait is a slow one.
void contended_mutex(benchmark::State& state) {
  constexpr int kBatches = 20;
  const Recorder recorder = start_recorder();
  const OneCpu one_cpu;
  runtime::set_wait_floors(runtime::kDefaultBlockingFloorNs, 0);
  std::vector<std::uint64_t> bare;
  std::vector<std::uint64_t> recorded;
  const auto add = [&](Lock lock, bool has_polls, std::vector<std::uint64_t>& to) {
    const Ring::Cost cost = Ring().run(lock, has_polls);
    if (cost.waits < Ring::kTurns / 2) return state.SkipWithError("locks that didn't wait");
    to.push_back(cost.cpu_ns / cost.waits);
  };
  for (auto _ : state) {
    for (int i = 0; i < kBatches; ++i) {
      add(real<Lock>("pthread_mutex_lock"), false, bare);
      add(::pthread_mutex_lock, true, recorded);
    }
  }
  runtime::set_wait_floors(runtime::kDefaultBlockingFloorNs, runtime::kDefaultLockFloorNs);
  if (bare.empty() || recorded.empty()) return;
  state.counters["wait_ns"] = median(bare);
  state.counters["recorded_ns"] = median(recorded);
}

[[gnu::noinline]] void waits_at(int depth, benchmark::State& state) {
  volatile int here = depth;
  if (depth != 0) {
    waits_at(depth - 1, state);
  } else {
    // Seconds are made up, or most waits would have no stack: there are so many a second at most.
    constexpr std::uint64_t kApartNs = 1'000'000;
    std::uint64_t now_ns = runtime::now_ns();
    for (auto _ : state) {
      lock_wait_of(__builtin_return_address(0), 1, 1, 1, now_ns += kApartNs,
                   runtime::kDefaultLockFloorNs);
    }
  }
  here = here + 1;
}

void slow_wait(benchmark::State& state, bool has_stack) {
  constexpr int kFrames = 20;
  const Recorder recorder = start_recorder();
  const InPoll in_poll(true);
  if (has_stack && !add_lock_stacks({.most_a_second = 10'000})) {
    return state.SkipWithError("no stacks of locks here");
  }
  const std::uint64_t begin_ns = thread_cpu_ns();
  waits_at(kFrames, state);
  set_ns(state, begin_ns);
  remove_lock_stacks();
}

void park_and_unpark(benchmark::State& state) {
  const Recorder recorder = start_recorder();
  const InPoll worker(false);
  const std::uint64_t begin_ns = thread_cpu_ns();
  for (auto _ : state) {
    runtime::park();
    runtime::unpark();
  }
  set_ns(state, begin_ns);
  close_kept_files();
}

BENCHMARK_CAPTURE(free_mutex, libc, Where::kLibc);
BENCHMARK_CAPTURE(free_mutex, outside_a_poll, Where::kOutside);
BENCHMARK_CAPTURE(free_mutex, in_a_poll, Where::kInPoll);
BENCHMARK_CAPTURE(short_read, libc, Where::kLibc);
BENCHMARK_CAPTURE(short_read, outside_a_poll, Where::kOutside);
BENCHMARK_CAPTURE(short_read, in_a_poll, Where::kInPoll);
BENCHMARK(contended_mutex)->Iterations(2);
BENCHMARK_CAPTURE(slow_wait, without_stack, false);
BENCHMARK_CAPTURE(slow_wait, with_stack, true);
BENCHMARK(park_and_unpark);

}  // namespace

BENCHMARK_MAIN();
