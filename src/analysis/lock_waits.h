// Waits for locks with the stacks that waited: of LockWaitEvents where they bear stacks, and waits
// off the CPU whose reason is a lock. Strongest property: no wait is in it twice, though one may be
// in both. Spec: docs/spec/flame.md, "Lock waits".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/flame.h"
#include "analysis/sample_filter.h"
#include "analysis/span_times.h"
#include "analysis/taken_stack.h"
#include "analysis/trace.h"

namespace dial9::analysis {

// Hands each wait on that the filter takes, cut to its range; what goes above their tree.
// `span_times`: of the trace; null: made where it is needed.
FlameHeading take_lock_stacks(const Trace& trace, const SampleFilter& filter,
                              const SpanTimes* span_times, const UseStack& use);

}  // namespace dial9::analysis
