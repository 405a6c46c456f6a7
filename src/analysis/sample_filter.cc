// See sample_filter.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/sample_filter.h"

namespace dial9::analysis {

std::uint64_t task_of(const Trace& trace, const SampleContext& sample) {
  if (sample.task_id != kUnknownId || sample.lane == kNoIndex) {
    return sample.task_id;
  }
  const std::uint32_t poll = trace.poll_at(sample.lane, sample.at_ns);
  const std::uint32_t task = poll == kNoIndex ? kNoIndex : trace.polls.task[poll];
  return task == kNoIndex ? 0 : trace.tasks.id[task];
}

SampleJudge::SampleJudge(const Trace& trace, const SampleFilter& filter)
    : trace_(trace), filter_(filter) {
  if (filter.span) {
    add_spans_inside(*filter.span);
  }
}

Verdict SampleJudge::judge_all_but_time(const SampleContext& sample) const {
  if (!is_on_thread(sample.tid, sample.thread_name, sample.lane) || !has_label(sample)) {
    return Verdict::kLeaves;
  }
  if (filter_.span && sample.span_id == kUnknownId) {
    return Verdict::kUnknown;
  }
  if (filter_.span && !spans_.contains(sample.span_id)) {
    return Verdict::kLeaves;
  }
  if (!filter_.task) {
    return Verdict::kTakes;
  }
  const std::uint64_t task = task_of(trace_, sample);
  if (task == kUnknownId) {
    return Verdict::kUnknown;
  }
  return task == *filter_.task ? Verdict::kTakes : Verdict::kLeaves;
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
