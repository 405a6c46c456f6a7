// A latency histogram with log-linear buckets, as HdrHistogram's: 128 equal steps in each power of
// two, so that a quantile is at most 0.8 % above the recorded value, over the whole range of
// uint64. Recording is an index computation and an increment; the memory is fixed (60 KiB). Not
// thread-safe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace checkout::load {

class Histogram {
 public:
  Histogram();

  void record(std::uint64_t value);
  void merge(const Histogram& other);

  std::uint64_t count() const { return count_; }
  std::uint64_t max() const { return max_; }  // exact; 0 if empty
  double mean() const;                        // exact up to rounding; 0 if empty

  // The least value v so that at least `quantile` (0 to 1) of what was recorded is <= v, rounded up
  // to its bucket's end but never above max(). 0 if empty.
  std::uint64_t quantile(double quantile) const;

 private:
  static constexpr unsigned kStepBits = 7;
  static constexpr std::size_t kSteps = std::size_t{1} << kStepBits;

  static std::size_t bucket_of(std::uint64_t value);
  static std::uint64_t last_of(std::size_t bucket);

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace checkout::load
