// See caller_stack.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/caller_stack.h"

#include <signal.h>

#include <algorithm>

#include "unwind/process_memory.h"
#include "unwind/thread_stack.h"

namespace dial9::internal {
namespace {

// Also true where it can't be told.
bool is_on_small_alternate_stack(std::uintptr_t here) noexcept {
  stack_t alternate{};
  if (::sigaltstack(nullptr, &alternate) != 0) return true;
  if ((alternate.ss_flags & SS_ONSTACK) == 0) return false;
  return here - reinterpret_cast<std::uintptr_t>(alternate.ss_sp) < kCallerStackBytes;
}

}  // namespace

bool has_stack_for_walk() noexcept {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const unwind::StackRange own = unwind::own_stack(here);
  if (own.holds(here)) return here - own.low >= kCallerStackBytes;
  if (is_on_small_alternate_stack(here)) return false;
  unwind::ProcessMemory memory;
  std::uint64_t word = 0;
  return memory.copy(here - kCallerStackBytes, &word, sizeof word) == sizeof word;
}

[[gnu::noinline]] CallerStack stack_of_caller(const void* caller,
                                              std::span<std::uint64_t> room) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(caller);
  CallerStack stack;
  unwind::Result walked;
  if (has_stack_for_walk()) walked = unwind::unwind_here(room);
  const std::size_t most_own = std::min<std::size_t>(walked.count, kMostOwnFrames);
  std::size_t at = 0;
  while (at < most_own && room[at] != first) ++at;
  if (at < most_own) {
    const std::size_t most = room.size() - kMostOwnFrames;
    const std::size_t rest = walked.count - at;
    stack.frames = room.subspan(at, std::min(rest, most));
    stack.method = walked.method;
    stack.is_truncated = walked.truncated() || rest > most;
  } else {
    at = 0;
    room[0] = first;
    stack.frames = room.first(1);
  }
  if (first != 0) --room[at];
  return stack;
}

}  // namespace dial9::internal
