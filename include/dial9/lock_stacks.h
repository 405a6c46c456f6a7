// The stacks of threads that waited for a contended mutex inside a poll (LockWaitEvent, of the
// interposer), so that flame graphs of locks show who waited. Strongest property: only a wait that
// was slow has one, taken after it, and a bounded number a second; nothing is taken before or
// during a wait. Spec: docs/spec/events_ours.md, "LockWaitEvent".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dial9/recorder.h"

namespace dial9 {

struct LockStackOptions {
  // Of each thread, 1 to 10,000. Waits beyond are recorded without.
  std::uint32_t most_a_second = 100;
};

// From now on a wait for a mutex that is recorded (100 us and longer, unless set otherwise) has the
// stack of who called for the lock. Takes effect where the interposer is linked in or preloaded.
// Again: the new bound holds. Any thread, not in a signal handler. Link dial9_session. Fails where
// the bound isn't one, or there is no memory. Cost: a walk of the stack by the thread that waited,
// while it has the lock: about 5 ns a frame, some microseconds the first time at a place; at the
// default bound at most 0.1 % of a thread's time. On a stack with less than 8 KiB left there is
// none. Up to 64 frames, 9 bytes each.
Status add_lock_stacks(const LockStackOptions& options = {}) noexcept;

// False: there was nothing to remove.
bool remove_lock_stacks() noexcept;

}  // namespace dial9
