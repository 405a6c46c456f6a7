// Where a span's time went: on a CPU, held by a call or lock, waiting for something to happen,
// ready and waiting for a thread, or unknown. Strongest property: the five always sum to the span's
// length, and each of the first four is a lower bound; what the records don't prove is unknown.
// Spec: docs/spec/events.md, "Where a span's time goes".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/held_times.h"
#include "analysis/loss_ranges.h"
#include "analysis/poll_reach.h"
#include "analysis/trace.h"

namespace dial9::analysis {

// Why a stretch of a span can't be attributed.
enum class UnknownTime : std::uint8_t {
  kNoTask,       // the span's task isn't known, or has no polls in the trace
  kEventsLost,   // events were dropped meanwhile
  kCutOff,       // a poll whose end wasn't recorded, or what lies outside the recorded polls
  kNoReadyTime,  // the task's ready time isn't known
  kNoCpuClock,   // in a poll; its thread's CPU clock was not read around it
  kOffCpu,       // in a poll; its thread was off the CPU for that long around it, nobody says why
  kConcurrent,   // the task ran more, or less, than the span says it did: several branches of it
  kNoPoll,       // between polls; the task waited for a lock there, so one may be missing
};
inline constexpr std::size_t kUnknownTimes = 8;
// A short phrase for a reader, for instance "events are missing".
std::string_view describe(UnknownTime reason);

struct SpanTime {
  std::uint64_t on_cpu_ns = 0;
  std::uint64_t blocked_ns = 0;          // in a recorded call or lock, off the CPU, or for a strand
  std::uint64_t async_wait_ns = 0;       // suspended, nothing to do
  std::uint64_t scheduler_delay_ns = 0;  // ready, or preempted, and not running
  std::array<std::uint64_t, kUnknownTimes> unknown_by{};  // ns by UnknownTime

  std::uint64_t unknown_ns() const;
  std::uint64_t sum_ns() const;  // the span's length
  // The reason with the most unknown time.
  UnknownTime main_reason() const;
  void add(const SpanTime& other);
};

// Answers for all spans of a trace, which outlives this. Immutable: any number of threads may ask.
// Memory: 24 bytes a block, 8 a park, 12 a poll of tasks whose polls overlap. A question costs
// O((polls of the task in the span + blocks in it) × log n), whatever lies outside the span.
class SpanTimes {
 public:
  explicit SpanTimes(const Trace& trace);
  // `span`: index in trace.spans.
  SpanTime of(std::uint32_t span) const;
  std::size_t bytes() const;

 private:
  friend class SpanSweep;
  bool has_known_cpu_time(std::uint32_t lane) const;
  bool is_stretch_known(std::uint32_t park) const;
  std::uint32_t park_after(std::uint32_t poll) const;
  std::uint64_t unexplained_before(std::uint32_t park) const;
  std::uint64_t blocked_between(std::uint32_t lane, std::uint64_t from_ns,
                                std::uint64_t to_ns) const;

  const Trace& trace_;
  LossRanges loss_;
  PollReach reach_;
  HeldTimes in_polls_;                      // by poll
  HeldTimes strand_waits_;                  // by task
  HeldTimes pollless_;                      // by task: locks that are of no poll, nor of strands
  std::vector<std::uint64_t> unexplained_;  // by park: ns off the CPU before it that no block tells
};

}  // namespace dial9::analysis
