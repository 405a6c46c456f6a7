// Stretches of time as pairs of a begin and an end. Strongest property: what two of them cover is
// counted once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/counts.h"

namespace dial9::analysis {

using TimeStretches = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// Sorts them, and joins those that overlap or touch. O(n log n).
inline void merge_stretches(TimeStretches& stretches) {
  std::sort(stretches.begin(), stretches.end());
  std::size_t kept = 0;
  for (const auto& stretch : stretches) {
    if (kept != 0 && stretch.first <= stretches[kept - 1].second) {
      stretches[kept - 1].second = std::max(stretches[kept - 1].second, stretch.second);
    } else {
      stretches[kept++] = stretch;
    }
  }
  stretches.resize(kept);
}

// The time that they cover. One that ends before it begins covers none.
inline std::uint64_t covered_ns(TimeStretches stretches) {
  merge_stretches(stretches);
  std::uint64_t sum_ns = 0;
  for (const auto& [begin_ns, end_ns] : stretches) {
    sum_ns = sum_of(sum_ns, end_ns - std::min(begin_ns, end_ns));
  }
  return sum_ns;
}

}  // namespace dial9::analysis
