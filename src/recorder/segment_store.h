// Where segments are kept: a directory (disk_store.h) or memory (memory_store.h). One active
// segment at a time; sealed ones are a ring under a byte budget. Strongest property: append() is
// all or nothing, so a segment never ends inside a stream. Spec: docs/spec/recorder.md, "Segments".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "dial9/recorder.h"

namespace dial9::internal {

// Used by the collector's thread only, but for the last group.
class SegmentStore {
 public:
  virtual ~SegmentStore() = default;

  // Begins segment `index`, making room for `reserve_bytes` in the budget first: the oldest go.
  virtual Result<void> open(std::uint64_t index, std::uint64_t reserve_bytes) = 0;
  virtual Result<void> append(std::span<const std::uint8_t> bytes) = 0;
  // The active segment becomes the newest sealed one.
  virtual Result<void> seal() = 0;
  // Gives up the active segment; whole streams of it stay where that costs nothing.
  virtual void abandon() = 0;
  // False if the active segment was taken away by someone else.
  virtual bool is_active_intact() = 0;

  // Everything that counts against the budget.
  virtual std::uint64_t bytes_held() const = 0;
  virtual std::uint64_t evicted() const = 0;

  // Any thread. Copies of the sealed segments, oldest first; none where they are files.
  virtual std::vector<SegmentBytes> sealed_segments() const = 0;
};

}  // namespace dial9::internal
