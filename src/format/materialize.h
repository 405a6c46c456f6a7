// The decoder's owning form: a whole trace as vectors of schemas and events with every pool
// reference resolved. For tests and small tools; it costs some 20 times the bytes of the trace, so
// readers of real files use the Decoder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/decoder.h"

namespace dial9::format {

struct OwnedValue {
  FieldType type{};
  bool is_present = false;
  // A pool reference that the stream never defined (strings only; `text` is empty then).
  bool is_unresolved = false;
  std::uint64_t bits = 0;             // scalars and pool ids, as in Value
  std::string text;                   // String, Bytes and resolved PooledString
  std::vector<std::uint64_t> frames;  // StackFrames and PooledStackFrames, leaf first
  std::vector<OwnedValue> elements;   // containers; of maps key, value, key, value, ...
  bool operator==(const OwnedValue&) const = default;
};

struct OwnedEvent {
  std::uint32_t schema = 0;  // index into MaterializedTrace::schemas
  std::uint64_t timestamp_ns = 0;
  std::uint64_t offset = 0;
  std::vector<OwnedValue> values;
  bool operator==(const OwnedEvent&) const = default;
};

struct MaterializedTrace {
  std::vector<Schema> schemas;  // Schema::index is the position here
  std::vector<OwnedEvent> events;
  DecodeStats stats;
  std::optional<Error> error;  // why the decode stopped early; what is above was kept

  // The value of the field called `field` in `event`; nullptr if its schema has no such field.
  const OwnedValue* field(const OwnedEvent& event, std::string_view field) const;
};

// Decodes `bytes` (plain; gunzip.h undoes gzip) to the end or to the first error.
MaterializedTrace materialize(std::span<const std::uint8_t> bytes);

// The same, fed in pieces of `chunk_bytes` > 0: the result is equal whatever the size.
MaterializedTrace materialize(std::span<const std::uint8_t> bytes, std::size_t chunk_bytes);

}  // namespace dial9::format
