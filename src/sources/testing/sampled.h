// Tests of CPU samples: work of a known amount of CPU time, and the samples of a trace as rows.
// Strongest property: no test waits for wall time: work ends when the thread's CPU clock says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dial9/cpu_samples.h"
#include "recorder/test_support.h"

namespace dial9::internal::testing {

std::uint64_t thread_cpu_ns();

// Computes until the calling thread has used `ms` more of CPU time. Two functions, never inlined
// and never a tail call: their addresses are looked for in stacks.
[[gnu::noinline]] void burn_one(std::uint64_t ms);
[[gnu::noinline]] void burn_other(std::uint64_t ms);
// Is there an address within `burn`, one of the two?
bool passes(const std::vector<std::uint64_t>& frames, void (*burn)(std::uint64_t));

struct SampleRow {
  std::uint64_t at_ns = 0;
  std::uint32_t tid = 0;
  std::uint64_t weight = 1;
  std::uint64_t task = 0;
  std::uint64_t span = 0;
  bool has_cpu = false;
  bool is_truncated = false;
  bool has_context = false;
  std::string unwound_by;
  std::string thread_name;
  std::string label;  // "name=value"; empty: none
  std::vector<std::uint64_t> frames;
};
std::vector<SampleRow> samples_of(const Trace& trace);
// Sum of the weights of those that `matches` says.
template <class Matches>
std::uint64_t periods(const std::vector<SampleRow>& rows, Matches matches) {
  std::uint64_t sum = 0;
  for (const SampleRow& row : rows) sum += matches(row) ? row.weight : 0;
  return sum;
}

// The largest weight: how coarse the samples are. On a crowded CPU the kernel's tick finds a thread
// rarely, and a sample stands for what went before it: so much more may be on the wrong side of
// each end of a stretch.
std::uint64_t grain(const std::vector<SampleRow>& rows);

// A recorder in memory with CPU samples, and the end of both.
class Sampled {
 public:
  explicit Sampled(const CpuSampleOptions& options = {});
  ~Sampled();
  Recorder& recorder() { return recorder_; }
  // Once the calling thread is being sampled: spends CPU time until it is.
  void wait_until_sampled();
  // Everything so far.
  Trace read();
  // Stops; everything.
  std::vector<SampleRow> finish();

 private:
  Recorder recorder_;
};

// Three threads that nobody registered, "burns-600", "burns-300" and "burns-100", use so many ms of
// CPU time side by side; then `sampled` is finished. `rows`: their samples of that time.
struct Burnt {
  std::vector<SampleRow> all;
  std::vector<SampleRow> rows;
};
Burnt burn_on_threads(Sampled& sampled);

}  // namespace dial9::internal::testing
