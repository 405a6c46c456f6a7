// Recorded calls, locks, switches and strand waits as stretches that don't overlap: each moment
// counts once, for the block that began first. Strongest property: what touches a stretch is found
// in O(log n), however the blocks overlap. Spec: docs/spec/events.md, "Where a span's time goes".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/trace.h"

namespace dial9::analysis {

struct HeldTime {
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = 0;  // > from_ns
  std::uint32_t of = 0;     // the poll or task
  BlockKind kind = BlockKind::kCall;
};

// Memory: 24 bytes a block at most.
class HeldTimes {
 public:
  // By `of`, then by start.
  void add(std::uint32_t of, const Block& block) {
    const bool is_first = rows_.empty() || rows_.back().of != of;
    const std::uint64_t from_ns =
        is_first ? block.start_ns : std::max(block.start_ns, rows_.back().to_ns);
    if (from_ns < block.end_ns()) {
      rows_.push_back({from_ns, block.end_ns(), of, block.kind});
    }
  }
  void shrink() { rows_.shrink_to_fit(); }

  // Those of `of` that touch [from, to); they may reach beyond it.
  std::span<const HeldTime> touching(std::uint32_t of, std::uint64_t from_ns,
                                     std::uint64_t to_ns) const {
    const auto first = std::partition_point(rows_.begin(), rows_.end(), [&](const HeldTime& row) {
      return row.of != of ? row.of < of : row.to_ns <= from_ns;
    });
    const auto last = std::partition_point(first, rows_.end(), [&](const HeldTime& row) {
      return row.of == of && row.from_ns < to_ns;
    });
    return {first, last};
  }
  // Those of all in [first_of, last_of).
  std::span<const HeldTime> of_all(std::uint32_t first_of, std::uint32_t last_of) const {
    const auto from = [&](std::uint32_t of) {
      return std::partition_point(rows_.begin(), rows_.end(),
                                  [of](const HeldTime& row) { return row.of < of; });
    };
    return {from(first_of), from(last_of)};
  }
  std::size_t bytes() const { return rows_.capacity() * sizeof(HeldTime); }

 private:
  std::vector<HeldTime> rows_;
};

}  // namespace dial9::analysis
