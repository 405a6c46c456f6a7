// Which worker a thread was that never parks: the kernel's accounts of workers (WorkerSchedEvent)
// tell thread and worker, every 100 ms in which it ran. Strongest property: a thread is a worker at
// a moment only where that worker's accounts on both sides of it are the thread's.
// Spec: docs/spec/flame.md, "Whose work".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/trace.h"

namespace dial9::analysis {

// Of a trace whose lanes, parks and accounts are there, and which outlives this. O(log accounts) a
// question. Memory: 24 bytes an account of a worker that never parks.
class LaneOfAccount {
 public:
  explicit LaneOfAccount(const Trace& trace);

  // Only lanes without parks; kNoIndex: none, or it can't be told which. Of a thread that was more
  // than 16 workers nothing is.
  std::uint32_t at(std::uint32_t tid, std::uint64_t at_ns) const;

 private:
  struct Account {
    std::uint32_t lane;
    std::uint32_t tid;
    std::uint64_t at_ns;
  };
  bool is_of(std::uint32_t lane, std::uint32_t tid, std::uint64_t at_ns) const;

  const Trace& trace_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lanes_;  // (thread, lane), ascending
  std::vector<Account> by_lane_;                                // by (lane, time)
};

}  // namespace dial9::analysis
