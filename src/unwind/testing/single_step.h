// Compares our stack with libgcc's at every single instruction of some work, by the processor's
// trap flag: no prologue, epilogue or linkage stub is left to chance. x86-64 only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "unwind/testing/async_reference.h"

namespace dial9::unwind::testing {

// Runs `work` once, instruction by instruction, comparing at the first `limit` of them.
Comparison step_through(std::uint32_t limit, const std::function<void()>& work);

// False where there is no trap flag, or where a sanitizer's own signal handling is in the way.
bool can_single_step();

}  // namespace dial9::unwind::testing
