// See switch_watch.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/switch_watch.h"

#include <algorithm>

namespace dial9::internal {
namespace {

constexpr std::uint64_t kFollowNs = 1'000'000'000;

}  // namespace

void SwitchWatch::count_lost(std::span<const ThreadSwitch> switches) {
  for (const ThreadSwitch& one : switches) lost_ += one.lost;
}

void SwitchWatch::follow(const std::vector<std::uint32_t>& tids, std::uint32_t own_tid,
                         std::uint64_t now_ns) {
  if (tids == tids_ && now_ns < due_ns_ && due_ns_ - now_ns <= kFollowNs) return;
  tids_ = tids;
  due_ns_ = now_ns + kFollowNs;
  threads_.scan(own_tid);
  if (counts().refused == 0) {
    refusal_.clear();
  } else if (refusal_.empty()) {
    refusal_ = counts().refusal;
  }
  ended_.clear();
  // Stacks after their switches: of each switch that is told the stack is there.
  threads_.drain_ended_switches(&ended_);
  count_lost(ended_);
  if (!stacks_) return;
  stacks_->scan(own_tid);
  std::vector<std::uint32_t> ended;
  for (const ThreadSwitch& one : ended_) ended.push_back(one.tid);
  std::ranges::sort(ended);
  stacks_->forget_all_but(tids_, ended);
}

bool SwitchWatch::take(std::uint32_t tid, std::vector<ThreadSwitch>* to,
                       std::vector<SwitchStack>* stacks) {
  const std::size_t before = to->size();
  for (const ThreadSwitch& one : ended_) {
    if (one.tid == tid) to->push_back(one);
  }
  const bool has_ended = to->size() != before;
  if (has_ended) std::erase_if(ended_, [tid](const ThreadSwitch& one) { return one.tid == tid; });
  const std::size_t own = to->size();
  const bool is_followed = threads_.drain_switches(tid, to);
  count_lost(std::span(*to).subspan(own));
  if (stacks_ && to->size() != before) stacks_->match(tid, std::span(*to).subspan(before), stacks);
  return is_followed || has_ended;
}

}  // namespace dial9::internal
