// Interning of schemas by the bytes of their frame, and what is worked out once for each.
// See schema_table.h.
// SPDX-License-Identifier: Apache-2.0
#include "format/schema_table.h"

#include "base/bytes.h"
#include "base/varint.h"
#include "format/wire.h"

namespace dial9::format {
namespace {

// The most bytes that a value of this type takes; 0: no bound.
constexpr std::size_t max_bytes(FieldType type) {
  switch (type) {
    case FieldType::kI64:
    case FieldType::kF64:
      return 8;
    case FieldType::kBool:
    case FieldType::kU8:
      return 1;
    case FieldType::kU16:
      return 2;
    case FieldType::kU32:
    case FieldType::kPooledString:
    case FieldType::kPooledStackFrames:
      return 4;
    case FieldType::kVarint:
      return kMaxVarintBytes;
    case FieldType::kString:
    case FieldType::kBytes:
    case FieldType::kStackFrames:
    case FieldType::kStringMap:
    case FieldType::kDynamicList:
    case FieldType::kDynamicMap:
      return 0;
  }
  return 0;
}

std::string_view take_name(const std::uint8_t*& p) {
  const std::uint16_t length = load_le<std::uint16_t>(p);
  const std::string_view name(reinterpret_cast<const char*>(p) + sizeof length, length);
  p += sizeof length + length;
  return name;
}

// Fills `type` from the body of a schema frame that has been checked.
void read_body(const std::uint8_t* p, EventType& type) {
  type.schema.name = take_name(p);
  type.schema.has_timestamp = *p++ != 0;
  const std::size_t count = load_le<std::uint16_t>(p);
  p += sizeof(std::uint16_t);
  type.schema.fields.reserve(count);
  type.wire_types.reserve(count);
  type.values.reserve(count);
  bool is_bounded = true;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view name = take_name(p);
    const std::uint8_t wire_type = *p++;
    const auto field_type = static_cast<FieldType>(wire_type & ~kOptionalBit);
    const bool is_optional = (wire_type & kOptionalBit) != 0;
    type.schema.fields.push_back(FieldDef{std::string(name), field_type, is_optional});
    type.wire_types.push_back(wire_type);
    type.values.push_back(Value{field_type, !is_optional, 0, {}});
    const std::size_t bound = max_bytes(field_type);
    is_bounded = is_bounded && bound != 0;
    if (is_bounded) {
      ++type.bounded_fields;
      type.bounded_bytes += bound + (is_optional ? 1 : 0);
    }
  }
}

}  // namespace

SchemaTable::Outcome SchemaTable::add(std::uint16_t type_id, std::span<const std::uint8_t> body) {
  const std::string_view key(reinterpret_cast<const char*>(body.data()), body.size());
  auto place = by_body_.lower_bound(key);
  const bool is_new = place == by_body_.end() || place->first != key;
  if (const EventType* const registered = find(type_id); registered != nullptr) {
    return !is_new && place->second.get() == registered ? Outcome::kKnown : Outcome::kConflict;
  }
  if (is_new) {
    auto type = std::make_unique<EventType>();
    type->schema.index = static_cast<std::uint32_t>(by_body_.size());
    read_body(body.data(), *type);
    bytes_ += sizeof(EventType) + 2 * key.size() +
              type->values.size() * (sizeof(FieldDef) + sizeof(Value) + 1);
    place = by_body_.emplace_hint(place, std::string(key), std::move(type));
  }
  if (type_id >= by_type_id_.size()) {
    by_type_id_.resize(std::size_t{type_id} + 1);
  }
  by_type_id_[type_id] = place->second.get();
  ids_in_stream_.push_back(type_id);
  return is_new ? Outcome::kNew : Outcome::kKnown;
}

bool SchemaTable::annotate(EventType& type, std::uint16_t field_index, std::string_view key,
                           std::string_view value) {
  std::vector<Annotation>& annotations = type.schema.annotations;
  const auto [position, is_new] = type.annotation_positions.try_emplace(
      std::pair(field_index, std::string(key)), annotations.size());
  if (is_new) {
    constexpr std::uint64_t kOverheadBytes = 2 * sizeof(Annotation) + 64;
    bytes_ += kOverheadBytes + 2 * key.size() + value.size();
    annotations.push_back(Annotation{field_index, std::string(key), std::string(value)});
    return true;
  }
  Annotation& known = annotations[position->second];
  if (known.value == value) {
    return false;
  }
  bytes_ += value.size() > known.value.size() ? value.size() - known.value.size() : 0;
  known.value = value;
  return true;
}

void SchemaTable::start_stream() {
  for (const std::uint16_t id : ids_in_stream_) {
    by_type_id_[id] = nullptr;
  }
  ids_in_stream_.clear();
}

}  // namespace dial9::format
