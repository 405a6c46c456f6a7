// The head of a recovered segment: clock pair, metadata, why it was made, and what was lost. And
// what a whole segment's bytes amount to. No files here. Spec: docs/spec/recorder.md, "Recovery".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/decoder.h"
#include "recorder/arena_reader.h"

namespace dial9::internal {

struct RecoveredHead {
  ArenaIdentity identity;
  std::vector<std::uint8_t> prologue;  // the run's own, from the journal; may be empty
  std::vector<ArenaLoss> lost;         // `count` less `told` of each is told
  std::uint64_t damaged_events = 0;
};

// A stream. The run's metadata, with `segment.sealed_clean` = false and `dial9.recovered` = why.
std::vector<std::uint8_t> recovered_head(const RecoveredHead& head);

// A stream that tells of `damaged_events`, for the segment's end.
std::vector<std::uint8_t> damage_report(const RecoveredHead& head);

// Takes every event; for segments that are read in pieces.
class EventCounter : public format::Visitor {
 public:
  bool on_event(const format::Event&) override { return true; }
};

}  // namespace dial9::internal
