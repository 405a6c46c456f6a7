// The switches of this process's threads, by perf events: on a CPU and off it, with the moment of
// each. Strongest property: descriptors and locked memory stay within PerfThreads' bounds, and what
// a ring had no room for is counted. The recorder's own thread isn't followed.
// Spec: docs/spec/off_cpu_samples.md, "Switches".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sources/perf_threads.h"
#include "sources/switch_account.h"

namespace dial9::internal {

class SwitchWatch {
 public:
  explicit SwitchWatch(const PerfPlan& plan) : threads_(plan) {}

  // `tids`: the threads that there are, ascending. Opens and closes where they changed, else once a
  // second.
  void follow(const std::vector<std::uint32_t>& tids, std::uint32_t own_tid, std::uint64_t now_ns);
  // Its switches since the last call, by time. False: it isn't followed.
  bool take(std::uint32_t tid, std::vector<ThreadSwitch>* to);

  const PerfCounts& counts() const { return threads_.counts(); }
  // Why some threads aren't followed, as of the first of them; empty: all are.
  const std::string& refusal() const { return refusal_; }
  std::uint64_t lost() const { return lost_; }

 private:
  void count_lost(std::span<const ThreadSwitch> switches);

  PerfThreads threads_;
  std::vector<std::uint32_t> tids_;
  std::uint64_t due_ns_ = 0;
  std::vector<ThreadSwitch> ended_;  // of threads that ended, until the next follow()
  std::uint64_t lost_ = 0;
  std::string refusal_;
};

}  // namespace dial9::internal
