// Ready-to-run delays by the rules of events.md, and how well they are covered. Ready times are
// computed once, at load; this sums them up. Spec: docs/spec/events.md, "Ready-time rules".
//
// The rule for a poll: of the wakes of its task since the previous poll began, the first counts;
// one during that previous poll counts from its end; a poll consumes its wakes; without one the
// delay isn't known. At equal stamps a wake belongs to the poll that begins with it, if that has no
// earlier one, else to the next.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "analysis/distribution.h"
#include "analysis/trace.h"

namespace dial9::analysis {

struct DelaySummary {
  std::array<std::uint64_t, kReadySources> polls_by_source{};
  Distribution known;              // delays by a wake
  std::uint32_t worst = kNoIndex;  // poll with the longest known delay

  std::uint64_t polls(Coverage coverage) const;
};

DelaySummary summarize_delays(const Trace& trace);

}  // namespace dial9::analysis
