// How much of a wait off the CPU a filter takes. Strongest property: proven time is cut to the
// filter's range, and what is estimated around the waits of a span comes, in sum, to no more than
// the span's own account of its time (SpanTimes) has room for.
// Spec: docs/spec/off_cpu_samples.md, "Reading them".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/sample_filter.h"
#include "analysis/span_times.h"
#include "analysis/trace.h"

namespace dial9::analysis {

SampleContext context_of(const OffCpuWait& wait);

// Proven time lies where it was seen, and is cut to the range.
std::uint64_t proven_within(const OffCpuWait& wait, const SampleFilter& filter);

// What is estimated around a wait, in ns: what there is room for, and what is left out.
struct WaitEstimate {
  std::uint64_t kept_ns = 0;
  std::uint64_t cut_ns = 0;
};

// Of a trace and a filter that outlive this. Under a filter by span it is made by a look at all
// waits and, where something is estimated around those of the span, at the parks and blocks of the
// trace, unless `span_times` is given: of this trace; null: made here.
class WaitEstimates {
 public:
  WaitEstimates(const Trace& trace, const SampleFilter& filter, const SpanTimes* span_times);

  // Nobody knows where it lies: it goes with the first look, is no more than there is room for
  // around the wait, and of a span's waits it is the same part of each where all of them are more
  // than the span has room for.
  WaitEstimate of(const OffCpuWait& wait) const;

  // How long the threads that worked in the span, for its task, can have been off the CPU at most.
  // nullopt: the filter is by no span, nothing is estimated around its waits, or its account
  // doesn't tell: it isn't whole, has no task, the task ran on several threads at a time, or more
  // is proven of its waits than it has room for.
  std::optional<std::uint64_t> room_ns() const { return room_ns_; }

 private:
  void sum(const SampleFilter& whole);
  std::uint64_t uncut(const OffCpuWait& wait, const SampleFilter& filter,
                      const Stretch& stretch) const;
  bool is_in_account(const OffCpuWait& wait, const Stretch& stretch) const;
  std::uint64_t all_cut_ns() const;

  const Trace& trace_;
  const SampleFilter& filter_;
  Stretch stretch_;
  std::uint32_t task_ = kNoIndex;
  std::optional<std::uint64_t> room_ns_;
  // Of all waits that are in the span's account: what is proven, and what would be estimated.
  std::uint64_t proven_ns_ = 0;
  std::uint64_t estimated_ns_ = 0;
};

}  // namespace dial9::analysis
