// SPDX-License-Identifier: Apache-2.0
#include "analysis/polls.h"

#include <algorithm>
#include <unordered_map>

#include "analysis/shed.h"
#include "base/stable_sort.h"

namespace dial9::analysis {

PollSummary summarize_polls(const Trace& trace) {
  PollSummary summary;
  std::unordered_map<NameId, std::size_t> place_of;
  const Polls& polls = trace.polls;
  const ShedWindows shed(trace);
  for (std::uint32_t i = 0; i < polls.size(); ++i) {
    if (!polls.is_complete(i)) {
      ++summary.incomplete;
      continue;
    }
    ++summary.complete;
    const double weight = shed.empty() ? 1 : shed.weight(ShedKind::kPolls, polls.start_ns[i]);
    summary.estimated_complete += weight;
    const std::uint64_t duration_ns = polls.duration_ns(i);
    summary.durations.add(duration_ns);
    const auto [entry, is_new] = place_of.try_emplace(polls.spawn_loc[i], summary.places.size());
    if (is_new) {
      summary.places.push_back({polls.spawn_loc[i], 0, 0, 0, 0, i});
    }
    PlacePolls& place = summary.places[entry->second];
    ++place.count;
    place.estimated_count += weight;
    place.estimated_total_ns += weight * static_cast<double>(duration_ns);
    place.total_ns += duration_ns;
    if (duration_ns > polls.duration_ns(place.longest)) {
      place.longest = i;
    }
  }
  dial9::stable_sort(
      summary.places.begin(), summary.places.end(),
      [](const PlacePolls& a, const PlacePolls& b) { return a.total_ns > b.total_ns; });
  return summary;
}

}  // namespace dial9::analysis
