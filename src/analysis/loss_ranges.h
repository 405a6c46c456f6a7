// Stretches of time in which records were dropped, merged and sorted: what reaches into one isn't
// judged. O(log n) a question.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "analysis/trace.h"

namespace dial9::analysis {

class LossRanges {
 public:
  explicit LossRanges(const std::vector<LossRecord>& loss) {
    for (const LossRecord& record : loss) {
      ranges_.emplace_back(record.first_ns, record.last_ns);
    }
    std::sort(ranges_.begin(), ranges_.end());
    std::size_t kept = 0;
    for (const auto& range : ranges_) {
      if (kept != 0 && range.first <= ranges_[kept - 1].second) {
        ranges_[kept - 1].second = std::max(ranges_[kept - 1].second, range.second);
      } else {
        ranges_[kept++] = range;
      }
    }
    ranges_.resize(kept);
  }

  bool touches(std::uint64_t from_ns, std::uint64_t to_ns) const {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), to_ns,
                         [](std::uint64_t at, const auto& range) { return at < range.first; });
    return after != ranges_.begin() && std::prev(after)->second >= from_ns;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
};

}  // namespace dial9::analysis
