// Unsigned LEB128: 7 bits a byte, least significant first, the top bit says that more follow; at
// most 10 bytes for 64 bits. Header-only, constexpr, never reads past `end`, never allocates.
// Spec: docs/spec/trace_format.md, "Numbers".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace dial9 {

inline constexpr std::size_t kMaxVarintBytes = 10;

// How many bytes encode_varint writes for `value`: 1..10.
constexpr std::size_t varint_size(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

// Writes the shortest encoding of `value` to `out`, which has room for varint_size(value) bytes.
// Returns the number of bytes written.
constexpr std::size_t encode_varint(std::uint64_t value, std::uint8_t* out) {
  std::size_t length = 0;
  while (value >= 0x80) {
    out[length++] = static_cast<std::uint8_t>(value | 0x80);
    value >>= 7;
  }
  out[length++] = static_cast<std::uint8_t>(value);
  return length;
}

struct DecodedVarint {
  static constexpr int kNeedsMore = 0;   // the input ends inside the number
  static constexpr int kMalformed = -1;  // more than 64 bits
  std::uint64_t value;
  int length;  // bytes read, 1..10, or one of the two above
};

// Reads one number from [p, end). Encodings with needless zero groups are taken, up to 10 bytes.
constexpr DecodedVarint decode_varint(const std::uint8_t* p, const std::uint8_t* end) {
  std::uint64_t value = 0;
  const std::ptrdiff_t available = end - p;
  for (int i = 0; i < static_cast<int>(kMaxVarintBytes); ++i) {
    if (i >= available) {
      return {0, DecodedVarint::kNeedsMore};
    }
    const std::uint8_t byte = p[i];
    if (i == 9 && byte > 1) {
      return {0, DecodedVarint::kMalformed};
    }
    value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      return {value, i + 1};
    }
  }
  return {0, DecodedVarint::kMalformed};
}

}  // namespace dial9
