// Any bytes through gunzip, decoder and element cursor, whole and in chunks. Promises checked: no
// crash, no read outside the input (the sanitizers), views and counts that fit together, and the
// same result whatever the chunks.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "check.h"
#include "format/decoder.h"
#include "format/gunzip.h"
#include "format/value.h"

namespace dial9::fuzz {
namespace {

using format::FieldType;

constexpr std::uint64_t kMaxInflatedBytes = 2 * 1024 * 1024;  // inflate bombs cost time only

// A running hash of everything that the visitor is given.
class Digest {
 public:
  void add(std::uint64_t number) {
    for (int i = 0; i < 8; ++i) {
      add_byte(static_cast<std::uint8_t>(number >> (8 * i)));
    }
  }
  void add(std::string_view text) {
    add(text.size());
    for (const char c : text) {
      add_byte(static_cast<std::uint8_t>(c));
    }
  }
  std::uint64_t value() const { return hash_; }

 private:
  void add_byte(std::uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3; }
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

class CheckingVisitor final : public format::Visitor {
 public:
  const format::Decoder* decoder = nullptr;
  Digest digest;
  std::uint64_t events = 0;
  int ends = 0;

  void on_stream_start(std::uint64_t offset) override {
    note_offset(offset);
    digest.add("stream");
  }

  void on_schema(const format::Schema& schema) override {
    check(schema.index <= schemas_, "schema indices are dense");
    schemas_ = std::max(schemas_, schema.index + 1);
    digest.add(schema.name);
    for (const format::FieldDef& field : schema.fields) {
      digest.add(field.name);
      check(schema.find(field.name) >= 0, "a field is found by its name");
    }
    for (const format::Annotation& annotation : schema.annotations) {
      digest.add(annotation.field_index);
      digest.add(annotation.key);
      digest.add(annotation.value);
    }
  }

  bool on_event(const format::Event& event) override {
    note_offset(event.offset);
    ++events;
    check(event.values.size() == event.schema.fields.size(), "one value a field");
    check(event.schema.index < schemas_, "a schema is announced before its events");
    check(event.schema.has_timestamp || event.timestamp_ns == 0, "no time without a timestamp");
    digest.add(event.schema.index);
    digest.add(event.timestamp_ns);
    for (std::size_t i = 0; i < event.values.size(); ++i) {
      const format::FieldDef& field = event.schema.fields[i];
      check(event.values[i].type == field.type, "a value has its field's type");
      check(event.values[i].is_present || field.is_optional, "only optional fields are absent");
      visit(event.values[i], format::ElementCursor(event.values[i]));
    }
    return true;
  }

  void on_string(std::uint32_t id, std::string_view text) override {
    check(decoder->string(id) == text, "a string can be looked up");
    digest.add(text);
  }

  void on_stack(std::uint32_t id, std::span<const std::uint64_t> leaf_first) override {
    const auto found = decoder->stack(id);
    check(found && found->size() == leaf_first.size(), "a stack can be looked up");
    for (const std::uint64_t frame : leaf_first) {
      digest.add(frame);
    }
  }

  void on_end() override { ++ends; }

 private:
  void note_offset(std::uint64_t offset) {
    check(events == 0 || offset > last_offset_, "offsets grow");
    last_offset_ = offset;
  }

  void visit(const format::Value& value, format::ElementCursor cursor) {
    digest.add(static_cast<std::uint64_t>(value.type));
    digest.add(value.bits);
    if (!value.is_present) {
      check(value.bits == 0 && value.bytes.empty(), "an absent value is empty");
    } else if (format::is_container(value.type)) {
      while (cursor.next()) {
        if (cursor.is_map()) {
          visit(cursor.key(), format::ElementCursor(cursor.key(), cursor));
        }
        visit(cursor.value(), format::ElementCursor(cursor.value(), cursor));
      }
      check(cursor.is_ok() && cursor.remaining() == 0, "a decoded container is well-formed");
    } else if (value.type == FieldType::kPooledStackFrames) {
      check(decoder->stack(static_cast<std::uint32_t>(value.bits)).has_value(),
            "a referenced stack is defined");
    } else if (value.type == FieldType::kStackFrames) {
      check(value.bytes.size() == value.frame_count() * 8, "a stack is whole addresses");
    }
    digest.add(value.text());
  }

  std::uint32_t schemas_ = 0;
  std::uint64_t last_offset_ = 0;
};

struct Outcome {
  std::uint64_t digest = 0;
  format::DecodeStats stats;
  bool has_decoder_error = false;
  Error decoder_error{};
  bool is_gzip = false;
};

// Decodes in chunks of 1..max_chunk bytes, chosen by `seed`.
Outcome decode(std::span<const std::uint8_t> bytes, std::size_t max_chunk, std::uint64_t seed) {
  CheckingVisitor visitor;
  format::Decoder decoder(visitor);
  visitor.decoder = &decoder;
  std::uint64_t inflated_bytes = 0;
  format::Gunzip gunzip([&](std::span<const std::uint8_t> part) -> Result<void> {
    // Whole chunks only would make the bound depend on them.
    part = part.first(std::min<std::uint64_t>(part.size(), kMaxInflatedBytes - inflated_bytes));
    inflated_bytes += part.size();
    if (Result<void> fed = decoder.feed(part); !fed) {
      return fed;
    }
    return inflated_bytes < kMaxInflatedBytes
               ? Result<void>{}
               : Result<void>(make_error(ErrorCode::kLimit, "enough inflated"));
  });
  bool is_fed = true;
  while (!bytes.empty() && is_fed) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    const std::size_t step = std::min<std::size_t>(bytes.size(), 1 + (seed >> 33) % max_chunk);
    is_fed = gunzip.feed(bytes.first(step)).has_value();
    bytes = bytes.subspan(step);
  }
  (void)gunzip.finish();
  const Result<void> finished = decoder.finish();
  const Result<void> again = decoder.finish();
  check(finished.has_value() == again.has_value(), "finish() says the same again");

  Outcome outcome{visitor.digest.value(), decoder.stats(), !finished, {}, gunzip.is_gzip()};
  check(visitor.ends == 1, "on_end comes once");
  check(visitor.events == outcome.stats.events, "events are counted");
  check(outcome.stats.bytes_consumed <= inflated_bytes, "no more is consumed than was given");
  if (finished) {
    check(outcome.stats.bytes_consumed == inflated_bytes, "success means to the last byte");
  } else {
    outcome.decoder_error = finished.error();
    check(finished.error().offset >= outcome.stats.bytes_consumed &&
              finished.error().offset <= inflated_bytes,
          "an error's offset lies behind what was kept, inside the input");
  }
  return outcome;
}

}  // namespace
}  // namespace dial9::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using dial9::fuzz::check;
  const std::span<const std::uint8_t> bytes(data, size);
  std::uint64_t seed = size;
  for (const std::uint8_t byte : bytes) {
    seed = seed * 31 + byte;
  }
  const auto whole = dial9::fuzz::decode(bytes, ~std::size_t{0} >> 33, seed);
  for (const std::size_t max_chunk : {std::size_t{1}, std::size_t{2} + seed % 61}) {
    const auto chunked = dial9::fuzz::decode(bytes, max_chunk, seed);
    check(chunked.digest == whole.digest, "chunks don't change what is visited");
    check(chunked.stats == whole.stats, "chunks don't change what is kept");
    check(chunked.is_gzip == whole.is_gzip, "chunks don't change what is sniffed");
    check(chunked.has_decoder_error == whole.has_decoder_error &&
              chunked.decoder_error.code == whole.decoder_error.code &&
              chunked.decoder_error.offset == whole.decoder_error.offset &&
              chunked.decoder_error.message == whole.decoder_error.message,
          "chunks don't change the error");
  }
  return 0;
}
