// Follows a chunk's stream frame by frame, so that a partly drained chunk can go on in a stream of
// its own: it keeps the definitions seen so far and the time base. Strongest property: it reads
// only what was committed and refuses what it can't follow. Spec: docs/spec/recorder.md,
// "Continuations".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace dial9::internal {

// One a chunk that is drained in parts. Collector's thread only.
class StreamScanner {
 public:
  // Takes the next whole frames (the first call: behind the stream header). False if they can't be
  // followed; the scanner is of no use then.
  bool scan(std::span<const std::uint8_t> frames);

  // What a stream that continues here begins with: header, every definition so far, the time base.
  std::vector<std::uint8_t> continuation() const;

  std::uint64_t base_ns() const { return base_ns_; }
  // Whole ones so far.
  std::uint64_t events() const { return events_; }

 private:
  class Cursor;
  bool scan_schema(Cursor& in);
  bool scan_event(Cursor& in);

  std::vector<std::uint8_t> definitions_;
  std::unordered_map<std::uint16_t, std::vector<std::uint8_t>> types_;  // id -> wire types
  std::uint64_t base_ns_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace dial9::internal
