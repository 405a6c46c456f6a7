// The flame tree of heap samples: what was allocated, what lives, or what grew, in bytes or in
// allocations. Strongest property: its total is the report's. Spec: docs/spec/heap_samples.md,
// "Views".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analysis/flame.h"
#include "analysis/heap_report.h"
#include "analysis/taken_stack.h"

namespace dial9::analysis {

struct HeapFlame {
  FlameTree tree;
  FlameHeading heading;
};

// `order`: what the weights are; of kGrowth only sites that grew. `counts`: allocations, not bytes.
// `report` is by site. `namer` may be null.
HeapFlame heap_flame(const Trace& trace, const HeapReport& report, HeapOrder order, bool counts,
                     FrameNamer* namer, bool is_inverted = false, FrameBy by = FrameBy::kFunction);

// Hands each stack of the report on that has weight; what goes above their tree. `report` is by
// site.
FlameHeading take_heap_stacks(const HeapReport& report, HeapOrder order, bool counts,
                              const UseStack& use);

// Adds the bytes of a group, by how the stacks of its samples were found: the shares that their
// tree has. None where there are none, or the group didn't grow.
void add_heap_unwound(const HeapGroup& group, HeapOrder order, UnwoundSums& sums);

// "function < caller < its caller" of each group's stack: three frames, from the innermost on that
// isn't the C++ library's, an allocator's or Asio's; "... < " stands for those inside it.
std::vector<std::string> heap_site_names(const Trace& trace, const HeapReport& report,
                                         FrameNamer* namer);

}  // namespace dial9::analysis
