// The signal handler of the CPU sampler: time, thread, context and stack into a place of the ring.
// Async-signal-safe: no lock, no allocation, no libc but sched_getcpu (bound beforehand), errno
// kept. See cpu_samples.h. Spec: docs/spec/cpu_samples.md, "Handler".
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "recorder/own_cost.h"
#include "recorder/recording_state.h"
#include "recorder/shared_signal.h"
#include "sources/cpu_samples.h"
#include "sources/signal_frame.h"
#include "sources/thinning.h"
#include "sources/thread_timers.h"
#include "unwind/process_memory.h"
#include "unwind/thread_stack.h"

namespace dial9::internal {
namespace {

constinit SampleRing* g_ring = nullptr;
constinit std::uint32_t g_one_in = 1;
__thread Thinning t_thinning __attribute__((tls_model("initial-exec"))) = {};

// By the timer of this very thread, not by somebody's kill().
bool is_our_tick(const siginfo_t& info) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(info.si_value.sival_ptr);
  return info.si_code == SI_TIMER && (value & 0xFFFF'FFFF'0000'0000) == timer_mark();
}

// Nothing is recorded, and the collector hasn't given the timer back yet.
void stop_timer(const siginfo_t& info) noexcept {
  const itimerspec never{};
  ::syscall(SYS_timer_settime, info.si_timerid, 0, &never, nullptr);
}

// Is there room below for the unwinder? On a stack of unknown bounds (a fiber's) the kernel is
// asked whether what lies there can be read.
bool has_room(const ucontext_t& context) noexcept {
  const std::size_t left = alternate_stack_left(context);
  if (left != ~std::size_t{0}) return left >= kSampleStackBytes;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const unwind::StackRange own = unwind::own_stack(here);
  if (own.holds(here)) return here - own.low >= kSampleStackBytes;
  unwind::ProcessMemory memory;
  std::uint64_t word = 0;
  return memory.copy(here - kSampleStackBytes, &word, sizeof word) == sizeof word;
}

[[gnu::noinline]] void walk(const ucontext_t& context, Sample& sample) noexcept {
  const unwind::Result walked = unwind::unwind(&context, sample.frames);
  sample.frame_count = walked.count;
  sample.method = walked.method;
  sample.is_truncated = walked.truncated();
}

void take_sample(const siginfo_t& info, const ucontext_t& context) noexcept {
  const std::uint64_t at_ns = now_ns();
  const auto periods = 1 + static_cast<std::uint32_t>(std::max(info.si_overrun, 0));
  const std::uint32_t weight =
      t_thinning.take(periods, __atomic_load_n(&g_one_in, __ATOMIC_RELAXED), at_ns);
  if (weight == 0) return;
  SampleRing* ring = __atomic_load_n(&g_ring, __ATOMIC_ACQUIRE);
  Sample* sample = ring == nullptr ? nullptr : ring->claim(weight);
  if (sample == nullptr) return;
  sample->at_ns = at_ns;
  sample->tid = this_tid();
  sample->cpu = ::sched_getcpu();
  read_sample_context(&sample->context);
  if (has_room(context)) {
    walk(context, *sample);
  } else {
    sample->frames[0] = interrupted_instruction(context);
    sample->frame_count = 1;
    sample->method = unwind::Method::kNone;
    sample->is_truncated = true;
  }
  sample->cost_ns = static_cast<std::uint32_t>(sample_cost_ns(at_ns, now_ns()));
  SampleRing::publish(sample);
}

}  // namespace

void on_cpu_tick(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  if (is_our_tick(*info)) {
    if (recording_epoch() == 0) {
      stop_timer(*info);
    } else {
      take_sample(*info, *static_cast<const ucontext_t*>(context));
    }
    errno = error;
  } else {
    pass_on(signal, info, context);
  }
}

void set_sample_ring(SampleRing* ring) noexcept {
  __atomic_store_n(&g_ring, ring, __ATOMIC_RELEASE);
}

void thin_ticks(std::uint32_t one_in) noexcept {
  __atomic_store_n(&g_one_in, one_in, __ATOMIC_RELAXED);
}

bool install_tick_handler(int signal) noexcept {
  // What is bound or calibrated at its first call is by now.
  (void)::sched_getcpu();
  (void)now_ns();
  struct sigaction action{};
  action.sa_sigaction = on_cpu_tick;
  // SA_ONSTACK: a thread with an alternate stack may run on a very small one of its own.
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  // Another signal's handler on top of it might never come back (siglongjmp). What the thread does
  // itself isn't held back: a fault while its signal is blocked ends the process.
  sigfillset(&action.sa_mask);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) {
    sigdelset(&action.sa_mask, fault);
  }
  share_signal(signal, on_cpu_tick);
  return kernel_sigaction(signal, &action, nullptr) == 0;
}

bool is_tick_handler_installed(int signal) noexcept {
  struct sigaction now{};
  return kernel_sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
         now.sa_sigaction == on_cpu_tick && host_handler(signal) == nullptr;
}

std::size_t ring_slots(std::uint32_t cpus, std::uint32_t frequency_hz) noexcept {
  const std::uint64_t half_second = std::uint64_t{cpus} * frequency_hz / 2;
  return std::bit_ceil(std::clamp<std::uint64_t>(half_second, 256, 4096));
}

}  // namespace dial9::internal
