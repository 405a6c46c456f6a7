// The CPU sampler: the signal handler's side and the collector's side, as cpu_samples_linux.cc puts
// them together. Strongest property: while nothing is recorded no timer is armed, and one that
// still fires stops itself. Spec: docs/spec/cpu_samples.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "sources/sample_ring.h"

namespace dial9::internal {

// With less stack than this left below the handler's own frame, a sample has the interrupted
// instruction alone. What the handler needs, and the unwinder.
inline constexpr std::size_t kSampleStackBytes = std::size_t{6} << 10;

// --- The handler's side (cpu_tick_linux.cc)

// Where the handler puts samples. For the process's life; null: nowhere yet.
void set_sample_ring(SampleRing* ring) noexcept;
// Of the ticks of a thread one in so many is a sample from now on, and stands for all of them.
void thin_ticks(std::uint32_t one_in) noexcept;
// Handles `signal` from now on; whose it was before isn't asked. False: refused by the system.
bool install_tick_handler(int signal) noexcept;
// True while `signal` is handled by it, and by no handler of the host's beside it.
bool is_tick_handler_installed(int signal) noexcept;
// What signal_owner() is to take for ours.
void on_cpu_tick(int signal, siginfo_t* info, void* context);

// Slots for half a second of samples of `cpus` CPUs: a power of two, 256 to 4,096.
std::size_t ring_slots(std::uint32_t cpus, std::uint32_t frequency_hz) noexcept;

}  // namespace dial9::internal
