// The header and the six frames. Events, which are nearly all of a trace, have a fast path for
// their leading fields of bounded size: one bounds check for all of them. See frame_parser.h.
// SPDX-License-Identifier: Apache-2.0
#include "format/frame_parser.h"

#include <bit>
#include <cstring>
#include <limits>

#include "base/bytes.h"
#include "base/varint.h"
#include "format/frame_parts.h"
#include "format/wire.h"

namespace dial9::format {
namespace {

// Reads a varint of which kMaxVarintBytes bytes may be read. nullptr: malformed.
inline const std::uint8_t* take_varint_unchecked(const std::uint8_t* p, std::uint64_t& out) {
  std::uint64_t word = load_le<std::uint64_t>(p);
  if ((word & 0x80) == 0) {
    out = word & 0x7f;
    return p + 1;
  }
  const std::uint64_t stops = ~word & 0x8080808080808080;
  if (stops == 0) {
    const DecodedVarint number = decode_varint(p, p + kMaxVarintBytes);
    out = number.value;
    return number.length > 0 ? p + number.length : nullptr;
  }
  // Keep the bytes up to the first without a continuation bit, then close the gaps of one bit.
  word &= (stops ^ (stops - 1)) & 0x7f7f7f7f7f7f7f7f;
  word = (word & 0x007f007f007f007f) | ((word & 0x7f007f007f007f00) >> 1);
  word = (word & 0x00003fff00003fff) | ((word & 0x3fff00003fff0000) >> 2);
  out = (word & 0x000000000fffffff) | ((word & 0x0fffffff00000000) >> 4);
  return p + (std::countr_zero(stops) + 1) / 8;
}

}  // namespace

Parse FrameParser::parse(Input& in, std::uint64_t offset) {
  const std::uint8_t* const start = in.p;
  const std::uint8_t* const end = in.end;
  // A frame sees no more than it may have, so that chunks of any size give the same result.
  const bool is_longer = in.available() > limits_.frame_bytes;
  if (is_longer) {
    in.end = start + limits_.frame_bytes;
  }
  Parse result = parse_frame(in, offset);
  in.end = end;
  if (result == Parse::kDone) {
    return result;
  }
  if (result == Parse::kNeedsMore && is_longer) {
    result = in.fail(Parse::kFrameTooLarge, start);
  }
  in.p = start;
  return result;
}

std::uint64_t FrameParser::held_bytes() const {
  return strings_.bytes() + stacks_.bytes() + schemas_.bytes();
}

Parse FrameParser::parse_frame(Input& in, std::uint64_t offset) {
  if (!in.has(1)) {
    return Parse::kNeedsMore;
  }
  if (streams_ == 0 || *in.p == kMagic[0]) {
    return parse_header(in, offset);
  }
  const auto tag = static_cast<FrameTag>(*in.p);
  if (tag == FrameTag::kEvent) {
    return parse_event(in, offset);
  }
  if (tag == FrameTag::kTimestampReset) {
    return parse_reset(in);
  }
  const std::uint8_t* const start = in.p;
  const Parse result = parse_definitions(in, tag);
  if (result == Parse::kDone && held_bytes() > limits_.held_bytes) {
    return in.fail(Parse::kHoldsTooMuch, start);
  }
  return result;
}

Parse FrameParser::parse_definitions(Input& in, FrameTag tag) {
  switch (tag) {
    case FrameTag::kSchema:
      return parse_schema(in);
    case FrameTag::kStringPool:
      return parse_strings(in);
    case FrameTag::kStackPool:
      return parse_stacks(in);
    case FrameTag::kSchemaAnnotations:
      return parse_annotations(in);
    default:
      return in.fail(Parse::kUnknownFrame, in.p);
  }
}

Parse FrameParser::parse_header(Input& in, std::uint64_t offset) {
  for (std::size_t i = 0; i < sizeof kMagic; ++i) {
    if (!in.has(i + 1)) {
      in.missing = kHeaderBytes - i;
      return Parse::kNeedsMore;
    }
    if (in.p[i] != kMagic[i]) {
      return in.fail(streams_ == 0 ? Parse::kBadHeader : Parse::kBadLaterHeader, in.p + i);
    }
  }
  if (!in.has(kHeaderBytes)) {
    return Parse::kNeedsMore;
  }
  if (in.p[sizeof kMagic] != kVersion) {
    return in.fail(Parse::kBadVersion, in.p + sizeof kMagic);
  }
  in.p += kHeaderBytes;
  visitor_.on_stream_start(offset);
  schemas_.start_stream();
  strings_.clear();
  stacks_.clear();
  base_ns_ = 0;
  ++streams_;
  return Parse::kDone;
}

Parse FrameParser::parse_schema(Input& in) {
  const std::uint8_t* const tag = in.p;
  ++in.p;
  if (!in.has(kTypeIdBytes)) {
    return Parse::kNeedsMore;
  }
  const std::uint16_t type_id = load_le<std::uint16_t>(in.p);
  in.p += kTypeIdBytes;
  const std::uint8_t* const body = in.p;
  std::string_view name;
  if (const Parse result = take_short_text(in, name); result != Parse::kDone) {
    return result;
  }
  if (!in.has(1)) {
    return Parse::kNeedsMore;
  }
  if (*in.p > 1) {
    return in.fail(Parse::kBadFlag, in.p);
  }
  ++in.p;
  if (const Parse result = skip_field_definitions(in); result != Parse::kDone) {
    return result;
  }
  switch (schemas_.add(type_id, {body, in.p})) {
    case SchemaTable::Outcome::kNew:
      visitor_.on_schema(schemas_.find(type_id)->schema);
      break;
    case SchemaTable::Outcome::kKnown:
      break;
    case SchemaTable::Outcome::kConflict:
      return in.fail(Parse::kTypeIdConflict, tag);
  }
  return Parse::kDone;
}

Parse FrameParser::parse_event(Input& in, std::uint64_t offset) {
  if (!in.has(1 + kTypeIdBytes)) {
    return Parse::kNeedsMore;
  }
  EventType* const type = schemas_.find(load_le<std::uint16_t>(in.p + 1));
  if (type == nullptr) {
    return in.fail(Parse::kUnknownTypeId, in.p + 1);
  }
  in.p += 1 + kTypeIdBytes;
  std::uint64_t timestamp_ns = 0;
  if (type->schema.has_timestamp) {
    if (!in.has(kDeltaBytes)) {
      return Parse::kNeedsMore;
    }
    const std::uint32_t delta_ns =
        load_le<std::uint16_t>(in.p) | static_cast<std::uint32_t>(in.p[2]) << 16;
    if (base_ns_ > std::numeric_limits<std::uint64_t>::max() - delta_ns) {
      return in.fail(Parse::kTimeOverflow, in.p);
    }
    timestamp_ns = base_ns_ + delta_ns;
    in.p += kDeltaBytes;
  }
  if (const Parse result = parse_fields(in, *type); result != Parse::kDone) {
    return result;
  }
  if (type->schema.has_timestamp) {
    base_ns_ = timestamp_ns;
  }
  ++events_;
  if (!visitor_.on_event(Event{type->schema, timestamp_ns, type->values, offset})) {
    return in.fail(Parse::kCancelled, in.p);
  }
  return Parse::kDone;
}

Parse FrameParser::parse_fields(Input& in, EventType& type) {
  std::size_t i = 0;
  if (in.available() >= type.bounded_bytes) {
    if (const std::uint8_t* const behind = parse_bounded(in.p, type); behind != nullptr) {
      in.p = behind;
      i = type.bounded_fields;
    }
  }
  const std::size_t count = type.values.size();
  for (; i < count; ++i) {
    const std::uint8_t wire_type = type.wire_types[i];
    Value& value = type.values[i];
    Parse result = Parse::kDone;
    if ((wire_type & kOptionalBit) != 0) {
      if (!in.has(1)) {
        in.missing += count - i - 1;
        return Parse::kNeedsMore;
      }
      if (*in.p > 1) {
        return in.fail(Parse::kBadFlag, in.p);
      }
      value.is_present = *in.p++ != 0;
      if (!value.is_present) {
        value.bits = 0;
        value.bytes = {};
        continue;
      }
    }
    result = parse_value(in, value.type, 1, &stacks_, value);
    if (result != Parse::kDone) {
      in.missing += count - i - 1;  // each further field takes a byte at least
      return result;
    }
  }
  return Parse::kDone;
}

// Parses the leading fields of bounded size without bounds checks; `p` has type.bounded_bytes.
// Returns what is behind them, or nullptr if anything is wrong: the checked path then says what.
const std::uint8_t* FrameParser::parse_bounded(const std::uint8_t* p, EventType& type) const {
  Value* value = type.values.data();
  const std::uint8_t* wire_type = type.wire_types.data();
  for (std::size_t left = type.bounded_fields; left > 0; --left, ++value, ++wire_type) {
    if ((*wire_type & kOptionalBit) != 0) {
      const std::uint8_t flag = *p++;
      if (flag > 1) {
        return nullptr;
      }
      value->is_present = flag != 0;
      if (flag == 0) {
        value->bits = 0;
        continue;
      }
    }
    switch (value->type) {
      case FieldType::kVarint:
        p = take_varint_unchecked(p, value->bits);
        if (p == nullptr) {
          return nullptr;
        }
        break;
      case FieldType::kU8:
        value->bits = *p++;
        break;
      case FieldType::kBool:
        value->bits = *p++ != 0 ? 1 : 0;
        break;
      case FieldType::kU16:
        value->bits = load_le<std::uint16_t>(p);
        p += 2;
        break;
      case FieldType::kPooledStackFrames:
        if (!stacks_.contains(load_le<std::uint32_t>(p))) {
          return nullptr;
        }
        [[fallthrough]];
      case FieldType::kU32:
      case FieldType::kPooledString:
        value->bits = load_le<std::uint32_t>(p);
        p += 4;
        break;
      default:  // I64, F64: all others have no bound
        value->bits = load_le<std::uint64_t>(p);
        p += 8;
        break;
    }
  }
  return p;
}

Parse FrameParser::parse_strings(Input& in) {
  const std::uint8_t* entry = ++in.p + sizeof(std::uint32_t);
  std::uint32_t count = 0;
  if (const Parse result = skip_pool_entries(in, count, 1); result != Parse::kDone) {
    return result;
  }
  for (; count > 0; --count) {
    const std::uint32_t id = load_le<std::uint32_t>(entry);
    const std::uint32_t length = load_le<std::uint32_t>(entry + 4);
    entry += kEntryHeadBytes;
    const std::span<char> text = strings_.define(id, length);
    std::memcpy(text.data(), entry, length);
    entry += length;
    visitor_.on_string(id, {text.data(), text.size()});
  }
  return Parse::kDone;
}

Parse FrameParser::parse_stacks(Input& in) {
  const std::uint8_t* entry = ++in.p + sizeof(std::uint32_t);
  std::uint32_t count = 0;
  if (const Parse result = skip_pool_entries(in, count, sizeof(std::uint64_t));
      result != Parse::kDone) {
    return result;
  }
  for (; count > 0; --count) {
    const std::uint32_t id = load_le<std::uint32_t>(entry);
    const std::uint32_t length = load_le<std::uint32_t>(entry + 4);
    entry += kEntryHeadBytes;
    const std::span<std::uint64_t> frames = stacks_.define(id, length);
    for (std::uint64_t& frame : frames) {
      frame = load_le<std::uint64_t>(entry);
      entry += sizeof frame;
    }
    visitor_.on_stack(id, frames);
  }
  return Parse::kDone;
}

Parse FrameParser::parse_reset(Input& in) {
  if (!in.has(1 + sizeof base_ns_)) {
    return Parse::kNeedsMore;
  }
  base_ns_ = load_le<std::uint64_t>(in.p + 1);
  in.p += 1 + sizeof base_ns_;
  return Parse::kDone;
}

Parse FrameParser::parse_annotations(Input& in) {
  ++in.p;
  const DecodedVarint type_id = decode_varint(in.p, in.end);
  if (type_id.length == DecodedVarint::kNeedsMore) {
    in.missing = 1;
    return Parse::kNeedsMore;
  }
  if (type_id.length == DecodedVarint::kMalformed) {
    return in.fail(Parse::kBadVarint, in.p);
  }
  in.p += type_id.length;
  std::uint16_t count = 0;
  if (const Parse result = take_count(in, count); result != Parse::kDone) {
    return result;
  }
  Input entries{in.p, in.end};
  AnnotationView annotation{};
  for (std::uint16_t i = 0; i < count; ++i) {
    if (const Parse result = take_annotation(in, annotation); result != Parse::kDone) {
      in.missing += (count - i - 1u) * kMinAnnotationBytes;
      return result;
    }
  }
  EventType* const type = type_id.value <= std::numeric_limits<std::uint16_t>::max()
                              ? schemas_.find(static_cast<std::uint16_t>(type_id.value))
                              : nullptr;
  if (type == nullptr) {
    return Parse::kDone;  // nothing to attach them to
  }
  bool is_changed = false;
  for (std::uint16_t i = 0; i < count; ++i) {
    take_annotation(entries, annotation);
    is_changed |=
        schemas_.annotate(*type, annotation.field_index, annotation.key, annotation.value);
  }
  if (is_changed) {
    visitor_.on_schema(type->schema);
  }
  return Parse::kDone;
}

}  // namespace dial9::format
