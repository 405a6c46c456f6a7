// The one decoder: a streaming visitor over trace bytes. Feed it chunks of any size; it hands out
// views into its input without copying (a frame that straddles two chunks is joined in a carry
// buffer). It never reads outside its input, never allocates more than a small multiple of the
// bytes it was given (plus a fixed 512 KiB at most) nor more than its limits, and never loops
// without consuming. Gzip is undone by gunzip.h before this.
// Spec: docs/spec/trace_format.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "format/wire.h"

namespace dial9::format {

// A free key and value about one field of a schema, for instance its unit.
struct Annotation {
  std::uint16_t field_index;  // as written: may lie beyond the schema's fields; readers skip those
  std::string key;
  std::string value;
  bool operator==(const Annotation&) const = default;
};

struct FieldDef {
  std::string name;  // UTF-8 by the spec, but kept as written: may be any bytes
  FieldType type;
  bool is_optional;
  bool operator==(const FieldDef&) const = default;
};

// One registered event type. Lives as long as its Decoder; its address is stable, and a type that
// is registered again in a later stream with the same name and fields gets the same Schema object
// (annotations merged: a later value for the same field and key replaces the earlier one), so
// readers resolve fields by name once a Schema, never once an event.
struct Schema {
  std::uint32_t index;  // dense, 0.. in order of first sight over the decoder's life
  std::string name;     // bytes as written, like the field names
  bool has_timestamp;
  std::vector<FieldDef> fields;
  std::vector<Annotation> annotations;

  // Position of the first field called `field_name`, or -1. Linear: call it once a schema.
  int find(std::string_view field_name) const;
  // The value of the annotation `key` of field `field_index`, or nullopt. Linear.
  std::optional<std::string_view> annotation(std::size_t field_index, std::string_view key) const;
};

// One value as it stands in the input. Scalars are in `bits` (I64 as two's complement, F64 as its
// IEEE bits, Bool 0/1, pool ids as is); String, Bytes, StackFrames, maps and lists are in `bytes`
// (String and Bytes: the payload; StackFrames: count × u64 little-endian; StringMap, DynamicList
// and DynamicMap: the encoded value from its count on, to be walked with value.h).
struct Value {
  FieldType type;
  bool is_present;  // false: an optional field without a value; bits and bytes are then zero
  std::uint64_t bits;
  std::span<const std::uint8_t> bytes;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  double f64() const { return std::bit_cast<double>(bits); }
  std::int64_t i64() const { return static_cast<std::int64_t>(bits); }
  // Of a StackFrames value: how many addresses, and the one at `i` < frame_count(), leaf first.
  std::size_t frame_count() const { return bytes.size() / sizeof(std::uint64_t); }
  std::uint64_t frame(std::size_t i) const {
    return load_le<std::uint64_t>(bytes.data() + i * sizeof(std::uint64_t));
  }
};

// One event; every view in it is valid during the callback only.
struct Event {
  const Schema& schema;
  std::uint64_t timestamp_ns;     // CLOCK_MONOTONIC; 0 if the schema has none
  std::span<const Value> values;  // in schema order, one a field
  std::uint64_t offset;           // of the frame's tag in the (inflated) input
};

// What the decoder calls, in input order. Views are valid during the call only.
class Visitor {
 public:
  virtual ~Visitor() = default;
  // A stream header: schemas' type ids, both pools and the timestamp base start anew. Pool ids seen
  // before belong to the stream before: during this call Decoder::string() and stack() still answer
  // for that one, so a visitor that resolves late does it here and in on_end.
  virtual void on_stream_start(std::uint64_t /*offset*/) {}
  // First sight of a Schema, and again whenever its annotations have changed.
  virtual void on_schema(const Schema&) {}
  // Returning false cancels the decode: feed() returns kCancelled.
  virtual bool on_event(const Event&) = 0;
  // A pool entry. An id may be defined again in the same stream; the later one counts from there
  // on.
  virtual void on_string(std::uint32_t /*id*/, std::string_view /*text*/) {}
  virtual void on_stack(std::uint32_t /*id*/, std::span<const std::uint64_t> /*leaf_first*/) {}
  // The input's end, good or bad; called once from finish() or from the feed() that failed. The
  // pools of the last stream still answer.
  virtual void on_end() {}
};

// What was decoded so far; after an error: what was kept.
struct DecodeStats {
  std::uint64_t bytes_consumed = 0;  // whole frames only
  std::uint64_t events = 0;
  std::uint64_t streams = 0;  // headers
  bool operator==(const DecodeStats&) const = default;
};

// What an input may make a decoder hold, however long it is: a small gzip file inflates to
// gigabytes.
struct DecodeLimits {
  std::uint64_t frame_bytes = std::uint64_t{64} << 20;  // of one frame
  // Of the pools of one stream and all schemas, as they lie in memory, with overhead.
  std::uint64_t held_bytes = std::uint64_t{512} << 20;
};

// Not thread-safe; one Decoder an input. No thread, file, clock or exception. Memory: the schemas,
// the pools of the current stream, and the longest frame that straddled two chunks; bounded by
// DecodeLimits.
// Cost: bench/decode `decode_events`; about 25 ns an event of four fields.
class Decoder {
 public:
  // `visitor` outlives the decoder.
  explicit Decoder(Visitor& visitor, DecodeLimits limits = {});
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Decodes as many whole frames as `bytes` completes; the input is this and all chunks before.
  // Errors: kCorrupt (not a trace, a frame or reference that breaks the format) and kUnsupported
  // (another version, an unknown frame or field type, nesting over 64), both with the offset of the
  // offending byte and, in the message, what was kept; kLimit (DecodeLimits), with the offset of
  // the frame; kCancelled if the visitor said so. After an error every further call returns the
  // same one; what was visited before stands.
  Result<void> feed(std::span<const std::uint8_t> bytes);

  // The end of the input. Errors: kTruncated with the offset of the unfinished frame if one is
  // pending (message: what was kept), kCorrupt if the input was empty, or the one of feed().
  // Further calls return the same.
  Result<void> finish();

  // Entries of the pools of the current stream; nullopt: not defined (strings may be, later). A
  // view stays valid until the next stream starts or its id is defined again.
  std::optional<std::string_view> string(std::uint32_t id) const;
  std::optional<std::span<const std::uint64_t>> stack(std::uint32_t id) const;

  DecodeStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dial9::format
