// Writes trace streams frame by frame into a growing buffer: for segment metadata, the symbolize
// stage, tests and tools. Whatever is called in whatever order, data() is a valid stream: a call
// that breaks a schema's order drops the event it is in and says so in misuse().
// The hot path doesn't use it: it writes the same bytes by itself, see include/dial9/event.h.
// Spec: docs/spec/trace_format.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "format/wire.h"

namespace dial9::format {

struct FieldSpec {
  std::string_view name;
  FieldType type;
  bool is_optional = false;
};

// Appends streams, each from its header on, to one buffer. Not thread-safe. Allocates.
class Encoder {
 public:
  Encoder();  // starts with a stream header
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;

  // Another stream header: schemas, pools and the time base start anew, as they do for the reader.
  void new_stream();

  // Registers an event type under `type_id`. Again with the same content: no effect; with another:
  // misuse. Names are at most 65,535 bytes, fields at most 65,535.
  void schema(std::uint16_t type_id, std::string_view name, bool has_timestamp,
              std::span<const FieldSpec> fields);
  void schema(std::uint16_t type_id, std::string_view name, bool has_timestamp,
              std::initializer_list<FieldSpec> fields) {
    schema(type_id, name, has_timestamp, std::span(fields.begin(), fields.size()));
  }

  struct AnnotationSpec {
    std::uint16_t field_index;
    std::string_view key;    // at most 65,535 bytes
    std::string_view value;  // at most 4 GiB - 1
  };
  // Annotates a type that schema() has registered; at most 65,535 entries a call.
  void annotations(std::uint16_t type_id, std::span<const AnnotationSpec> entries);
  void annotations(std::uint16_t type_id, std::initializer_list<AnnotationSpec> entries) {
    annotations(type_id, std::span(entries.begin(), entries.size()));
  }

  // The pool id of `text` in this stream; writes a pool frame at first use. May be called between
  // the fields of an event: the frame then goes in front of that event.
  std::uint32_t intern(std::string_view text);
  std::uint32_t intern_stack(std::span<const std::uint64_t> leaf_first);
  // Writes a pool entry under an id of the caller's choice. intern() keeps clear of such ids.
  void define_string(std::uint32_t id, std::string_view text);
  void define_stack(std::uint32_t id, std::span<const std::uint64_t> leaf_first);

  // An event: begin, then one call a field in schema order; it is complete with its last field.
  // `begin` is for types with a timestamp and writes a reset frame where the delta doesn't fit;
  // `begin_untimed` for those without.
  void begin(std::uint16_t type_id, std::uint64_t timestamp_ns);
  void begin_untimed(std::uint16_t type_id);
  void absent();   // an optional field without a value
  void present();  // before the value of an optional field that has one
  void i64(std::int64_t v);
  void f64(double v);
  void boolean(bool v);
  void string(std::string_view v);
  void bytes(std::span<const std::uint8_t> v);
  void pooled_string(std::string_view v);                        // interns
  void pooled_stack(std::span<const std::uint64_t> leaf_first);  // interns
  void pool_id(std::uint32_t id);  // of either pool; a stack's must be defined
  void stack_frames(std::span<const std::uint64_t> leaf_first);
  void varint(std::uint64_t v);
  void u8(std::uint8_t v);
  void u16(std::uint16_t v);
  void u32(std::uint32_t v);
  void string_map(std::span<const std::pair<std::string_view, std::string_view>> entries);
  void string_map(std::initializer_list<std::pair<std::string_view, std::string_view>> entries) {
    string_map(std::span(entries.begin(), entries.size()));
  }
  // Lists and maps: the count, then for each element `element(type)` and its value by the calls
  // above (a map: key and value in turn, each with its type). At most 64 levels.
  void list(std::uint32_t count);
  void map(std::uint32_t count);
  void element(FieldType type);

  // The whole frames so far; an event that isn't complete is not in it. The view is valid until the
  // next call.
  std::span<const std::uint8_t> data() const;
  // Hands the bytes over and starts again with a new stream. An incomplete event is dropped.
  std::vector<std::uint8_t> take();

  // The first misuse since the last take(), or empty: a static text for a developer.
  std::string_view misuse() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dial9::format
