// The child of a fork: what must be forgotten there, once, whichever way it was made. Strongest
// property: a child that was made without atfork handlers (_Fork, a raw clone) is silent from its
// first instruction: the kernel clears the page that says what is recorded (MADV_WIPEONFORK), at no
// cost to the hot path. A child in its parent's memory (vfork, posix_spawn) clears nothing.
// Where the kernel or its pages don't allow it, only atfork handlers silence a child.
// Spec: docs/spec/recorder.md, "Fork".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dial9/internal/thread_buffer.h"

namespace dial9::internal {

// Tells this process from its parents; 0: before watch_forks(), and in a child that nobody has
// noticed yet. Any context.
inline std::uint32_t process_number() noexcept {
  // Acquire pairs with the release in notice_fork(): who sees the number finds all begun anew.
  return __atomic_load_n(&g_fork_page.process, __ATOMIC_ACQUIRE);
}

// From here on children are noticed. Once a process; any thread, not in a signal handler.
void watch_forks() noexcept;

// In a child that was made without atfork handlers: does what those would have done. Else one load.
// At the head of cold paths that take a lock; not in a signal handler.
void notice_fork() noexcept;

// Runs in each child from now on, before anything else of this library that takes a lock, in the
// order of addition. It calls nothing that notices forks. False: there are too many.
using ChildHandler = void (*)();
inline constexpr int kMostChildHandlers = 8;
bool add_child_handler(ChildHandler handler) noexcept;

// While one lives no fork by way of atfork handlers falls between the making of a descriptor and
// its note (fork_fds.h), or between the end of that and the closing: a child would keep it, and
// with it the run's lock. Both sides wait for each other for some milliseconds at most, then go on:
// a fork that is under way, or a disk that doesn't answer, holds up neither. Any thread; not in a
// signal handler.
class ForkPause {
 public:
  ForkPause() noexcept;
  ~ForkPause();
  ForkPause(const ForkPause&) = delete;
  ForkPause& operator=(const ForkPause&) = delete;

 private:
  std::uint32_t process_ = 0;
};

// How many there are now.
std::uint32_t fork_pauses() noexcept;
// Tests: what either side does at each of its looks for the other, instead of a short sleep; null:
// that.
using ForkWait = void (*)() noexcept;
void set_fork_wait(ForkWait wait) noexcept;

// The kernel clears the page.
bool is_fork_page_wiped() noexcept;

}  // namespace dial9::internal
