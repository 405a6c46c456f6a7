// A distribution of durations in logarithmic buckets, 16 to a power of two: quantiles within 6.25 %
// below the true one at most, exact count, sum, minimum and maximum; at most 8 KiB, and some
// hundred bytes while few different values were added (there may be one for each of 100,000 locks).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dial9::analysis {

class Distribution {
 public:
  void add(std::uint64_t value);
  std::uint64_t count() const { return count_; }
  std::uint64_t sum() const { return sum_; }
  std::uint64_t max() const { return max_; }
  std::uint64_t min() const { return count_ == 0 ? 0 : min_; }
  // The value below which a share `q` (0 to 1) lies: the lower edge of its bucket, clamped to what
  // was seen. 0 if empty.
  std::uint64_t quantile(double q) const;

 private:
  static constexpr unsigned kSubBits = 4;
  static constexpr std::size_t kBuckets = (64 - kSubBits + 1) << kSubBits;
  static std::size_t bucket_of(std::uint64_t value);
  static std::uint64_t lower_edge(std::size_t bucket);

  struct Few {
    std::size_t bucket;
    std::uint64_t count;
  };
  static constexpr std::size_t kMaxFew = 16;
  void count_in(std::size_t bucket);

  std::vector<Few> few_;                // sorted by bucket; empty once there are more than kMaxFew
  std::vector<std::uint64_t> buckets_;  // then all kBuckets
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t min_ = ~std::uint64_t{0};
  std::uint64_t max_ = 0;
};

}  // namespace dial9::analysis
