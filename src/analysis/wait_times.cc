// See wait_times.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/wait_times.h"

#include <algorithm>

#include "analysis/counts.h"

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

// On the wait's own thread, where that is known. Of polls that overlap only the last one counts:
// then the account doesn't tell anyway.
bool is_in_poll_of(const Trace& trace, std::uint32_t task, const OffCpuWait& wait) {
  const Polls& polls = trace.polls;
  std::uint32_t low = trace.tasks.polls[task].first;
  std::uint32_t high = trace.tasks.polls[task].last;
  while (low < high) {  // the first that starts after the wait
    const std::uint32_t middle = low + (high - low) / 2;
    if (polls.start_ns[trace.task_polls[middle]] <= wait.at_ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == trace.tasks.polls[task].first) {
    return false;
  }
  const std::uint32_t poll = trace.task_polls[low - 1];
  return wait.at_ns <= polls.end_ns[poll] &&
         (wait.lane == kNoIndex || wait.lane == polls.lane[poll]);
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

WaitEstimates::WaitEstimates(const Trace& trace, const SampleFilter& filter,
                             const SpanTimes* span_times)
    : trace_(trace), filter_(filter), stretch_(stretch_of(trace, filter)) {
  task_ = stretch_.has_span() ? trace.spans.task[stretch_.span] : kNoIndex;
  if (task_ == kNoIndex) {
    return;
  }
  sum({.span = filter.span});  // of the whole span, whatever else is asked for
  if (estimated_ns_ == 0) {
    return;
  }
  room_ns_ = room_of(span_times == nullptr ? SpanTimes(trace).of(stretch_.span)
                                           : span_times->of(stretch_.span));
  if (room_ns_ && proven_ns_ > *room_ns_) {
    room_ns_.reset();
  }
}

void WaitEstimates::sum(const SampleFilter& whole) {
  const Stretch stretch = stretch_of(trace_, whole);
  const SampleFilter within{.from_ns = stretch.from_ns, .to_ns = stretch.to_ns};
  const SampleJudge judge(trace_, whole);
  for (std::size_t i = 0; i < trace_.off_cpu.size(); ++i) {
    const OffCpuWait& wait = trace_.off_cpu[i];
    if (is_in_account(wait, stretch) &&
        judge.judge_all_but_time(context_of(wait)) == Verdict::kTakes) {
      proven_ns_ = sum_of(proven_ns_, wait.is_preempted ? 0 : proven_within(wait, within));
      estimated_ns_ = sum_of(estimated_ns_, uncut(wait, whole, stretch));
    }
  }
}

// What a thread waits for the task in another one's poll (task_scope) isn't: there, the task waits
// for no thread. Nor is what a span inside waits that outlived it.
bool WaitEstimates::is_in_account(const OffCpuWait& wait, const Stretch& stretch) const {
  return task_ != kNoIndex && wait.task_id == trace_.tasks.id[task_] &&
         wait.at_ns >= stretch.from_ns && wait.at_ns < stretch.to_ns &&
         is_in_poll_of(trace_, task_, wait);
}

std::uint64_t WaitEstimates::all_cut_ns() const {
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

WaitEstimate WaitEstimates::of(const OffCpuWait& wait) const {
  const std::uint64_t estimated_ns = uncut(wait, filter_, stretch_);
  const std::uint64_t all_cut = all_cut_ns();
  if (all_cut == 0 || estimated_ns == 0 || !is_in_account(wait, stretch_)) {
    return {.kept_ns = estimated_ns};
  }
  const auto kept = static_cast<double>(estimated_ns_ - all_cut);
  const std::uint64_t kept_ns =
      count_of(static_cast<double>(estimated_ns) * kept / static_cast<double>(estimated_ns_));
  return {.kept_ns = kept_ns, .cut_ns = estimated_ns - std::min(estimated_ns, kept_ns)};
}

}  // namespace dial9::analysis
