// The calling thread's stack from one of its callers on: for functions of the host's that are ours
// (malloc, pthread_mutex_lock), whose own frames say nothing. Strongest property:
// async-signal-safe; where the thread's stack has no room left for a walk there is none.
// Spec: docs/spec/unwinding.md.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "unwind/unwind.h"

namespace dial9::internal {

// What a walk takes of the stack below its caller, with what its caller does afterwards.
inline constexpr std::size_t kCallerStackBytes = std::size_t{8} << 10;
// Frames of ours above the caller, at most.
inline constexpr std::size_t kMostOwnFrames = 8;

struct CallerStack {
  // Leaf first: an address within the call that `caller` returns from, then return addresses.
  std::span<const std::uint64_t> frames;
  unwind::Method method = unwind::Method::kNone;
  bool is_truncated = true;
};

// Is there room below for a walk? On a stack of unknown bounds (a fiber's) the kernel is asked
// whether what lies there can be read.
bool has_stack_for_walk() noexcept;

// `caller`: a return address into the host (__builtin_return_address(0) of its function of ours).
// `room`: kMostOwnFrames more than the frames that are wanted. Where the walk doesn't meet the
// caller, or has no room, the call alone is the stack, truncated. Not inlined: it is a frame.
CallerStack stack_of_caller(const void* caller, std::span<std::uint64_t> room) noexcept;

}  // namespace dial9::internal
