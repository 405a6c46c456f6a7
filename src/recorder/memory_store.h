// Segments in memory, for hosts without a disk to write to.
// Strongest property: never more than the budget, the active segment included.
// Spec: docs/spec/recorder.md, "Segments".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <mutex>

#include "recorder/segment_store.h"

namespace dial9::internal {

class MemoryStore : public SegmentStore {
 public:
  explicit MemoryStore(std::uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  Result<void> open(std::uint64_t index, std::uint64_t reserve_bytes) override;
  Result<void> append(std::span<const std::uint8_t> bytes) override;
  Result<void> seal() override;
  void abandon() override;
  bool is_active_intact() override { return true; }
  std::uint64_t bytes_held() const override;
  std::uint64_t evicted() const override;
  std::vector<SegmentBytes> sealed_segments() const override;

 private:
  const std::uint64_t budget_bytes_;
  mutable std::mutex mutex_;  // guards all below
  std::deque<SegmentBytes> sealed_;
  SegmentBytes active_;
  std::uint64_t sealed_bytes_ = 0;
  std::uint64_t evicted_ = 0;
};

}  // namespace dial9::internal
