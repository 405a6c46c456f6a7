// Where the time of all spans went, by name: how many, how long, and the five parts of SpanTimes,
// as text and as JSON. Spec: docs/spec/events.md, "Where a span's time goes".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/distribution.h"
#include "analysis/span_times.h"
#include "analysis/trace.h"

namespace dial9::analysis {

struct SpanGroup {
  NameId name = kNoName;
  std::uint64_t open = 0;  // not finished in the trace: in `time`, not in `lengths`
  Distribution lengths;
  SpanTime time;
};

// By total time, most first. Cost: a question to SpanTimes a span.
std::vector<SpanGroup> group_spans(const Trace& trace);

// A table, at most `limit` names; the rest is counted in its last line.
std::string span_text(const Trace& trace, const std::vector<SpanGroup>& groups, std::size_t limit);
// {"spans": [{"name", "count", "open", "p50_ns", "p99_ns", "max_ns", "total_ns", "on_cpu_ns",
// "blocked_ns", "async_wait_ns", "scheduler_delay_ns", "unknown_ns", "unknown": {why: ns}}]}
std::string span_json(const Trace& trace, const std::vector<SpanGroup>& groups);

}  // namespace dial9::analysis
