// See sample_filter.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/sample_filter.h"

#include <algorithm>

namespace dial9::analysis {

Stretch stretch_of(const Trace& trace, const SampleFilter& filter) {
  Stretch stretch{filter.from_ns, filter.to_ns};
  const Spans& spans = trace.spans;
  for (std::uint32_t i = 0; filter.span && i < spans.size(); ++i) {
    if (spans.id[i] == *filter.span && (spans.flags[i] & ~kSpanCancelled) == 0) {
      stretch.span = i;
      stretch.from_ns = std::max(stretch.from_ns, spans.start_ns[i]);
      stretch.to_ns = std::min(stretch.to_ns, spans.end_ns[i]);
      break;
    }
  }
  return stretch;
}

SampleJudge::SampleJudge(const Trace& trace, const SampleFilter& filter)
    : trace_(trace), filter_(filter) {
  if (filter.span) {
    add_spans_inside(*filter.span);
  }
}

Verdict SampleJudge::judge_all_but_time(const SampleContext& sample) const {
  const bool is_label_unknown = !filter_.label.empty() && !sample.is_label_known;
  const bool is_span_unknown = filter_.span && sample.span_id == kUnknownId;
  const bool is_task_unknown = filter_.task && sample.task_id == kUnknownId;
  // What is known and says no decides, whatever isn't known.
  const bool is_left = !is_on_thread(sample.tid, sample.thread_name, sample.lane) ||
                       (!is_label_unknown && !has_label(sample)) ||
                       (filter_.span && !is_span_unknown && !spans_.contains(sample.span_id)) ||
                       (filter_.task && !is_task_unknown && sample.task_id != *filter_.task);
  if (is_left) {
    return Verdict::kLeaves;
  }
  return is_label_unknown || is_span_unknown || is_task_unknown ? Verdict::kUnknown
                                                                : Verdict::kTakes;
}

bool SampleJudge::is_on_thread(std::uint32_t tid, NameId thread_name, std::uint32_t lane) const {
  if (filter_.worker && (lane == kNoIndex || trace_.lanes[lane].worker != *filter_.worker)) {
    return false;
  }
  return filter_.thread.empty() || trace_.names.text(thread_name) == filter_.thread ||
         std::to_string(tid) == filter_.thread;
}

// Parents come before or behind their children: a child's chain of parents is short.
void SampleJudge::add_spans_inside(std::uint64_t id) {
  constexpr int kMostDepth = 256;
  spans_.insert(id);
  const Spans& spans = trace_.spans;
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    std::uint32_t at = i;
    for (int depth = 0; at != kNoIndex && depth < kMostDepth; ++depth) {
      if (spans.id[at] == id) {
        spans_.insert(spans.id[i]);
        break;
      }
      at = spans.parent[at];
    }
  }
  spans_.erase(0);
}

bool SampleJudge::has_label(const SampleContext& sample) const {
  if (filter_.label.empty()) {
    return true;
  }
  if (sample.label_name == kNoName) {
    return false;
  }
  const std::string_view name = trace_.names.text(sample.label_name);
  const std::string_view wanted = filter_.label;
  if (!wanted.starts_with(name)) {
    return false;
  }
  const std::string_view rest = wanted.substr(name.size());
  return rest.empty() ||
         (rest.front() == '=' && rest.substr(1) == trace_.names.text(sample.label_value));
}

}  // namespace dial9::analysis
