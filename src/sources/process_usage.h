// What the process uses: CPU time, memory, faults, block operations, context switches, as one
// ProcessResourceUsageEvent a sample. Strongest property: one kernel call a sample, and once a
// second a read of a kept file; what the platform doesn't tell is absent (bench/resources).
// Spec: docs/spec/events.md, "Process".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dial9/event.h"
#include "recorder/kept_files.h"

namespace dial9::internal {

DIAL9_EVENT(ProcessResourceUsageEvent, (ns_counter_u64, user_cpu_ns),
            (ns_counter_u64, system_cpu_ns), (bytes_gauge_u64, max_rss_bytes),
            (counter_u64, minor_faults), (counter_u64, major_faults),
            (counter_u64, block_input_ops), (counter_u64, block_output_ops),
            (counter_u64, voluntary_context_switches), (counter_u64, involuntary_context_switches),
            (optional<bytes_gauge_u64>, rss_bytes));

// False if the platform has no such numbers.
bool is_process_usage_supported() noexcept;
// The collector's thread only.
class ProcessUsageReader {
 public:
  // Reads the numbers; false if the kernel refused them. rss_bytes is read once a second.
  bool read(std::uint64_t now_ns, ProcessResourceUsageEvent* usage) noexcept;

 private:
  std::uint64_t next_rss_ns_ = 0;
  KeptFile statm_{"/proc/self/statm"};
};

}  // namespace dial9::internal
