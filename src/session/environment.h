// What the DIAL9_ variables ask for. Strongest property: nothing is ignored in silence: a value
// that isn't understood, a variable that doesn't exist, and a feature that this version hasn't got
// are each reported by name. Spec: docs/spec/events.md, "Environment".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dial9/cpu_samples.h"
#include "dial9/recorder.h"

namespace dial9::internal {

struct EnvironmentPlan {
  bool is_enabled = false;
  RecorderOptions options;
  bool has_directory = false;  // one was named; else options.directory is the default
  std::chrono::nanoseconds process_usage_period{0};    // 0: off
  std::chrono::nanoseconds platform_stalls_period{0};  // 0: off
  std::chrono::nanoseconds resources_period{0};        // 0: off
  std::chrono::nanoseconds accept_queues_period{0};    // 0: off
  std::uint32_t cpu_sample_hz = 0;                     // 0: off
  int cpu_signal = 0;                                  // 0: SIGPROF
  CpuSampleBackend cpu_backend = CpuSampleBackend::kAutomatic;
  std::uint64_t heap_sample_rate_bytes = 0;  // 0: off
  bool tracks_live_heap = false;
  std::uint32_t off_cpu_hz = 0;  // 0: off
  bool has_lock_stacks = true;
  bool has_function_names = true;
  bool has_off_cpu_switches = false;
  bool has_off_cpu_switch_stacks = false;
  std::uint32_t sched_wait_sample_rate = 10;
  std::string runtime_name;  // empty: none given
  bool handles_crashes = false;
  bool is_quiet = false;
  std::vector<std::string> messages;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

// All variables of the process whose name begins with DIAL9_.
Variables dial9_variables();

// From variables to a plan; touches nothing else.
EnvironmentPlan plan_from(const Variables& variables);

}  // namespace dial9::internal
