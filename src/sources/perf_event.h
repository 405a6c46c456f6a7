// One perf event: a thread's cpu-clock, with a copy of its user stack in each sample; or its
// switches, on a CPU and off it; or such a copy as it leaves the CPU. How it is opened, why it
// wasn't, and what its records say. Strongest property: a record is read within its own bytes,
// whatever it claims.
// Spec: docs/spec/cpu_samples.md, "Perf"; docs/spec/off_cpu_samples.md, "Switches".
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "sources/switch_account.h"

namespace dial9::internal {

// Of a thread's stack, from its stack pointer up. What doesn't fit is missing: a truncated stack.
inline constexpr std::uint32_t kPerfStackBytes = 8 << 10;
// A sample with such a copy, and up to 127 frames of the kernel.
inline constexpr std::size_t kPerfRecordBytes = kPerfStackBytes + 256;

// A switch of a thread, with the ids and the time.
inline constexpr std::size_t kPerfSwitchBytes = 24;

enum class PerfKind : std::uint8_t {
  kCpuClock,
  kSwitches,
  kSwitchStacks,  // a sample at each switch off the CPU, just before kSwitches tells it
};

// What the kernel allows. Plain words: a child of a fork takes them over.
struct PerfPlan {
  std::uint64_t period_ns = 0;
  bool has_kernel = false;   // samples in the kernel, with its frames
  bool counts_lost = false;  // Linux 6.0: each sample says how many were lost before it
  int paranoid = 0;          // kernel.perf_event_paranoid as it was
  PerfKind kind = PerfKind::kCpuClock;
};

// The errno of a refusal is in `errno`.
UniqueFd open_perf_event(std::uint32_t tid, const PerfPlan& plan);

struct PerfProbe {
  PerfPlan plan;
  std::string refusal;  // empty: a sample came
};
// Opens one for the calling thread and computes until it has seen a sample, at most 50 ms: an open
// that succeeds proves nothing.
PerfProbe probe_perf(std::uint64_t period_ns);
// The same of switches: sleeps for some microseconds, a few times.
PerfProbe probe_perf_switches();
// And of their stacks.
PerfProbe probe_perf_switch_stacks();

// What was tried, the errno, what works all the same, and the cure.
std::string perf_open_refusal(int error, int paranoid, PerfKind kind = PerfKind::kCpuClock);
std::string perf_ring_refusal(int error, std::size_t bytes);
std::string no_kernel_time_text(int paranoid);

struct PerfSample {
  std::uint64_t at_ns = 0;  // CLOCK_MONOTONIC
  std::uint32_t tid = 0;
  std::int32_t cpu = -1;
  std::uint64_t count_ns = 0;  // of the thread's CPU time (or switches), since it was opened
  std::uint64_t lost = 0;      // of this event until then, if the plan has counts_lost
  std::span<const std::uint64_t> in_kernel;  // leaf first, markers included
  bool has_registers = false;
  std::uint64_t pc = 0;
  std::uint64_t sp = 0;
  std::uint64_t fp = 0;
  std::uint64_t argument = 0;        // of kSwitchStacks: the second one, if a system call switched
  std::span<const std::byte> stack;  // from sp on
};
// From a whole PERF_RECORD_SAMPLE, header included; nothing: it isn't one of such an event.
// `record` is aligned to 8.
std::optional<PerfSample> parse_perf_sample(std::span<const std::byte> record,
                                            const PerfPlan& plan);

// From a whole record of an event of kSwitches: a switch, or that records were lost (`at_ns` is
// then that of the next record). Nothing: it is neither.
std::optional<ThreadSwitch> parse_perf_switch(std::span<const std::byte> record);

}  // namespace dial9::internal
