// See wait_times.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/wait_times.h"

#include <algorithm>

#include "analysis/counts.h"
#include "analysis/span_times.h"

namespace dial9::analysis {
namespace {

std::uint64_t unknown(const SpanTime& time, UnknownTime reason) {
  return time.unknown_by[static_cast<std::size_t>(reason)];
}

// What the span's account leaves for its threads to be off the CPU in. What it has on a CPU, as
// suspended or as ready are lower bounds; without a ready time it lies between two polls, and no
// thread is at it. Where the task ran on several threads at a time, they may have waited for longer
// than the span took.
std::optional<std::uint64_t> room_of(const SpanTime& time) {
  if (unknown(time, UnknownTime::kConcurrent) != 0 || unknown(time, UnknownTime::kNoTask) != 0) {
    return std::nullopt;
  }
  return time.blocked_ns + time.unknown_ns() - unknown(time, UnknownTime::kNoReadyTime);
}

}  // namespace

SampleContext context_of(const OffCpuWait& wait) {
  return {.at_ns = wait.at_ns,
          .task_id = wait.task_id,
          .span_id = wait.span_id,
          .tid = wait.tid,
          .lane = wait.lane,
          .thread_name = wait.thread_name,
          .label_name = wait.label_name,
          .label_value = wait.label_value,
          .is_label_known = wait.is_label_known};
}

std::uint64_t proven_within(const OffCpuWait& wait, const SampleFilter& filter) {
  const std::uint64_t from_ns = std::max(wait.at_ns, filter.from_ns);
  const std::uint64_t to_ns = std::min(sum_of(wait.at_ns, wait.proven_ns), filter.to_ns);
  return to_ns > from_ns ? to_ns - from_ns : 0;
}

WaitEstimates::WaitEstimates(const Trace& trace, const SampleFilter& filter)
    : filter_(filter), stretch_(stretch_of(trace, filter)) {
  if (stretch_.span == kNoIndex || trace.spans.task[stretch_.span] == kNoIndex ||
      trace.off_cpu.empty()) {
    return;
  }
  task_id_ = trace.tasks.id[trace.spans.task[stretch_.span]];
  room_ns_ = room_of(SpanTimes(trace).of(stretch_.span));
  if (!room_ns_) {
    return;
  }
  // Of the whole span, whatever else is asked for.
  const SampleFilter whole{.span = filter.span};
  const Stretch stretch = stretch_of(trace, whole);
  const SampleJudge judge(trace, whole);
  for (std::size_t i = 0; i < trace.off_cpu.size(); ++i) {
    const OffCpuWait& wait = trace.off_cpu[i];
    if (is_bounded(wait) && judge.judge_all_but_time(context_of(wait)) == Verdict::kTakes) {
      proven_ns_ = sum_of(proven_ns_, wait.is_preempted ? 0 : wait.proven_ns);
      estimated_ns_ = sum_of(estimated_ns_, uncut(wait, whole, stretch));
    }
  }
}

bool WaitEstimates::is_bounded(const OffCpuWait& wait) const {
  return room_ns_ && wait.task_id == task_id_;
}

std::uint64_t WaitEstimates::cut_ns() const {
  const std::uint64_t room_ns = room_ns_.value_or(kMostCount);
  return estimated_ns_ - std::min(estimated_ns_, room_ns - std::min(room_ns, proven_ns_));
}

std::uint64_t WaitEstimates::uncut(const OffCpuWait& wait, const SampleFilter& filter,
                                   const Stretch& stretch) const {
  if (!filter.has_time(wait.at_ns)) {
    return 0;
  }
  if (wait.at_ns < stretch.from_ns || wait.at_ns >= stretch.to_ns) {
    return wait.share_ns;  // of a span inside that outlived it
  }
  const std::uint64_t end_ns = sum_of(wait.at_ns, sum_of(wait.proven_ns, wait.runnable_ns));
  const std::uint64_t after_ns = stretch.to_ns - std::min(end_ns, stretch.to_ns);
  return std::min(wait.share_ns, sum_of(wait.at_ns - stretch.from_ns, after_ns));
}

std::uint64_t WaitEstimates::of(const OffCpuWait& wait) const {
  const std::uint64_t estimated_ns = uncut(wait, filter_, stretch_);
  const std::uint64_t cut = is_bounded(wait) ? cut_ns() : 0;
  if (cut == 0 || estimated_ns == 0) {
    return estimated_ns;
  }
  const auto kept = static_cast<double>(estimated_ns_ - cut);
  return count_of(static_cast<double>(estimated_ns) * kept / static_cast<double>(estimated_ns_));
}

}  // namespace dial9::analysis
