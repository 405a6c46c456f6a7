// Parses one header or frame at a time and tells the visitor. A frame takes effect only when all of
// it is there and right: each is checked to its end first, so that trying again with more bytes
// repeats nothing.
// Internal to format/. Spec: docs/spec/trace_format.md, "Frames".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "format/decoder.h"
#include "format/parse.h"
#include "format/pool.h"
#include "format/schema_table.h"

namespace dial9::format {

class FrameParser {
 public:
  FrameParser(Visitor& visitor, DecodeLimits limits) : visitor_(visitor), limits_(limits) {}

  // Takes the frame that starts at `in.p`, or leaves `in.p` where it is unless kDone. `offset`: of
  // the frame in the whole input.
  Parse parse(Input& in, std::uint64_t offset);

  const StringPool& strings() const { return strings_; }
  const StackPool& stacks() const { return stacks_; }
  std::uint64_t events() const { return events_; }
  std::uint64_t streams() const { return streams_; }
  const DecodeLimits& limits() const { return limits_; }

 private:
  Parse parse_header(Input& in, std::uint64_t offset);
  Parse parse_frame(Input& in, std::uint64_t offset);
  Parse parse_definitions(Input& in, FrameTag tag);
  Parse parse_schema(Input& in);
  Parse parse_event(Input& in, std::uint64_t offset);
  Parse parse_fields(Input& in, EventType& type);
  Parse parse_strings(Input& in);
  Parse parse_stacks(Input& in);
  Parse parse_reset(Input& in);
  Parse parse_annotations(Input& in);
  std::uint64_t held_bytes() const;
  const std::uint8_t* parse_bounded(const std::uint8_t* p, EventType& type) const;

  Visitor& visitor_;
  const DecodeLimits limits_;
  SchemaTable schemas_;
  StringPool strings_;
  StackPool stacks_;
  std::uint64_t base_ns_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t streams_ = 0;
};

}  // namespace dial9::format
