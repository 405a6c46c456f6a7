// A lock for cold paths that the child of a fork can always take: it is held by a process, and one
// that was inherited from the parent counts as free. Strongest property: no thread that doesn't
// exist any more can keep it. Waits by giving the CPU away; not in signal handlers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <unistd.h>

namespace dial9 {

class ForkLock {
 public:
  constexpr ForkLock() = default;
  ForkLock(const ForkLock&) = delete;
  ForkLock& operator=(const ForkLock&) = delete;

  // True: the parent was inside when this process was forked; what the lock guards may be half
  // changed.
  bool lock() noexcept {
    const pid_t self = ::getpid();
    for (;;) {
      pid_t holder = __atomic_load_n(&holder_, __ATOMIC_RELAXED);
      if (holder != self && __atomic_compare_exchange_n(&holder_, &holder, self, false,
                                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        return holder != 0;
      }
      if (holder == self) ::sched_yield();
    }
  }
  void unlock() noexcept { __atomic_store_n(&holder_, 0, __ATOMIC_RELEASE); }

 private:
  pid_t holder_ = 0;
};

}  // namespace dial9
