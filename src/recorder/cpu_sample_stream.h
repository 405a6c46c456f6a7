// CPU samples as a stream: CpuSampleEvents with their stacks pooled, and a CpuProfileEvent that
// says what the samples stand for. Strongest property: a stack, a name and a label are written once
// a stream, however many samples have them. Spec: docs/spec/cpu_samples.md, "Events".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "recorder/labels.h"
#include "recorder/sample_streams.h"

namespace dial9::internal {

struct CpuSampleRecord {
  std::uint64_t at_ns = 0;
  std::uint64_t task = 0;   // 0: none
  std::uint64_t span = 0;   // 0: none
  bool has_context = true;  // false: task, span and label aren't known
  std::uint32_t tid = 0;
  std::uint32_t weight = 1;
  std::uint32_t cost_ns = 0;  // that taking it took on its thread; isn't written
  std::int32_t cpu = -1;      // below 0: not known
  bool is_truncated = false;
  std::string_view unwound_by;
  std::string_view thread_name;  // empty: not known
  LabelText label{};
  std::span<const std::uint64_t> frames;  // leaf first
};

// What was asked of the sampler and what came of it, over a stretch of time up to `at_ns`.
struct CpuProfileRecord {
  std::uint64_t at_ns = 0;
  std::uint64_t elapsed_ns = 0;
  std::uint64_t cpu_ns = 0;  // of the process without the collector's thread
  std::uint32_t asked_hz = 0;
  std::uint64_t samples = 0;  // recorded
  std::uint64_t periods = 0;  // sum of their weights
  std::uint64_t lost = 0;     // samples for which there was no room
  std::uint64_t lost_periods = 0;
  std::uint32_t threads = 0;            // sampled at its end
  std::uint32_t threads_unsampled = 0;  // not sampled: refused, or they block the signal
};

// Gathers records into streams of at most about 64 KiB. Allocates.
class CpuSampleEncoder {
 public:
  CpuSampleEncoder();

  void add(const CpuSampleRecord& sample);
  void add(const CpuProfileRecord& profile);
  std::vector<SourceStream> take();

 private:
  SampleStreams streams_;
};

}  // namespace dial9::internal
