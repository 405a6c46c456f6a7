// The diagnosis: what in a trace deserves a person's time, worst first. Strongest property: a
// finding needs positive evidence. Missing records, open work at a cut, and a machine that gave the
// process no CPU never look like a fault of the program; thresholds are relative to the program's
// own distribution, with floors and minimum counts. Spec: docs/spec/findings.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace.h"

namespace dial9::analysis {

enum class Severity : std::uint8_t { kInfo, kWarning, kCritical };
enum class FindingKind : std::uint8_t {
  kLongPoll,
  kReadyDelay,
  kKernelWait,
  kQueueGrowth,
  kWorkerImbalance,
  kTaskLeak,
  kBlockingCall,
  kStrandWait,
  kMigration,
  kAcceptQueue,
  kPlatformStall,
  kLoss,
};
std::string_view to_string(Severity severity);  // "info", "warning", "critical"
std::string_view to_string(FindingKind kind);   // "long-poll", ...

struct Finding {
  FindingKind kind{};
  Severity severity = Severity::kInfo;
  std::string message;      // one line: what, where, how much
  std::uint64_t count = 0;  // how often
  // The longest of them: a poll, a delay, a wait; of queue-growth how long it rose, of task-leak
  // the age of the oldest, of migration the longest known delay after a change, of
  // accept-queue the longest time nearly full. kUnknownNs: none.
  std::uint64_t worst_ns = kUnknownNs;
  std::uint64_t at_ns = kUnknownNs;  // of the worst, absolute; kUnknownNs: no one moment
  std::uint64_t end_ns = kUnknownNs;
  std::string where;  // a place in the source, a lock, a queue; may be empty
  std::uint32_t lane = kNoIndex;
  std::uint32_t task = kNoIndex;
  std::uint32_t poll = kNoIndex;
  std::uint32_t span = kNoIndex;
  std::vector<std::string> evidence;  // a line each
  std::string next;                   // what to look at next
  double score = 0;                   // ranks within a severity; higher is worse
};

// Floors below which nothing of a kind is worth a warning, whatever the distribution.
struct FindingOptions {
  std::uint64_t long_poll_floor_ns = 5'000'000;
  std::uint64_t ready_delay_floor_ns = 10'000'000;
  std::uint64_t blocking_floor_ns = 2'000'000;
  std::uint64_t kernel_wait_floor_ns = 5'000'000;
  std::uint32_t queue_depth_floor = 64;
  std::uint32_t task_leak_floor = 50;
};

// All findings, most severe first, then by score. O(n log n).
std::vector<Finding> diagnose(const Trace& trace, const FindingOptions& options = {});

}  // namespace dial9::analysis
