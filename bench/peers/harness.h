// Times one operation in short bursts with pauses between them, so that a recorder's own thread
// keeps up and what is timed is the recording, not the loss. Strongest property: every program of
// bench/peers times alike (rust/src/harness.rs is the same loop), so that ratios mean something.
// Method: bench/peers/README.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace dial9_bench {

struct Options {
  std::uint32_t bursts = 40;  // timed; kWarmUpBursts more go before them
  std::uint32_t burst_ops = 4096;
  std::uint32_t pause_us = 3000;  // between two bursts
  std::string directory;          // where a recorder writes
};
inline constexpr std::uint32_t kWarmUpBursts = 5;

// --bursts N --burst-ops N --pause-us N --directory PATH; ends the program with 2 on anything else.
inline Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view key = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    const auto number = static_cast<std::uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
    if (key == "--bursts" && number > 0) {
      options.bursts = number;
    } else if (key == "--burst-ops" && number > 0) {
      options.burst_ops = number;
    } else if (key == "--pause-us" && !value.empty()) {
      options.pause_us = number;
    } else if (key == "--directory" && !value.empty()) {
      options.directory = value;
    } else {
      std::fprintf(stderr, "%s: unknown or incomplete option '%s'\n", argv[0], argv[i]);
      std::exit(2);
    }
  }
  return options;
}

inline std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// What one case showed: ns an operation, over the bursts of all threads.
struct Timing {
  double median_ns = 0;
  double min_ns = 0;
  std::uint64_t operations = 0;  // all, warm-up included
};

// Threads start each burst together. They spin, so that the bursts do overlap; the machine needs a
// core for each.
class BurstGate {
 public:
  explicit BurstGate(std::uint32_t threads) : threads_(threads) {}
  void arrive_and_wait(std::uint32_t burst) {
    arrived_.fetch_add(1, std::memory_order_acq_rel);
    const std::uint64_t due = std::uint64_t{threads_} * (burst + 1);
    while (arrived_.load(std::memory_order_acquire) < due) __builtin_ia32_pause();
  }

 private:
  const std::uint32_t threads_;
  std::atomic<std::uint64_t> arrived_{0};
};

// Calls op(i) for i = 0, 1, ... on `threads` threads, each with a copy of `op`.
template <class Op>
Timing measure(const Options& options, std::uint32_t threads, const Op& op) {
  std::vector<std::vector<double>> per_op_ns(threads);
  BurstGate gate(threads);
  const auto work = [&](std::vector<double>& mine) {
    Op my_op = op;
    for (std::uint32_t burst = 0; burst < kWarmUpBursts + options.bursts; ++burst) {
      std::this_thread::sleep_for(std::chrono::microseconds(options.pause_us));
      gate.arrive_and_wait(burst);
      const std::uint64_t begin_ns = monotonic_ns();
      for (std::uint64_t i = 0; i < options.burst_ops; ++i) {
        my_op(i);
        asm volatile("" ::: "memory");
      }
      const std::uint64_t end_ns = monotonic_ns();
      if (burst < kWarmUpBursts) continue;
      mine.push_back(static_cast<double>(end_ns - begin_ns) / options.burst_ops);
    }
  };
  std::vector<std::thread> running;
  for (auto& mine : per_op_ns) running.emplace_back([&work, &mine] { work(mine); });
  for (auto& thread : running) thread.join();

  std::vector<double> all;
  for (const auto& mine : per_op_ns) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  Timing timing;
  timing.median_ns = all[all.size() / 2];
  timing.min_ns = all.front();
  timing.operations = std::uint64_t{threads} * (kWarmUpBursts + options.bursts) * options.burst_ops;
  return timing;
}

// Events that a case should have recorded and that are missing; kNotCounted where nobody counts.
inline constexpr std::int64_t kNotCounted = -1;

// One line of JSON on stdout, read by bench/peers/compare.py.
inline void report(const char* name, std::uint32_t threads, const Timing& timing,
                   std::int64_t lost) {
  std::printf("{\"case\":\"%s\",\"threads\":%u,\"median_ns\":%.3f,\"min_ns\":%.3f,\"lost\":", name,
              threads, timing.median_ns, timing.min_ns);
  if (lost == kNotCounted) {
    std::printf("null}\n");
  } else {
    std::printf("%lld}\n", static_cast<long long>(lost));
  }
}

inline constexpr std::uint32_t kThreadCounts[] = {1, 2};

}  // namespace dial9_bench
