// What benchmarks of sources share: CPU clocks, counters, threads that wait, threads on one CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace dial9::bench {

inline constexpr std::uint64_t kSecond = 1'000'000'000;

inline std::uint64_t read_clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}
inline std::uint64_t thread_cpu_ns() { return read_clock_ns(CLOCK_THREAD_CPUTIME_ID); }
inline std::uint64_t process_cpu_ns() { return read_clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

// CPU time of this thread since `begin_ns`, for each of `count`: what others take of the CPU
// meanwhile isn't in it.
inline void set_ns(benchmark::State& state, std::uint64_t begin_ns, std::uint64_t count) {
  state.counters["ns"] =
      static_cast<double>(thread_cpu_ns() - begin_ns) / static_cast<double>(count);
}
inline void set_ns(benchmark::State& state, std::uint64_t begin_ns) {
  set_ns(state, begin_ns, static_cast<std::uint64_t>(state.iterations()));
}

inline double median(std::vector<std::uint64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle);
}

// Threads that wait for as long as it lives.
class WaitingThreads {
 public:
  explicit WaitingThreads(int count) {
    gate_.lock();
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this] { const std::lock_guard in(gate_); });
    }
  }
  ~WaitingThreads() {
    gate_.unlock();
    for (std::thread& thread : threads_) thread.join();
  }
  WaitingThreads(const WaitingThreads&) = delete;
  WaitingThreads& operator=(const WaitingThreads&) = delete;

 private:
  std::mutex gate_;
  std::vector<std::thread> threads_;
};

// This thread, and those that it starts meanwhile, on one CPU: where one waits the next runs.
class OneCpu {
 public:
  OneCpu() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    ::sched_getaffinity(0, sizeof before_, &before_);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCpu() { ::sched_setaffinity(0, sizeof before_, &before_); }
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;

 private:
  cpu_set_t before_;
};

}  // namespace dial9::bench
