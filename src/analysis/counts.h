// Counts that a trace tells, of any size: sums and conversions that stop at the largest one instead
// of beginning anew at zero.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::analysis {

inline constexpr std::uint64_t kMostCount = ~std::uint64_t{0};

inline std::uint64_t sum_of(std::uint64_t a, std::uint64_t b) {
  return b > kMostCount - a ? kMostCount : a + b;
}

// The whole part; 0 of what is negative or no number.
inline std::uint64_t count_of(double value) {
  constexpr double kBeyond = 18446744073709551616.0;  // 2^64
  if (!(value > 0)) {
    return 0;
  }
  return value < kBeyond ? static_cast<std::uint64_t>(value) : kMostCount;
}

}  // namespace dial9::analysis
