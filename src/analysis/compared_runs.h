// Two runs beside each other: what of a question holds in both, and what the reader of a difference
// should know. Strongest property: an id of one run never picks what happens to have the same id in
// the other. Spec: docs/spec/flame.md, "Differences".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analysis/flame_diff.h"
#include "analysis/sample_filter.h"
#include "analysis/stack_names.h"
#include "analysis/trace.h"

namespace dial9::analysis {

// One life of one process, as far as both traces say which.
bool is_same_run(const Trace& a, const Trace& b);

struct OtherFilter {
  SampleFilter filter;
  std::vector<std::string> notes;  // what was left out of it
};
// A filter that was made for `run`, for `other`: of another run without the ids of tasks, spans and
// threads. A thread of digits alone counts as an id. The time range stays as it is.
OtherFilter filter_for(const SampleFilter& filter, const Trace& run, const Trace& other);

// By what their functions are to be matched; by line a function is nowhere else than on its lines.
FlameMatch match_of(const Trace& before, const Trace& after, FrameBy by = FrameBy::kFunction);

// That they are of other services or builds. Nothing of one run.
std::vector<std::string> compared_notes(const Trace& before, const Trace& after);

}  // namespace dial9::analysis
