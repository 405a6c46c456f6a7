// Where the calling thread's own stack is mapped, known without registration, TLS or a system call:
// what lies in it may be loaded plainly. glibc keeps each thread's stack range in its thread
// descriptor at an offset that calibrate() finds by comparing with pthread_getattr_np; the main
// thread's range comes from /proc/self/maps. Where neither is known, callers let the kernel copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::unwind {

struct StackRange {
  std::uint64_t low = 0;   // of the readable part, above the guard
  std::uint64_t high = 0;  // one beyond; low == high: unknown

  bool holds(std::uint64_t address) const { return address >= low && address < high; }
};

// Finds the offset (once) and the main thread's stack as it is mapped now (each time: it grows).
// Not in a signal handler. Starts a short-lived thread if it must calibrate on the main thread.
void calibrate_stacks() noexcept;

// The calling thread's stack if `sp` lies in it, else an empty range (a fiber, an alternate stack).
// Async-signal-safe; about 2 ns.
StackRange own_stack(std::uint64_t sp) noexcept;

// Tests only: false makes every stack unknown.
void trust_own_stacks(bool trusted) noexcept;

}  // namespace dial9::unwind
