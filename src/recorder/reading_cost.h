// How far apart readings of the kernel have to be that cost as much as the last ones did. Strongest
// property: one that was interrupted makes none seldom, since the least of the last four counts.
// Spec: docs/spec/events_ours.md, "Resources" and "Platform stalls".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace dial9::internal {

class ReadingCost {
 public:
  static constexpr std::uint64_t kMostNs = 60'000'000'000;
  static constexpr std::size_t kReadings = 4;

  // `share`: readings take at most this part of the time.
  explicit ReadingCost(std::uint64_t share) : share_(share) {}

  void note(std::uint64_t cost_ns) { last_ns_[next_++ % kReadings] = cost_ns; }
  // At most kMostNs; 0 until there were kReadings.
  std::uint64_t period_ns() const {
    const std::uint64_t least_ns = *std::min_element(last_ns_.begin(), last_ns_.end());
    return std::min(std::min(least_ns, kMostNs) * share_, kMostNs);
  }

 private:
  const std::uint64_t share_;
  std::array<std::uint64_t, kReadings> last_ns_{};
  std::size_t next_ = 0;
};

}  // namespace dial9::internal
