// Whose work a thread did at a moment, from the polls and spans of the trace: for samples and waits
// of which the writer couldn't tell (perf's, and switches that no look saw). Strongest property:
// where a record that could say otherwise may be missing, the answer is that it isn't known.
// Spec: docs/spec/flame.md, "Whose work".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/loss_ranges.h"
#include "analysis/shed.h"
#include "analysis/trace.h"

namespace dial9::analysis {

struct Owner {
  std::uint64_t task_id = kUnknownId;  // 0: none
  std::uint64_t span_id = kUnknownId;  // the innermost open one; 0: none
};

// Of a trace whose lanes, tasks, spans and losses are there, and which outlives this. O(log n) a
// question in a poll; between polls times the number of lanes, of which there are 1,024 at most,
// else it isn't known. Memory: 8 bytes a span.
class MomentOwners {
 public:
  explicit MomentOwners(const Trace& trace);

  // Of the thread `tid` from one moment to another, both inclusive, while it did one thing. `lane`:
  // of the worker that it was; kNoIndex: of none. One without parks: proven at `from_ns`.
  Owner of(std::uint32_t lane, std::uint32_t tid, std::uint64_t from_ns, std::uint64_t to_ns) const;

  // Several processes may have given their threads and tasks the same ids.
  bool is_of_one_run() const { return !has_several_runs_; }
  // The thread, which was outside polls at `known_ns` and is no lane's, isn't in one that began
  // since: no poll from `from_ns` to `to_ns` may be its, and none is missing.
  bool is_without_polls(std::uint32_t tid, std::uint64_t known_ns, std::uint64_t from_ns,
                        std::uint64_t to_ns) const;

 private:
  bool is_of_one_thread(std::uint32_t lane) const;
  bool is_without_poll(std::uint32_t lane, std::uint32_t tid, std::uint64_t from_ns,
                       std::uint64_t to_ns) const;
  bool may_poll(std::uint32_t lane, std::uint32_t tid, std::uint64_t from_ns,
                std::uint64_t to_ns) const;
  bool is_whole(std::uint64_t from_ns, std::uint64_t to_ns) const;
  std::uint64_t span_of(std::uint32_t task, std::uint64_t from_ns, std::uint64_t to_ns) const;

  const Trace& trace_;
  const LossRanges loss_;
  const ShedWindows shed_;
  const bool has_several_runs_;
  std::vector<std::uint32_t> spans_;   // that have a task, by (task, start)
  std::vector<std::uint32_t> around_;  // of each: the last one before it that is open at its start
};

}  // namespace dial9::analysis
