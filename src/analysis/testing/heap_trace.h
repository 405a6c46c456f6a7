// Traces with sampled allocations, for tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/testing/trace_builder.h"

namespace dial9::analysis::testing {

struct MadeAlloc {
  std::uint64_t at_ns = 0;
  std::uint64_t size = 100;
  std::uint64_t addr = 0x1000;
  std::vector<std::uint64_t> frames = {0xA};
  std::uint32_t tid = 1;
  std::uint64_t task = 0;
  std::uint64_t span = 0;
  std::string_view label_value = {};  // of the name "tenant"
  std::uint64_t rate = 1;
  bool is_tracked = true;
  std::string_view unwound_by = {};  // empty: the sample doesn't say
  bool is_truncated = false;
};

class HeapTrace {
 public:
  void alloc(const MadeAlloc& made);
  void free(std::uint64_t at_ns, std::uint64_t addr, std::uint64_t alloc_ns);
  // Of a millisecond, with live samples tracked.
  void profile(std::uint64_t at_ns, std::uint64_t lost_samples, std::uint64_t lost_frees,
               std::uint64_t live_samples, std::uint64_t largest_rate = kRate,
               std::uint64_t rate = kRate);
  static constexpr std::uint64_t kRate = 512;  // that was asked for
  TraceBuilder& builder() { return builder_; }
  Trace load() { return builder_.load(); }

 private:
  TraceBuilder builder_;
};

}  // namespace dial9::analysis::testing
