// A stack that an analysis takes from a trace, with its weight and its moment: what flame trees of
// all kinds are made of. Strongest property: each record of the trace that a filter takes is handed
// on once, so that all views of it have one sum. Spec: docs/spec/flame.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "analysis/stack_names.h"
#include "analysis/trace.h"

namespace dial9::analysis {

enum class StackOf : std::uint8_t { kSample, kWait, kLockWait, kAllocation };

struct TakenStack {
  StackOf of = StackOf::kSample;
  Leaf leaf = Leaf::kInterrupted;
  bool is_truncated = false;
  UnwoundBy unwound = UnwoundBy::kUnknown;
  std::uint32_t stack = kNoIndex;  // in Trace::stacks; kNoIndex: none
  // In Trace::samples, off_cpu or blocks. Allocations of one stack come together: that of the
  // first.
  std::uint32_t index = 0;
  std::uint32_t tid = 0;
  NameId thread_name = kNoName;
  std::uint64_t at_ns = 0;
  std::uint64_t length_ns = 0;  // 0: of a moment
  std::uint64_t weight = 0;
  std::uint64_t count = 1;
};

inline StackMarks marks_of(const TakenStack& taken, FrameId group = kNoGroup) {
  const UnwoundBy by = taken.stack == kNoIndex ? UnwoundBy::kNoStack : taken.unwound;
  return {.is_truncated = taken.is_truncated, .by = by, .group = group};
}

using UseStack = std::function<void(const TakenStack&)>;

}  // namespace dial9::analysis
