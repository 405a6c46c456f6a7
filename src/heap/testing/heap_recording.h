// Tests of heap samples: a recorder in memory that samples the process's own malloc, sites of known
// addresses, and the samples of a trace as rows. Needs dial9::heap, so no sanitizer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dial9/heap_samples.h"
#include "recorder/test_support.h"

namespace dial9::heap::testing {

// Two sites, never inlined and never a tail call: their addresses are looked for in stacks.
[[gnu::noinline]] void* allocate_one(std::size_t bytes);
[[gnu::noinline]] void* allocate_other(std::size_t bytes);
using Site = void* (*)(std::size_t);
// Is there an address within `site`, one of the two?
bool passes(const std::vector<std::uint64_t>& frames, Site site);

struct AllocRow {
  std::uint64_t at_ns = 0;
  std::uint32_t tid = 0;
  std::uint64_t size = 0;
  std::uint64_t address = 0;
  std::uint64_t task = 0;
  std::uint64_t span = 0;
  std::uint64_t rate = 0;
  bool is_tracked = false;
  bool is_truncated = false;
  std::string unwound_by;
  std::string label;  // "name=value"; empty: none
  std::vector<std::uint64_t> frames;
  std::uint64_t freed_ns = 0;  // 0: not seen
  std::uint32_t freed_tid = 0;
};
// In recorded order, each with its free, by address and time.
std::vector<AllocRow> allocs_of(const internal::Trace& trace);

// Estimated totals of the rows that `matches` says: 1/(1-exp(-size/rate)) allocations each.
struct Estimate {
  double count = 0;
  double bytes = 0;
};
template <class Matches>
Estimate estimate(const std::vector<AllocRow>& rows, Matches matches);
double weight_of(std::uint64_t size, std::uint64_t rate);

// A recorder in memory with heap samples, and the end of both.
class HeapRecording {
 public:
  // `seed`: of the draws; the same one gives the same samples to the same allocations of a thread
  // of the same id only.
  explicit HeapRecording(const HeapSampleOptions& options = {}, std::uint64_t seed = 1);
  ~HeapRecording();
  Recorder& recorder() { return recorder_; }
  // Seals; everything so far.
  internal::Trace read();
  std::vector<AllocRow> rows();
  // Stops; everything, with what the sampler had to say last.
  internal::Trace finish();

 private:
  internal::TempDir directory_;
  Recorder recorder_;
  std::string run_;
};

template <class Matches>
Estimate estimate(const std::vector<AllocRow>& rows, Matches matches) {
  Estimate sum;
  for (const AllocRow& row : rows) {
    if (!matches(row)) continue;
    const double weight = weight_of(row.size, row.rate);
    sum.count += weight;
    sum.bytes += weight * static_cast<double>(row.size);
  }
  return sum;
}

}  // namespace dial9::heap::testing
