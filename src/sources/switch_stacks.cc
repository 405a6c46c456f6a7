// See switch_stacks.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/switch_stacks.h"

#include <algorithm>
#include <utility>

#include "sources/perf_stack.h"

namespace dial9::internal {

void StackMatcher::add(SwitchStack stack) {
  if (waiting_.size() == kMostWaiting) waiting_.erase(waiting_.begin());
  waiting_.push_back(std::move(stack));
}

std::size_t StackMatcher::match(std::span<ThreadSwitch> switches, std::vector<SwitchStack>* to) {
  std::size_t missing = 0;
  std::size_t next = 0;  // in waiting_: those before belong to earlier switches
  for (ThreadSwitch& one : switches) {
    if (one.kind == SwitchKind::kLost) {
      is_known_ = false;
      continue;
    }
    if (one.kind != SwitchKind::kIn) {
      std::size_t found = next;
      while (found < waiting_.size() && waiting_[found].at_ns <= one.at_ns) ++found;
      // Two of them: a switch between them wasn't told, and the first is that one's.
      const bool is_one = found == next + 1 && waiting_[next].at_ns > before_ns_;
      if (is_known_ && is_one) {
        one.stack = next_number_++;
        waiting_[next].number = one.stack;
        to->push_back(std::move(waiting_[next]));
      } else if (is_known_) {
        ++missing;
      }
      next = found;
    }
    before_ns_ = one.at_ns;
    is_known_ = true;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(next));
  return missing;
}

void SwitchStacks::keep(const PerfSample& sample) {
  const unwind::Result walked = unwind_sample(sample, frames_);
  SwitchStack stack;
  stack.at_ns = sample.at_ns;
  stack.frames.assign(frames_.begin(), frames_.begin() + walked.count);
  stack.unwound_by = unwind::method_name(walked.method);
  stack.is_truncated = walked.truncated();
  stack.argument = sample.argument;
  matchers_[sample.tid].add(std::move(stack));
}

// Losses are found by the switches that have no stack.
void SwitchStacks::scan(std::uint32_t own_tid) {
  threads_.scan(own_tid);
  if (counts().refused == 0) {
    refusal_.clear();
  } else if (refusal_.empty()) {
    refusal_ = counts().refusal;
  }
  threads_.drain(
      [this](const PerfSample& sample, const std::string&, PerfProgress&) { keep(sample); },
      [](std::uint64_t, std::uint64_t) {});
}

void SwitchStacks::forget_all_but(std::span<const std::uint32_t> tids,
                                  std::span<const std::uint32_t> ended) {
  std::erase_if(matchers_, [&](const auto& one) {
    return !std::ranges::binary_search(tids, one.first) &&
           !std::ranges::binary_search(ended, one.first);
  });
}

void SwitchStacks::match(std::uint32_t tid, std::span<ThreadSwitch> switches,
                         std::vector<SwitchStack>* to) {
  const bool has_event = threads_.drain(
      tid, [this](const PerfSample& sample, const std::string&, PerfProgress&) { keep(sample); },
      [](std::uint64_t, std::uint64_t) {});
  const auto known = matchers_.find(tid);
  if (known == matchers_.end() && !has_event) return;
  const std::size_t before = to->size();
  const std::size_t missing = matchers_[tid].match(switches, to);
  taken_ += to->size() - before;
  lost_ += missing;
}

}  // namespace dial9::internal
