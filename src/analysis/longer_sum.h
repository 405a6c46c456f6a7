// A sample stands for a period, a look for the time around it: of something short their sum may be
// longer than it was. Strongest property: such a tree is marked, with the length of what it is of.
// Spec: docs/spec/flame.md, "Views".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "analysis/flame.h"
#include "analysis/sample_filter.h"
#include "analysis/trace.h"

namespace dial9::analysis {

// Of a sum of nanoseconds of a span or a worker that is longer than what the filter takes.
void note_longer_sum(const Trace& trace, const SampleFilter& filter, FlameUnit unit,
                     std::uint64_t sum, FlameHeading& heading);

}  // namespace dial9::analysis
