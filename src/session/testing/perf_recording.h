// A recording into memory with CPU samples by perf, and work that takes a known CPU time: for tests
// of whom samples belong to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "dial9/cpu_samples.h"
#include "dial9/recorder.h"

namespace dial9::testing {

// Of the calling thread.
inline double cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// Returns the CPU time that it took.
inline double burn(double ms) {
  static thread_local volatile std::uint64_t kept = 1;
  const double begin = cpu_ms();
  double now = begin;
  while (now < begin + ms) {
    for (int i = 0; i < 2'000; ++i) kept = kept * 3 + 1;
    now = cpu_ms();
  }
  return now - begin;
}

class PerfRecording {
 public:
  static constexpr std::uint32_t kHz = 500;

  PerfRecording() = default;
  ~PerfRecording() { stop(); }
  PerfRecording(const PerfRecording&) = delete;
  PerfRecording& operator=(const PerfRecording&) = delete;

  // Empty: it records, or has failed the test. Else why perf can't be had here.
  std::string start(std::uint64_t bytes) {
    const Status added = add_cpu_samples({.frequency_hz = kHz, .backend = CpuSampleBackend::kPerf});
    if (!added.ok()) return added.message();
    auto [recorder, status] = Recorder::start(RecorderOptions::memory(bytes));
    EXPECT_TRUE(status.ok()) << status.message();
    recorder_.emplace(std::move(recorder));
    return "";
  }
  // Idempotent.
  void stop() {
    recorder_.reset();
    remove_cpu_samples();
  }
  Recorder& recorder() { return *recorder_; }

  // Once so many threads of the host are sampled, and changes of labels count: from 10 ms after a
  // pass of the collector on, of which each rotation makes one.
  void wait_until_sampled(std::uint32_t threads) {
    while (cpu_sample_status().threads < threads) burn(5);
    for (int pass = 0; pass < 2; ++pass) {
      recorder_->rotate(std::chrono::seconds(30));
      burn(20);
    }
    recorder_->rotate(std::chrono::seconds(30));
  }

 private:
  std::optional<Recorder> recorder_;
};

}  // namespace dial9::testing
