// What label a thread's work had at a moment, from the changes that the recorder told: for samples
// and waits of which the writer couldn't tell (perf's, and switches that no look saw). Strongest
// property: where a change may be missing, or isn't in the trace yet, the label isn't known.
// Spec: docs/spec/flame.md, "Whose work".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/moment_owners.h"

namespace dial9::analysis {

// From `at_ns` on the task's label, or where `task_id` is 0 the thread's.
struct LabelChange {
  std::uint64_t at_ns = 0;
  std::uint64_t task_id = 0;
  std::uint32_t tid = 0;  // of the thread, or that told it; 0: none did
  NameId name = kNoName;  // kNoName: none
  NameId value = kNoName;
  bool is_known = false;   // else it isn't known from here on
  bool is_listed = false;  // what holds, and nothing that changed
};

// All changes from `since_ns` to `until_ns` were recorded, but for losses. In the trace are those
// since its first LabelCoverage: it stands at the begin of the oldest segment that is kept.
struct LabelCoverage {
  std::uint64_t at_ns = 0;
  std::uint64_t since_ns = 0;
  std::uint64_t until_ns = 0;
  bool lists_tasks = false;  // who has no change of this very moment had no label
  bool lists_threads = false;
  std::uint64_t listed_ns = kUnknownNs;  // the labels were read between `at_ns` and this
};

struct MomentLabel {
  bool is_known = false;
  NameId name = kNoName;  // kNoName: none
  NameId value = kNoName;
};

// Of a trace whose lanes, tasks and losses are there, and which outlives this, as `owners` do.
// O(log n) a question; of threads that are no workers' times the number of lanes. Memory: what it
// is given, and 8 bytes a change.
class MomentLabels {
 public:
  MomentLabels(const Trace& trace, const MomentOwners& owners, std::vector<LabelChange> changes,
               std::vector<LabelCoverage> coverage);

  // As MomentOwners::of(), whose answer `owner` is.
  MomentLabel of(const Owner& owner, std::uint32_t lane, std::uint32_t tid, std::uint64_t from_ns,
                 std::uint64_t to_ns) const;

 private:
  struct List {
    std::uint64_t at_ns = 0;
    std::uint64_t listed_ns = 0;
  };
  static std::uint64_t last_of(const std::vector<List>& lists, std::uint64_t at_ns);
  static bool is_listed(const std::vector<List>& lists, std::uint64_t at_ns);
  MomentLabel state(std::uint64_t task, std::uint32_t tid, std::uint64_t from_ns,
                    std::uint64_t to_ns) const;
  MomentLabel of_plain_thread(std::uint32_t tid, std::uint64_t from_ns, std::uint64_t to_ns) const;
  std::uint32_t told_last(std::uint32_t tid, std::uint64_t at_ns) const;
  bool works_for_its_poll(std::uint64_t task, std::uint32_t lane, std::uint32_t tid,
                          std::uint64_t from_ns, std::uint64_t to_ns) const;
  bool is_proven(std::uint64_t from_ns, std::uint64_t to_ns) const;

  const Trace& trace_;
  const MomentOwners& owners_;
  const LossRanges loss_;
  const ShedWindows shed_;
  std::vector<LabelChange> changes_;     // by (task, thread where that is 0, time)
  std::vector<LabelCoverage> coverage_;  // by since_ns
  std::vector<List> task_lists_;         // by time
  std::vector<List> thread_lists_;
  std::vector<std::uint32_t> by_teller_;  // changes that threads told, by (thread, time)
};

}  // namespace dial9::analysis
