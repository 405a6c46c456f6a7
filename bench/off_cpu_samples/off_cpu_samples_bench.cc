// What a look at a thread costs, beside a read of the clock in the same run: at one that hasn't run
// since the last look, with its account kept open and without, and at one that is blocked in a call
// 20 frames deep (call, stack, context, and the proof that it didn't move). `clock_reads` is the
// ratio. Run:
//   off_cpu_samples_bench --benchmark_min_time=0.2
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "sources/thread_probe.h"
#include "unwind/unwind.h"

namespace {

using namespace dial9;
using namespace dial9::internal;

std::uint64_t now(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// The least of many short runs.
double clock_read_ns() {
  constexpr int kReads = 1'000;
  std::uint64_t least = ~std::uint64_t{0};
  for (int run = 0; run < 50; ++run) {
    const std::uint64_t begin = now();
    for (int i = 0; i < kReads; ++i) benchmark::DoNotOptimize(now());
    least = std::min(least, now() - begin);
  }
  return static_cast<double>(least) / kReads;
}

[[gnu::noinline]] void block_at(int depth, int fd) {
  volatile char byte = 0;
  if (depth != 0) {
    block_at(depth - 1, fd);
  } else {
    char read = 0;
    if (::read(fd, &read, 1) == 1) byte = read;
  }
  byte = static_cast<char>(byte + 1);
}

// Threads that are blocked in read().
class Blocked {
 public:
  explicit Blocked(int count) {
    if (::pipe2(pipe_, O_CLOEXEC) != 0) return;
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        const auto tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
        tids_[static_cast<std::size_t>(started_.fetch_add(1))] = tid;
        block_at(20, pipe_[0]);
      });
    }
    while (started_ != count) std::this_thread::yield();
  }
  ~Blocked() {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      if (::write(pipe_[1], "x", 1) != 1) return;
    }
    for (std::thread& thread : threads_) thread.join();
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  std::uint32_t tid(std::size_t i) const { return tids_[i]; }

 private:
  int pipe_[2] = {-1, -1};
  std::atomic<int> started_{0};
  std::uint32_t tids_[128] = {};
  std::vector<std::thread> threads_;
};

// By this thread's CPU time: what others take of the CPU meanwhile isn't a look's.
void set_ratio(benchmark::State& state, std::uint64_t begin_ns) {
  const double each = static_cast<double>(now(CLOCK_THREAD_CPUTIME_ID) - begin_ns) /
                      static_cast<double>(state.iterations());
  state.counters["clock_reads"] = each / clock_read_ns();
}

void look_at_idle_thread(benchmark::State& state, bool is_kept) {
  const Blocked blocked(100);
  const auto probe = make_thread_probe();
  // The first threads that are read are the kept ones.
  for (std::size_t i = 0; i < 100; ++i) probe->account(blocked.tid(i));
  const std::uint32_t tid = blocked.tid(is_kept ? 0 : 99);
  const std::uint64_t begin_ns = now(CLOCK_THREAD_CPUTIME_ID);
  for (auto _ : state) benchmark::DoNotOptimize(probe->account(tid));
  set_ratio(state, begin_ns);
}
void idle_thread_kept(benchmark::State& state) { look_at_idle_thread(state, true); }
void idle_thread_not_kept(benchmark::State& state) { look_at_idle_thread(state, false); }

void changed_thread(benchmark::State& state) {
  unwind::prepare();
  const Blocked blocked(1);
  const auto probe = make_thread_probe();
  BlockedThread thread;
  std::int64_t whole = 0;
  const std::uint64_t begin_ns = now(CLOCK_THREAD_CPUTIME_ID);
  for (auto _ : state) {
    const auto reading = probe->account(blocked.tid(0));
    if (reading && probe->look(blocked.tid(0), *reading, &thread) == Look::kBlocked) {
      whole += thread.is_truncated ? 0 : 1;
    }
  }
  set_ratio(state, begin_ns);
  state.counters["frames"] = static_cast<double>(thread.frames.size());
  if (whole < state.iterations() * 9 / 10) state.SkipWithError("looks without whole stacks");
}

BENCHMARK(idle_thread_kept);
BENCHMARK(idle_thread_not_kept);
BENCHMARK(changed_thread);

}  // namespace

BENCHMARK_MAIN();
