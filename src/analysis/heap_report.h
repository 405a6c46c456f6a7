// What was allocated and what lives, by site, task, span, label or thread, and how it grew between
// two moments. Strongest property: figures are estimates of all allocations, each with its standard
// error; whatever makes them uncertain (lost frees, samples that nobody tracks, older ones) is a
// note. Spec: docs/spec/heap_samples.md, "Views".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/sample_filter.h"
#include "analysis/trace.h"
#include "analysis/unwound_by.h"

namespace dial9::analysis {

enum class HeapBy : std::uint8_t { kSite, kTask, kSpan, kLabel, kThread };

// Estimates, and the squares of their standard errors.
struct HeapFigure {
  double bytes = 0;
  double count = 0;
  double bytes_variance = 0;
  double count_variance = 0;
  std::uint64_t samples = 0;
  void add(std::uint64_t size, double weight);
  void add(const HeapFigure& other);
  double bytes_error() const;
  double count_error() const;
};

// The samples of a group whose stacks were found in one way.
struct HeapPart {
  UnwoundBy unwound = UnwoundBy::kUnknown;
  bool is_truncated = false;  // the outermost frames are missing
  HeapFigure allocated;
  HeapFigure live;
  HeapFigure live_before;
};

struct HeapGroup {
  std::uint64_t key =
      0;  // a stack, a task's or a span's id, a label (name << 32 | value), a thread
  std::uint64_t first_ns = 0;  // of its first sample: whose modules name its stack
  HeapFigure allocated;        // in the range
  HeapFigure live;             // at its end, of all that the trace knows
  HeapFigure live_before;      // at its begin
  double growth_variance = 0;
  HeapFigure early;                                    // allocated in the range's first half
  HeapFigure early_live;                               // and alive at its end
  std::vector<std::pair<std::uint64_t, double>> ages;  // at free, of `allocated`; how many
  std::uint64_t untracked = 0;                         // samples whose end nobody knows
  std::vector<HeapPart> parts;  // `allocated`, `live` and `live_before` are their sums

  // Of one of the three, what lies in stacks that are cut short.
  HeapFigure truncated(HeapFigure HeapPart::*figure) const;
  double growth_bytes() const { return live.bytes - live_before.bytes; }
  // Grew by more than three standard errors, and of what was allocated early most lives still.
  bool is_leak_candidate() const;
  // The age that half of the allocations didn't reach; nullopt: none was freed.
  std::optional<std::uint64_t> median_age_ns() const;
};

struct HeapReport {
  HeapBy by = HeapBy::kSite;
  SampleFilter filter;
  HeapGroup total;
  std::vector<HeapGroup> groups;  // by allocated bytes
  std::vector<std::string> notes;
  std::uint64_t unknown = 0;        // samples that don't say whose they are, left out
  bool is_allocated_known = false;  // there are samples
  bool is_live_known = false;       // and their frees are recorded
  bool is_live_uncertain = false;   // some weren't
  bool has_lost_samples = false;    // allocated is too low, too
  std::string lack = {};            // what heap_lack() says where there are no samples
};
// Allocated is what was within the filter's range, live what is at its end. Heap samples tell no
// worker and no name of a thread: a filter by these takes none, and a note says so.
HeapReport heap_report(const Trace& trace, const SampleFilter& filter, HeapBy by);

// For SampleJudge::judge_all_but_time().
SampleContext context_of(const HeapSample& sample);
// The part of its group that a sample is of: so and by is_truncated.
UnwoundBy unwound_of(const HeapSample& sample);
bool is_live_at(const HeapSample& sample, std::uint64_t at_ns);

enum class HeapOrder : std::uint8_t { kAllocated, kLive, kGrowth };
// What the trace doesn't hold that this order needs, and how to record it; empty: it is all there.
std::string_view heap_lack(const HeapReport& report, HeapOrder order);
// `site_names`: of the groups' stacks, by position in `groups`; only for kSite. What heap_lack()
// tells is shown as unknown; saying why is the caller's, in the notes.
std::string heap_text(const Trace& trace, HeapReport report, HeapOrder order, std::size_t limit,
                      const std::vector<std::string>& site_names);
std::string heap_json(const Trace& trace, const HeapReport& report,
                      const std::vector<std::string>& site_names);

}  // namespace dial9::analysis
