// What the tests of format/ share: bytes written as hex, a visitor that writes down what it sees,
// and a trace that holds every frame and every field type.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/decoder.h"

namespace dial9::format::test {

using Bytes = std::vector<std::uint8_t>;

// "54 52 'ab' 00": pairs of hex digits and texts in single quotes; spaces and newlines are free.
Bytes hex(std::string_view text);

Bytes join(std::initializer_list<Bytes> parts);

inline const std::string_view kHeader = "54 52 43 00 01";

// One line a call of the visitor, with all that it was given; stops after `max_events`.
class Recorder final : public Visitor {
 public:
  std::vector<std::string> lines;
  std::size_t max_events = ~std::size_t{0};

  void on_stream_start(std::uint64_t offset) override;
  void on_schema(const Schema& schema) override;
  bool on_event(const Event& event) override;
  void on_string(std::uint32_t id, std::string_view text) override;
  void on_stack(std::uint32_t id, std::span<const std::uint64_t> leaf_first) override;
  void on_end() override;

  bool operator==(const Recorder& other) const { return lines == other.lines; }

 private:
  std::size_t events_ = 0;
};

// Text of a value as Recorder writes it.
std::string show(const Value& value);

// Two streams with every frame kind, every field type plain and optional (present and absent), all
// of them inside a nested list and map, annotations, and timestamps that need resets.
Bytes every_kind();

// What is left of a decode of `bytes` fed in pieces of `chunk_bytes` (0: whole).
struct Outcome {
  std::vector<std::string> lines;
  DecodeStats stats;
  ErrorCode code{};
  std::uint64_t offset = 0;
  std::string message;  // empty: no error
  bool operator==(const Outcome&) const = default;
};
Outcome decode(const Bytes& bytes, std::size_t chunk_bytes = 0);

}  // namespace dial9::format::test
