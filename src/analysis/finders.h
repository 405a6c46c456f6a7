// What the finders share: one function a kind of finding, the budget of kernel wait that a
// suspicion is discounted by, and small helpers for evidence. Internal to analysis/. Spec:
// docs/spec/findings.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/distribution.h"
#include "analysis/findings.h"
#include "analysis/platform_stalls.h"
#include "analysis/trace.h"

namespace dial9::analysis {

// How long the kernel let each worker's thread wait for a CPU, by the windows of WorkerSchedEvent.
// Where in a window the wait lay isn't known, so a suspicion must survive if all of it fell there.
class KernelWaitBudget {
 public:
  explicit KernelWaitBudget(const Trace& trace);
  // Whether the trace says anything about the worker.
  bool is_known(std::uint32_t worker) const;
  // Up to `wanted_ns` of what is left in the windows that overlap [from, to); it is then used up.
  std::uint64_t take(std::uint32_t worker, std::uint64_t from_ns, std::uint64_t to_ns,
                     std::uint64_t wanted_ns);
  // What is left in those windows.
  std::uint64_t most(std::uint32_t worker, std::uint64_t from_ns, std::uint64_t to_ns) const;

 private:
  struct Window {
    std::uint64_t from_ns;
    std::uint64_t to_ns;
    std::uint64_t left_ns;
    std::uint64_t least_from_ns;  // of this and all later windows of the worker
  };
  static std::pair<std::size_t, std::size_t> overlapping(const std::vector<Window>& windows,
                                                         std::uint64_t from_ns,
                                                         std::uint64_t to_ns);
  const std::vector<Window>* find(std::uint32_t worker) const;
  std::unordered_map<std::uint32_t, std::vector<Window>> workers_;  // each sorted by end
};

struct FindContext {
  const Trace& trace;
  const FindingOptions& options;
  const PlatformStallIndex& platform;
};
using Findings = std::vector<Finding>;

void find_long_polls(const FindContext& context, Findings& out);
void find_ready_delays(const FindContext& context, Findings& out);
void find_kernel_waits(const FindContext& context, Findings& out);
void find_queue_growth(const FindContext& context, Findings& out);
void find_worker_imbalance(const FindContext& context, Findings& out);
void find_task_leaks(const FindContext& context, Findings& out);
void find_blocking_calls(const FindContext& context, Findings& out);
void find_strand_waits(const FindContext& context, Findings& out);
void find_migrations(const FindContext& context, Findings& out);
void find_accept_queues(const FindContext& context, Findings& out);
// Also tells the other findings what the platform did in their time; so after them.
void find_platform_stalls(const FindContext& context, Findings& out);
void find_loss(const FindContext& context, Findings& out);
// Adds to what the others found: what was left out to keep within the recorder's budget makes their
// counts lower bounds.
void find_shed(const FindContext& context, Findings& out);

// Helpers for texts.
std::string place_text(const Trace& trace, NameId place);         // "(place not recorded)" for none
std::string worker_text(const Trace& trace, std::uint32_t lane);  // "worker 3 (main)"
std::string task_text(const Trace& trace, std::uint32_t task);    // "task 42"
std::string spread_text(const Distribution& durations);           // "p50 ..., p90 ..., ..."
// Sets where and when of the finding by a poll: lane, task, poll, at, end.
void point_at_poll(const Trace& trace, std::uint32_t poll, Finding& finding);

}  // namespace dial9::analysis
