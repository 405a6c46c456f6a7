// Unaligned little-endian loads and stores: the one place that knows the machine's byte order.
// Every function compiles to one move on a little-endian machine. No bounds checks: the caller has
// made sure that the bytes are there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dial9 {

// The `sizeof(T)` bytes at `from`, least significant first.
template <std::unsigned_integral T>
inline T load_le(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::big) {
    T swapped = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      swapped = static_cast<T>((swapped << 8) | ((value >> (8 * i)) & 0xff));
    }
    return swapped;
  } else {
    return value;
  }
}

// Writes `sizeof(T)` bytes to `to`, least significant first.
template <std::unsigned_integral T>
inline void store_le(std::uint8_t* to, T value) {
  if constexpr (std::endian::native == std::endian::big) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      to[i] = static_cast<std::uint8_t>(value >> (8 * i));
    }
  } else {
    std::memcpy(to, &value, sizeof value);
  }
}

}  // namespace dial9
