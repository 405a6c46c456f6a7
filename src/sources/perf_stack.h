// The stack of a perf sample, walked in the copy that the kernel made. Strongest property: only
// that copy is read, so the thread may be anywhere by now.
// Spec: docs/spec/cpu_samples.md, "Perf".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "sources/perf_event.h"
#include "unwind/unwind.h"

namespace dial9::internal {

// Leaf first. No frames: the sample has no registers.
inline unwind::Result unwind_sample(const PerfSample& sample, std::span<std::uint64_t> frames) {
  if (!sample.has_registers) return {};
  const unwind::StackCopy copy{.pc = sample.pc,
                               .sp = sample.sp,
                               .fp = sample.fp,
                               .address = sample.sp,
                               .bytes = sample.stack};
  return unwind::unwind_copy(copy, frames);
}

}  // namespace dial9::internal
