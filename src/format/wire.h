// The constants of trace format version 1: magic, frame tags, field types, limits. No code.
// Spec: docs/spec/trace_format.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::format {

inline constexpr std::uint8_t kMagic[4] = {0x54, 0x52, 0x43, 0x00};  // "TRC\0"
inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::uint32_t kHeaderBytes = 5;

enum class FrameTag : std::uint8_t {
  kSchema = 0x01,
  kEvent = 0x02,
  kStringPool = 0x03,
  kStackPool = 0x04,
  kTimestampReset = 0x05,
  kSchemaAnnotations = 0x06,
};

enum class FieldType : std::uint8_t {
  kI64 = 1,
  kF64 = 2,
  kBool = 3,
  kString = 4,
  kBytes = 5,
  kPooledStackFrames = 6,
  kPooledString = 7,
  kStackFrames = 8,
  kVarint = 9,
  kStringMap = 10,
  kU8 = 11,
  kU16 = 12,
  kU32 = 13,
  kDynamicList = 14,
  kDynamicMap = 15,
};

inline constexpr std::uint8_t kLastFieldType = 15;
inline constexpr std::uint8_t kOptionalBit = 0x80;        // in a schema's type byte
inline constexpr std::uint32_t kMaxDeltaNs = 16'777'215;  // what the u24 of an event frame holds
inline constexpr std::uint32_t kMaxNesting = 64;          // levels of containers in one field

}  // namespace dial9::format
