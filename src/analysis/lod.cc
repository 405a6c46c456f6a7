// Busy time of a bin is a difference of running sums, with the slices at its two edges cut there;
// the longest comes from the pyramid. Slices are found by one binary search a bin edge.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/lod.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dial9::analysis {

Pyramid::Pyramid(const Column<std::uint64_t>& start_ns, const Column<std::uint64_t>& end_ns,
                 Range range)
    : start_(&start_ns), end_(&end_ns), range_(range) {
  sums_.reserve(range.size() + 1);
  sums_.push_back(0);
  for (std::uint32_t row = range.first; row < range.last; ++row) {
    sums_.push_back(sums_.back() + duration(row));
  }
  std::uint32_t below = range.size();
  while (below > kFanOut) {
    const std::uint32_t nodes = (below + kFanOut - 1) / kFanOut;
    std::vector<Longest> level(nodes);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      Longest best;
      const std::uint32_t last = std::min(below, (node + 1) * kFanOut);
      for (std::uint32_t child = node * kFanOut; child < last; ++child) {
        best = better(best, at_level(levels_.size(), child));
      }
      level[node] = best;
    }
    levels_.push_back(std::move(level));
    below = nodes;
  }
}

// The longer of two rows; of equals the earlier.
Pyramid::Longest Pyramid::better(Longest a, Longest b) {
  if (a.row == kNoIndex || b.row == kNoIndex) {
    return a.row == kNoIndex ? b : a;
  }
  return a.ns > b.ns || (a.ns == b.ns && a.row < b.row) ? a : b;
}

// Level 0: the rows themselves, by the running sums, which lie close together in memory.
Pyramid::Longest Pyramid::at_level(std::size_t level, std::uint32_t i) const {
  return level == 0 ? Longest{sums_[i + 1] - sums_[i], range_.first + i} : levels_[level - 1][i];
}

std::uint32_t Pyramid::longest(Range rows) const {
  std::uint32_t first = rows.first - range_.first;
  std::uint32_t last = rows.last - range_.first;
  Longest best;
  std::size_t level = 0;
  while (first < last) {
    while (first < last && first % kFanOut != 0) {
      best = better(best, at_level(level, first++));
    }
    while (first < last && last % kFanOut != 0) {
      best = better(best, at_level(level, --last));
    }
    if (first < last && level == levels_.size()) {
      while (first < last) {
        best = better(best, at_level(level, first++));
      }
    }
    first /= kFanOut;
    last /= kFanOut;
    ++level;
  }
  return best.row;
}

Range Pyramid::touching(double from_ns, double to_ns) const {
  const auto first_where = [&](auto is_past) {
    std::uint32_t low = range_.first;
    std::uint32_t high = range_.last;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (is_past(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  };
  // A slice of no length touches the bin that it starts in.
  const std::uint32_t first = first_where([&](std::uint32_t row) {
    return static_cast<double>((*end_)[row]) > from_ns ||
           static_cast<double>((*start_)[row]) >= from_ns;
  });
  const std::uint32_t last =
      first_where([&](std::uint32_t row) { return static_cast<double>((*start_)[row]) >= to_ns; });
  return {first, std::max(first, last)};
}

// Covered time before `at_ns`, where `row` is the first that touches or follows it.
double Pyramid::covered_before(double at_ns, std::uint32_t row) const {
  const auto whole = static_cast<double>(sums_[row - range_.first]);
  if (row == range_.last) {
    return whole;
  }
  const double inside = at_ns - static_cast<double>((*start_)[row]);
  return whole + std::clamp(inside, 0.0, static_cast<double>(duration(row)));
}

// The first row at or after `row` that starts at or after `at_ns`: looks near `row` first, since
// the bins of a window follow each other.
std::uint32_t Pyramid::first_start(std::uint32_t row, double at_ns) const {
  std::uint32_t step = 1;
  std::uint32_t low = row;
  std::uint32_t high = row;
  while (high < range_.last && static_cast<double>((*start_)[high]) < at_ns) {
    low = high + 1;
    high = range_.last - high > step ? high + step : range_.last;
    step *= 2;
  }
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (static_cast<double>((*start_)[middle]) < at_ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void Pyramid::query(const Window& window, std::span<Bin> out) const {
  Range rows = touching(window.t0_ns, window.t0_ns);
  rows.last = rows.first;
  for (std::uint32_t i = 0; i < window.bins; ++i) {
    Bin& bin = out[i];
    bin = {};
    const double from_ns = window.t0_ns + window.bin_ns * i;
    const double to_ns = window.t0_ns + window.bin_ns * (i + 1);
    // Of the rows before this bin's, only the last can reach into it: they don't overlap.
    const bool reaches_in = i != 0 && rows.last != range_.first &&
                            static_cast<double>((*end_)[rows.last - 1]) > from_ns;
    rows.first = reaches_in ? rows.last - 1 : rows.last;
    rows.last = first_start(rows.last, to_ns);
    if (rows.empty()) {
      continue;
    }
    const bool starts_before = static_cast<double>((*start_)[rows.first]) < from_ns;
    bin.starts = rows.size() - (starts_before ? 1U : 0U);
    bin.longest = longest(rows);
    bin.longest_ns = duration(bin.longest);
    // The last row that touches the bin is cut at its right edge, or whole.
    bin.busy_ns = covered_before(to_ns, rows.last - 1) - covered_before(from_ns, rows.first);
  }
}

std::size_t Pyramid::bytes() const {
  std::size_t total = sums_.capacity() * sizeof(std::uint64_t);
  for (const std::vector<Longest>& level : levels_) {
    total += level.capacity() * sizeof(Longest);
  }
  return total;
}

LaneIndex::LaneIndex(const Trace& trace) {
  std::vector<Range> wait_ranges;
  for (const Lane& lane : trace.lanes) {
    Range range{static_cast<std::uint32_t>(waits_.park.size()), 0};
    for (std::uint32_t park = lane.parks.first; park < lane.parks.last; ++park) {
      const std::uint64_t wait_ns = trace.parks.kernel_wait_ns[park];
      if (wait_ns == kUnknownNs || wait_ns == 0) {
        continue;
      }
      // Within the park: a longer reading comes from the edges of the two measurements.
      const std::uint64_t end_ns = trace.parks.end_ns[park];
      const std::uint64_t length_ns = end_ns - trace.parks.start_ns[park];
      waits_.start_ns.push_back(end_ns - std::min(wait_ns, length_ns));
      waits_.end_ns.push_back(end_ns);
      waits_.park.push_back(park);
    }
    range.last = static_cast<std::uint32_t>(waits_.park.size());
    wait_ranges.push_back(range);
  }
  for (std::size_t i = 0; i < trace.lanes.size(); ++i) {
    const Lane& lane = trace.lanes[i];
    lanes_.push_back({Pyramid(trace.polls.start_ns, trace.polls.end_ns, lane.polls),
                      Pyramid(trace.parks.start_ns, trace.parks.end_ns, lane.parks),
                      Pyramid(waits_.start_ns, waits_.end_ns, wait_ranges[i])});
  }
  const Spans& spans = trace.spans;
  std::vector<std::uint32_t> next(trace.span_rows + 1, 0);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    ++next[spans.row[i] + 1];
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::uint32_t> order(spans.size());
  const std::vector<std::uint32_t> edges = next;
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    order[next[spans.row[i]]++] = i;
  }
  for (const std::uint32_t span : order) {
    row_spans_.push_back(span);
    row_start_.push_back(spans.start_ns[span]);
    row_end_.push_back(spans.end_ns[span]);
  }
  for (std::uint32_t row = 0; row < trace.span_rows; ++row) {
    span_rows_.emplace_back(row_start_, row_end_, Range{edges[row], edges[row + 1]});
  }
}

std::size_t LaneIndex::bytes() const {
  std::size_t total = waits_.start_ns.bytes() + waits_.end_ns.bytes() + waits_.park.bytes() +
                      row_spans_.bytes() + row_start_.bytes() + row_end_.bytes();
  for (const PerLane& lane : lanes_) {
    total += lane.polls.bytes() + lane.parks.bytes() + lane.waits.bytes();
  }
  for (const Pyramid& row : span_rows_) {
    total += row.bytes();
  }
  return total;
}

}  // namespace dial9::analysis
