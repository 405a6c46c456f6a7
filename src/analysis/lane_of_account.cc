// See lane_of_account.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/lane_of_account.h"

#include <algorithm>
#include <utility>

#include "base/stable_sort.h"

namespace dial9::analysis {

LaneOfAccount::LaneOfAccount(const Trace& trace) : trace_(trace) {
  for (std::size_t i = 0; i < trace.sched.size(); ++i) {
    const SchedSample& account = trace.sched[i];
    const std::uint32_t lane = trace.lane_of_worker(account.worker);
    if (account.tid == 0 || lane == kNoIndex || trace.lanes[lane].parks.size() != 0) {
      continue;
    }
    lanes_.emplace_back(account.tid, lane);
    by_lane_.push_back({lane, account.tid, account.at_ns});
  }
  std::sort(lanes_.begin(), lanes_.end());
  lanes_.erase(std::unique(lanes_.begin(), lanes_.end()), lanes_.end());
  dial9::stable_sort(by_lane_.begin(), by_lane_.end(), [](const Account& a, const Account& b) {
    return a.lane != b.lane ? a.lane < b.lane : a.at_ns < b.at_ns;
  });
}

// The accounts around the moment are of this thread. Both have to be there: behind the last one the
// worker may be another thread's.
bool LaneOfAccount::is_of(std::uint32_t lane, std::uint32_t tid, std::uint64_t at_ns) const {
  const auto after =
      std::partition_point(by_lane_.begin(), by_lane_.end(), [&](const Account& account) {
        return account.lane != lane ? account.lane < lane : account.at_ns <= at_ns;
      });
  const auto is_its = [&](const Account& account) {
    return account.lane == lane && account.tid == tid;
  };
  return after != by_lane_.begin() && is_its(*std::prev(after)) && after != by_lane_.end() &&
         is_its(*after);
}

std::uint32_t LaneOfAccount::at(std::uint32_t tid, std::uint64_t at_ns) const {
  // Of two runtimes: that of the two which polls.
  constexpr int kMostLanes = 16;
  int count = 0;
  int busy_count = 0;
  std::uint32_t any = kNoIndex;
  std::uint32_t busy = kNoIndex;
  const auto first = std::lower_bound(lanes_.begin(), lanes_.end(), std::pair(tid, 0U));
  for (auto at = first; at != lanes_.end() && at->first == tid; ++at) {
    if (at - first == kMostLanes) {
      return kNoIndex;
    }
    if (!is_of(at->second, tid, at_ns)) {
      continue;
    }
    any = at->second;
    ++count;
    if (trace_.poll_at(any, at_ns) != kNoIndex) {
      busy = any;
      ++busy_count;
    }
  }
  return busy_count == 1 ? busy : count == 1 ? any : kNoIndex;
}

}  // namespace dial9::analysis
