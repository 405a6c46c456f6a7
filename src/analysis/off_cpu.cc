// See off_cpu.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/off_cpu.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "analysis/counts.h"
#include "analysis/custom_rows.h"
#include "analysis/human.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

constexpr const char* kNone = "none";

SampleContext context_of(const OffCpuWait& wait) {
  return {.at_ns = wait.at_ns,
          .task_id = wait.task_id,
          .span_id = wait.span_id,
          .tid = wait.tid,
          .lane = wait.lane,
          .thread_name = wait.thread_name,
          .label_name = wait.label_name,
          .label_value = wait.label_value};
}

// Proven time lies where it was seen, and is cut to the range.
std::uint64_t proven_within(const OffCpuWait& wait, const SampleFilter& filter) {
  const std::uint64_t from_ns = std::max(wait.at_ns, filter.from_ns);
  const std::uint64_t to_ns = std::min(sum_of(wait.at_ns, wait.proven_ns), filter.to_ns);
  return to_ns > from_ns ? to_ns - from_ns : 0;
}

// Nobody knows where around the wait the estimate lies: it goes with the first look.
std::uint64_t estimated_within(const OffCpuWait& wait, const SampleFilter& filter) {
  return filter.has_time(wait.at_ns) ? wait.share_ns : 0;
}

std::string hex(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

// The name of the group that a wait belongs to.
class GroupNames {
 public:
  GroupNames(const Trace& trace, OffCpuBy by) : trace_(trace), by_(by) {
    for (std::uint32_t i = 0; by == OffCpuBy::kSpan && i < trace.spans.size(); ++i) {
      span_names_.emplace(trace.spans.id[i], trace.spans.name[i]);
    }
  }

  // Empty: not known.
  std::string of(const OffCpuWait& wait) const {
    switch (by_) {
      case OffCpuBy::kReason:
        return text(wait.cause);
      case OffCpuBy::kCall:
        return text(wait.call);
      case OffCpuBy::kThread:
        return std::to_string(wait.tid) +
               (wait.thread_name == kNoName ? "" : " " + text(wait.thread_name));
      case OffCpuBy::kTask:
        return task(task_of(trace_, context_of(wait)));
      case OffCpuBy::kSpan:
        return span(wait.span_id);
      case OffCpuBy::kLabel:
        break;
    }
    return wait.label_name == kNoName ? "" : text(wait.label_name) + "=" + text(wait.label_value);
  }

 private:
  std::string text(NameId name) const { return std::string(trace_.names.text(name)); }

  std::string task(std::uint64_t id) const {
    if (id == 0 || id == kUnknownId) {
      return id == 0 ? kNone : "";
    }
    const auto known = trace_.task_by_id.find(id);
    const NameId place =
        known == trace_.task_by_id.end() ? kNoName : trace_.tasks.spawn_loc[known->second];
    return std::to_string(id) + (place == kNoName ? "" : " " + text(place));
  }

  std::string span(std::uint64_t id) const {
    if (id == 0 || id == kUnknownId) {
      return id == 0 ? kNone : "";
    }
    const auto known = span_names_.find(id);
    return known == span_names_.end() || known->second == kNoName ? hex(id) : text(known->second);
  }

  const Trace& trace_;
  OffCpuBy by_;
  std::unordered_map<std::uint64_t, NameId> span_names_;
};

// Pieces of one wait are one wait, counted with the first of them that is taken.
class WaitCounter {
 public:
  std::uint64_t count(const OffCpuWait& wait, bool is_taken) {
    if (!wait.is_continued) {
      counted_.erase(wait.tid);
    }
    return is_taken && counted_.insert(wait.tid).second ? 1 : 0;
  }

 private:
  std::unordered_set<std::uint32_t> counted_;
};

struct Counts {
  std::uint64_t unknown = 0;    // of which the filter can't tell
  std::uint64_t preempted = 0;  // waits for a CPU
};

TakenStack taken_of(const OffCpuWait& wait, std::size_t index, std::uint64_t weight_ns,
                    std::uint64_t waits) {
  return {.of = StackOf::kWait,
          .leaf = Leaf::kReturn,
          .is_truncated = wait.is_truncated,
          .stack = wait.stack,
          .index = static_cast<std::uint32_t>(index),
          .tid = wait.tid,
          .thread_name = wait.thread_name,
          .at_ns = wait.at_ns,
          .length_ns = wait.proven_ns,
          .weight = weight_ns,
          .count = waits};
}

void add_waits(const Trace& trace, const OffCpuReportOptions& options, const UseStack& use,
               Counts& counts, OffCpuReport& report) {
  const SampleJudge judge(trace, options.filter);
  const GroupNames group_names(trace, options.by);
  const NameId cause = trace.names.find(options.cause);
  WaitCounter counter;
  std::map<std::string, OffCpuGroup> groups;
  for (std::size_t i = 0; i < trace.off_cpu.size(); ++i) {
    const OffCpuWait& wait = trace.off_cpu[i];
    const std::uint64_t proven_ns = proven_within(wait, options.filter);
    const std::uint64_t estimated_ns = estimated_within(wait, options.filter);
    const std::uint64_t weight_ns = sum_of(proven_ns, estimated_ns);
    const bool is_asked_for = options.cause.empty() || (cause != kNoName && wait.cause == cause);
    const Verdict verdict = weight_ns == 0 || !is_asked_for
                                ? Verdict::kLeaves
                                : judge.judge_all_but_time(context_of(wait));
    counts.unknown += verdict == Verdict::kUnknown ? 1 : 0;
    bool is_taken = verdict == Verdict::kTakes;
    if (is_taken && wait.is_preempted) {
      ++counts.preempted;
      is_taken = false;
    }
    if (is_taken && wait.is_parked) {
      report.parked_ns = sum_of(report.parked_ns, weight_ns);
      is_taken = options.has_parked;
    }
    const std::uint64_t waits = counter.count(wait, is_taken);
    if (!is_taken) {
      continue;
    }
    use(taken_of(wait, i, weight_ns, waits));
    OffCpuGroup& group = groups[group_names.of(wait)];
    group.waits += waits;
    group.proven_ns = sum_of(group.proven_ns, proven_ns);
    group.estimated_ns = sum_of(group.estimated_ns, estimated_ns);
    report.proven_ns = sum_of(report.proven_ns, proven_ns);
    report.estimated_ns = sum_of(report.estimated_ns, estimated_ns);
  }
  for (auto& [name, group] : groups) {
    group.name = name;
    report.groups.push_back(std::move(group));
  }
  dial9::stable_sort(
      report.groups.begin(), report.groups.end(), [](const OffCpuGroup& a, const OffCpuGroup& b) {
        return sum_of(a.proven_ns, a.estimated_ns) > sum_of(b.proven_ns, b.estimated_ns);
      });
}

// Only whole records count: how a part of one splits nobody knows.
void add_threads(const Trace& trace, const SampleFilter& filter, OffCpuReport& report) {
  report.has_threads = !filter.task && !filter.span && filter.label.empty();
  if (!report.has_threads) {
    return;
  }
  const SampleJudge judge(trace, filter);
  std::map<std::uint32_t, OffCpuThread> threads;
  for (std::size_t i = 0; i < trace.thread_times.size(); ++i) {
    const ThreadTime& time = trace.thread_times[i];
    const std::uint64_t begin_ns = time.at_ns - std::min(time.at_ns, time.elapsed_ns);
    if (begin_ns < filter.from_ns || time.at_ns > filter.to_ns ||
        !judge.is_on_thread(time.tid, time.thread_name, time.lane)) {
      continue;
    }
    OffCpuThread& thread = threads[time.tid];
    thread.tid = time.tid;
    thread.name = time.thread_name == kNoName ? thread.name : time.thread_name;
    thread.elapsed_ns = sum_of(thread.elapsed_ns, time.elapsed_ns);
    thread.running_ns = sum_of(thread.running_ns, time.running_ns);
    thread.runnable_ns = sum_of(thread.runnable_ns, time.runnable_ns);
    thread.blocked_ns = sum_of(thread.blocked_ns, time.blocked_ns);
    const std::uint64_t seen_ns = sum_of(time.seen_ns, time.share_ns);
    const std::uint64_t unseen_ns = time.blocked_ns - std::min(time.blocked_ns, seen_ns);
    thread.unseen_ns = sum_of(thread.unseen_ns, unseen_ns);
    report.unseen_ns = sum_of(report.unseen_ns, unseen_ns);
  }
  for (const auto& [tid, thread] : threads) {
    report.threads.push_back(thread);
  }
  dial9::stable_sort(
      report.threads.begin(), report.threads.end(),
      [](const OffCpuThread& a, const OffCpuThread& b) { return a.blocked_ns > b.blocked_ns; });
}

void add_recorder_notes(const Trace& trace, const SampleFilter& filter, FlameHeading& heading) {
  std::vector<std::string>& notes = heading.notes;
  std::uint64_t lost = 0;
  std::uint64_t unreadable = 0;
  for_each_custom(trace, "OffCpuProfileEvent", [&](std::uint64_t at_ns, const auto& cell) {
    if (filter.has_time(at_ns)) {
      lost = sum_of(lost, cell("lost"));
      unreadable = sum_of(unreadable, cell("unreadable"));
    }
  });
  heading.is_uncertain = lost != 0;
  if (lost != 0) {
    notes.push_back(counted(lost, "stack", "was", "were") +
                    " lost: there was no room for them; their waits have none");
  }
  if (unreadable != 0) {
    notes.push_back("a call or a stack couldn't be read " + counted(unreadable, "time"));
  }
  for (const std::string_view key : {"off_cpu.start_error", "off_cpu.notice"}) {
    if (const std::string_view text = trace.metadata_value(key); !text.empty()) {
      notes.push_back("the recorder says: " + std::string(text));
    }
  }
  if (trace.hit_memory_limit) {
    notes.emplace_back("the trace is larger than the memory limit: the rest isn't counted");
  }
}

void add_notes(const Trace& trace, const OffCpuReportOptions& options, const Counts& counts,
               OffCpuReport& report) {
  std::vector<std::string>& notes = report.heading.notes;
  if (trace.off_cpu.empty() && trace.thread_times.empty()) {
    notes.emplace_back(
        "no off-CPU samples in this trace: record with add_off_cpu_samples() or "
        "DIAL9_SCHEDULE_PROFILE_ENABLED");
  } else if (sum_of(report.proven_ns, report.estimated_ns) == 0) {
    notes.emplace_back(options.filter.empty() ? "no wait was seen"
                                              : "no wait is taken by the filter");
  } else {
    notes.push_back("of it " + human_duration(report.proven_ns) + " proven, " +
                    human_duration(report.estimated_ns) + " estimated (around the proven part)");
  }
  if (report.parked_ns != 0 && !options.has_parked) {
    notes.push_back(human_duration(report.parked_ns) +
                    " of workers that wait for work left out (--parked shows them)");
  }
  if (report.unseen_ns != 0) {
    notes.push_back(human_duration(report.unseen_ns) +
                    " of blocked time is in waits that nobody saw: it has no reason and no stack");
  }
  if (counts.unknown != 0) {
    notes.push_back(counted(counts.unknown, "wait", "doesn't", "don't") +
                    " say whose they are, and are left out");
  }
  if (counts.preempted != 0) {
    notes.push_back(counted(counts.preempted, "wait") +
                    " for a CPU left out: they are runnable, not blocked");
  }
  add_recorder_notes(trace, options.filter, report.heading);
}

}  // namespace

OffCpuReport take_off_cpu_stacks(const Trace& trace, const OffCpuReportOptions& options,
                                 const UseStack& use) {
  OffCpuReport report(options.is_inverted);
  report.heading = {.title = "Off-CPU time (blocked)",
                    .noun = "wait",
                    .by_line = options.frames == FrameBy::kLine};
  Counts counts;
  add_waits(trace, options, use, counts, report);
  add_threads(trace, options.filter, report);
  add_notes(trace, options, counts, report);
  return report;
}

OffCpuReport off_cpu_report(const Trace& trace, const OffCpuReportOptions& options,
                            FrameNamer* namer) {
  FlameTree tree(FlameUnit::kNs, options.is_inverted);
  StackNames names(trace, namer, tree, options.frames);
  OffCpuReport report = take_off_cpu_stacks(trace, options, [&](const TakenStack& taken) {
    tree.add(names.frames(taken.stack, taken.at_ns, taken.leaf), taken.weight, taken.count,
             taken.is_truncated);
  });
  report.tree = std::move(tree);
  if (!report.has_threads) {
    report.heading.notes.emplace_back(
        "times of threads are of whole threads: none by task, span or label");
  }
  return report;
}

}  // namespace dial9::analysis
