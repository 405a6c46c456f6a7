// See moment_owners.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/moment_owners.h"

#include <algorithm>
#include <string_view>

#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

// Each may be the same thread's. No host has so many workers; a trace that was made to hold up its
// reader may, with as many questions.
constexpr std::size_t kMostLanes = 1024;

// The last row of the range that starts at the moment or before it; kNoIndex: none.
std::uint32_t last_before(const Column<std::uint64_t>& start_ns, Range range, std::uint64_t at_ns) {
  const std::uint32_t first = range.first;
  while (range.first < range.last) {
    const std::uint32_t middle = range.first + range.size() / 2;
    if (start_ns[middle] <= at_ns) {
      range.first = middle + 1;
    } else {
      range.last = middle;
    }
  }
  return range.first == first ? kNoIndex : range.first - 1;
}

std::uint32_t next_of(std::uint32_t row, Range range) {
  const std::uint32_t next = row == kNoIndex ? range.first : row + 1;
  return next < range.last ? next : kNoIndex;
}

// Of processes: each gives its workers the same ids.
bool has_several_runs(const Trace& trace) {
  std::string_view first;
  return std::any_of(trace.metadata.begin(), trace.metadata.end(), [&](const MetadataEntry& entry) {
    if (entry.key != "boot_id") return false;
    if (first.empty()) first = entry.value;
    return entry.value != first;
  });
}

}  // namespace

MomentOwners::MomentOwners(const Trace& trace)
    : trace_(trace), loss_(trace.loss), shed_(trace), has_several_runs_(has_several_runs(trace)) {
  const Spans& spans = trace.spans;  // by start
  for (std::uint32_t span = 0; span < spans.size(); ++span) {
    if (spans.task[span] != kNoIndex && spans.id[span] != 0) {
      spans_.push_back(span);
    }
  }
  dial9::stable_sort(spans_.begin(), spans_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return spans.task[a] < spans.task[b];
  });
  around_.resize(spans_.size());
  for (std::uint32_t i = 0; i < spans_.size(); ++i) {
    const std::uint32_t span = spans_[i];
    const bool is_first = i == 0 || spans.task[spans_[i - 1]] != spans.task[span];
    std::uint32_t around = is_first ? kNoIndex : i - 1;
    while (around != kNoIndex && spans.end_ns[spans_[around]] <= spans.start_ns[span]) {
      around = around_[around];
    }
    around_[i] = around;
  }
}

// Ids that several threads share say of none of them what it did.
bool MomentOwners::is_of_one_thread(std::uint32_t lane) const {
  const std::uint32_t worker = trace_.lanes[lane].worker;
  const bool has_next = lane + 1 < trace_.lanes.size() && trace_.lanes[lane + 1].worker == worker;
  return worker != kUnknownWorker && worker != kBlockingWorker && trace_.lanes[lane].part == 0 &&
         !has_next;
}

// No poll and no span was left out or lost between the two.
bool MomentOwners::is_whole(std::uint64_t from_ns, std::uint64_t to_ns) const {
  return !loss_.touches(from_ns, to_ns) && !shed_.is_thin(ShedKind::kPolls, from_ns, to_ns) &&
         !shed_.is_thin(ShedKind::kSpans, from_ns, to_ns);
}

// The lane has a poll meanwhile, and may be the thread's.
bool MomentOwners::may_poll(std::uint32_t lane, std::uint32_t tid, std::uint64_t from_ns,
                            std::uint64_t to_ns) const {
  const std::uint32_t poll = last_before(trace_.polls.start_ns, trace_.lanes[lane].polls, to_ns);
  if (poll == kNoIndex || trace_.polls.end_ns[poll] < from_ns) {
    return false;
  }
  const Range parks = trace_.lanes[lane].parks;
  const std::uint32_t before = last_before(trace_.parks.start_ns, parks, from_ns);
  const std::uint32_t after = next_of(before, parks);
  const auto is_others = [&](std::uint32_t park) {
    return trace_.parks.tid[park] != 0 && trace_.parks.tid[park] != tid;
  };
  const bool is_known = is_of_one_thread(lane) && (before != kNoIndex || after != kNoIndex);
  return !is_known || (before != kNoIndex && !is_others(before)) ||
         (after != kNoIndex && !is_others(after));
}

bool MomentOwners::is_without_polls(std::uint32_t tid, std::uint64_t known_ns,
                                    std::uint64_t from_ns, std::uint64_t to_ns) const {
  if (!is_whole(known_ns, to_ns) || trace_.lanes.size() > kMostLanes) {
    return false;
  }
  for (std::uint32_t lane = 0; lane < trace_.lanes.size(); ++lane) {
    if (may_poll(lane, tid, from_ns, to_ns)) {
      return false;
    }
  }
  return true;
}

// The thread was parked; or records of its lane on both sides leave nothing out, and it was no
// other runtime's worker meanwhile.
bool MomentOwners::is_without_poll(std::uint32_t lane, std::uint32_t tid, std::uint64_t from_ns,
                                   std::uint64_t to_ns) const {
  const Polls& polls = trace_.polls;
  const Parks& parks = trace_.parks;
  const std::uint32_t park = last_before(parks.start_ns, trace_.lanes[lane].parks, from_ns);
  const std::uint32_t poll = last_before(polls.start_ns, trace_.lanes[lane].polls, from_ns);
  if (park == kNoIndex || (parks.flags[park] & (kParkOpen | kParkEndLost)) != 0) {
    return false;
  }
  if (to_ns < parks.end_ns[park]) {
    return (parks.flags[park] & kParkStartLost) == 0 &&
           !loss_.touches(parks.start_ns[park], parks.end_ns[park]);
  }
  if (poll != kNoIndex && !polls.is_complete(poll)) {
    return false;
  }
  const std::uint64_t begin_ns =
      std::max(parks.end_ns[park], poll == kNoIndex ? 0 : polls.end_ns[poll]);
  const std::uint32_t next_park = next_of(park, trace_.lanes[lane].parks);
  const std::uint32_t next_poll = next_of(poll, trace_.lanes[lane].polls);
  if (begin_ns > from_ns || (next_park == kNoIndex && next_poll == kNoIndex)) {
    return false;
  }
  const std::uint64_t end_ns =
      std::min(next_park == kNoIndex ? kUnknownNs : parks.start_ns[next_park],
               next_poll == kNoIndex ? kUnknownNs : polls.start_ns[next_poll]);
  if (to_ns >= end_ns || !is_whole(begin_ns, end_ns) || trace_.lanes.size() > kMostLanes) {
    return false;
  }
  for (std::uint32_t other = 0; other < trace_.lanes.size(); ++other) {
    if (other != lane && may_poll(other, tid, from_ns, to_ns)) {
      return false;
    }
  }
  return true;
}

// The one that began last of those that are open throughout, as the recorder has it.
std::uint64_t MomentOwners::span_of(std::uint32_t task, std::uint64_t from_ns,
                                    std::uint64_t to_ns) const {
  constexpr int kMostDepth = 256;
  const Spans& spans = trace_.spans;
  const auto after = std::partition_point(spans_.begin(), spans_.end(), [&](std::uint32_t span) {
    return spans.task[span] != task ? spans.task[span] < task : spans.start_ns[span] <= from_ns;
  });
  const bool has_any = after != spans_.begin() && spans.task[*std::prev(after)] == task;
  auto at = has_any ? static_cast<std::uint32_t>(after - spans_.begin() - 1) : kNoIndex;
  int depth = 0;
  while (at != kNoIndex && spans.end_ns[spans_[at]] <= to_ns && ++depth < kMostDepth) {
    if (spans.end_ns[spans_[at]] > from_ns) {
      return kUnknownId;  // it ended meanwhile
    }
    at = around_[at];
  }
  if (depth == kMostDepth) {
    return kUnknownId;
  }
  if (at == kNoIndex) {
    // Of a task that is older than the trace, one may be open of which the trace has nothing.
    const std::uint64_t spawn_ns = trace_.tasks.spawn_ns[task];
    return spawn_ns != kUnknownNs && spawn_ns <= from_ns && is_whole(spawn_ns, to_ns) ? 0
                                                                                      : kUnknownId;
  }
  const std::uint32_t span = spans_[at];
  const bool is_known =
      (spans.flags[span] & ~kSpanCancelled) == 0 && is_whole(spans.start_ns[span], to_ns);
  return is_known ? spans.id[span] : kUnknownId;
}

Owner MomentOwners::of(std::uint32_t lane, std::uint32_t tid, std::uint64_t from_ns,
                       std::uint64_t to_ns) const {
  if (lane == kNoIndex || has_several_runs_ || !is_of_one_thread(lane)) {
    return {};
  }
  // Before the lane's first park nobody says that it was this thread's. Of one without parks the
  // accounts around the moment do.
  const Range parks = trace_.lanes[lane].parks;
  if (parks.size() != 0 && last_before(trace_.parks.start_ns, parks, from_ns) == kNoIndex) {
    return {};
  }
  const Polls& polls = trace_.polls;
  const std::uint32_t poll = trace_.poll_at(lane, from_ns);
  if (poll == kNoIndex) {
    return is_without_poll(lane, tid, from_ns, to_ns) ? Owner{.task_id = 0} : Owner{};
  }
  const bool is_known = to_ns < polls.end_ns[poll] && polls.is_complete(poll) &&
                        !loss_.touches(polls.start_ns[poll], polls.end_ns[poll]);
  const std::uint32_t task = polls.task[poll];
  if (!is_known || task == kNoIndex) {
    return is_known ? Owner{.task_id = 0} : Owner{};
  }
  return {.task_id = trace_.tasks.id[task], .span_id = span_of(task, from_ns, to_ns)};
}

}  // namespace dial9::analysis
