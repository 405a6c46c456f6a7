// What threads waited for while they weren't on a CPU: how the time of each splits, and the time of
// the waits by reason, call, thread, task, span, label and stack. Strongest property: proven and
// estimated time are two numbers, and blocked time of which no wait was seen is a third; a percent
// is of the waits that were taken (percent_of). Spec: docs/spec/off_cpu_samples.md, "Reading them".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/flame.h"
#include "analysis/sample_filter.h"
#include "analysis/span_times.h"
#include "analysis/taken_stack.h"
#include "analysis/trace.h"

namespace dial9::analysis {

// By what waits are summed.
enum class OffCpuBy : std::uint8_t { kReason, kCall, kThread, kTask, kSpan, kLabel };

struct OffCpuReportOptions {
  SampleFilter filter = {};
  OffCpuBy by = OffCpuBy::kReason;
  bool has_parked = false;    // with workers that wait for work
  bool has_runnable = false;  // with waits for a CPU
  bool is_inverted = false;
  FrameBy frames = FrameBy::kFunction;
  std::string cause = {};  // only waits for this reason; empty: for any
  const SpanTimes* span_times = nullptr;  // of the trace; null: made where it is needed
};

struct OffCpuGroup {
  std::string name;  // empty: not known
  std::uint64_t waits = 0;
  std::uint64_t proven_ns = 0;
  std::uint64_t estimated_ns = 0;
};

// Running, runnable and blocked sum to elapsed.
struct OffCpuThread {
  std::uint32_t tid = 0;
  NameId name = kNoName;
  std::uint64_t elapsed_ns = 0;
  std::uint64_t running_ns = 0;
  std::uint64_t runnable_ns = 0;
  std::uint64_t blocked_ns = 0;
  std::uint64_t unseen_ns = 0;     // of blocked, in no wait that was seen
  std::uint64_t exact_ns = 0;      // of elapsed, by the thread's switches
  std::uint64_t throttled_ns = 0;  // of runnable, at most: the cgroup's CPU limit
};

struct OffCpuReport {
  explicit OffCpuReport(bool is_inverted) : tree(FlameUnit::kNs, is_inverted) {}
  FlameTree tree;  // proven and estimated time
  FlameHeading heading;
  std::vector<OffCpuGroup> groups;    // heaviest first; they sum to the tree
  bool has_threads = true;            // false: the filter is of less than a thread
  std::vector<OffCpuThread> threads;  // most blocked first
  std::vector<SocketWait> sockets;    // the last reading of each slow wait, longest wait first
  std::uint64_t proven_ns = 0;
  std::uint64_t estimated_ns = 0;
  std::uint64_t exact_ns = 0;      // of proven, from switch to switch
  std::uint64_t parked_ns = 0;     // in the tree only if that was asked for
  std::uint64_t runnable_ns = 0;   // waits for a CPU; likewise
  std::uint64_t throttled_ns = 0;  // of those, by the cgroup's CPU limit
  std::uint64_t unseen_ns = 0;     // over the threads
  // Under a filter by span: how long it can have been off the CPU at most, by its own account;
  // nullopt: that doesn't tell, or nothing is estimated. And what was left out for it of the
  // estimates around the waits that are taken.
  std::optional<std::uint64_t> room_ns = {};
  std::uint64_t cut_ns = 0;
  // Of the waits of these threads, parked ones included, at least: more than the threads were
  // blocked. They were woken and had no CPU yet; of which waits it was nobody knows.
  std::uint64_t excess_ns = 0;
};

// `namer` may be null.
OffCpuReport off_cpu_report(const Trace& trace, const OffCpuReportOptions& options,
                            FrameNamer* namer);

// The same, but each wait that it takes is handed to `use` in place of the tree, which stays empty.
OffCpuReport take_off_cpu_stacks(const Trace& trace, const OffCpuReportOptions& options,
                                 const UseStack& use);

// What the innermost frame of its stack is.
Leaf leaf_of(const OffCpuWait& wait);

std::string_view off_cpu_by_name(OffCpuBy by);  // "reason", ...

// The tables of threads and of groups, at most `limit` rows each.
std::string off_cpu_text(const Trace& trace, const OffCpuReport& report, OffCpuBy by,
                         std::uint64_t limit);
// Members of a JSON object, without its braces.
std::string off_cpu_json(const Trace& trace, const OffCpuReport& report, OffCpuBy by);

}  // namespace dial9::analysis
