// Times in which the platform held the process up, and how much of a stretch they may explain.
// Strongest property: what is taken off a claim is an upper bound, so that what is left of the
// claim is a lower one. Spec: docs/spec/findings.md, "It was not you".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace.h"

namespace dial9::analysis {

std::string_view to_string(StallCause cause);  // as in the records: "cpu_throttled", ...
// What happened, in words: "the cgroup's CPU limit stopped the process".
std::string_view describe(StallCause cause);
// True where the stall may be taken off what findings claim: pressure on CPUs and disks may be the
// process's own doing, and a step or a suspend takes no monotonic time.
bool is_excuse(const PlatformStall& stall);
// How long it may have held a thread up, at most: never longer than its range.
std::uint64_t most_stalled_ns(const PlatformStall& stall);

class PlatformStallIndex {
 public:
  explicit PlatformStallIndex(const Trace& trace);
  bool empty() const { return excuses_.empty(); }
  // Of [from, to): at most so much of it was stalled. O(log n + stalls that overlap).
  std::uint64_t most_ns(std::uint64_t from_ns, std::uint64_t to_ns) const;
  // The same of the cgroup's CPU limit alone.
  std::uint64_t most_throttled_ns(std::uint64_t from_ns, std::uint64_t to_ns) const;
  // The stalls of all kinds that overlap [from, to), a cause each with its time; empty: none.
  std::string text(std::uint64_t from_ns, std::uint64_t to_ns) const;

 private:
  struct Span {
    const PlatformStall* stall;
    std::uint64_t latest_end_ns;  // of this and all before
  };
  template <class Function>
  static void overlapping(const std::vector<Span>& spans, std::uint64_t from_ns,
                          std::uint64_t to_ns, Function function);
  template <class Takes>
  std::uint64_t most_ns_of(std::uint64_t from_ns, std::uint64_t to_ns, Takes takes) const;
  std::vector<Span> all_;  // by begin
  std::vector<Span> excuses_;
};

}  // namespace dial9::analysis
