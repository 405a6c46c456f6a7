// Groups polls and wakes by task (counting sorts), and computes ready times by the rules of
// delays.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "analysis/loader_impl.h"
#include "analysis/loss_ranges.h"
#include "analysis/shed.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

// Rows of `keys` grouped by key: `ranges` gets each key's part of the returned order.
template <class KeyOf>
Column<std::uint32_t> group(std::size_t rows, std::size_t keys, Column<Range>& ranges,
                            KeyOf key_of) {
  std::vector<std::uint32_t> next(keys + 1, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    if (key_of(i) != kNoIndex) {
      ++next[key_of(i) + 1];
    }
  }
  for (std::size_t k = 0; k < keys; ++k) {
    next[k + 1] += next[k];
  }
  for (std::size_t k = 0; k < keys; ++k) {
    ranges.push_back({next[k], next[k + 1]});
  }
  Column<std::uint32_t> order(next[keys], 0);
  for (std::size_t i = 0; i < rows; ++i) {
    if (key_of(i) != kNoIndex) {
      order[next[key_of(i)]++] = static_cast<std::uint32_t>(i);
    }
  }
  return order;
}

// Sorts order[range] by at(row), stable; mostly it is sorted already.
template <class At>
void sort_range(Column<std::uint32_t>& order, Range range, std::vector<std::uint32_t>& scratch,
                At at) {
  bool is_sorted = true;
  for (std::uint32_t i = range.first + 1; i < range.last; ++i) {
    is_sorted = is_sorted && at(order[i - 1]) <= at(order[i]);
  }
  if (is_sorted) {
    return;
  }
  scratch.clear();
  for (std::uint32_t i = range.first; i < range.last; ++i) {
    scratch.push_back(order[i]);
  }
  dial9::stable_sort(scratch.begin(), scratch.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return at(a) < at(b); });
  for (std::uint32_t i = range.first; i < range.last; ++i) {
    order[i] = scratch[i - range.first];
  }
}

class ReadyTimes {
 public:
  ReadyTimes(Trace& trace, const LossRanges& loss) : trace_(trace), loss_(loss) {}

  void run(std::uint32_t task) {
    const Range polls = trace_.tasks.polls[task];
    const Range wakes = trace_.tasks.wakes[task];
    std::uint32_t wake = wakes.first;
    for (std::uint32_t i = polls.first; i < polls.last; ++i) {
      const std::uint32_t poll = trace_.task_polls[i];
      const std::uint64_t start_ns = trace_.polls.start_ns[poll];
      const std::uint32_t previous = i == polls.first ? kNoIndex : trace_.task_polls[i - 1];
      if (wake < wakes.last && trace_.wakes.at_ns[wake] <= start_ns) {
        set_from_wake(poll, previous, wake);
        ++wake;
        // Consumed with it: all before the start. One at the very start is the next poll's.
        while (wake < wakes.last && trace_.wakes.at_ns[wake] < start_ns) {
          ++wake;
        }
      } else {
        set_without_wake(task, poll, previous);
      }
    }
  }

 private:
  void set_from_wake(std::uint32_t poll, std::uint32_t previous, std::uint32_t wake) {
    std::uint64_t ready_ns = trace_.wakes.at_ns[wake];
    ReadySource source = ReadySource::kWake;
    if (previous != kNoIndex && ready_ns < trace_.polls.end_ns[previous]) {
      ready_ns = trace_.polls.end_ns[previous];
      source = ReadySource::kWakeInPoll;
    }
    // Overlapping polls of one task come from shared worker ids or lost ends.
    if (ready_ns > trace_.polls.start_ns[poll]) {
      set(poll, kUnknownNs, kNoIndex, ReadySource::kNoWake);
      return;
    }
    set(poll, ready_ns, wake, source);
  }

  void set_without_wake(std::uint32_t task, std::uint32_t poll, std::uint32_t previous) {
    const Tasks& tasks = trace_.tasks;
    const std::uint64_t spawn_ns = tasks.spawn_ns[task];
    if (previous == kNoIndex) {
      const bool is_inferred = spawn_ns != kUnknownNs && spawn_ns <= trace_.polls.start_ns[poll];
      set(poll, is_inferred ? spawn_ns : kUnknownNs, kNoIndex,
          is_inferred ? ReadySource::kSpawn : ReadySource::kFirstSeen);
      return;
    }
    const bool is_untracked =
        (tasks.flags[task] & (kTaskSpawnSeen | kTaskInstrumented)) == kTaskSpawnSeen;
    set(poll, kUnknownNs, kNoIndex, is_untracked ? ReadySource::kUntracked : ReadySource::kNoWake);
  }

  void set(std::uint32_t poll, std::uint64_t ready_ns, std::uint32_t wake, ReadySource source) {
    Polls& polls = trace_.polls;
    if (ready_ns != kUnknownNs && loss_.touches(ready_ns, polls.start_ns[poll])) {
      ready_ns = kUnknownNs;
      wake = kNoIndex;
      source = ReadySource::kEventsLost;
    }
    polls.ready_ns[poll] = ready_ns;
    polls.wake[poll] = wake;
    polls.ready_source[poll] = source;
  }

  Trace& trace_;
  const LossRanges& loss_;
};

// A delay is known only where neither a wake nor the poll before can have been left out: then the
// wake that is there is the one.
void forget_thin_delays(Trace& trace, const ShedWindows& shed, std::uint32_t task) {
  Polls& polls = trace.polls;
  const Range range = trace.tasks.polls[task];
  for (std::uint32_t i = range.first; i < range.last; ++i) {
    const std::uint32_t poll = trace.task_polls[i];
    const std::uint64_t spawn_ns = trace.tasks.spawn_ns[task];
    const std::uint64_t from_ns = i != range.first         ? polls.start_ns[trace.task_polls[i - 1]]
                                  : spawn_ns != kUnknownNs ? spawn_ns
                                                           : 0;
    if (shed.is_whole_for_task(ShedKind::kWakes, from_ns, polls.start_ns[poll]) &&
        shed.is_whole_for_task(ShedKind::kPolls, from_ns, polls.start_ns[poll])) {
      continue;
    }
    polls.ready_ns[poll] = kUnknownNs;
    polls.wake[poll] = kNoIndex;
    polls.ready_source[poll] = ReadySource::kEventsLost;
  }
}

}  // namespace

// Segments repeat the rates of the last seconds, so that each stands alone.
void Loader::Impl::build_shed() {
  const auto key = [](const ShedRecord& record) { return std::pair(record.at_ns, record.kind); };
  for (ShedRecord& record : trace_.shed) {
    record.kind = settled(record.kind);
  }
  dial9::stable_sort(trace_.shed.begin(), trace_.shed.end(),
                     [&](const ShedRecord& a, const ShedRecord& b) { return key(a) < key(b); });
  const auto end =
      std::unique(trace_.shed.begin(), trace_.shed.end(),
                  [&](const ShedRecord& a, const ShedRecord& b) { return key(a) == key(b); });
  trace_.shed.erase(end, trace_.shed.end());
}

void Loader::Impl::build_tasks() {
  build_shed();
  Tasks& tasks = trace_.tasks;
  Polls& polls = trace_.polls;
  std::vector<std::uint32_t> scratch;
  Column<std::uint32_t> wake_order = group(wakes_.size(), tasks.size(), tasks.wakes,
                                           [&](std::size_t i) { return wakes_[i].task; });
  trace_.task_polls =
      group(polls.size(), tasks.size(), tasks.polls, [&](std::size_t i) { return polls.task[i]; });
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    sort_range(wake_order, tasks.wakes[task], scratch,
               [&](std::uint32_t i) { return wakes_[i].at_ns; });
    sort_range(trace_.task_polls, tasks.polls[task], scratch,
               [&](std::uint32_t i) { return polls.start_ns[i]; });
  }
  for (std::size_t i = 0; i < wake_order.size(); ++i) {
    const RawWake& raw = wakes_[wake_order[i]];
    trace_.wakes.at_ns.push_back(raw.at_ns);
    trace_.wakes.task.push_back(raw.task);
    trace_.wakes.waker.push_back(raw.waker);
  }
  wakes_.clear();
  const LossRanges loss(trace_.loss);
  const ShedWindows shed(trace_);
  ReadyTimes ready_times(trace_, loss);
  for (std::uint32_t task = 0; task < tasks.size(); ++task) {
    ready_times.run(task);
    if (!shed.empty()) {
      forget_thin_delays(trace_, shed, task);
    }
    std::uint32_t last_worker = kNoIndex;
    const Range range = tasks.polls[task];
    for (std::uint32_t i = range.first; i < range.last; ++i) {
      const std::uint32_t poll = trace_.task_polls[i];
      const std::uint32_t on = trace_.lanes[polls.lane[poll]].worker;
      tasks.busy_ns[task] += polls.duration_ns(poll);
      tasks.migrations[task] += last_worker != kNoIndex && on != last_worker ? 1U : 0U;
      last_worker = on;
      tasks.last_ns[task] = std::max(tasks.last_ns[task], polls.end_ns[poll]);
    }
    tasks.spawn_loc[task] = settled(tasks.spawn_loc[task]);
    if (tasks.spawn_loc[task] == kNoName && !range.empty()) {
      tasks.spawn_loc[task] = polls.spawn_loc[trace_.task_polls[range.first]];
    }
  }
}

}  // namespace dial9::analysis
