// SPDX-License-Identifier: Apache-2.0
#include "analysis/delays.h"

namespace dial9::analysis {

std::uint64_t DelaySummary::polls(Coverage coverage) const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < kReadySources; ++i) {
    if (coverage_of(static_cast<ReadySource>(i)) == coverage) {
      count += polls_by_source[i];
    }
  }
  return count;
}

DelaySummary summarize_delays(const Trace& trace) {
  DelaySummary summary;
  const Polls& polls = trace.polls;
  for (std::uint32_t i = 0; i < polls.size(); ++i) {
    const ReadySource source = polls.ready_source[i];
    ++summary.polls_by_source[static_cast<std::size_t>(source)];
    if (coverage_of(source) != Coverage::kKnown) {
      continue;
    }
    summary.known.add(polls.delay_ns(i));
    if (summary.worst == kNoIndex || polls.delay_ns(i) > polls.delay_ns(summary.worst)) {
      summary.worst = i;
    }
  }
  return summary;
}

}  // namespace dial9::analysis
