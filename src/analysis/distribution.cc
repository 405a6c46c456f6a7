// Values below 16 have a bucket each; above, the top bit and the four bits after it name the
// bucket.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/distribution.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace dial9::analysis {

std::size_t Distribution::bucket_of(std::uint64_t value) {
  if (value < (std::uint64_t{1} << kSubBits)) {
    return static_cast<std::size_t>(value);
  }
  const auto top = static_cast<unsigned>(std::bit_width(value) - 1);
  const std::uint64_t sub = (value >> (top - kSubBits)) & ((1U << kSubBits) - 1);
  return (static_cast<std::size_t>(top - kSubBits + 1) << kSubBits) + static_cast<std::size_t>(sub);
}

std::uint64_t Distribution::lower_edge(std::size_t bucket) {
  const std::size_t group = bucket >> kSubBits;
  const std::uint64_t sub = bucket & ((std::size_t{1} << kSubBits) - 1);
  if (group == 0) {
    return sub;
  }
  return ((std::uint64_t{1} << kSubBits) + sub) << (group - 1);
}

void Distribution::count_in(std::size_t bucket) {
  if (!buckets_.empty()) {
    ++buckets_[bucket];
    return;
  }
  const auto at =
      std::lower_bound(few_.begin(), few_.end(), bucket,
                       [](const Few& one, std::size_t wanted) { return one.bucket < wanted; });
  if (at != few_.end() && at->bucket == bucket) {
    ++at->count;
  } else if (few_.size() < kMaxFew) {
    few_.insert(at, {bucket, 1});
  } else {
    buckets_.resize(kBuckets);
    for (const Few& one : few_) {
      buckets_[one.bucket] = one.count;
    }
    few_ = {};
    ++buckets_[bucket];
  }
}

void Distribution::add(std::uint64_t value) {
  count_in(bucket_of(value));
  ++count_;
  sum_ += value;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
}

std::uint64_t Distribution::quantile(double q) const {
  if (count_ == 0) {
    return 0;
  }
  const double wanted = std::ceil(q * static_cast<double>(count_));
  const auto rank = static_cast<std::uint64_t>(std::max(1.0, wanted));
  std::uint64_t seen = 0;
  for (const Few& one : few_) {
    seen += one.count;
    if (seen >= rank) {
      return std::clamp(lower_edge(one.bucket), min_, max_);
    }
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= rank) {
      return std::clamp(lower_edge(i), min_, max_);
    }
  }
  return max_;
}

}  // namespace dial9::analysis
