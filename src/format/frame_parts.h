// The pieces that frames other than events are made of: counted names, field definitions, pool
// entries, annotations. Each takes itself off an Input or says how much is missing.
// Internal to format/. Spec: docs/spec/trace_format.md, "Frames".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "format/parse.h"
#include "format/wire.h"

namespace dial9::format {

inline constexpr std::size_t kTypeIdBytes = 2;
inline constexpr std::size_t kDeltaBytes = 3;
inline constexpr std::size_t kEntryHeadBytes = 8;  // of a pool: u32 id, u32 length
inline constexpr std::size_t kMinFieldBytes = 3;   // of a schema: u16 length, u8 type
inline constexpr std::size_t kMinAnnotationBytes = 8;

inline std::string_view as_text(const std::uint8_t* p, std::size_t length) {
  return {reinterpret_cast<const char*>(p), length};
}

// A u16 length and as many bytes.
inline Parse take_short_text(Input& in, std::string_view& out) {
  if (!in.has(2)) {
    return Parse::kNeedsMore;
  }
  const std::uint16_t length = load_le<std::uint16_t>(in.p);
  if (!in.has(2u + length)) {
    return Parse::kNeedsMore;
  }
  out = as_text(in.p + 2, length);
  in.p += 2u + length;
  return Parse::kDone;
}

// A u16 count.
inline Parse take_count(Input& in, std::uint16_t& out) {
  if (!in.has(2)) {
    return Parse::kNeedsMore;
  }
  out = load_le<std::uint16_t>(in.p);
  in.p += 2;
  return Parse::kDone;
}

// Checks the fields of a schema frame, from their count on.
inline Parse skip_field_definitions(Input& in) {
  std::uint16_t count = 0;
  if (const Parse result = take_count(in, count); result != Parse::kDone) {
    return result;
  }
  for (std::uint16_t i = 0; i < count; ++i) {
    std::string_view name;
    Parse result = take_short_text(in, name);
    if (result == Parse::kDone && !in.has(1)) {
      result = Parse::kNeedsMore;
    }
    if (result != Parse::kDone) {
      in.missing += (count - i - 1u) * kMinFieldBytes;
      return result;
    }
    if (!is_known_type(*in.p & static_cast<std::uint8_t>(~kOptionalBit))) {
      return in.fail(Parse::kUnknownType, in.p);
    }
    ++in.p;
  }
  return Parse::kDone;
}

// Checks a pool frame from its count on; leaves `in.p` behind it.
inline Parse skip_pool_entries(Input& in, std::uint32_t& count, std::uint64_t unit_bytes) {
  if (!in.has(sizeof count)) {
    return Parse::kNeedsMore;
  }
  count = load_le<std::uint32_t>(in.p);
  in.p += sizeof count;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint64_t entry_bytes = kEntryHeadBytes;
    if (in.has(entry_bytes)) {
      entry_bytes += load_le<std::uint32_t>(in.p + 4) * unit_bytes;
    }
    if (!in.has(entry_bytes)) {
      in.missing += std::uint64_t{count - i - 1} * kEntryHeadBytes;
      return Parse::kNeedsMore;
    }
    in.p += entry_bytes;
  }
  return Parse::kDone;
}

struct AnnotationView {
  std::uint16_t field_index;
  std::string_view key;
  std::string_view value;
};

inline Parse take_annotation(Input& in, AnnotationView& out) {
  if (!in.has(kMinAnnotationBytes)) {
    return Parse::kNeedsMore;
  }
  out.field_index = load_le<std::uint16_t>(in.p);
  in.p += 2;
  if (const Parse result = take_short_text(in, out.key); result != Parse::kDone) {
    return result;
  }
  if (!in.has(4)) {
    return Parse::kNeedsMore;
  }
  const std::uint32_t length = load_le<std::uint32_t>(in.p);
  if (!in.has(4u + std::uint64_t{length})) {
    return Parse::kNeedsMore;
  }
  out.value = as_text(in.p + 4, length);
  in.p += 4u + std::size_t{length};
  return Parse::kDone;
}

}  // namespace dial9::format
