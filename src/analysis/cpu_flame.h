// The flame tree of a trace's CPU samples. Strongest property: what the filter can't know of a
// sample (a task that wasn't recorded) takes it out, and the heading says how many. Weights are CPU
// time where the rate is known, else periods. Spec: docs/spec/flame.md, "CPU time".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/flame.h"
#include "analysis/sample_filter.h"
#include "analysis/stack_names.h"
#include "analysis/trace.h"

namespace dial9::analysis {

struct CpuFlame {
  FlameTree tree;
  FlameHeading heading;
};

// `namer` may be null.
CpuFlame cpu_flame(const Trace& trace, const SampleFilter& filter, FrameNamer* namer,
                   bool is_inverted = false, FrameBy by = FrameBy::kFunction);

// The samples that pass through a node of the tree that cpu_flame() makes of the same arguments.
struct FlameMoments {
  std::uint64_t total = 0;             // samples
  std::uint64_t weight = 0;            // of them, in the tree's unit
  std::vector<std::uint32_t> samples;  // positions in Trace::samples, by time; where there are more
                                       // than asked for, evenly thinned
};
// `row`: a position in flame_rows(tree, max_rows). nullopt: there is no such row.
std::optional<FlameMoments> cpu_flame_moments(const Trace& trace, const SampleFilter& filter,
                                              FrameNamer* namer, bool is_inverted,
                                              std::uint32_t max_rows, std::uint32_t row,
                                              std::size_t most);

// The rate that the CPU samples were asked for; 0: not recorded, or not one for all.
std::uint64_t cpu_sample_hz(const Trace& trace);

}  // namespace dial9::analysis
