// Packs intervals, taken in order of their start, into the fewest rows in which none overlap: each
// goes to the lowest row that is free. O(log rows) an interval.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace dial9::analysis {

class RowPacker {
 public:
  // The row for [start_ns, end_ns); starts never go back from call to call.
  std::uint32_t place(std::uint64_t start_ns, std::uint64_t end_ns) {
    while (!busy_.empty() && busy_.top().first <= start_ns) {
      free_.push(busy_.top().second);
      busy_.pop();
    }
    std::uint32_t row = rows_;
    if (free_.empty()) {
      ++rows_;
    } else {
      row = free_.top();
      free_.pop();
    }
    busy_.emplace(end_ns, row);
    return row;
  }

  std::uint32_t rows() const { return rows_; }

 private:
  using Busy = std::pair<std::uint64_t, std::uint32_t>;  // end, row
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy_;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_;
  std::uint32_t rows_ = 0;
};

}  // namespace dial9::analysis
