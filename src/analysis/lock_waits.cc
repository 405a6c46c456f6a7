// See lock_waits.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/lock_waits.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/counts.h"
#include "analysis/human.h"
#include "analysis/off_cpu.h"

namespace dial9::analysis {
namespace {

// What LockWaitEvents say, whether they bear stacks or not.
struct LockSums {
  std::uint64_t waits = 0;  // of threads
  std::uint64_t ns = 0;
  std::uint64_t strand_waits = 0;  // of handlers, for their strand: no thread stood
  std::uint64_t strand_ns = 0;
  bool has_stacks = false;
};

std::uint64_t within(const Block& block, const SampleFilter& filter) {
  const std::uint64_t from_ns = std::max(block.start_ns, filter.from_ns);
  const std::uint64_t to_ns = std::min(block.end_ns(), filter.to_ns);
  return to_ns > from_ns ? to_ns - from_ns : 0;
}

LockSums sums_of(const Trace& trace) {
  LockSums sums;
  for (std::size_t i = 0; i < trace.blocks.size(); ++i) {
    const Block& block = trace.blocks[i];
    if (block.kind != BlockKind::kLock) {
      continue;
    }
    const bool is_strand = is_strand_wait(block) && block.stack == kNoIndex;
    (is_strand ? sums.strand_waits : sums.waits) += 1;
    std::uint64_t& ns = is_strand ? sums.strand_ns : sums.ns;
    ns = sum_of(ns, block.duration_ns);
    sums.has_stacks = sums.has_stacks || block.stack != kNoIndex;
  }
  return sums;
}

// Which waits off the CPU are in a LockWaitEvent, too.
class ToldWaits {
 public:
  explicit ToldWaits(const Trace& trace) {
    for (std::size_t i = 0; i < trace.blocks.size(); ++i) {  // by start
      const Block& block = trace.blocks[i];
      if (block.kind == BlockKind::kLock && !(is_strand_wait(block) && block.stack == kNoIndex)) {
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

bool is_number(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

FlameHeading take_recorded(const Trace& trace, const SampleFilter& filter, const UseStack& use) {
  // A lock wait tells neither a label nor the name of its thread.
  SampleFilter known = filter;
  known.label.clear();
  known.thread = is_number(filter.thread) ? filter.thread : "";
  const bool can_tell = known == filter;
  const SampleJudge judge(trace, known);
  std::uint64_t taken = 0;
  std::uint64_t unknown = 0;
  for (std::size_t i = 0; i < trace.blocks.size(); ++i) {
    const Block& block = trace.blocks[i];
    const std::uint64_t weight_ns = within(block, filter);
    const bool is_strand = is_strand_wait(block) && block.stack == kNoIndex;
    if (block.kind != BlockKind::kLock || is_strand || weight_ns == 0) {
      continue;
    }
    SampleContext context{.at_ns = block.start_ns, .tid = block.tid};
    context.task_id = block.task == kNoIndex ? kUnknownId : trace.tasks.id[block.task];
    context.lane = block.poll == kNoIndex ? kNoIndex : trace.polls.lane[block.poll];
    const Verdict verdict = judge.judge_all_but_time(context);
    const bool is_unknown =
        verdict == Verdict::kUnknown || (verdict == Verdict::kTakes && !can_tell);
    unknown += is_unknown ? 1 : 0;
    if (verdict != Verdict::kTakes || is_unknown) {
      continue;
    }
    ++taken;
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
  FlameHeading heading{.title = "Lock waits", .noun = "wait"};
  if (taken == 0) {
    heading.notes.emplace_back("no lock wait is taken by the filter");
  }
  if (unknown != 0) {
    heading.notes.push_back(counted(unknown, "wait", "doesn't", "don't") +
                            " say whose they are, and are left out");
  }
  return heading;
}

// Threads that aren't in polls, and waits below the events' floor, are in the looks alone.
FlameHeading take_both(const Trace& trace, const SampleFilter& filter, const LockSums& sums,
                       const UseStack& use) {
  FlameHeading heading = take_recorded(trace, filter, use);
  const ToldWaits told(trace);
  std::uint64_t others = 0;
  std::uint64_t others_ns = 0;
  const OffCpuReport looks =
      take_off_cpu_stacks(trace, {.filter = filter, .cause = "lock"}, [&](const TakenStack& taken) {
        if (!told.has(trace.off_cpu[taken.index])) {
          use(taken);
          others += taken.count;
          others_ns = sum_of(others_ns, taken.weight);
        }
      });
  heading.is_uncertain = looks.heading.is_uncertain;
  if (others != 0) {
    heading.notes.push_back(counted(others, "wait") + " (" + human_duration(others_ns) +
                            ") of them as looks and switches saw them: no event tells them");
  }
  if (sums.strand_waits != 0) {
    heading.notes.push_back(counted(sums.strand_waits, "wait") + " (" +
                            human_duration(sums.strand_ns) +
                            ") of handlers for their strands left out: no thread stood");
  }
  return heading;
}

}  // namespace

FlameHeading take_lock_stacks(const Trace& trace, const SampleFilter& filter, const UseStack& use) {
  const LockSums sums = sums_of(trace);
  if (sums.has_stacks) {
    return take_both(trace, filter, sums, use);
  }
  FlameHeading heading =
      take_off_cpu_stacks(trace, {.filter = filter, .cause = "lock"}, use).heading;
  heading.title = "Off-CPU time in locks";
  std::uint64_t others = 0;
  std::uint64_t others_ns = 0;
  take_off_cpu_stacks(trace, {.filter = filter, .cause = "futex"}, [&](const TakenStack& taken) {
    others += taken.count;
    others_ns = sum_of(others_ns, taken.weight);
  });
  if (others != 0) {
    heading.notes.push_back(counted(others, "wait") + " (" + human_duration(others_ns) +
                            ") in futexes that may be locks are left out: their stacks don't tell");
  }
  if (sums.waits != 0) {
    heading.notes.push_back("the trace also tells of " + counted(sums.waits, "lock wait") + " (" +
                            human_duration(sums.ns) + ") without stacks: see dial9 diagnose");
  }
  return heading;
}

}  // namespace dial9::analysis
