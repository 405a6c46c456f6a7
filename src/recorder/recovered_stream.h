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

// What streams say of the run: its clock pair and its metadata, as last written; and their stamps.
struct RunFacts {
  std::uint64_t pair_ns = 0;  // 0: not known
  std::uint64_t pair_realtime_ns = 0;
  std::vector<std::pair<std::string, std::string>> entries;
  std::uint64_t last_ns = 0;  // the latest stamp
};

// Events that are missing, nobody knows how many: between two moments, 0 where those aren't known.
struct UnknownLoss {
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
  const char* cause = "damaged";
};

struct RecoveredHead {
  std::uint64_t index = 0;             // of the segment that it begins
  ArenaIdentity identity;              // pid 0: not known
  RunFacts of_segments;                // what a prologue is missing for
  std::vector<std::uint8_t> prologue;  // the run's own, from the journal; may be empty
  std::vector<ArenaLoss> lost;         // `count` less `told` of each is told
  ShedRaises raises;                   // rates that threads raised last
  std::uint64_t damaged_events = 0;
  std::vector<UnknownLoss> unknown;
};

// A stream. The run's metadata, with `segment.sealed_clean` = false and `dial9.recovered` = why.
std::vector<std::uint8_t> recovered_head(const RecoveredHead& head);

// A stream that tells of `damaged_events` and of `unknown`, for the segment's end.
std::vector<std::uint8_t> damage_report(const RecoveredHead& head);

// Takes every event and keeps what it says of the run; for segments that are read in pieces.
class RunFactsReader : public format::Visitor {
 public:
  RunFacts facts;
  bool on_event(const format::Event& event) override;
};

}  // namespace dial9::internal
