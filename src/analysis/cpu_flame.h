// The flame tree of a trace's CPU samples. Strongest property: what the filter can't know of a
// sample (a task that wasn't recorded) takes it out, and the heading says how many. Weights are CPU
// time where the rate is known, else periods. Spec: docs/spec/flame.md, "CPU time".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "analysis/flame.h"
#include "analysis/sample_filter.h"
#include "analysis/taken_stack.h"
#include "analysis/trace.h"

namespace dial9::analysis {

struct CpuFlame {
  FlameTree tree;
  FlameHeading heading;
};

// `namer` may be null.
CpuFlame cpu_flame(const Trace& trace, const SampleFilter& filter, FrameNamer* namer,
                   bool is_inverted = false, FrameBy by = FrameBy::kFunction);

// Hands each sample on that the filter takes; what goes above their tree. Those of a thread come
// together, by time. Weights are ns where cpu_sample_hz() is known, else periods.
FlameHeading take_cpu_stacks(const Trace& trace, const SampleFilter& filter, const UseStack& use);

// The rate that the CPU samples were asked for; 0: not recorded, or not one for all.
std::uint64_t cpu_sample_hz(const Trace& trace);
// ns where that is known, else a count of periods.
inline FlameUnit cpu_flame_unit(const Trace& trace) {
  return cpu_sample_hz(trace) != 0 ? FlameUnit::kNs : FlameUnit::kCount;
}

}  // namespace dial9::analysis
