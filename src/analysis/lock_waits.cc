// See lock_waits.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/lock_waits.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/counts.h"
#include "analysis/human.h"
#include "analysis/off_cpu.h"

namespace dial9::analysis {
namespace {

// What LockWaitEvents of threads say, whether they bear stacks or not.
struct LockSums {
  std::uint64_t waits = 0;
  std::uint64_t ns = 0;
  bool has_stacks = false;
};

bool has_thread(const Block& block) {
  return block.kind == BlockKind::kLock && block.lock_kind == LockKind::kMutex;
}

std::uint64_t within(const Block& block, const SampleFilter& filter) {
  const std::uint64_t from_ns = std::max(block.start_ns, filter.from_ns);
  const std::uint64_t to_ns = std::min(block.end_ns(), filter.to_ns);
  return to_ns > from_ns ? to_ns - from_ns : 0;
}

LockSums sums_of(const Trace& trace) {
  LockSums sums;
  for (std::size_t i = 0; i < trace.blocks.size(); ++i) {
    const Block& block = trace.blocks[i];
    if (has_thread(block)) {
      ++sums.waits;
      sums.ns = sum_of(sums.ns, block.duration_ns);
      sums.has_stacks = sums.has_stacks || block.stack != kNoIndex;
    }
  }
  return sums;
}

// Which waits off the CPU are in a LockWaitEvent, too.
class ToldWaits {
 public:
  explicit ToldWaits(const Trace& trace) {
    for (std::size_t i = 0; i < trace.blocks.size(); ++i) {  // by start
      const Block& block = trace.blocks[i];
      if (has_thread(block)) {
        std::vector<Told>& of_thread = by_tid_[block.tid];
        const std::uint64_t reach_ns = of_thread.empty() ? 0 : of_thread.back().reach_ns;
        of_thread.push_back({block.start_ns, std::max(reach_ns, block.end_ns())});
      }
    }
  }

  bool has(const OffCpuWait& wait) const {
    const auto of_thread = by_tid_.find(wait.tid);
    if (of_thread == by_tid_.end()) {
      return false;
    }
    const std::uint64_t end_ns = sum_of(wait.at_ns, sum_of(wait.proven_ns, wait.runnable_ns));
    const auto after =
        std::partition_point(of_thread->second.begin(), of_thread->second.end(),
                             [end_ns](const Told& told) { return told.start_ns <= end_ns; });
    return after != of_thread->second.begin() && std::prev(after)->reach_ns >= wait.at_ns;
  }

 private:
  struct Told {
    std::uint64_t start_ns;
    std::uint64_t reach_ns;  // the latest end so far
  };
  std::unordered_map<std::uint32_t, std::vector<Told>> by_tid_;
};

struct Sum {
  std::uint64_t waits = 0;
  std::uint64_t ns = 0;
  void add(std::uint64_t wait_ns) {
    ++waits;
    ns = sum_of(ns, wait_ns);
  }
  std::string text() const { return counted(waits, "wait") + " (" + human_duration(ns) + ")"; }
};

// Of LockWaitEvents that lie in the range.
struct Recorded {
  std::uint64_t taken = 0;
  std::uint64_t unknown = 0;  // of which the filter can't tell
  Sum of_strands;
  Sum of_either;  // a lock or a strand, nobody knows
};

// A lock wait tells neither a label nor the name of its thread, and without its poll no worker.
class RecordedTaker {
 public:
  RecordedTaker(const Trace& trace, const SampleFilter& filter)
      : trace_(trace),
        filter_(filter),
        known_(known_of(filter)),
        known_without_worker_(without_worker(known_)),
        judge_(trace, known_),
        judge_without_worker_(trace, known_without_worker_) {}
  RecordedTaker(const RecordedTaker&) = delete;
  RecordedTaker& operator=(const RecordedTaker&) = delete;

  Verdict judge(const Block& block) const {
    SampleContext context{.at_ns = block.start_ns, .tid = block.tid};
    context.task_id = block.task == kNoIndex ? kUnknownId : trace_.tasks.id[block.task];
    const bool has_poll = block.poll != kNoIndex;
    context.lane = has_poll ? trace_.polls.lane[block.poll] : kNoIndex;
    const Verdict verdict = (has_poll ? judge_ : judge_without_worker_).judge_all_but_time(context);
    const bool can_tell = (has_poll ? known_ : known_without_worker_) == filter_;
    return verdict == Verdict::kTakes && !can_tell ? Verdict::kUnknown : verdict;
  }

 private:
  static SampleFilter known_of(SampleFilter filter) {
    filter.label.clear();
    if (filter.has_thread_name()) filter.thread.clear();
    return filter;
  }
  static SampleFilter without_worker(SampleFilter filter) {
    filter.worker.reset();
    return filter;
  }

  const Trace& trace_;
  const SampleFilter& filter_;
  const SampleFilter known_;
  const SampleFilter known_without_worker_;
  const SampleJudge judge_;
  const SampleJudge judge_without_worker_;
};

Recorded take_recorded(const Trace& trace, const SampleFilter& filter, const UseStack& use) {
  const RecordedTaker taker(trace, filter);
  Recorded recorded;
  for (std::size_t i = 0; i < trace.blocks.size(); ++i) {
    const Block& block = trace.blocks[i];
    const std::uint64_t weight_ns = within(block, filter);
    if (block.kind != BlockKind::kLock || weight_ns == 0) {
      continue;
    }
    const Verdict verdict = taker.judge(block);
    if (!has_thread(block)) {
      if (verdict == Verdict::kTakes) {
        const bool is_strand = block.lock_kind == LockKind::kStrand;
        (is_strand ? recorded.of_strands : recorded.of_either).add(weight_ns);
      }
      continue;
    }
    recorded.unknown += verdict == Verdict::kUnknown ? 1 : 0;
    if (verdict != Verdict::kTakes) {
      continue;
    }
    ++recorded.taken;
    use({.of = StackOf::kLockWait,
         .leaf = Leaf::kInterrupted,
         .is_truncated = block.is_truncated,
         .stack = block.stack,
         .index = static_cast<std::uint32_t>(i),
         .tid = block.tid,
         .at_ns = block.start_ns,
         .length_ns = block.duration_ns,
         .weight = weight_ns});
  }
  return recorded;
}

void add_left_out(const Recorded& recorded, std::vector<std::string>& notes) {
  if (recorded.of_strands.waits != 0) {
    notes.push_back(recorded.of_strands.text() +
                    " of handlers for their strands left out: no thread stood");
  }
  if (recorded.of_either.waits != 0) {
    notes.push_back(recorded.of_either.text() +
                    " for a lock or a strand left out: the trace doesn't tell which");
  }
}

// Threads that aren't in polls, and waits below the events' floor, are in the looks alone.
FlameHeading take_both(const Trace& trace, const SampleFilter& filter, const SpanTimes* span_times,
                       const UseStack& use) {
  const Recorded recorded = take_recorded(trace, filter, use);
  const ToldWaits told(trace);
  std::uint64_t others = 0;
  std::uint64_t others_ns = 0;
  const OffCpuReport looks = take_off_cpu_stacks(
      trace, {.filter = filter, .cause = "lock", .span_times = span_times},
      [&](const TakenStack& taken) {
        if (!told.has(trace.off_cpu[taken.index])) {
          use(taken);
          others += taken.count;
          others_ns = sum_of(others_ns, taken.weight);
        }
      });
  FlameHeading heading{.title = "Lock waits", .noun = "wait"};
  heading.is_uncertain = looks.heading.is_uncertain;
  if (recorded.taken == 0 && others_ns == 0) {
    heading.notes.emplace_back("no lock wait is taken by the filter");
  }
  if (recorded.unknown != 0) {
    heading.notes.push_back(counted(recorded.unknown, "wait", "doesn't", "don't") +
                            " say whose they are, and are left out");
  }
  if (others != 0) {
    heading.notes.push_back(counted(others, "wait") + " (" + human_duration(others_ns) +
                            ") of them as looks and switches saw them: no event tells them");
  }
  add_left_out(recorded, heading.notes);
  // Beside the same of events: each note says which of the two it is of.
  for (const std::string& note : looks.heading.notes) {
    heading.notes.push_back("waits off the CPU (told by events or not): " + note);
  }
  return heading;
}

}  // namespace

FlameHeading take_lock_stacks(const Trace& trace, const SampleFilter& filter,
                              const SpanTimes* span_times, const UseStack& use) {
  const LockSums sums = sums_of(trace);
  if (sums.has_stacks) {
    return take_both(trace, filter, span_times, use);
  }
  std::optional<SpanTimes> made;  // of both questions
  if (span_times == nullptr && filter.span && !trace.off_cpu.empty()) {
    span_times = &made.emplace(trace);
  }
  FlameHeading heading =
      take_off_cpu_stacks(trace, {.filter = filter, .cause = "lock", .span_times = span_times}, use)
          .heading;
  heading.title = "Off-CPU time in locks";
  std::uint64_t others = 0;
  std::uint64_t others_ns = 0;
  take_off_cpu_stacks(trace, {.filter = filter, .cause = "futex", .span_times = span_times},
                      [&](const TakenStack& taken) {
                        others += taken.count;
                        others_ns = sum_of(others_ns, taken.weight);
                      });
  if (others != 0) {
    heading.notes.push_back(counted(others, "wait") + " (" + human_duration(others_ns) +
                            ") in futexes that may be locks " + (others == 1 ? "is" : "are") +
                            " left out: their stacks don't tell");
  }
  if (sums.waits != 0) {
    heading.notes.push_back("the trace also tells of " + counted(sums.waits, "lock wait") + " (" +
                            human_duration(sums.ns) + ") without stacks: see dial9 diagnose");
  }
  return heading;
}

}  // namespace dial9::analysis
