// Heap samples as a trace holds them: an allocation, with when it was freed. Strongest property:
// a sample stands for 1/(1-exp(-size/rate)) allocations, by the rate that it says itself; what
// isn't known of its end is told apart from being alive. Spec: docs/spec/heap_samples.md.
//
// Memory: 80 bytes a sample, counted in Trace::bytes().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "analysis/names.h"
#include "analysis/unwound_by.h"

namespace dial9::analysis {

inline constexpr std::uint64_t kNotFreed = ~std::uint64_t{0};
inline constexpr std::uint64_t kNoHeapId = ~std::uint64_t{0};  // not recorded

struct HeapSample {
  std::uint64_t at_ns = 0;
  std::uint64_t freed_ns = kNotFreed;  // not seen, up to the trace's end
  std::uint64_t size = 0;
  std::uint64_t address = 0;
  std::uint64_t rate_bytes = 0;       // 0: not recorded
  std::uint64_t task_id = kNoHeapId;  // 0: none
  std::uint64_t span_id = kNoHeapId;  // 0: none
  std::uint32_t tid = 0;
  std::uint32_t stack = 0;  // kNoIndex: not recorded
  NameId label_name = kNoName;
  NameId label_value = kNoName;
  bool is_tracked = true;  // its free would be seen
  bool is_truncated = false;
  UnwoundBy unwound = UnwoundBy::kUnknown;
};

// What the writer says of a stretch of time up to at_ns.
struct HeapWindow {
  std::uint64_t at_ns = 0;
  std::uint64_t elapsed_ns = 0;
  std::uint64_t lost_samples = 0;
  std::uint64_t lost_frees = 0;          // as many samples seem alive that may not be
  std::uint64_t untracked = 0;           // samples whose free nobody sees
  std::uint64_t live_samples = 0;        // at its end, those older than the trace as well
  bool is_own = false;                   // of a HeapProfileEvent: all of the above is known
  std::uint64_t sample_rate_bytes = 0;   // that was asked for; 0: not recorded
  std::uint64_t largest_rate_bytes = 0;  // at which samples were drawn; likewise
};

// How many allocations a sample stands for; 1 where the rate isn't known. Never infinite.
double heap_weight(std::uint64_t size, std::uint64_t rate_bytes);

}  // namespace dial9::analysis
