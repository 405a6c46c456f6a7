// The stack of a thread that waited for a lock. The recorder knows no unwinder: who has one gives
// it. Strongest property: a stack is taken after a wait that was slow only, and of each thread so
// many a second at most; the wait is recorded with or without.
// Spec: docs/spec/events_ours.md, "LockWaitEvent".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dial9/runtime.h"

namespace dial9::internal {

inline constexpr std::size_t kMostWaitFrames = 64;
inline constexpr std::size_t kWaitStackRoom = kMostWaitFrames + 8;  // with the taker's own frames

struct WaitStack {
  const std::uint64_t* frames = nullptr;  // leaf first, within `room`
  std::size_t count = 0;                  // 0: none; at most kMostWaitFrames
  bool is_truncated = false;
};
// The calling thread's from `caller` on, a return address. `room`: kWaitStackRoom. Called on the
// thread that waited, which may hold the lock by then; also in signal handlers.
using TakeWaitStack = WaitStack (*)(const void* caller, std::uint64_t* room) noexcept;

// Null: no stacks. `most_a_second`: of each thread. Any thread.
void set_wait_stacks(TakeWaitStack take, std::uint32_t most_a_second) noexcept;

// A wait for a mutex, with the stack of `caller`, which called the lock's function.
void lock_wait_of(const void* caller, runtime::TaskId waiter, std::uint64_t lock,
                  std::uint32_t owner_tid, std::uint64_t start_ns,
                  std::uint64_t duration_ns) noexcept;

}  // namespace dial9::internal
