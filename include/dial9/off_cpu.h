// What the threads of this process wait for while they aren't on a CPU: the call, its descriptor or
// lock, the stack, and the task, span and label that waits; and how each thread's time splits into
// running, runnable and blocked. Strongest property: no signal, no right, no lock and no call of
// the host's that fails or takes longer: the recorder's own thread looks from outside.
// Spec: docs/spec/off_cpu_samples.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "dial9/recorder.h"

namespace dial9 {

struct OffCpuOptions {
  // Looks at each thread a second, 20 to 100, while threads run. Fewer where nothing moves, and
  // where so many threads would take more than a 200th of a CPU.
  std::uint32_t frequency_hz = 50;
  // Also each switch of each thread on a CPU and off it, by perf events (perf_event_paranoid up to
  // 2 allows them for own threads): waits have their exact begin and end, also those that no look
  // saw, and preemption is told from blocking. Where that is refused the looks go on alone, and
  // status and metadata say why. Takes a descriptor and 36 KiB of locked memory a thread, at most
  // 256 and a quarter of the descriptors that are free; threads beyond are only looked at. Costs
  // the host about 2 us a switch (bench/off_cpu_samples).
  bool has_switches = false;
  // With switches, each with the stack that the thread left the CPU with: all waits have one, the
  // shortest too. Needs perf_event_paranoid up to 1, or CAP_PERFMON; refused, the switches go on
  // alone, and status and metadata say why. x86-64. Takes another descriptor and 132 KiB of locked
  // memory a thread, in bounds like the above. Costs the host about 5 us a switch
  // (bench/off_cpu_samples); at most 15 stacks a thread between two looks: those beyond are
  // counted.
  bool has_switch_stacks = false;
  // Where switches or their stacks that are asked for are refused, add_off_cpu_samples() fails with
  // the reason.
  bool requires_switches = false;
};

// Looks at all threads of the process while a recorder records (the recorder's own isn't one).
// Refused where the platform isn't supported or /proc can't be read; where only calls or stacks
// can't be read, the times are recorded without, and the metadata says why. Keeps at most 66
// descriptors, fewer under a low RLIMIT_NOFILE. Any thread, not in a signal handler. Link
// dial9_session. Memory: about 500 bytes a thread, of 16,384 at most, 1 MiB of stacks, 256 KiB.
// Cost: at most 0.5 % of a CPU (bench/off_cpu_samples).
Status add_off_cpu_samples(const OffCpuOptions& options = {}) noexcept;

// False: there was nothing to remove.
bool remove_off_cpu_samples() noexcept;

struct OffCpuStatus {
  bool is_sampling = false;             // now
  std::string message;                  // why not, or what is less than was asked for; else empty
  std::uint32_t threads = 0;            // looked at
  std::uint32_t threads_unsampled = 0;  // beyond the bound
  std::uint64_t looks = 0;
  std::uint64_t stacks = 0;          // taken, proven not to have moved
  std::uint64_t moved = 0;           // not taken: the thread ran meanwhile
  std::uint64_t round_ns = 0;        // the last look at all of them took so long
  std::uint32_t switch_threads = 0;  // whose switches are followed
  std::uint64_t switches_lost = 0;   // for which there was no room
  std::uint64_t switch_stacks = 0;
  std::uint64_t switch_stacks_lost = 0;  // for which there was no room
};
OffCpuStatus off_cpu_status() noexcept;

}  // namespace dial9
