// Questions about polls: how long they take, by place, and against the program's own distribution.
// Only complete polls count (both ends recorded): open work at a cut isn't a finished long handler.
// Counts, sums and distributions are of the polls that are in the trace; the estimates weigh each
// by how many it stands for. Spec: docs/spec/findings.md, "long-poll".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/distribution.h"
#include "analysis/trace.h"

namespace dial9::analysis {

struct PlacePolls {
  NameId spawn_loc = kNoName;
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  // With what the recorder left out to keep within its budget: estimates from what was kept.
  double estimated_count = 0;
  double estimated_total_ns = 0;
  std::uint32_t longest = kNoIndex;  // poll index
};

struct PollSummary {
  std::uint64_t complete = 0;
  double estimated_complete = 0;   // with those that were left out (shed.h)
  std::uint64_t incomplete = 0;    // open at the cut, or the end was lost
  Distribution durations;          // of the complete ones
  std::vector<PlacePolls> places;  // by total time, most first
};

PollSummary summarize_polls(const Trace& trace);

}  // namespace dial9::analysis
