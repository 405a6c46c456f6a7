// The switches of this process's threads, by perf events: on a CPU and off it, with the moment of
// each and, where asked for, the stack. Strongest property: descriptors and locked memory stay
// within PerfThreads' bounds, and what a ring had no room for is counted. The recorder's own thread
// isn't followed. Spec: docs/spec/off_cpu_samples.md, "Switches".
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sources/perf_threads.h"
#include "sources/switch_account.h"
#include "sources/switch_stacks.h"

namespace dial9::internal {

class SwitchWatch {
 public:
  // `stacks`: null: without.
  explicit SwitchWatch(const PerfPlan& plan, const PerfPlan* stacks = nullptr) : threads_(plan) {
    if (stacks != nullptr) stacks_.emplace(*stacks);
  }

  // `tids`: the threads that there are, ascending. Opens and closes where they changed, else once a
  // second.
  void follow(const std::vector<std::uint32_t>& tids, std::uint32_t own_tid, std::uint64_t now_ns);
  // Its switches since the last call, by time, and the stacks of those off the CPU, by number.
  // False: it isn't followed.
  bool take(std::uint32_t tid, std::vector<ThreadSwitch>* to, std::vector<SwitchStack>* stacks);

  const PerfCounts& counts() const { return threads_.counts(); }
  // Why some threads aren't followed, as of the first of them; empty: all are.
  const std::string& refusal() const { return refusal_; }
  std::uint64_t lost() const { return lost_; }
  // Null: not asked for.
  const SwitchStacks* stacks() const { return stacks_ ? &*stacks_ : nullptr; }

 private:
  void count_lost(std::span<const ThreadSwitch> switches);

  PerfThreads threads_;
  std::optional<SwitchStacks> stacks_;
  std::vector<std::uint32_t> tids_;
  std::uint64_t due_ns_ = 0;
  std::vector<ThreadSwitch> ended_;  // of threads that ended, until the next follow()
  std::uint64_t lost_ = 0;
  std::string refusal_;
};

}  // namespace dial9::internal
