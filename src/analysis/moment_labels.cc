// See moment_labels.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/moment_labels.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

// Lists that are being read at a moment, and changes to what was. No recorder has so many; a trace
// that was made to hold up its reader may.
constexpr int kMostSteps = 64;

// Before the first word of coverage: changes older than that may have lain in segments that are
// evicted by now, whichever of the threads told last.
void cut_to_trace(std::vector<LabelCoverage>& coverage) {
  std::uint64_t first_ns = kUnknownNs;
  for (const LabelCoverage& one : coverage) {
    first_ns = std::min(first_ns, one.at_ns);
  }
  for (LabelCoverage& one : coverage) {
    one.since_ns = std::max(one.since_ns, first_ns);
  }
}

// Whose label a change is about: a task's, or a thread's.
std::pair<std::uint64_t, std::uint32_t> scope_of(const LabelChange& change) {
  return {change.task_id, change.task_id == 0 ? change.tid : 0};
}

}  // namespace

// When the last list began that was read by `at_ns`; kUnknownNs: none was.
std::uint64_t MomentLabels::last_of(const std::vector<List>& lists, std::uint64_t at_ns) {
  auto after = std::partition_point(lists.begin(), lists.end(),
                                    [&](const List& list) { return list.at_ns <= at_ns; });
  for (int step = 0; step < kMostSteps && after != lists.begin(); ++step, --after) {
    if (std::prev(after)->listed_ns <= at_ns) {
      return std::prev(after)->at_ns;
    }
  }
  return kUnknownNs;
}

bool MomentLabels::is_listed(const std::vector<List>& lists, std::uint64_t at_ns) {
  const auto at = std::partition_point(lists.begin(), lists.end(),
                                       [&](const List& list) { return list.at_ns < at_ns; });
  return at != lists.end() && at->at_ns == at_ns;
}

MomentLabels::MomentLabels(const Trace& trace, const MomentOwners& owners,
                           std::vector<LabelChange> changes, std::vector<LabelCoverage> coverage)
    : trace_(trace),
      owners_(owners),
      loss_(trace.loss),
      shed_(trace),
      changes_(std::move(changes)),
      coverage_(std::move(coverage)) {
  cut_to_trace(coverage_);
  for (const LabelCoverage& one : coverage_) {
    if (one.lists_tasks) {
      task_lists_.push_back({one.at_ns, one.listed_ns});
    }
    if (one.lists_threads) {
      thread_lists_.push_back({one.at_ns, one.listed_ns});
    }
  }
  for (std::vector<List>* lists : {&task_lists_, &thread_lists_}) {
    std::sort(lists->begin(), lists->end(),
              [](const List& a, const List& b) { return a.at_ns < b.at_ns; });
  }
  std::sort(coverage_.begin(), coverage_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.since_ns, a.until_ns) < std::tie(b.since_ns, b.until_ns);
  });
  dial9::stable_sort(changes_.begin(), changes_.end(), [](const auto& a, const auto& b) {
    return scope_of(a) != scope_of(b) ? scope_of(a) < scope_of(b) : a.at_ns < b.at_ns;
  });
  for (std::uint32_t i = 0; i < changes_.size(); ++i) {
    LabelChange& change = changes_[i];
    change.is_listed = is_listed(change.task_id != 0 ? task_lists_ : thread_lists_, change.at_ns);
    if (!change.is_listed && change.tid != 0) {
      by_teller_.push_back(i);
    }
  }
  dial9::stable_sort(by_teller_.begin(), by_teller_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const LabelChange& x = changes_[a];
    const LabelChange& y = changes_[b];
    return x.tid != y.tid ? x.tid < y.tid : x.at_ns < y.at_ns;
  });
}

// No change between the two is missing.
bool MomentLabels::is_proven(std::uint64_t from_ns, std::uint64_t to_ns) const {
  const auto after = std::upper_bound(
      coverage_.begin(), coverage_.end(), from_ns,
      [](std::uint64_t at_ns, const LabelCoverage& one) { return at_ns < one.since_ns; });
  return after != coverage_.begin() && std::prev(after)->until_ns >= to_ns &&
         !loss_.touches(from_ns, to_ns) && !shed_.is_thin(ShedKind::kEvents, from_ns, to_ns);
}

// The label of the task, or of the thread where that is 0, throughout.
MomentLabel MomentLabels::state(std::uint64_t task, std::uint32_t tid, std::uint64_t from_ns,
                                std::uint64_t to_ns) const {
  const std::pair<std::uint64_t, std::uint32_t> scope{task, task == 0 ? tid : 0};
  const auto after =
      std::partition_point(changes_.begin(), changes_.end(), [&](const LabelChange& change) {
        return scope_of(change) != scope ? scope_of(change) < scope : change.at_ns <= from_ns;
      });
  const std::uint64_t list_ns = last_of(task != 0 ? task_lists_ : thread_lists_, from_ns);
  // A list that was still being read may tell of later, or may not.
  auto last = after;
  int steps = 0;
  while (last != changes_.begin() && scope_of(*std::prev(last)) == scope &&
         std::prev(last)->is_listed && std::prev(last)->at_ns != list_ns) {
    if (++steps > kMostSteps) {
      return {};
    }
    --last;
  }
  const bool has_change = last != changes_.begin() && scope_of(*std::prev(last)) == scope;
  MomentLabel found;
  std::uint64_t since_ns = list_ns;
  if (has_change && (list_ns == kUnknownNs || std::prev(last)->at_ns >= list_ns)) {
    const LabelChange& change = *std::prev(last);
    found = {change.is_known, change.name, change.value};
    since_ns = change.at_ns;
  } else {
    found.is_known = list_ns != kUnknownNs;
  }
  if (!found.is_known || !is_proven(since_ns, to_ns)) {
    return {};
  }
  for (auto at = after; at != changes_.end() && scope_of(*at) == scope && at->at_ns <= to_ns;
       ++at) {
    const bool is_same = at->name == found.name && at->value == found.value;
    if (++steps > kMostSteps || !at->is_known || !is_same) {
      return {};
    }
  }
  return found;
}

// The last change that the thread told itself by then; kNoIndex: none.
std::uint32_t MomentLabels::told_last(std::uint32_t tid, std::uint64_t at_ns) const {
  const auto after =
      std::partition_point(by_teller_.begin(), by_teller_.end(), [&](std::uint32_t i) {
        return changes_[i].tid != tid ? changes_[i].tid < tid : changes_[i].at_ns <= at_ns;
      });
  const bool has_any = after != by_teller_.begin() && changes_[*std::prev(after)].tid == tid;
  return has_any ? *std::prev(after) : kNoIndex;
}

// Of one that is no worker: it told a label outside all tasks, and nothing says that it began to
// work for one.
MomentLabel MomentLabels::of_plain_thread(std::uint32_t tid, std::uint64_t from_ns,
                                          std::uint64_t to_ns) const {
  const std::uint32_t told = told_last(tid, from_ns);
  if (told == kNoIndex || changes_[told].task_id != 0 || !changes_[told].is_known ||
      !is_proven(changes_[told].at_ns, to_ns) ||
      !owners_.is_without_polls(tid, changes_[told].at_ns, from_ns, to_ns)) {
    return {};
  }
  return state(0, tid, from_ns, to_ns);
}

// What the thread told last of labels was for the task of the poll, or in another poll: it isn't
// inside a scope of another task (task_scope, CurrentTask), which no event tells of.
bool MomentLabels::works_for_its_poll(std::uint64_t task, std::uint32_t lane, std::uint32_t tid,
                                      std::uint64_t from_ns, std::uint64_t to_ns) const {
  const std::uint32_t told = told_last(tid, to_ns);
  if (told == kNoIndex) {
    return true;
  }
  const LabelChange& last = changes_[told];
  if (last.task_id == task) {
    return true;
  }
  if (lane == kNoIndex) {
    return false;
  }
  const std::uint32_t poll = trace_.poll_at(lane, last.at_ns);
  const std::uint32_t own = trace_.poll_at(lane, from_ns);
  if (last.task_id == 0) {
    return poll != own;
  }
  if (poll == kNoIndex || poll == own) {
    return false;
  }
  const std::uint32_t its = trace_.polls.task[poll];
  return its != kNoIndex && trace_.tasks.id[its] == last.task_id;
}

MomentLabel MomentLabels::of(const Owner& owner, std::uint32_t lane, std::uint32_t tid,
                             std::uint64_t from_ns, std::uint64_t to_ns) const {
  if (coverage_.empty() || !owners_.is_of_one_run()) {
    return {};
  }
  const bool is_task_known = owner.task_id != kUnknownId;
  // A worker that never parks isn't known to be in no task between its polls, but as any thread.
  if (!is_task_known && lane != kNoIndex && trace_.lanes[lane].parks.size() != 0) {
    return {};
  }
  if (!works_for_its_poll(is_task_known ? owner.task_id : 0, lane, tid, from_ns, to_ns)) {
    return {};
  }
  if (!is_task_known) {
    return of_plain_thread(tid, from_ns, to_ns);
  }
  if (owner.task_id != 0) {
    const MomentLabel label = state(owner.task_id, 0, from_ns, to_ns);
    if (!label.is_known || label.name != kNoName) {
      return label;
    }
  }
  return state(0, tid, from_ns, to_ns);  // which holds for its tasks, too
}

}  // namespace dial9::analysis
