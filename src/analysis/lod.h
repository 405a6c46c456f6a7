// Level of detail: answers "what is in each pixel of this window" for a row of slices in time that
// depends on the pixels, not on the slices. Strongest property: exact at pixel edges (a slice that
// crosses an edge is split there; a bin's busy time is the true one, not a rounding to whole
// nodes).
//
// A pyramid of fan-out 16 over the durations gives the longest slice of a range and its index;
// running sums give busy time. 9.1 bytes a slice. Query: O(bins × log slices a bin).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/trace.h"

namespace dial9::analysis {

inline constexpr std::uint32_t kFanOut = 16;

// What touches one bin [t, t + bin_ns).
struct Bin {
  double busy_ns = 0;                // of the bin covered by slices
  std::uint32_t starts = 0;          // slices that start in it
  std::uint64_t longest_ns = 0;      // full duration of the longest that touches it
  std::uint32_t longest = kNoIndex;  // its index in the column; of equals the first
};

struct Window {
  double t0_ns = 0;   // absolute, on the trace's clock
  double bin_ns = 1;  // > 0, may be below 1
  std::uint32_t bins = 0;
};

// Over rows [range.first, range.last) of two columns, which are sorted by start, don't overlap and
// outlive this. Slices of no length count as starts and as the longest where nothing else is.
class Pyramid {
 public:
  Pyramid() = default;
  Pyramid(const Column<std::uint64_t>& start_ns, const Column<std::uint64_t>& end_ns, Range range);

  // Fills `out` (window.bins of them), every one anew.
  void query(const Window& window, std::span<Bin> out) const;
  // The rows that touch [from_ns, to_ns).
  Range touching(double from_ns, double to_ns) const;
  // Index of the longest of the rows (a part of the range); kNoIndex if empty. O(log n).
  std::uint32_t longest(Range rows) const;
  std::size_t bytes() const;

 private:
  std::uint64_t duration(std::uint32_t row) const { return (*end_)[row] - (*start_)[row]; }
  struct Longest {
    std::uint64_t ns = 0;
    std::uint32_t row = kNoIndex;
  };
  static Longest better(Longest a, Longest b);
  Longest at_level(std::size_t level, std::uint32_t i) const;
  std::uint32_t first_start(std::uint32_t row, double at_ns) const;
  double covered_before(double at_ns, std::uint32_t row) const;

  const Column<std::uint64_t>* start_ = nullptr;
  const Column<std::uint64_t>* end_ = nullptr;
  Range range_;
  std::vector<std::uint64_t> sums_;  // of durations before each row of the range, and the total
  std::vector<std::vector<Longest>> levels_;  // of each 16, 256, ... rows
};

// Kernel waits as slices: [unpark - wait, unpark) for parks whose wait is known and not 0.
struct KernelWaits {
  Column<std::uint64_t> start_ns;
  Column<std::uint64_t> end_ns;
  Column<std::uint32_t> park;  // index
};

// The pyramids of all lanes of a trace, and of the rows of its spans. Keeps a pointer to `trace`.
class LaneIndex {
 public:
  explicit LaneIndex(const Trace& trace);
  LaneIndex(const LaneIndex&) = delete;
  LaneIndex& operator=(const LaneIndex&) = delete;

  struct PerLane {
    Pyramid polls;  // rows are poll indexes
    Pyramid parks;  // park indexes
    Pyramid waits;  // rows of kernel_waits()
  };
  const PerLane& lane(std::uint32_t lane) const { return lanes_[lane]; }
  const KernelWaits& kernel_waits() const { return waits_; }

  // Spans of a packed row: their indexes by start, and a pyramid over row_start()/row_end(), whose
  // rows are positions in row_spans().
  const Pyramid& span_row(std::uint32_t row) const { return span_rows_[row]; }
  const Column<std::uint32_t>& row_spans() const { return row_spans_; }
  const Column<std::uint64_t>& row_start_ns() const { return row_start_; }
  const Column<std::uint64_t>& row_end_ns() const { return row_end_; }
  std::size_t bytes() const;

 private:
  std::vector<PerLane> lanes_;
  KernelWaits waits_;
  std::vector<Pyramid> span_rows_;
  Column<std::uint32_t> row_spans_;
  Column<std::uint64_t> row_start_;
  Column<std::uint64_t> row_end_;
};

}  // namespace dial9::analysis
