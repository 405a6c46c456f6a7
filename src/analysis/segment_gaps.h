// Segments of a run that are missing between two that are there: each tells its number in its
// metadata (`boot_id`, `segment.index`), and a recorder gives out no number twice and leaves none
// out; what a budget evicts are the oldest. So a gap is a loss, of unknown size. Segments may come
// in any order. Spec: docs/spec/events.md, "Process".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dial9::analysis {

// The cause of such a loss, as readers show it. No recorder writes it.
inline constexpr std::string_view kMissingSegments = "segments missing";
// Likewise, where a segment couldn't be read to its end and another of its run could.
inline constexpr std::string_view kDamagedSegment = "segment damaged";
// A recorder takes what a thread records slowly once a second: a segment has records that are older
// than its beginning, or than records before them.
inline constexpr std::uint64_t kOlderRecordsNs = 1'000'000'000;
// The cause under which a recorder tells that it was off: a stretch of which nothing is known, and
// no loss. In no sum, and no reason to call one unknown.
inline constexpr std::string_view kRecordingOff = "recording_off";

// Memory: 4,096 ranges; more aren't kept.
class SegmentGaps {
 public:
  struct Gap {
    std::uint64_t first_index = 0;  // of the segments that are missing
    std::uint64_t last_index = 0;
    std::uint64_t begin_ns = 0;  // they hold records from here
    std::uint64_t end_ns = 0;    // to here
  };

  // Metadata, stamped `at_ns`, of the segment `index` (its text; no number: not of a segment).
  void add(const std::string& run, std::string_view index, std::uint64_t at_ns);
  // Of all runs.
  std::vector<Gap> gaps() const;

 private:
  struct Range {
    std::uint64_t last = 0;
    std::uint64_t begin_ns = 0;  // of the first of them
    std::uint64_t end_ns = 0;    // of the last of them
  };
  using Ranges = std::map<std::uint64_t, Range>;  // by the first index

  static void merge_with_next(Ranges& ranges, Ranges::iterator at);

  std::map<std::string, Ranges> runs_;
  std::size_t count_ = 0;
};

}  // namespace dial9::analysis
