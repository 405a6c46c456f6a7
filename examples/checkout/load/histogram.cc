// Bucket arithmetic of the latency histogram: values below 2 * kSteps have a bucket each; above,
// the top kStepBits bits after the leading one choose the step within the power of two.
// SPDX-License-Identifier: Apache-2.0
#include "histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace checkout::load {

Histogram::Histogram() : counts_((64 - kStepBits) * kSteps + kSteps) {}

std::size_t Histogram::bucket_of(std::uint64_t value) {
  if (value < kSteps) return value;
  const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - 1 - kStepBits;
  return (shift + 1) * kSteps + ((value >> shift) - kSteps);
}

std::uint64_t Histogram::last_of(std::size_t bucket) {
  if (bucket < kSteps) return bucket;
  const std::size_t shift = bucket / kSteps - 1;
  const std::uint64_t first = (kSteps + bucket % kSteps) << shift;
  return first + ((std::uint64_t{1} << shift) - 1);
}

void Histogram::record(std::uint64_t value) {
  ++counts_[bucket_of(value)];
  ++count_;
  max_ = std::max(max_, value);
  sum_ += static_cast<double>(value);
}

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

double Histogram::mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

std::uint64_t Histogram::quantile(double quantile) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(std::clamp(quantile, 0.0, 1.0) * static_cast<double>(count_));
  const std::uint64_t rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(wanted));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    seen += counts_[bucket];
    if (seen >= rank) return std::min(last_of(bucket), max_);
  }
  return max_;
}

}  // namespace checkout::load
