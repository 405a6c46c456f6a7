// See now.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/now.h"

#include <algorithm>
#include <unordered_map>

#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

std::uint64_t span_between(std::uint64_t from_ns, std::uint64_t to_ns) {
  return to_ns > from_ns ? to_ns - from_ns : 0;
}

class Look {
 public:
  Look(const Trace& trace, const NowOptions& options) : trace_(trace), options_(options) {
    view_.now_ns = options.now_ns != 0 ? options.now_ns : trace.end_ns;
    for (const LossRecord& loss : trace.loss) {
      lost_until_ns_ = std::max(lost_until_ns_, std::max(loss.last_ns, loss.first_ns));
    }
  }

  NowView run() {
    for (std::uint32_t lane = 0; lane < trace_.lanes.size(); ++lane) look_at_lane(lane);
    for (std::uint32_t task = 0; task < trace_.tasks.size(); ++task) look_at_task(task);
    keep_longest(view_.ready);
    keep_longest(view_.suspended);
    look_at_queues();
    look_at_places();
    return std::move(view_);
  }

 private:
  // Whether nothing about this moment or a later one can be missing.
  bool is_whole_since(std::uint64_t at_ns) const {
    return at_ns >= options_.complete_since_ns && !is_lost_since(at_ns);
  }
  bool is_lost_since(std::uint64_t at_ns) const {
    return lost_until_ns_ != 0 && lost_until_ns_ >= at_ns;
  }

  // Up to when what began then is known to have gone on.
  std::uint64_t certain_until(std::uint64_t since_ns) const {
    std::uint64_t until_ns = view_.now_ns;
    for (const LossRecord& loss : trace_.loss) {
      if (std::max(loss.first_ns, loss.last_ns) >= since_ns) {
        until_ns = std::min(until_ns, std::max(loss.first_ns, since_ns));
      }
    }
    return until_ns;
  }

  void look_at_lane(std::uint32_t index) {
    const Lane& lane = trace_.lanes[index];
    WorkerNow now;
    now.lane = index;
    const Polls& polls = trace_.polls;
    const Parks& parks = trace_.parks;
    std::uint64_t first_ns = kUnknownNs;
    for (std::uint32_t i = lane.polls.first; i < lane.polls.last; ++i) {
      first_ns = std::min(first_ns, polls.start_ns[i]);
      if (!polls.is_complete(i)) continue;
      now.busy_ns += polls.duration_ns(i);
      if (now.longest == kNoIndex || polls.duration_ns(i) > polls.duration_ns(now.longest)) {
        now.longest = i;
      }
    }
    if (!lane.parks.empty()) first_ns = std::min(first_ns, parks.start_ns[lane.parks.first]);
    for (std::uint32_t i = lane.parks.first; i < lane.parks.last; ++i) {
      if ((parks.flags[i] & kParkOpen) == 0) now.parked_ns += parks.end_ns[i] - parks.start_ns[i];
    }
    tell_state(lane, now);
    if (now.doing != WorkerDoing::kBetween) {
      (now.doing == WorkerDoing::kPolling ? now.busy_ns : now.parked_ns) +=
          span_between(now.since_ns, certain_until(now.since_ns));
    }
    if (first_ns != kUnknownNs) now.window_ns = span_between(first_ns, view_.now_ns);
    now.is_partial = first_ns != kUnknownNs && is_lost_since(first_ns);
    now.polls = lane.polls.size();
    if (!lane.polls.empty() && polls.start_ns[lane.polls.first] == first_ns) --now.polls;
    view_.workers.push_back(now);
  }

  void tell_state(const Lane& lane, WorkerNow& now) const {
    const Polls& polls = trace_.polls;
    const Parks& parks = trace_.parks;
    const bool has_poll = !lane.polls.empty();
    const bool has_park = !lane.parks.empty();
    const std::uint32_t poll = has_poll ? lane.polls.last - 1 : kNoIndex;
    const std::uint32_t park = has_park ? lane.parks.last - 1 : kNoIndex;
    if (has_poll && (polls.flags[poll] & kPollOpen) != 0) {
      now.doing = WorkerDoing::kPolling;
      now.since_ns = polls.start_ns[poll];
      now.poll = poll;
    } else if (has_park && (parks.flags[park] & kParkOpen) != 0) {
      now.doing = WorkerDoing::kParked;
      now.since_ns = parks.start_ns[park];
    } else if (has_poll || has_park) {
      now.since_ns = std::max(has_poll ? polls.end_ns[poll] : 0, has_park ? parks.end_ns[park] : 0);
    }
    now.is_uncertain = now.since_ns != kUnknownNs && is_lost_since(now.since_ns);
  }

  void look_at_task(std::uint32_t task) {
    const Tasks& tasks = trace_.tasks;
    if (tasks.terminate_ns[task] != kUnknownNs) return;
    const Range polls = tasks.polls[task];
    const std::uint32_t last = polls.empty() ? kNoIndex : trace_.task_polls[polls.last - 1];
    if (last != kNoIndex && (trace_.polls.flags[last] & kPollOpen) != 0) return;
    TaskWait wait;
    wait.task = task;
    if (find_wake(task, last, wait.since_ns)) {
      add_wait(view_.ready, view_.ready_count, wait);
    } else if (last == kNoIndex && tasks.spawn_ns[task] != kUnknownNs) {
      wait.since_ns = tasks.spawn_ns[task];
      wait.is_inferred = true;
      add_wait(view_.ready, view_.ready_count, wait);
    } else if (last != kNoIndex && (tasks.flags[task] & kTaskSpawnSeen) != 0) {
      wait.since_ns = trace_.polls.end_ns[last];
      add_wait(view_.suspended, view_.suspended_count, wait);
    } else {
      // Not known whether it still lives: what began without a spawn ends without a word.
      ++view_.uncertain_tasks;
    }
  }

  // The first wake that no poll has answered, by the ready-time rules.
  bool find_wake(std::uint32_t task, std::uint32_t last_poll, std::uint64_t& since_ns) const {
    const Range wakes = trace_.tasks.wakes[task];
    for (std::uint32_t i = wakes.first; i < wakes.last; ++i) {
      const std::uint64_t at_ns = trace_.wakes.at_ns[i];
      if (last_poll == kNoIndex) {
        since_ns = at_ns;
        return true;
      }
      const std::uint64_t start_ns = trace_.polls.start_ns[last_poll];
      const bool is_answered = at_ns < start_ns || trace_.polls.wake[last_poll] == i ||
                               (at_ns == start_ns && trace_.polls.wake[last_poll] == kNoIndex);
      if (is_answered) continue;
      since_ns = std::max(at_ns, trace_.polls.end_ns[last_poll]);
      return true;
    }
    return false;
  }

  void add_wait(std::vector<TaskWait>& list, std::uint64_t& count, const TaskWait& wait) {
    if (!is_whole_since(wait.since_ns)) {
      ++view_.uncertain_tasks;
      return;
    }
    ++count;
    list.push_back(wait);
  }

  void keep_longest(std::vector<TaskWait>& list) const {
    dial9::stable_sort(list.begin(), list.end(), [](const TaskWait& a, const TaskWait& b) {
      return a.since_ns < b.since_ns;
    });
    if (list.size() > options_.max_rows) list.resize(options_.max_rows);
  }

  void look_at_queues() {
    for (const Series& series : trace_.series) {
      const bool is_depth = series.kind == Series::Kind::kQueueDepth;
      if (series.value.empty() || (!is_depth && series.kind != Series::Kind::kAliveTasks)) continue;
      QueueNow& queue = queue_of(series.runtime);
      const std::size_t last = series.value.size() - 1;
      (is_depth ? queue.depth : queue.alive_tasks) = series.value[last];
      queue.at_ns = series.at_ns[last];
    }
    std::sort(view_.queues.begin(), view_.queues.end(), [&](const QueueNow& a, const QueueNow& b) {
      return trace_.names.text(a.runtime) < trace_.names.text(b.runtime);
    });
  }

  QueueNow& queue_of(NameId runtime) {
    for (QueueNow& queue : view_.queues) {
      if (queue.runtime == runtime) return queue;
    }
    view_.queues.emplace_back().runtime = runtime;
    return view_.queues.back();
  }

  void look_at_places() {
    std::unordered_map<NameId, PlaceNow> places;
    const Polls& polls = trace_.polls;
    for (std::uint32_t i = 0; i < polls.size(); ++i) {
      const bool is_open = (polls.flags[i] & kPollOpen) != 0;
      if (!is_open && !polls.is_complete(i)) continue;
      PlaceNow& place = places[polls.spawn_loc[i]];
      place.place = polls.spawn_loc[i];
      const std::uint64_t took_ns =
          is_open ? span_between(polls.start_ns[i], view_.now_ns) : polls.duration_ns(i);
      if (!is_open) {
        ++place.polls;
        place.total_ns += took_ns;
      }
      if (took_ns >= place.longest_ns) {
        place.longest_ns = took_ns;
        place.is_open = is_open;
        place.is_uncertain = is_open && is_lost_since(polls.start_ns[i]);
      }
    }
    for (const auto& [name, place] : places) view_.places.push_back(place);
    std::sort(view_.places.begin(), view_.places.end(), [&](const PlaceNow& a, const PlaceNow& b) {
      return a.longest_ns != b.longest_ns ? a.longest_ns > b.longest_ns
                                          : trace_.names.text(a.place) < trace_.names.text(b.place);
    });
    if (view_.places.size() > options_.max_rows) view_.places.resize(options_.max_rows);
  }

  const Trace& trace_;
  const NowOptions& options_;
  NowView view_;
  std::uint64_t lost_until_ns_ = 0;
};

}  // namespace

NowView look_at_now(const Trace& trace, const NowOptions& options) {
  return Look(trace, options).run();
}

}  // namespace dial9::analysis
