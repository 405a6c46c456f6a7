// A run that is loaded: the engine's trace with what queries need beside it. Immutable, so any
// number of requests may read it at once; whoever asks holds it alive.
// Spec: docs/spec/http_api.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/findings.h"
#include "analysis/lod.h"
#include "analysis/span_times.h"
#include "analysis/trace.h"

namespace dial9::server {

// One row of a custom event type, by the number that the API gives it.
struct EventRef {
  std::size_t table = 0;
  std::size_t row = 0;
};

class Run {
 public:
  Run(std::string name, std::uint64_t generation, analysis::Trace trace);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const std::string& name() const { return name_; }
  std::uint64_t generation() const { return generation_; }
  const analysis::Trace& trace() const { return trace_; }
  const analysis::LaneIndex& index() const { return index_; }
  const analysis::SpanTimes& span_times() const { return span_times_; }
  const std::vector<analysis::Finding>& findings() const { return findings_; }

  // ns from the trace's start, negative before it.
  double relative(std::uint64_t at_ns) const {
    return at_ns >= trace_.begin_ns ? static_cast<double>(at_ns - trace_.begin_ns)
                                    : -static_cast<double>(trace_.begin_ns - at_ns);
  }
  // The same, or nothing for kUnknownNs.
  std::optional<double> known_relative(std::uint64_t at_ns) const;

  // Custom events are numbered through, table after table.
  std::uint32_t event_index(std::size_t table, std::size_t row) const;
  std::optional<EventRef> event_ref(std::uint64_t index) const;

  std::size_t bytes() const;

 private:
  std::string name_;
  std::uint64_t generation_;
  analysis::Trace trace_;
  analysis::LaneIndex index_;  // after trace_, which it points to
  analysis::SpanTimes span_times_;
  std::vector<analysis::Finding> findings_;
  std::vector<std::uint64_t> first_event_;  // of each table
};

// "worker 3", with its part where threads share an id, and the runtime's name where there are
// several.
std::string lane_name(const analysis::Trace& trace, std::uint32_t lane);

}  // namespace dial9::server
