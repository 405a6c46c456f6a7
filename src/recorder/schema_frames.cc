// Schema frames for the chunk that first uses an event type: see schema_frames.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/schema_frames.h"

#include <cstring>

#include "format/wire.h"

namespace dial9::internal {
namespace {

const char* unit_text(Unit unit) {
  switch (unit) {
    case Unit::kNone:
      return nullptr;
    case Unit::kNs:
      return "ns";
    case Unit::kUs:
      return "us";
    case Unit::kMs:
      return "ms";
    case Unit::kSeconds:
      return "s";
    case Unit::kBytes:
      return "bytes";
    case Unit::kCount:
      return "count";
  }
  return nullptr;
}

const char* kind_text(Kind kind) {
  switch (kind) {
    case Kind::kNone:
      return nullptr;
    case Kind::kGauge:
      return "gauge";
    case Kind::kCounter:
      return "counter";
    case Kind::kUpDownCounter:
      return "updown-counter";
  }
  return nullptr;
}

const char* role_text(Role role) {
  switch (role) {
    case Role::kNone:
      return nullptr;
    case Role::kSpanStart:
      return "span.start";
    case Role::kSpanDuration:
      return "span.duration";
    case Role::kSpanName:
      return "span.name";
  }
  return nullptr;
}

// Calls visit(field index, key, value) for each annotation. A unit is written under both its keys:
// the ecosystem's older readers know only the second.
template <class Visit>
void for_each_annotation(const EventType& type, Visit visit) {
  for (std::uint16_t i = 0; i < type.field_count; ++i) {
    const FieldSpec& field = type.fields[i];
    if (const char* unit = unit_text(field.unit)) {
      visit(i, "unit", unit);
      visit(i, "metrique.unit", unit);
    }
    if (const char* kind = kind_text(field.kind)) visit(i, "kind", kind);
    if (const char* role = role_text(field.role)) visit(i, "dial9.role", role);
  }
}

std::uint8_t* put_text16(std::uint8_t* at, const char* text) {
  const std::size_t size = std::strlen(text);
  return put_block(put_raw(at, static_cast<std::uint16_t>(size)), text, size);
}

}  // namespace

std::size_t schema_frame_bytes(const EventType& type) noexcept {
  std::size_t bytes = 1 + 2 + 2 + std::strlen(type.name) + 1 + 2;
  for (std::uint16_t i = 0; i < type.field_count; ++i)
    bytes += 2 + std::strlen(type.fields[i].name) + 1;
  std::size_t annotations = 0;
  for_each_annotation(type, [&](std::uint16_t, const char* key, const char* value) {
    annotations += 2 + 2 + std::strlen(key) + 4 + std::strlen(value);
  });
  return bytes + (annotations == 0 ? 0 : 1 + 3 + 2 + annotations);  // 3: the longest varint type id
}

std::uint8_t* write_schema_frames(std::uint8_t* at, const EventType& type,
                                  std::uint32_t id) noexcept {
  *at++ = static_cast<std::uint8_t>(format::FrameTag::kSchema);
  at = put_raw(at, static_cast<std::uint16_t>(id));
  at = put_text16(at, type.name);
  *at++ = 1;  // every event has a timestamp
  at = put_raw(at, type.field_count);
  for (std::uint16_t i = 0; i < type.field_count; ++i) {
    at = put_text16(at, type.fields[i].name);
    *at++ = type.fields[i].wire_type;
  }
  std::uint16_t count = 0;
  for_each_annotation(type, [&](std::uint16_t, const char*, const char*) { ++count; });
  if (count == 0) return at;
  *at++ = static_cast<std::uint8_t>(format::FrameTag::kSchemaAnnotations);
  at = put_varint(at, id);
  at = put_raw(at, count);
  for_each_annotation(type, [&](std::uint16_t field, const char* key, const char* value) {
    at = put_text16(put_raw(at, field), key);
    const std::size_t size = std::strlen(value);
    at = put_block(put_raw(at, static_cast<std::uint32_t>(size)), value, size);
  });
  return at;
}

}  // namespace dial9::internal
