// Values of every type: fixed, varint, length-prefixed, and containers with an explicit stack of
// what is left at each level. See parse.h.
// SPDX-License-Identifier: Apache-2.0
#include "format/parse.h"

#include "base/bytes.h"
#include "base/varint.h"

namespace dial9::format {
namespace {

constexpr std::uint64_t kMinElementBytes = 2;  // a type byte and at least one byte of value

// A u32 count or length.
Parse take_u32(Input& in, std::uint32_t& out) {
  if (!in.has(sizeof out)) {
    return Parse::kNeedsMore;
  }
  out = load_le<std::uint32_t>(in.p);
  in.p += sizeof out;
  return Parse::kDone;
}

// A u32 count and as many units of `unit_bytes`.
Parse take_counted(Input& in, std::uint64_t unit_bytes, std::span<const std::uint8_t>& out) {
  std::uint32_t count = 0;
  if (const Parse result = take_u32(in, count); result != Parse::kDone) {
    return result;
  }
  const std::uint64_t bytes = count * unit_bytes;
  if (!in.has(bytes)) {
    return Parse::kNeedsMore;
  }
  out = {in.p, static_cast<std::size_t>(bytes)};
  in.p += bytes;
  return Parse::kDone;
}

// A StringMap from its count on.
Parse skip_string_map(Input& in) {
  std::uint32_t count = 0;
  if (const Parse result = take_u32(in, count); result != Parse::kDone) {
    return result;
  }
  std::uint64_t strings_left = std::uint64_t{count} * 2;
  while (strings_left > 0) {
    std::span<const std::uint8_t> ignored;
    --strings_left;
    if (const Parse result = take_counted(in, 1, ignored); result != Parse::kDone) {
      in.missing += strings_left * sizeof(std::uint32_t);
      return result;
    }
  }
  return Parse::kDone;
}

// What a DynamicList or DynamicMap counts, in typed values.
std::uint64_t typed_values(FieldType type, std::uint32_t count) {
  return type == FieldType::kDynamicMap ? std::uint64_t{count} * 2 : count;
}

// The levels of a list or map that is being skipped: how many typed values each still lacks.
class Levels {
 public:
  void push(std::uint64_t values) { left_[depth_++] = values; }
  // Leaves the levels that are complete and takes one value off the innermost other. False: none.
  bool take() {
    while (depth_ > 0 && left_[depth_ - 1] == 0) {
      --depth_;
    }
    if (depth_ == 0) {
      return false;
    }
    --left_[depth_ - 1];
    return true;
  }
  std::uint32_t depth() const { return depth_; }
  std::uint64_t min_bytes_left() const {
    std::uint64_t values = 0;
    for (std::uint32_t i = 0; i < depth_; ++i) {
      values += left_[i];
    }
    return values * kMinElementBytes;
  }

 private:
  std::uint64_t left_[kMaxNesting];
  std::uint32_t depth_ = 0;
};

// A DynamicList or DynamicMap from its count on; `depth` is its own level.
Parse skip_dynamic(Input& in, FieldType type, std::uint32_t depth, const StackPool* stacks) {
  std::uint32_t count = 0;
  if (const Parse result = take_u32(in, count); result != Parse::kDone) {
    return result;
  }
  Levels levels;
  levels.push(typed_values(type, count));
  while (levels.take()) {
    if (!in.has(1)) {
      in.missing = kMinElementBytes + levels.min_bytes_left();
      return Parse::kNeedsMore;
    }
    if (!is_known_type(*in.p)) {
      return in.fail(Parse::kUnknownType, in.p);
    }
    const std::uint8_t* const type_byte = in.p++;
    const auto element = static_cast<FieldType>(*type_byte);
    Parse result = Parse::kDone;
    if (element == FieldType::kDynamicList || element == FieldType::kDynamicMap) {
      if (depth + levels.depth() > kMaxNesting) {
        return in.fail(Parse::kTooDeep, type_byte);
      }
      result = take_u32(in, count);
      if (result == Parse::kDone) {
        levels.push(typed_values(element, count));
      }
    } else {
      Value ignored{};
      result = parse_value(in, element, depth + levels.depth(), stacks, ignored);
    }
    if (result != Parse::kDone) {
      in.missing += levels.min_bytes_left();
      return result;
    }
  }
  return Parse::kDone;
}

template <class T>
Parse take_fixed(Input& in, Value& out) {
  if (!in.has(sizeof(T))) {
    return Parse::kNeedsMore;
  }
  out.bits = load_le<T>(in.p);
  in.p += sizeof(T);
  return Parse::kDone;
}

Parse take_varint(Input& in, Value& out) {
  const DecodedVarint number = decode_varint(in.p, in.end);
  if (number.length > 0) {
    out.bits = number.value;
    in.p += number.length;
    return Parse::kDone;
  }
  if (number.length == DecodedVarint::kNeedsMore) {
    in.missing = 1;
    return Parse::kNeedsMore;
  }
  return in.fail(Parse::kBadVarint, in.p);
}

Parse take_stack_reference(Input& in, const StackPool* stacks, Value& out) {
  const std::uint8_t* const start = in.p;
  const Parse result = take_fixed<std::uint32_t>(in, out);
  if (result == Parse::kDone && stacks != nullptr &&
      !stacks->contains(static_cast<std::uint32_t>(out.bits))) {
    return in.fail(Parse::kUndefinedStack, start);
  }
  return result;
}

// A container from its count on: `bytes` of the value is all of it.
Parse take_container(Input& in, FieldType type, std::uint32_t depth, const StackPool* stacks,
                     Value& out) {
  const std::uint8_t* const start = in.p;
  if (depth > kMaxNesting) {
    return in.fail(Parse::kTooDeep, start);
  }
  const Parse result =
      type == FieldType::kStringMap ? skip_string_map(in) : skip_dynamic(in, type, depth, stacks);
  if (result == Parse::kDone) {
    out.bytes = {start, in.p};
  }
  return result;
}

}  // namespace

Parse parse_value(Input& in, FieldType type, std::uint32_t depth, const StackPool* stacks,
                  Value& out) {
  switch (type) {
    case FieldType::kI64:
    case FieldType::kF64:
      return take_fixed<std::uint64_t>(in, out);
    case FieldType::kBool: {
      const Parse result = take_fixed<std::uint8_t>(in, out);
      out.bits = out.bits != 0 ? 1 : 0;
      return result;
    }
    case FieldType::kString:
    case FieldType::kBytes:
      return take_counted(in, 1, out.bytes);
    case FieldType::kPooledStackFrames:
      return take_stack_reference(in, stacks, out);
    case FieldType::kPooledString:
    case FieldType::kU32:
      return take_fixed<std::uint32_t>(in, out);
    case FieldType::kStackFrames:
      return take_counted(in, sizeof(std::uint64_t), out.bytes);
    case FieldType::kVarint:
      return take_varint(in, out);
    case FieldType::kU8:
      return take_fixed<std::uint8_t>(in, out);
    case FieldType::kU16:
      return take_fixed<std::uint16_t>(in, out);
    case FieldType::kStringMap:
    case FieldType::kDynamicList:
    case FieldType::kDynamicMap:
      return take_container(in, type, depth, stacks, out);
  }
  return in.fail(Parse::kUnknownType, in.p);
}

}  // namespace dial9::format
