// What the process uses: CPU time, memory, faults, block operations, context switches, as one
// ProcessResourceUsageEvent a sample. Strongest property: one kernel call a sample, and once a
// second a read of a kept file; the call asks each thread, and where there are so many that it is
// dear it is made more seldom, at most 200 us a second, and the event says so. What the platform
// doesn't tell is absent (bench/resources).
// Spec: docs/spec/events.md, "Process".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "dial9/event.h"
#include "dial9/internal/clock.h"
#include "recorder/kept_files.h"
#include "recorder/reading_cost.h"
#include "sources/kernel_numbers.h"

namespace dial9::internal {

DIAL9_EVENT(ProcessResourceUsageEvent, (ns_counter_u64, user_cpu_ns),
            (ns_counter_u64, system_cpu_ns), (bytes_gauge_u64, max_rss_bytes),
            (counter_u64, minor_faults), (counter_u64, major_faults),
            (counter_u64, block_input_ops), (counter_u64, block_output_ops),
            (counter_u64, voluntary_context_switches), (counter_u64, involuntary_context_switches),
            (optional<bytes_gauge_u64>, rss_bytes), (optional<ns_u64>, period_ns));

// False if the platform has no such numbers.
bool is_process_usage_supported() noexcept;
// All but rss_bytes and period_ns; false if the kernel refused them.
bool read_process_usage(ProcessResourceUsageEvent* usage) noexcept;

// Where the numbers come from, and a clock for what reading them costs.
struct UsageSeams {
  std::function<bool(ProcessResourceUsageEvent*)> read = read_process_usage;
  std::function<std::uint64_t()> cost_clock_ns = kernel_now_ns;
};

// The collector's thread only.
class ProcessUsage {
 public:
  explicit ProcessUsage(UsageSeams seams = {}) : seams_(std::move(seams)) {}

  // Records the numbers, once a period or as seldom as they are dear, and rss_bytes with them once
  // a second.
  void sample(std::uint64_t now_ns, std::uint64_t period_ns) noexcept;
  // Another source's turn, which needs the memory, too: the numbers are recorded with rss_bytes, by
  // one reading for both, and the next sample() within half a period records nothing. Where
  // readings are more than a second apart they are made here, and only in seconds that have one.
  Pages sample_for_another(std::uint64_t now_ns, std::uint64_t period_ns) noexcept;

 private:
  Pages read_memory(std::uint64_t now_ns, std::uint64_t again_ns) noexcept;
  void record_with(const Pages& pages, std::uint64_t now_ns, std::uint64_t asked_ns) noexcept;
  bool read_and_time(std::uint64_t now_ns, ProcessResourceUsageEvent* usage) noexcept;
  bool is_too_soon(std::uint64_t now_ns, std::uint64_t asked_ns) const noexcept;

  static constexpr std::uint64_t kCostShare = 5'000;  // of the time, for readings of the numbers

  const UsageSeams seams_;
  ReadingCost cost_{kCostShare};
  std::uint64_t next_timed_ns_ = 0;
  std::uint64_t read_ns_ = 0;   // the last time; 0: never
  std::uint64_t ahead_ns_ = 0;  // when another one took our turn; 0: never
  std::uint64_t next_memory_ns_ = 0;
  KeptFile statm_{"/proc/self/statm"};
};

// sample_for_another() of the process's own source; none: it isn't there.
std::optional<Pages> sample_process_usage(std::uint64_t now_ns);

std::uint64_t page_bytes() noexcept;

}  // namespace dial9::internal
