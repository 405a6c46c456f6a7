// A sweep over the polls of the span's task: each stretch of the span lies in no poll, in one, or
// in several at a time, and each of those has one rule.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/span_times.h"

#include <algorithm>
#include <unordered_map>

#include "analysis/shed.h"

namespace dial9::analysis {
namespace {

struct Interval {
  std::uint64_t from_ns;
  std::uint64_t to_ns;
  std::uint64_t length_ns() const { return to_ns - from_ns; }
};

// Moves up to `wanted_ns` out of `from`; what it moved.
std::uint64_t take(std::uint64_t& from, std::uint64_t wanted_ns) {
  const std::uint64_t taken = std::min(from, wanted_ns);
  from -= taken;
  return taken;
}

}  // namespace

std::string_view describe(UnknownTime reason) {
  switch (reason) {
    case UnknownTime::kNoTask:
      return "the span's task isn't known";
    case UnknownTime::kEventsLost:
      return "events are missing";
    case UnknownTime::kCutOff:
      return "no poll was recorded on one side";
    case UnknownTime::kNoReadyTime:
      return "the task's ready time isn't known";
    case UnknownTime::kNoCpuClock:
      return "in a poll, but the thread's CPU clock wasn't read around it";
    case UnknownTime::kOffCpu:
      return "in a poll, but the thread was off the CPU around it for a reason nobody recorded";
    case UnknownTime::kConcurrent:
      return "the task's polls aren't all the span's";
    case UnknownTime::kNoPoll:
      return "the task waited for a lock between its recorded polls: one of them may be missing";
  }
  return "";
}

std::uint64_t SpanTime::unknown_ns() const {
  std::uint64_t total = 0;
  for (const std::uint64_t part : unknown_by) {
    total += part;
  }
  return total;
}

std::uint64_t SpanTime::sum_ns() const {
  return on_cpu_ns + blocked_ns + async_wait_ns + scheduler_delay_ns + unknown_ns();
}

UnknownTime SpanTime::main_reason() const {
  return static_cast<UnknownTime>(std::max_element(unknown_by.begin(), unknown_by.end()) -
                                  unknown_by.begin());
}

void SpanTime::add(const SpanTime& other) {
  on_cpu_ns += other.on_cpu_ns;
  blocked_ns += other.blocked_ns;
  async_wait_ns += other.async_wait_ns;
  scheduler_delay_ns += other.scheduler_delay_ns;
  for (std::size_t i = 0; i < kUnknownTimes; ++i) {
    unknown_by[i] += other.unknown_by[i];
  }
}

SpanTimes::SpanTimes(const Trace& trace)
    : trace_(trace), loss_(ShedWindows(trace).with_losses(trace)), reach_(trace) {
  const auto& blocks = trace.blocks;  // by start
  std::vector<std::uint32_t> in_polls;
  std::vector<std::uint32_t> strand_waits;
  std::vector<std::uint32_t> pollless;
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].poll != kNoIndex) {
      in_polls.push_back(i);
    } else if (blocks[i].kind == BlockKind::kLock && blocks[i].task != kNoIndex) {
      (blocks[i].lock_kind == LockKind::kStrand ? strand_waits : pollless).push_back(i);
    }
  }
  const auto fill = [&](HeldTimes& held, std::vector<std::uint32_t>& order, auto member) {
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return blocks[a].*member != blocks[b].*member ? blocks[a].*member < blocks[b].*member : a < b;
    });
    for (const std::uint32_t block : order) {
      held.add(blocks[block].*member, blocks[block]);
    }
    held.shrink();
  };
  fill(in_polls_, in_polls, &Block::poll);
  fill(strand_waits_, strand_waits, &Block::task);
  fill(pollless_, pollless, &Block::task);
  unexplained_.resize(trace.parks.size());
  for (std::uint32_t lane = 0; lane < trace.lanes.size(); ++lane) {
    const Range parks = trace.lanes[lane].parks;
    for (std::uint32_t park = parks.first + 1; park < parks.last; ++park) {
      if (has_known_cpu_time(lane) && is_stretch_known(park)) {
        unexplained_[park] = unexplained_before(park);
      }
    }
  }
}

std::size_t SpanTimes::bytes() const {
  return reach_.bytes() + in_polls_.bytes() + strand_waits_.bytes() + pollless_.bytes() +
         unexplained_.capacity() * sizeof(std::uint64_t);
}

// Of a lane's polls that start in [from, to); they lie in a row.
std::uint64_t SpanTimes::blocked_between(std::uint32_t lane, std::uint64_t from_ns,
                                         std::uint64_t to_ns) const {
  const auto& polls = trace_.polls;
  const auto first_from = [&](std::uint64_t at_ns) {
    std::uint32_t low = trace_.lanes[lane].polls.first;
    std::uint32_t high = trace_.lanes[lane].polls.last;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (polls.start_ns[middle] < at_ns) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  std::uint64_t done_ns = from_ns;  // a block may reach into the poll after its own
  std::uint64_t total_ns = 0;
  for (const HeldTime& held : in_polls_.of_all(first_from(from_ns), first_from(to_ns))) {
    const std::uint64_t begin_ns = std::max(held.from_ns, done_ns);
    const std::uint64_t end_ns = std::min(held.to_ns, to_ns);
    if (begin_ns < end_ns) {
      total_ns += end_ns - begin_ns;
      done_ns = end_ns;
    }
  }
  return total_ns;
}

bool SpanTimes::has_known_cpu_time(std::uint32_t lane) const {
  const std::uint32_t worker = trace_.lanes[lane].worker;
  return worker != kUnknownWorker && worker != kBlockingWorker;  // several threads
}

// Whether the CPU time between the park before and `park`, which isn't its lane's first, is known.
bool SpanTimes::is_stretch_known(std::uint32_t park) const {
  const Parks& parks = trace_.parks;
  const std::uint32_t before = park - 1;
  const std::uint64_t from_cpu_ns = parks.cpu_end_ns[before];
  const std::uint64_t to_cpu_ns = parks.cpu_start_ns[park];
  const bool is_read = (parks.flags[before] & (kParkOpen | kParkEndLost)) == 0 &&
                       (parks.flags[park] & kParkStartLost) == 0 && from_cpu_ns != kUnknownNs &&
                       to_cpu_ns != kUnknownNs && from_cpu_ns != 0 && to_cpu_ns >= from_cpu_ns &&
                       parks.tid[before] == parks.tid[park];
  return is_read && !loss_.touches(parks.end_ns[before], parks.start_ns[park]);
}

// The park that ends the busy stretch of a poll, if the stretch's CPU time is known.
std::uint32_t SpanTimes::park_after(std::uint32_t poll) const {
  const Lane& lane = trace_.lanes[trace_.polls.lane[poll]];
  if (!has_known_cpu_time(trace_.polls.lane[poll])) {
    return kNoIndex;
  }
  const Parks& parks = trace_.parks;
  std::uint32_t low = lane.parks.first;
  std::uint32_t high = lane.parks.last;
  while (low < high) {  // the first park that starts at or after the poll's end
    const std::uint32_t middle = low + (high - low) / 2;
    if (parks.start_ns[middle] < trace_.polls.end_ns[poll]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const bool has_both = low != lane.parks.first && low != lane.parks.last;
  return has_both && is_stretch_known(low) ? low : kNoIndex;
}

// Time off the CPU between the park before and `park`, beyond the recorded blocks.
std::uint64_t SpanTimes::unexplained_before(std::uint32_t park) const {
  const Parks& parks = trace_.parks;
  const Interval busy{parks.end_ns[park - 1], parks.start_ns[park]};
  const std::uint64_t cpu_ns = parks.cpu_start_ns[park] - parks.cpu_end_ns[park - 1];
  const std::uint64_t off_ns = busy.length_ns() - std::min(busy.length_ns(), cpu_ns);
  const std::uint64_t blocked_ns = blocked_between(parks.lane[park], busy.from_ns, busy.to_ns);
  return off_ns - std::min(off_ns, blocked_ns);
}

// One span's walk.
class SpanSweep {
 public:
  SpanSweep(const SpanTimes& times, std::uint32_t span)
      : times_(times),
        trace_(times.trace_),
        span_(span),
        within_{trace_.spans.start_ns[span], trace_.spans.end_ns[span]} {}

  SpanTime run() {
    const std::uint32_t task = trace_.spans.task[span_];
    if (task == kNoIndex || trace_.tasks.polls[task].empty()) {
      run_without_task();
      return time_;
    }
    const std::uint32_t next = collect(task);
    std::uint64_t at_ns = within_.from_ns;
    std::size_t i = 0;
    while (i < polls_.size()) {
      const std::uint64_t start_ns = std::max(at_ns, poll_start(i));
      gap({at_ns, start_ns}, polls_[i]);
      at_ns = start_ns;
      i = cluster(i, at_ns);
    }
    gap({at_ns, within_.to_ns}, next);
    compare_with_active();
    return time_;
  }

 private:
  std::uint64_t poll_start(std::size_t i) const { return trace_.polls.start_ns[polls_[i]]; }
  std::uint64_t poll_end(std::size_t i) const { return trace_.polls.end_ns[polls_[i]]; }

  // Fills polls_ with the task's polls that touch the span, by start; returns the first after it.
  std::uint32_t collect(std::uint32_t task) {
    const Polls& polls = trace_.polls;
    Range range = trace_.tasks.polls[task];
    const std::uint32_t first_of_task = range.first;
    std::uint32_t last = range.last;
    while (range.first < range.last) {  // the first that starts in the span or after it
      const std::uint32_t middle = range.first + range.size() / 2;
      if (polls.start_ns[trace_.task_polls[middle]] < within_.from_ns) {
        range.first = middle + 1;
      } else {
        range.last = middle;
      }
    }
    const PollReach::Before before =
        times_.reach_.before(task, range.first - first_of_task, within_.from_ns, polls_);
    has_poll_before_ = before.has_polls;
    is_cut_ = before.is_cut;
    last_end_ns_ = before.end_ns;
    std::uint32_t i = range.first;
    for (; i < last && polls.start_ns[trace_.task_polls[i]] < within_.to_ns; ++i) {
      polls_.push_back(trace_.task_polls[i]);
    }
    return i < last ? trace_.task_polls[i] : kNoIndex;
  }
  void unknown(UnknownTime reason, std::uint64_t ns) {
    time_.unknown_by[static_cast<std::size_t>(reason)] += ns;
  }

  // A scope inside one poll needs no task.
  void run_without_task() {
    const std::uint32_t worker = trace_.spans.worker[span_];
    const std::uint32_t lane = trace_.lane_of_worker(worker);
    const bool is_shared = worker == kUnknownWorker || worker == kBlockingWorker;
    const std::uint32_t poll =
        lane == kNoIndex || is_shared ? kNoIndex : trace_.poll_at(lane, within_.from_ns);
    if (poll == kNoIndex || trace_.polls.end_ns[poll] < within_.to_ns) {
      unknown(UnknownTime::kNoTask, within_.length_ns());
      return;
    }
    in_poll(poll, within_);
  }

  // Polls that overlap, from `i` on: what one covers alone is attributed, the rest is unknown.
  // Moves `at_ns` to their end (or the span's); returns the first poll after them.
  std::size_t cluster(std::size_t i, std::uint64_t& at_ns) {
    std::uint32_t owner = polls_[i];  // of those so far, what ends last
    std::uint64_t covered_ns = std::min(poll_end(i), within_.to_ns);
    std::uint64_t done_ns = at_ns;
    const bool overlaps = has_poll_before_ && poll_start(i) < last_end_ns_;
    is_cut_ = (overlaps && is_cut_) || !trace_.polls.is_complete(owner);
    for (++i; i < polls_.size() && poll_start(i) < covered_ns; ++i) {
      is_cut_ = is_cut_ || !trace_.polls.is_complete(polls_[i]);
      const std::uint64_t start_ns = std::max(poll_start(i), done_ns);
      const std::uint64_t end_ns = std::min(poll_end(i), within_.to_ns);
      if (end_ns <= start_ns) {
        continue;
      }
      alone(owner, {done_ns, start_ns});
      const std::uint64_t both_ns = std::max(std::min(end_ns, covered_ns), start_ns);
      in_poll_ns_ += both_ns - start_ns;
      unknown(UnknownTime::kConcurrent, both_ns - start_ns);
      done_ns = both_ns;
      if (end_ns > covered_ns) {
        covered_ns = end_ns;
        owner = polls_[i];
      }
    }
    alone(owner, {done_ns, std::max(done_ns, covered_ns)});
    at_ns = std::max(at_ns, covered_ns);
    last_end_ns_ = std::max(has_poll_before_ ? last_end_ns_ : 0, trace_.polls.end_ns[owner]);
    has_poll_before_ = true;
    return i;
  }

  void alone(std::uint32_t poll, Interval part) {
    if (part.length_ns() != 0) {
      in_poll_ns_ += part.length_ns();
      in_poll(poll, part);
    }
  }

  void in_poll(std::uint32_t poll, Interval part) {
    if (times_.loss_.touches(trace_.polls.start_ns[poll], trace_.polls.end_ns[poll])) {
      unknown(UnknownTime::kEventsLost, part.length_ns());
      has_loss_ = true;
      return;
    }
    if (!trace_.polls.is_complete(poll)) {
      unknown(UnknownTime::kCutOff, part.length_ns());
      return;
    }
    const std::uint64_t held_ns = add_blocks(poll, part);
    std::uint64_t rest_ns = part.length_ns() - held_ns;
    if (rest_ns == 0) {
      return;
    }
    const std::uint32_t park = times_.park_after(poll);
    if (park == kNoIndex) {
      unknown(UnknownTime::kNoCpuClock, rest_ns);
      return;
    }
    std::uint64_t& left_ns = left_.try_emplace(park, times_.unexplained_[park]).first->second;
    unknown(UnknownTime::kOffCpu, take(rest_ns, take(left_ns, rest_ns)));
    time_.on_cpu_ns += rest_ns;
  }

  // What is recorded of a poll's calls, locks and switches within `part`.
  std::uint64_t add_blocks(std::uint32_t poll, Interval part) {
    std::uint64_t held_ns = 0;
    for (const HeldTime& held : times_.in_polls_.touching(poll, part.from_ns, part.to_ns)) {
      const std::uint64_t ns =
          std::min(held.to_ns, part.to_ns) - std::max(held.from_ns, part.from_ns);
      (held.kind == BlockKind::kPreempted ? time_.scheduler_delay_ns : time_.blocked_ns) += ns;
      held_ns += ns;
    }
    return held_ns;
  }

  // Between polls; `next`: the poll that ends it, kNoIndex: none was recorded.
  void gap(Interval part, std::uint32_t next) {
    if (part.length_ns() == 0) {
      return;
    }
    // A poll that was lost before the span's start may reach into it.
    const std::uint64_t from_ns =
        has_poll_before_ ? std::min(last_end_ns_, part.from_ns) : part.from_ns;
    if (times_.loss_.touches(from_ns, part.to_ns)) {
      unknown(UnknownTime::kEventsLost, part.length_ns());
      has_loss_ = true;
      return;
    }
    const std::uint32_t task = trace_.spans.task[span_];
    if (!times_.pollless_.touching(task, from_ns, part.to_ns).empty()) {
      unknown(UnknownTime::kNoPoll, part.length_ns());
      return;
    }
    std::uint64_t done_ns = part.from_ns;
    for (const HeldTime& wait : times_.strand_waits_.touching(task, part.from_ns, part.to_ns)) {
      const std::uint64_t wait_ns = std::max(wait.from_ns, done_ns);
      outside_polls({done_ns, wait_ns}, next);
      done_ns = std::min(wait.to_ns, part.to_ns);
      time_.blocked_ns += done_ns - wait_ns;
    }
    outside_polls({done_ns, part.to_ns}, next);
  }

  void outside_polls(Interval part, std::uint32_t next) {
    if (part.length_ns() == 0) {
      return;
    }
    if (next == kNoIndex || is_cut_) {
      unknown(UnknownTime::kCutOff, part.length_ns());
      return;
    }
    const std::uint64_t known_ns = trace_.polls.ready_ns[next];
    if (known_ns == kUnknownNs ||
        coverage_of(trace_.polls.ready_source[next]) != Coverage::kKnown) {
      unknown(UnknownTime::kNoReadyTime, part.length_ns());
      return;
    }
    const std::uint64_t ready_ns = std::clamp(known_ns, part.from_ns, part.to_ns);
    time_.scheduler_delay_ns += part.to_ns - ready_ns;
    if (has_poll_before_) {
      time_.async_wait_ns += ready_ns - part.from_ns;
    } else {
      unknown(UnknownTime::kCutOff, ready_ns - part.from_ns);
    }
  }

  // The span's own account of its time on a worker shows whether the task's polls are the span's.
  void compare_with_active() {
    const std::uint64_t active_ns = trace_.spans.active_ns[span_];
    const std::uint8_t flags = trace_.spans.flags[span_];
    if (active_ns == kUnknownNs || (flags & ~kSpanCancelled) != 0 || has_loss_) {
      return;
    }
    const std::uint64_t slack_ns = in_poll_ns_ / 50 + 10'000;
    const std::uint64_t excess_ns = in_poll_ns_ - std::min(in_poll_ns_, active_ns);
    const std::uint64_t missing_ns = active_ns - std::min(in_poll_ns_, active_ns);
    std::uint64_t moved_ns = 0;
    if (excess_ns > slack_ns) {  // another branch of the task ran meanwhile
      moved_ns += take(time_.on_cpu_ns, excess_ns) + take(time_.blocked_ns, excess_ns);
      moved_ns += take(time_.scheduler_delay_ns, time_.scheduler_delay_ns);
    } else if (missing_ns > slack_ns) {  // it ran where no poll of its task was recorded
      moved_ns += take(time_.async_wait_ns, missing_ns);
      moved_ns += take(time_.scheduler_delay_ns, missing_ns) + take(time_.blocked_ns, missing_ns);
    }
    unknown(UnknownTime::kConcurrent, moved_ns);
  }

  const SpanTimes& times_;
  const Trace& trace_;
  std::uint32_t span_;
  Interval within_;
  SpanTime time_;
  std::unordered_map<std::uint32_t, std::uint64_t> left_;  // unexplained ns, by the park's index
  std::vector<std::uint32_t> polls_;
  std::uint64_t in_poll_ns_ = 0;
  std::uint64_t last_end_ns_ = 0;  // of the polls before
  bool has_poll_before_ = false;
  bool is_cut_ = false;  // no end was recorded of the poll before, or one it overlaps with
  bool has_loss_ = false;
};

SpanTime SpanTimes::of(std::uint32_t span) const { return SpanSweep(*this, span).run(); }

}  // namespace dial9::analysis
