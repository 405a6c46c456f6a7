// The stack that each thread had as it left the CPU, by perf events that sample at that switch.
// Strongest property: a stack is given to the switch that it was taken at, or to none; where a
// record of either may be missing in between it is dropped and counted. Bounded by its rings: what
// has no room in one is lost and counted. Spec: docs/spec/off_cpu_samples.md, "Stacks at switches".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sources/perf_threads.h"
#include "sources/switch_account.h"

namespace dial9::internal {

struct SwitchStack {
  std::uint64_t at_ns = 0;            // CLOCK_MONOTONIC, just before the switch
  std::uint32_t number = 0;           // of its thread, from 1 on, rising
  std::vector<std::uint64_t> frames;  // leaf first
  std::string_view unwound_by;
  std::string_view cause;      // what is waited for, where the stack tells; else empty
  std::uint64_t argument = 0;  // the second one, if its leaf is a system call
  bool is_truncated = false;
};

// Of one thread: which stack belongs to which switch.
class StackMatcher {
 public:
  // By time. Beyond kMostWaiting the oldest goes: nobody reads the thread's switches.
  void add(SwitchStack stack);
  // The switches since the last call, in their order. Each one off the CPU gets the number of the
  // one stack that was taken since the thread's switch before, if there is one; it is put into
  // `to`. Returns for how many there is none though there should be.
  std::size_t match(std::span<ThreadSwitch> switches, std::vector<SwitchStack>* to);

 private:
  static constexpr std::size_t kMostWaiting = 256;
  std::vector<SwitchStack> waiting_;
  std::uint64_t before_ns_ = 0;  // the thread's switch before
  bool is_known_ = false;        // there is one, and none was lost since
  std::uint32_t next_number_ = 1;
};

class SwitchStacks {
 public:
  explicit SwitchStacks(const PerfPlan& plan) : threads_(plan) {}

  // Opens and closes where threads came and went; after the events of their switches, and before
  // those of threads that ended are read.
  void scan(std::uint32_t own_tid);
  // What is kept of other threads goes. Both ascending.
  void forget_all_but(std::span<const std::uint32_t> tids, std::span<const std::uint32_t> ended);
  // Of the thread's switches since the last call; see StackMatcher.
  void match(std::uint32_t tid, std::span<ThreadSwitch> switches, std::vector<SwitchStack>* to);

  const PerfCounts& counts() const { return threads_.counts(); }
  // Why some threads have none, as of the first of them; empty: all have.
  const std::string& refusal() const { return refusal_; }
  std::uint64_t taken() const { return taken_; }
  // Switches off the CPU without a stack, of threads that have or had an event.
  std::uint64_t lost() const { return lost_; }

 private:
  static constexpr std::size_t kMostFrames = 256;
  void keep(const PerfSample& sample);

  PerfThreads threads_;
  std::unordered_map<std::uint32_t, StackMatcher> matchers_;
  std::array<std::uint64_t, kMostFrames> frames_{};
  std::string refusal_;
  std::uint64_t taken_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace dial9::internal
