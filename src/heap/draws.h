// The gaps between samples: exponential draws, so that a byte is as likely a sample as any other.
// Strongest property: no call leaves this header (a lazily bound log() would run the dynamic
// linker inside malloc). Spec: docs/spec/heap_samples.md, "Which allocations".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace dial9::heap {

// SplitMix64.
inline std::uint64_t next_random(std::uint64_t* state) noexcept {
  std::uint64_t z = (*state += 0x9E37'79B9'7F4A'7C15);
  z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9;
  z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EB;
  return z ^ (z >> 31);
}

// Of a positive, normal number; within 1e-14 of it.
inline double natural_log(double x) noexcept {
  constexpr double kLn2 = 0.693147180559945309417;
  constexpr double kRoot = 1.41421356237309504880;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<double>(static_cast<int>(bits >> 52 & 0x7FF) - 1023);
  auto mantissa = std::bit_cast<double>((bits & 0x000F'FFFF'FFFF'FFFF) | 0x3FF0'0000'0000'0000);
  if (mantissa > kRoot) {
    mantissa *= 0.5;
    exponent += 1;
  }
  // ln m = 2 artanh((m - 1) / (m + 1)), whose argument is at most 0.172 here.
  const double t = (mantissa - 1) / (mantissa + 1);
  const double t2 = t * t;
  double sum = 0;
  for (int i = 19; i >= 1; i -= 2) sum = sum * t2 + 1.0 / i;
  return exponent * kLn2 + 2 * t * sum;
}

inline constexpr std::uint64_t kMostGap = std::uint64_t{1} << 45;

// Mean `rate_bytes`; 1 to kMostGap.
inline std::uint64_t draw_gap(std::uint64_t* state, std::uint64_t rate_bytes) noexcept {
  const double u = static_cast<double>((next_random(state) >> 11) + 1) * 0x1p-53;  // (0, 1]
  const double gap = -natural_log(u) * static_cast<double>(rate_bytes);
  if (gap >= static_cast<double>(kMostGap)) return kMostGap;
  return gap < 1 ? 1 : static_cast<std::uint64_t>(gap + 0.5);
}

}  // namespace dial9::heap
