// From signal handlers to the collector: a ring of samples of fixed size, many writers, one reader.
// Strongest property: a writer takes a place with one compare-and-swap, fills it and publishes it;
// it never waits, and where the ring is full the sample is counted as lost, with its weight. A
// writer that never comes back costs its place, not the ring. Only places that were used take
// memory. Async-signal-safe on the writers' side. Spec: docs/spec/cpu_samples.md, "Ring".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "recorder/sample_context.h"
#include "unwind/unwind.h"

namespace dial9::internal {

struct Sample {
  static constexpr std::size_t kBytes = 2048;
  static constexpr std::size_t kFrames = (kBytes - 64 - sizeof(SampleContext)) / 8;

  std::uint64_t turn;  // the ring's
  std::uint64_t at_ns;
  std::uint32_t tid;
  std::uint32_t weight;
  std::int32_t cpu;
  std::uint32_t frame_count;
  unwind::Method method;
  bool is_truncated;
  std::uint32_t cost_ns;  // that taking it took
  alignas(64) SampleContext context;
  std::uint64_t frames[kFrames];
};
static_assert(sizeof(Sample) == Sample::kBytes);

class SampleRing {
 public:
  // `slots` is a power of two. Null: no memory. For the process's life.
  static SampleRing* make(std::size_t slots) noexcept;

  // A claim so old is passed over.
  static constexpr std::uint64_t kStuckNs = 1'000'000'000;

  // --- Writers. Null: full; counted. The sample has its weight.
  Sample* claim(std::uint32_t weight) noexcept;
  static void publish(Sample* sample) noexcept;

  // --- The reader: the oldest sample, if it is published; and past it.
  const Sample* front() noexcept;
  void pop() noexcept;
  // If the oldest was claimed over kStuckNs ago (as of a call before, by the caller's clock) and
  // isn't published, it is counted as lost and passed over: true. Its place is used again once the
  // writer, should it come back, is done with it.
  bool pass_over_stuck(std::uint64_t now_ns) noexcept;
  // Drops everything claimed so far: what isn't published as if it were stuck.
  void drop_all() noexcept;

  std::uint64_t lost() const noexcept { return __atomic_load_n(&lost_, __ATOMIC_RELAXED); }
  std::uint64_t lost_weight() const noexcept {
    return __atomic_load_n(&lost_weight_, __ATOMIC_RELAXED);
  }
  std::size_t slots() const noexcept { return mask_ + 1; }
  // In the child of a fork, which has no writers: what the parent had in it is forgotten.
  void restart() noexcept;

 private:
  SampleRing(Sample* samples, std::size_t slots) noexcept;

  void pass_over_front() noexcept;

  Sample* const samples_;
  const std::size_t mask_;
  alignas(64) std::uint64_t tail_ = 0;  // writers'
  std::uint64_t lost_ = 0;
  std::uint64_t lost_weight_ = 0;
  alignas(64) std::uint64_t head_ = 0;  // the reader's; writers look at it beside dead places
  std::uint64_t watched_tail_ = 0;      // what lies before it was claimed by watched_ns_
  std::uint64_t watched_ns_ = 0;
};

}  // namespace dial9::internal
