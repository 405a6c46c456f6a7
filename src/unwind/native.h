// The few things that only the machine's own instructions can do; native_<processor>.cc has them,
// and unwind_here() with them. native_unsupported.cc stands in where there is no unwinder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <span>

#include "unwind/unwind.h"

namespace dial9::unwind::native {

// A Linux system call without libc: no errno, no lazy binding, no interposition. Returns the
// kernel's value: -errno on failure.
long system_call(long number, long a, long b, long c, long d, long e, long f) noexcept;

// One word, unseen by the sanitizers. Faults where plain loads do.
std::uint64_t load_word(std::uint64_t address) noexcept;

// Walks from an interrupted context of the calling thread.
Result walk_context(const ucontext_t& context, std::span<std::uint64_t> frames,
                    const Options& options) noexcept;

// Walks over a copy of a stack.
Result walk_copy(const StackCopy& copy, std::span<std::uint64_t> frames,
                 const Options& options) noexcept;

}  // namespace dial9::unwind::native
