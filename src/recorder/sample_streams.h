// What the encoders of samples share: finished streams of some 64 KiB each, made of events whose
// schema is written before the first of its type, and the optional fields that most have.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "format/encoder.h"
#include "recorder/stream_source.h"

namespace dial9::internal {

// One thread at a time.
class SampleStreams {
 public:
  // Writes the schema of `type`, a number of the caller's own, below kTypes.
  using AddSchema = void (*)(format::Encoder& out, std::uint16_t type);
  static constexpr std::uint16_t kTypes = 8;

  explicit SampleStreams(AddSchema add_schema) : add_schema_(add_schema) {}

  // Begins an event; its fields are written to what is returned. It is whole in one stream.
  format::Encoder& begin(std::uint16_t type, std::uint64_t at_ns);
  // All since the last call.
  std::vector<SourceStream> take();

 private:
  void close();

  AddSchema add_schema_;
  format::Encoder out_;
  StreamInfo info_;
  bool has_schema_[kTypes] = {};
  std::vector<SourceStream> done_;
};

void put_optional(format::Encoder& out, std::optional<std::uint64_t> value);
// 0: absent.
void put_id(format::Encoder& out, std::uint64_t id);
// A pooled string. Empty: absent, unless `is_present`.
void put_text(format::Encoder& out, std::string_view text, bool is_present);
void put_text(format::Encoder& out, std::string_view text);

}  // namespace dial9::internal
