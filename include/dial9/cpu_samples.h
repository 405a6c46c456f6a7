// CPU samples: what the threads of this process spend CPU time on, with stacks that need no frame
// pointers, no rights and no registration of threads, each with its task, span and label.
// Strongest property: a waiting thread is never woken and no call of the host fails with EINTR: the
// signal comes only while a thread runs, on its way out of the kernel. So it is with Linux 5.9 and
// later on x86-64; elsewhere sampling is refused unless it is asked for all the same. With perf
// events there is no signal at all.
// Spec: docs/spec/cpu_samples.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "dial9/label.h"
#include "dial9/recorder.h"

namespace dial9 {

enum class CpuSampleBackend : std::uint8_t {
  kAutomatic,  // what takes least of the host and needs no rights: timers
  kTimers,     // a timer and a signal for each thread
  // A perf event for each thread: no signal, frames of the kernel where they are allowed, rates
  // beyond the kernel's tick. Task, span and label of its samples are found by readers, where the
  // trace proves them. Costs a descriptor and up to 512 KiB of locked memory a thread. x86-64.
  kPerf,
};

struct CpuSampleOptions {
  // Samples a second of a thread's CPU time, 1 to 1,000. Beyond the kernel's tick (100 to 1,000 a
  // second) a timer's sample stands for several, and says so in its weight.
  std::uint32_t frequency_hz = 99;
  // SIGPROF, or a real-time signal (SIGRTMIN to SIGRTMAX) that nobody else uses.
  int signal = 0;  // 0: SIGPROF. Not with perf
  // Samples on older kernels and other machines as well, where a call that is about to sleep (poll,
  // epoll_wait, nanosleep, ...) may fail with EINTR: only for a host whose every call copes.
  bool allow_interrupted_calls = false;
  // One that is named and doesn't work is refused with the reason: none is used in its stead.
  CpuSampleBackend backend = CpuSampleBackend::kAutomatic;
};

// Samples all threads of the process while a recorder records (the recorder's own isn't one): each
// gets a timer on its CPU clock, about a tenth of a second after its start. Refused, naming the
// owner, if the signal is handled, ignored, or in use by an interval timer; if it was called
// before; and where the platform isn't supported, or its kernel might interrupt calls of the host.
// With perf: refused if no event can be opened or delivers a sample, which it tries (at most 50
// ms). Threads that block the signal, and those beyond half of what the user's other processes
// leave of the limit of timers (ulimit -i), aren't sampled; CpuProfileEvents and the metadata say
// so. With perf so are those beyond 256 or a quarter of the descriptors that are left (ulimit -n).
// Once sampling is on, a handler that takes the signal over ends it. Any thread, not in a signal
// handler. A host that resets the signal to SIG_DFL meanwhile is ended by the next one (unless
// dial9 is preloaded): remove first. Link dial9_session. Memory: 2 KiB for each sample of half a
// second, 512 KiB to 8 MiB, as far as it was used. Cost: at most 0.3 % of the sampled CPU time at
// 99 Hz by timers, up to twice that by perf (bench/cpu_samples).
Status add_cpu_samples(const CpuSampleOptions& options = {}) noexcept;

// After return no timer of ours is armed and no perf event open. The signal's handler stays, and
// does nothing: a signal that is on its way would end the process. False: there was nothing to
// remove.
bool remove_cpu_samples() noexcept;

// Counts begin at zero with each add_cpu_samples() that finds sampling off, and stay readable after
// remove_cpu_samples().
struct CpuSampleStatus {
  bool is_sampling = false;             // now
  std::string message;                  // why not, or what is less than was asked for; else empty
  std::uint32_t asked_hz = 0;           // 0: off
  double achieved_hz = 0;               // samples a second of CPU time; 0: not known yet
  std::uint64_t samples = 0;            // taken, the recorded ones
  std::uint64_t periods = 0;            // sum of their weights
  std::uint64_t lost = 0;               // samples for which there was no room
  std::uint32_t threads = 0;            // sampled now
  std::uint32_t threads_unsampled = 0;  // that block the signal, or had no timer or event left
};
CpuSampleStatus cpu_sample_status() noexcept;

}  // namespace dial9
