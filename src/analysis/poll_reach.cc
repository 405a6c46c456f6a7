// See poll_reach.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/poll_reach.h"

#include <algorithm>

namespace dial9::analysis {

PollReach::PollReach(const Trace& trace) : trace_(trace) {
  for (std::uint32_t task = 0; task < trace.tasks.size(); ++task) {
    const Range range = trace.tasks.polls[task];
    if (!overlap(range)) {
      continue;
    }
    first_.emplace(task, static_cast<std::uint32_t>(reach_.size()));
    Reach reach;
    for (std::uint32_t i = range.first; i < range.last; ++i) {
      const std::uint32_t poll = trace.task_polls[i];
      const bool overlaps = reach.longest != kNoIndex &&
                            trace.polls.start_ns[poll] < trace.polls.end_ns[reach.longest];
      reach.is_cut = (overlaps && reach.is_cut) || !trace.polls.is_complete(poll);
      if (ends_later(poll, reach.longest)) {
        reach.second = reach.longest;
        reach.longest = poll;
      } else if (ends_later(poll, reach.second)) {
        reach.second = poll;
      }
      reach_.push_back(reach);
    }
  }
  reach_.shrink_to_fit();
}

bool PollReach::overlap(Range polls) const {
  std::uint64_t reach_ns = 0;
  for (std::uint32_t i = polls.first; i < polls.last; ++i) {
    const std::uint32_t poll = trace_.task_polls[i];
    if (trace_.polls.start_ns[poll] < reach_ns) {
      return true;
    }
    reach_ns = std::max(reach_ns, trace_.polls.end_ns[poll]);
  }
  return false;
}

bool PollReach::ends_later(std::uint32_t poll, std::uint32_t than) const {
  return than == kNoIndex || trace_.polls.end_ns[poll] > trace_.polls.end_ns[than];
}

PollReach::Before PollReach::before(std::uint32_t task, std::uint32_t begun, std::uint64_t at_ns,
                                    std::vector<std::uint32_t>& polls) const {
  if (begun == 0) {
    return {};
  }
  Reach reach;
  const auto overlapping = first_.find(task);
  if (overlapping == first_.end()) {
    reach.longest = trace_.task_polls[trace_.tasks.polls[task].first + begun - 1];
    reach.is_cut = !trace_.polls.is_complete(reach.longest);
  } else {
    reach = reach_[overlapping->second + begun - 1];
  }
  for (const std::uint32_t poll : {reach.longest, reach.second}) {
    if (poll != kNoIndex && trace_.polls.end_ns[poll] > at_ns) {
      polls.push_back(poll);
    }
  }
  std::sort(polls.begin(), polls.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto& start_ns = trace_.polls.start_ns;
    return start_ns[a] != start_ns[b] ? start_ns[a] < start_ns[b] : a < b;
  });
  return {true, reach.is_cut, trace_.polls.end_ns[reach.longest]};
}

std::size_t PollReach::bytes() const {
  constexpr std::size_t kNodeBytes = 32;  // of the map, about
  return reach_.capacity() * sizeof(Reach) + first_.size() * kNodeBytes;
}

}  // namespace dial9::analysis
