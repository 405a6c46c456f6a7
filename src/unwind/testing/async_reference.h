// Samples a thread by timer signals at arbitrary instructions and compares each stack of ours with
// libgcc's own walk of the same moment, which is the reference. Where linkage stubs have no unwind
// table (AArch64), that walk ends in them: there it is the one from the stub's caller on. Test
// code: libgcc in a handler is good enough where no module is being loaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <string>

#include "unwind/unwind.h"

namespace dial9::unwind::testing {

struct Comparison {
  std::uint32_t samples = 0;
  std::uint32_t equal = 0;
  std::uint32_t whole = 0;       // ours reached the end of the stack
  std::uint32_t deepest = 0;     // frames
  std::string first_difference;  // both stacks of the first that isn't equal or whole; else empty
};

// Between these two, compare_here() counts.
void begin_comparison(const Options& options);
Comparison end_comparison();

// Our stack and libgcc's for the interrupted `context`, counted into the running comparison. In a
// signal handler of the one thread that is sampled.
void compare_here(ucontext_t* context);

// Runs `work` on a thread of its own, again and again, until `samples` signals hit it.
Comparison sample_while(std::uint32_t samples, const std::function<void()>& work,
                        const Options& options = {});

// The same on the calling thread.
Comparison sample_here(std::uint32_t samples, const std::function<void()>& work,
                       const Options& options = {});

// False under ThreadSanitizer, which delivers signals at its own points and not at arbitrary
// instructions, and so with contexts that nobody can unwind.
bool signals_are_asynchronous();

}  // namespace dial9::unwind::testing
