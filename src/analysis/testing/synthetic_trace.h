// A synthetic trace of any size: workers that poll tasks, parks, wakes, queue depth, spans, a clock
// anchor and metadata, in streams as threads flush them. The same options give the same bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace dial9::analysis::testing {

struct SyntheticOptions {
  std::uint64_t polls = 1'000;  // in all
  std::uint32_t workers = 4;    // > 0
  std::uint32_t tasks = 100;    // > 0
  std::uint64_t seed = 1;
  std::uint64_t slow_every = 0;  // every so manieth poll takes 20 ms; 0: none
};

struct SyntheticCounts {
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;
};

// Hands the trace to `sink` piece by piece, in constant memory. `sink` false: stops.
SyntheticCounts write_synthetic(const SyntheticOptions& options,
                                const std::function<bool(std::span<const std::uint8_t>)>& sink);

}  // namespace dial9::analysis::testing
