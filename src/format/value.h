// Walks the values inside a StringMap, DynamicList or DynamicMap: a cursor over the encoded bytes
// that hands out one element after another as a Value. Never allocates, never recurses, never reads
// outside the bytes; nesting deeper than 64 and malformed bytes end the walk with is_ok() == false.
// Spec: docs/spec/trace_format.md, "Nested values".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "format/decoder.h"

namespace dial9::format {

// Usage:
//   for (ElementCursor cursor(value); cursor.next();) { use(cursor.key(), cursor.value()); }
// A container inside is walked with a cursor of its own: ElementCursor inner(cursor.value(),
// cursor). What the Decoder has handed out is well-formed; the cursor takes any bytes.
class ElementCursor {
 public:
  // `container`: a value of one of the three container types; of any other type, or absent: no
  // elements. Its bytes outlive the cursor and the values it hands out.
  explicit ElementCursor(const Value& container) : ElementCursor(container, 1) {}
  // The same for a container that was handed out by `parent`: counts one level deeper.
  ElementCursor(const Value& container, const ElementCursor& parent)
      : ElementCursor(container, parent.depth_ + 1) {}

  // Moves to the next element. False at the end, and where the bytes aren't well-formed.
  // Cost: linear in the element's bytes (a nested container is skipped over to find its end).
  bool next();

  // Of the element that next() moved to. key() is set for the two map types only (StringMap: a
  // String), and then valid; for lists it is an absent value.
  const Value& key() const { return key_; }
  const Value& value() const { return value_; }

  bool is_map() const { return type_ != FieldType::kDynamicList; }
  // How many elements are left by the container's own count.
  std::uint32_t remaining() const { return remaining_; }
  // False after next() met bytes that aren't well-formed, or a container nested too deep.
  bool is_ok() const { return is_ok_; }

 private:
  ElementCursor(const Value& container, std::uint32_t depth);

  FieldType type_;
  bool is_ok_ = true;
  std::uint32_t depth_;  // of this container; 1: a field's own
  std::uint32_t remaining_ = 0;
  const std::uint8_t* position_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  Value key_{};
  Value value_{};
};

// True for the three types that ElementCursor walks.
constexpr bool is_container(FieldType type) {
  return type == FieldType::kStringMap || type == FieldType::kDynamicList ||
         type == FieldType::kDynamicMap;
}

}  // namespace dial9::format
