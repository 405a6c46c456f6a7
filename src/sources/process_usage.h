// What the process uses: CPU time, memory, faults, block operations, context switches, as one
// ProcessResourceUsageEvent a sample. Strongest property: one kernel call a sample, and once a
// second a read of a kept file; what the platform doesn't tell is absent (bench/resources).
// Spec: docs/spec/events.md, "Process".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "dial9/event.h"
#include "recorder/kept_files.h"
#include "sources/kernel_numbers.h"

namespace dial9::internal {

DIAL9_EVENT(ProcessResourceUsageEvent, (ns_counter_u64, user_cpu_ns),
            (ns_counter_u64, system_cpu_ns), (bytes_gauge_u64, max_rss_bytes),
            (counter_u64, minor_faults), (counter_u64, major_faults),
            (counter_u64, block_input_ops), (counter_u64, block_output_ops),
            (counter_u64, voluntary_context_switches), (counter_u64, involuntary_context_switches),
            (optional<bytes_gauge_u64>, rss_bytes));

// False if the platform has no such numbers.
bool is_process_usage_supported() noexcept;
// All but rss_bytes; false if the kernel refused them.
bool read_process_usage(ProcessResourceUsageEvent* usage) noexcept;

// The collector's thread only.
class ProcessUsage {
 public:
  // Records the numbers, once a period, and rss_bytes with them once a second.
  void sample(std::uint64_t now_ns, std::uint64_t period_ns) noexcept;
  // Another source's turn, which needs the memory, too: the numbers are recorded with rss_bytes, by
  // one reading for both, and the next sample() within half a period records nothing.
  Pages sample_for_another(std::uint64_t now_ns) noexcept;

 private:
  Pages read_memory(std::uint64_t now_ns, std::uint64_t again_ns) noexcept;
  void record_with(const Pages& pages, std::uint64_t now_ns) noexcept;

  std::uint64_t ahead_ns_ = 0;  // when another one took our turn; 0: never
  std::uint64_t next_memory_ns_ = 0;
  KeptFile statm_{"/proc/self/statm"};
};

// sample_for_another() of the process's own source; none: it isn't there.
std::optional<Pages> sample_process_usage(std::uint64_t now_ns);

std::uint64_t page_bytes() noexcept;

}  // namespace dial9::internal
