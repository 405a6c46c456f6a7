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
#include "analysis/lack.h"
#include "analysis/longer_sum.h"
#include "analysis/platform_stalls.h"
#include "analysis/socket_waits.h"
#include "analysis/wait_times.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

constexpr const char* kNone = "none";
constexpr std::uint64_t kClockSlackNs = 1'000'000;  // the kernel's account lags
constexpr const char* kCpuReason = "cpu";
constexpr const char* kThrottledReason = "throttled";

struct Interval {
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = 0;
  std::uint64_t length_ns() const { return to_ns > from_ns ? to_ns - from_ns : 0; }
};

// The wait for a CPU: all of a preempted one's, else what follows on the proven time.
Interval runnable_within(const OffCpuWait& wait, const SampleFilter& filter) {
  const std::uint64_t blocked_to_ns = sum_of(wait.at_ns, wait.proven_ns);
  const std::uint64_t from_ns = wait.is_preempted ? wait.at_ns : blocked_to_ns;
  const std::uint64_t to_ns = sum_of(blocked_to_ns, wait.runnable_ns);
  return {std::max(from_ns, filter.from_ns), std::min(to_ns, filter.to_ns)};
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
        return task(wait.task_id);
      case OffCpuBy::kSpan:
        return span(wait.span_id);
      case OffCpuBy::kLabel:
        break;
    }
    if (wait.label_name == kNoName) {
      return wait.is_label_known ? kNone : "";
    }
    return text(wait.label_name) + "=" + text(wait.label_value);
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
  std::uint64_t unknown = 0;           // of which the filter can't tell
  std::uint64_t runnable = 0;          // waits for a CPU
  std::uint64_t readings_unknown = 0;  // of connections; likewise unknown
};

TakenStack taken_of(const OffCpuWait& wait, std::size_t index, std::uint64_t weight_ns,
                    std::uint64_t waits) {
  return {.of = StackOf::kWait,
          .leaf = leaf_of(wait),
          .is_truncated = wait.is_truncated,
          .unwound = wait.unwound,
          .stack = wait.stack,
          .index = static_cast<std::uint32_t>(index),
          .tid = wait.tid,
          .thread_name = wait.thread_name,
          .at_ns = wait.at_ns,
          .length_ns = wait.proven_ns,
          .weight = weight_ns,
          .count = waits};
}

// The waits that a report takes, one by one.
class WaitTaker {
 public:
  WaitTaker(const Trace& trace, const OffCpuReportOptions& options, const UseStack& use,
            OffCpuReport& report)
      : options_(options),
        cause_(trace.names.find(options.cause)),
        judge_(trace, options.filter),
        estimates_(trace, options.filter, options.span_times),
        stalls_(trace),
        group_names_(trace, options.by),
        use_(use),
        report_(report) {}

  void take(const OffCpuWait& wait, std::size_t index, Counts& counts) {
    if (!options_.cause.empty() && (cause_ == kNoName || wait.cause != cause_)) {
      counter_.count(wait, false);
      return;
    }
    const std::uint64_t proven_ns = wait.is_preempted ? 0 : proven_within(wait, options_.filter);
    const WaitEstimate estimate = estimates_.of(wait);
    const Interval runnable = runnable_within(wait, options_.filter);
    const std::uint64_t blocked_ns = sum_of(proven_ns, estimate.kept_ns);
    const std::uint64_t uncut_ns = sum_of(blocked_ns, estimate.cut_ns);
    const Verdict verdict = uncut_ns == 0 && runnable.length_ns() == 0
                                ? Verdict::kLeaves
                                : judge_.judge_all_but_time(context_of(wait));
    counts.unknown += verdict == Verdict::kUnknown ? 1 : 0;
    bool is_taken = verdict == Verdict::kTakes;
    if (is_taken && runnable.length_ns() != 0) {
      ++counts.runnable;
      take_runnable(wait, index, runnable);
    }
    if (is_taken && wait.is_parked) {
      report_.parked_ns = sum_of(report_.parked_ns, blocked_ns);
      is_taken = options_.has_parked;
    }
    report_.cut_ns = sum_of(report_.cut_ns, is_taken ? estimate.cut_ns : 0);
    is_taken = is_taken && blocked_ns != 0;
    const std::uint64_t waits = counter_.count(wait, is_taken);
    if (!is_taken) {
      return;
    }
    report_.exact_ns = sum_of(report_.exact_ns, wait.is_exact ? proven_ns : 0);
    use_(taken_of(wait, index, blocked_ns, waits));
    add(group_names_.of(wait), waits, proven_ns, estimate.kept_ns);
  }

  void finish() {
    for (auto& [name, group] : groups_) {
      group.name = name;
      report_.groups.push_back(std::move(group));
    }
    dial9::stable_sort(report_.groups.begin(), report_.groups.end(),
                       [](const OffCpuGroup& a, const OffCpuGroup& b) {
                         return sum_of(a.proven_ns, a.estimated_ns) >
                                sum_of(b.proven_ns, b.estimated_ns);
                       });
    report_.room_ns = estimates_.room_ns();
  }

 private:
  // Throttled: what the kernel counted of that may explain half of it and more.
  void take_runnable(const OffCpuWait& wait, std::size_t index, Interval runnable) {
    const std::uint64_t length_ns = runnable.length_ns();
    const std::uint64_t throttled_ns = stalls_.most_throttled_ns(runnable.from_ns, runnable.to_ns);
    const bool is_throttled = throttled_ns >= length_ns - length_ns / 2;
    report_.runnable_ns = sum_of(report_.runnable_ns, length_ns);
    report_.throttled_ns = sum_of(report_.throttled_ns, is_throttled ? length_ns : 0);
    if (!options_.has_runnable) {
      return;
    }
    TakenStack taken = taken_of(wait, index, length_ns, 1);
    taken.at_ns = runnable.from_ns;
    taken.length_ns = length_ns;
    use_(taken);
    const char* const reason = is_throttled ? kThrottledReason : kCpuReason;
    add(options_.by == OffCpuBy::kReason ? reason : group_names_.of(wait), 1, length_ns, 0);
  }

  void add(const std::string& name, std::uint64_t waits, std::uint64_t proven_ns,
           std::uint64_t estimated_ns) {
    OffCpuGroup& group = groups_[name];
    group.waits += waits;
    group.proven_ns = sum_of(group.proven_ns, proven_ns);
    group.estimated_ns = sum_of(group.estimated_ns, estimated_ns);
    report_.proven_ns = sum_of(report_.proven_ns, proven_ns);
    report_.estimated_ns = sum_of(report_.estimated_ns, estimated_ns);
  }

  const OffCpuReportOptions& options_;
  const NameId cause_;
  const SampleJudge judge_;
  const WaitEstimates estimates_;
  const PlatformStallIndex stalls_;
  const GroupNames group_names_;
  const UseStack& use_;
  OffCpuReport& report_;
  WaitCounter counter_;
  std::map<std::string, OffCpuGroup> groups_;
};

// That taken records of a thread cover: by time, apart from each other.
using Stretches = std::unordered_map<std::uint32_t, std::vector<Interval>>;

// Joins those that touch. Records come by their ends.
void cover(std::vector<Interval>& stretches, Interval record) {
  while (!stretches.empty() && record.from_ns <= stretches.back().to_ns) {
    record.from_ns = std::min(record.from_ns, stretches.back().from_ns);
    stretches.pop_back();
  }
  stretches.push_back(record);
}

// A thread's waits in its records' time can't be longer than it was blocked.
void add_excess(const Trace& trace, const std::map<std::uint32_t, OffCpuThread>& threads,
                const Stretches& stretches, OffCpuReport& report) {
  std::unordered_map<std::uint32_t, std::uint64_t> waited_ns;
  for (std::size_t i = 0; i < trace.off_cpu.size(); ++i) {
    const OffCpuWait& wait = trace.off_cpu[i];
    const auto found = stretches.find(wait.tid);
    if (wait.is_preempted || found == stretches.end()) {
      continue;
    }
    const std::uint64_t end_ns = sum_of(wait.at_ns, wait.proven_ns);
    auto at = std::partition_point(found->second.begin(), found->second.end(),
                                   [&](const Interval& one) { return one.to_ns <= wait.at_ns; });
    std::uint64_t& sum_ns = waited_ns[wait.tid];
    for (; at != found->second.end() && at->from_ns <= end_ns; ++at) {
      const Interval part{std::max(wait.at_ns, at->from_ns), std::min(end_ns, at->to_ns)};
      const std::uint64_t share_ns = wait.at_ns >= at->from_ns ? wait.share_ns : 0;
      sum_ns = sum_of(sum_ns, sum_of(part.length_ns(), share_ns));
    }
  }
  for (const auto& [tid, thread] : threads) {
    const std::uint64_t of_thread_ns = waited_ns[tid];
    const std::uint64_t excess_ns = of_thread_ns - std::min(of_thread_ns, thread.blocked_ns);
    report.excess_ns = sum_of(report.excess_ns, excess_ns);
  }
}

// Only whole records count: how a part of one splits nobody knows.
void add_threads(const Trace& trace, const SampleFilter& filter, OffCpuReport& report) {
  report.has_threads = !filter.task && !filter.span && filter.label.empty();
  if (!report.has_threads) {
    return;
  }
  const SampleJudge judge(trace, filter);
  const PlatformStallIndex stalls(trace);
  std::map<std::uint32_t, OffCpuThread> threads;
  Stretches stretches;
  for (std::size_t i = 0; i < trace.thread_times.size(); ++i) {
    const ThreadTime& time = trace.thread_times[i];
    const std::uint64_t begin_ns = time.at_ns - std::min(time.at_ns, time.elapsed_ns);
    if (begin_ns < filter.from_ns || time.at_ns > filter.to_ns ||
        !judge.is_on_thread(time.tid, time.thread_name, time.lane)) {
      continue;
    }
    OffCpuThread& thread = threads[time.tid];
    cover(stretches[time.tid], {begin_ns, time.at_ns});
    thread.tid = time.tid;
    thread.name = time.thread_name == kNoName ? thread.name : time.thread_name;
    thread.elapsed_ns = sum_of(thread.elapsed_ns, time.elapsed_ns);
    thread.running_ns = sum_of(thread.running_ns, time.running_ns);
    thread.runnable_ns = sum_of(thread.runnable_ns, time.runnable_ns);
    thread.blocked_ns = sum_of(thread.blocked_ns, time.blocked_ns);
    const std::uint64_t seen_ns = sum_of(time.seen_ns, time.share_ns);
    const std::uint64_t unseen_ns = time.blocked_ns - std::min(time.blocked_ns, seen_ns);
    thread.unseen_ns = sum_of(thread.unseen_ns, unseen_ns);
    thread.exact_ns = sum_of(thread.exact_ns, time.is_exact ? time.elapsed_ns : 0);
    const std::uint64_t throttled_ns = stalls.most_throttled_ns(begin_ns, time.at_ns);
    thread.throttled_ns = sum_of(thread.throttled_ns, std::min(throttled_ns, time.runnable_ns));
    report.unseen_ns = sum_of(report.unseen_ns, unseen_ns);
  }
  add_excess(trace, threads, stretches, report);
  for (const auto& [tid, thread] : threads) {
    report.threads.push_back(thread);
  }
  dial9::stable_sort(
      report.threads.begin(), report.threads.end(),
      [](const OffCpuThread& a, const OffCpuThread& b) { return a.blocked_ns > b.blocked_ns; });
}

void add_sockets(const Trace& trace, const SampleFilter& filter, Counts& counts,
                 OffCpuReport& report) {
  const SampleJudge judge(trace, filter);
  std::map<std::pair<std::uint32_t, std::uint64_t>, SocketWait> waits;  // by thread and begin
  for (std::size_t i = 0; i < trace.socket_waits.size(); ++i) {
    const SocketWait& wait = trace.socket_waits[i];
    const Verdict verdict = judge.judge(context_of(wait));
    counts.readings_unknown += verdict == Verdict::kUnknown ? 1 : 0;
    if (verdict == Verdict::kTakes) {
      waits[{wait.tid, wait.at_ns - std::min(wait.at_ns, wait.waited_ns)}] = wait;
    }
  }
  for (const auto& [key, wait] : waits) {
    report.sockets.push_back(wait);
  }
  dial9::stable_sort(
      report.sockets.begin(), report.sockets.end(),
      [](const SocketWait& a, const SocketWait& b) { return a.waited_ns > b.waited_ns; });
}

void add_recorder_notes(const Trace& trace, const SampleFilter& filter, FlameHeading& heading) {
  std::vector<std::string>& notes = heading.notes;
  std::uint64_t lost = 0;
  std::uint64_t unreadable = 0;
  std::uint64_t unlisted = 0;
  std::uint64_t switches_lost = 0;
  std::uint64_t sockets_unread = 0;
  std::uint64_t stackless = 0;
  for_each_custom(trace, "OffCpuProfileEvent", [&](std::uint64_t at_ns, const auto& cell) {
    if (filter.has_time(at_ns)) {
      lost = sum_of(lost, cell("lost"));
      unreadable = sum_of(unreadable, cell("unreadable"));
      unlisted = sum_of(unlisted, cell("unlisted"));
      switches_lost = sum_of(switches_lost, cell("switches_lost"));
      sockets_unread = sum_of(sockets_unread, cell("sockets_unread"));
      stackless = sum_of(stackless, cell("switch_stacks_lost"));
    }
  });
  heading.is_uncertain = heading.is_uncertain || lost != 0 || unlisted != 0;
  if (unlisted != 0) {
    notes.push_back(counted(unlisted, "short wait", "was", "were") +
                    " not listed: too many a second; they are in the times of threads alone");
  }
  if (switches_lost != 0) {
    notes.push_back("a thread's switches were lost " + counted(switches_lost, "time") +
                    ": its time until the next comes from looks");
  }
  if (stackless != 0) {
    notes.push_back(human_count(stackless) + (stackless == 1 ? " switch has" : " switches have") +
                    " no stack: there was no room for it; its wait has one where a look saw it");
  }
  if (sockets_unread != 0) {
    notes.push_back(counted(sockets_unread, "connection") +
                    " of slow waits not read: too many a second");
  }
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

void add_thread_notes(const OffCpuReport& report, std::vector<std::string>& notes) {
  OffCpuThread sum;
  for (const OffCpuThread& thread : report.threads) {
    sum.elapsed_ns = sum_of(sum.elapsed_ns, thread.elapsed_ns);
    sum.runnable_ns = sum_of(sum.runnable_ns, thread.runnable_ns);
    sum.exact_ns = sum_of(sum.exact_ns, thread.exact_ns);
    sum.throttled_ns = sum_of(sum.throttled_ns, thread.throttled_ns);
  }
  if (sum.exact_ns != 0) {
    notes.push_back("times of threads: " + percent_of(sum.exact_ns, sum.elapsed_ns) +
                    " by their switches, the rest by looks at the kernel's account");
  }
  if (sum.throttled_ns != 0) {
    notes.push_back("of " + human_duration(sum.runnable_ns) + " runnable up to " +
                    human_duration(sum.throttled_ns) +
                    " are the cgroup's CPU limit (throttled), not other threads");
  }
}

// Other writers (the Rust dial9) record a sample at a switch off the CPU at most, also where the
// same variable is set.
std::string none_text(const Trace& trace) {
  return lack_text(trace, "off-CPU samples",
                   "add_off_cpu_samples() or DIAL9_SCHEDULE_PROFILE_ENABLED");
}

void add_switch_note(const Trace& trace, std::vector<std::string>& notes) {
  std::uint64_t switches = 0;
  for (std::size_t i = 0; i < trace.samples.size(); ++i) {
    switches += trace.samples[i].source == SampleSource::kSwitch ? 1 : 0;
  }
  if (switches != 0) {
    notes.push_back(counted(switches, "sample") +
                    " of context switches left out: where a thread left its CPU, but not for how "
                    "long (the page has them on its lanes; `dial9 cat --type CpuSampleEvent`, "
                    "those of source 1)");
  }
}

void add_notes(const Trace& trace, const OffCpuReportOptions& options, const Counts& counts,
               OffCpuReport& report) {
  std::vector<std::string>& notes = report.heading.notes;
  report.heading.is_uncertain = report.cut_ns != 0;
  if (trace.off_cpu.empty() && trace.thread_times.empty()) {
    report.heading.is_unknown = true;
    notes.push_back(none_text(trace));
  } else if (sum_of(sum_of(report.proven_ns, report.estimated_ns), report.cut_ns) == 0) {
    notes.emplace_back(options.filter.empty() ? "no wait was seen"
                                              : "no wait is taken by the filter");
  } else {
    notes.push_back("of it " + human_duration(report.proven_ns) + " proven, " +
                    human_duration(report.estimated_ns) + " estimated (around the proven part)" +
                    (report.exact_ns == 0
                         ? ""
                         : "; " + human_duration(report.exact_ns) + " from switch to switch"));
  }
  add_switch_note(trace, notes);
  if (report.cut_ns != 0) {
    notes.push_back("of the estimates " + human_duration(report.cut_ns) +
                    " is left out, of each the same part: the span's own account has room for " +
                    human_duration(report.room_ns.value_or(0)) + " off the CPU at most");
  }
  if (report.parked_ns != 0 && !options.has_parked) {
    notes.push_back(
        human_duration(report.parked_ns) +
        " of workers that wait for work left out (shown by 'Idle workers' on the page, by "
        "--parked on the command line)");
  }
  if (report.excess_ns > kClockSlackNs) {
    notes.push_back("of the waits (parked ones included) at least " +
                    human_duration(report.excess_ns) +
                    " was spent woken, waiting for a CPU: of which ones isn't known, so blocked "
                    "time is at most what is shown");
  }
  if (report.unseen_ns != 0) {
    notes.push_back(human_duration(report.unseen_ns) +
                    " of blocked time is in waits that nobody saw: it has no reason and no stack");
  }
  if (counts.unknown != 0) {
    notes.push_back(counted(counts.unknown, "wait", "doesn't", "don't") +
                    " say whose they are, and are left out");
  }
  if (counts.readings_unknown != 0) {
    notes.push_back(counted(counts.readings_unknown, "connection reading", "doesn't", "don't") +
                    " say whose they are, and are left out");
  }
  if (counts.runnable != 0 && !options.has_runnable) {
    notes.push_back(counted(counts.runnable, "wait") + " for a CPU (" +
                    human_duration(report.runnable_ns) +
                    ") left out: they are runnable, not blocked (`dial9 offcpu --runnable` shows "
                    "them)");
  }
  if (report.throttled_ns != 0) {
    notes.push_back(human_duration(report.throttled_ns) +
                    " of waits for a CPU are throttled: the cgroup's CPU limit may explain half of "
                    "each and more");
  }
  add_recorder_notes(trace, options.filter, report.heading);
}

}  // namespace

// Where no call was seen it may be anywhere, also at a function's first instruction.
Leaf leaf_of(const OffCpuWait& wait) {
  const bool is_anywhere = wait.is_preempted || (wait.is_exact && wait.call == kNoName);
  return is_anywhere ? Leaf::kInterrupted : Leaf::kReturn;
}

OffCpuReport take_off_cpu_stacks(const Trace& trace, const OffCpuReportOptions& options,
                                 const UseStack& use) {
  OffCpuReport report(options.is_inverted);
  report.heading = {.title = options.has_runnable ? "Off-CPU time (blocked, or waiting for a CPU)"
                                                  : "Off-CPU time (blocked)",
                    .noun = "wait",
                    .by_line = options.frames == FrameBy::kLine};
  Counts counts;
  WaitTaker taker(trace, options, use, report);
  for (std::size_t i = 0; i < trace.off_cpu.size(); ++i) {
    taker.take(trace.off_cpu[i], i, counts);
  }
  taker.finish();
  add_threads(trace, options.filter, report);
  add_sockets(trace, options.filter, counts, report);
  add_notes(trace, options, counts, report);
  return report;
}

OffCpuReport off_cpu_report(const Trace& trace, const OffCpuReportOptions& options,
                            FrameNamer* namer) {
  FlameTree tree(FlameUnit::kNs, options.is_inverted);
  StackNames names(trace, namer, tree, options.frames);
  OffCpuReport report = take_off_cpu_stacks(trace, options, [&](const TakenStack& taken) {
    tree.add(names.frames(taken.stack, taken.at_ns, taken.leaf), taken.weight, taken.count,
             marks_of(taken));
  });
  report.tree = std::move(tree);
  add_unwound_notes(report.tree, report.heading);
  names.add_notes(report.heading);
  note_longer_sum(trace, options.filter, report.tree.unit(), report.tree.total(), report.heading);
  add_thread_notes(report, report.heading.notes);
  if (!report.has_threads) {
    report.heading.notes.emplace_back(
        "times of threads are of whole threads: none by task, span or label");
  }
  return report;
}

}  // namespace dial9::analysis
