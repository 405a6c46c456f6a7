// Heap samples as a stream: AllocEvents with their stacks pooled, FreeEvents, and a
// HeapProfileEvent that says what they stand for. Strongest property: what was lost is said in the
// ecosystem's event as well as in ours. Spec: docs/spec/heap_samples.md, "Events".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "recorder/labels.h"
#include "recorder/sample_streams.h"

namespace dial9::internal {

struct AllocRecord {
  std::uint64_t at_ns = 0;
  std::uint32_t tid = 0;
  std::uint64_t size = 0;
  std::uint64_t address = 0;
  std::uint64_t task = 0;  // 0: none
  std::uint64_t span = 0;  // 0: none
  std::uint64_t rate_bytes = 0;
  bool is_tracked = false;
  bool is_truncated = false;
  std::string_view unwound_by;
  LabelText label{};
  std::span<const std::uint64_t> frames;  // leaf first
};

struct FreeRecord {
  std::uint64_t at_ns = 0;
  std::uint32_t tid = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t alloc_ns = 0;
};

// Over a stretch of time up to `at_ns`.
struct HeapProfileRecord {
  std::uint64_t at_ns = 0;
  std::uint64_t elapsed_ns = 0;
  std::uint64_t rate_bytes = 0;
  std::uint64_t samples = 0;  // recorded
  std::uint64_t frees = 0;    // recorded
  std::uint64_t lost_samples = 0;
  std::uint64_t lost_frees = 0;
  std::uint64_t untracked = 0;     // of `samples`
  std::uint64_t live_samples = 0;  // at its end
  bool tracks_live = false;
  std::uint64_t largest_rate_bytes = 0;  // that held meanwhile: rate_bytes, or thinned from it
};

// Gathers records into streams of at most about 64 KiB. Allocates.
class HeapSampleEncoder {
 public:
  HeapSampleEncoder();

  void add(const AllocRecord& alloc);
  void add(const FreeRecord& free);
  void add(const HeapProfileRecord& profile);
  std::vector<SourceStream> take();
  // Of all streams, what frees took: about.
  std::uint64_t free_bytes() const { return free_bytes_; }

 private:
  SampleStreams streams_;
  std::uint64_t free_bytes_ = 0;
};

}  // namespace dial9::internal
