// Stretches of time in which records were dropped, merged and sorted: what reaches into one isn't
// judged. O(log n) a question.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "analysis/stretches.h"
#include "analysis/trace.h"

namespace dial9::analysis {

class LossRanges {
 public:
  explicit LossRanges(const std::vector<LossRecord>& loss) {
    for (const LossRecord& record : loss) {
      ranges_.emplace_back(record.first_ns, record.last_ns);
    }
    merge_stretches(ranges_);
  }

  bool touches(std::uint64_t from_ns, std::uint64_t to_ns) const {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), to_ns,
                         [](std::uint64_t at, const auto& range) { return at < range.first; });
    return after != ranges_.begin() && std::prev(after)->second >= from_ns;
  }

 private:
  TimeStretches ranges_;
};

}  // namespace dial9::analysis
