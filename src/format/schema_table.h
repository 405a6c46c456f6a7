// The schemas of an input: one stable object for each distinct name and field list, whatever
// streams and type ids it comes under, and the type ids of the current stream.
// Internal to format/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/decoder.h"

namespace dial9::format {

// A schema with what the decoder works out once for it.
struct EventType {
  Schema schema;
  std::vector<std::uint8_t> wire_types;  // one a field, with the optional bit
  // What an event's values are parsed into; type and (where not optional) is_present stand already.
  std::vector<Value> values;
  // The fields up to the first of unbounded size, and the most bytes that they can take.
  std::size_t bounded_fields = 0;
  std::size_t bounded_bytes = 0;
  // Position in schema.annotations by field and key.
  std::map<std::pair<std::uint16_t, std::string>, std::size_t> annotation_positions;
};

class SchemaTable {
 public:
  // The type under `type_id` in the current stream, or nullptr.
  EventType* find(std::uint16_t type_id) const {
    return type_id < by_type_id_.size() ? by_type_id_[type_id] : nullptr;
  }

  enum class Outcome : std::uint8_t { kNew, kKnown, kConflict };
  // Registers a schema. `body`: the frame from the length of the name on, whole and valid.
  // kNew: first sight over all streams; kConflict: the id stands for another one in this stream.
  Outcome add(std::uint16_t type_id, std::span<const std::uint8_t> body);

  // Adds an annotation or replaces its value. Returns whether anything changed.
  bool annotate(EventType& type, std::uint16_t field_index, std::string_view key,
                std::string_view value);

  // What the schemas take of memory, about.
  std::uint64_t bytes() const { return bytes_; }

  // Forgets the type ids; the schemas stay.
  void start_stream();

 private:
  std::map<std::string, std::unique_ptr<EventType>, std::less<>> by_body_;
  std::vector<EventType*> by_type_id_;
  std::vector<std::uint16_t> ids_in_stream_;
  std::uint64_t bytes_ = 0;
};

}  // namespace dial9::format
