// See run.h.
// Strongest property: nothing here changes after construction.
// Spec: docs/spec/http_api.md.
// SPDX-License-Identifier: Apache-2.0
#include "server/run.h"

#include <algorithm>

namespace dial9::server {

Run::Run(std::string name, std::uint64_t generation, analysis::Trace trace)
    : name_(std::move(name)),
      generation_(generation),
      trace_(std::move(trace)),
      index_(trace_),
      span_times_(trace_),
      findings_(analysis::diagnose(trace_)) {
  std::uint64_t total = 0;
  for (const auto& table : trace_.custom) {
    first_event_.push_back(total);
    total += table.size();
  }
}

std::optional<double> Run::known_relative(std::uint64_t at_ns) const {
  if (at_ns == analysis::kUnknownNs) return std::nullopt;
  return relative(at_ns);
}

std::uint32_t Run::event_index(std::size_t table, std::size_t row) const {
  return static_cast<std::uint32_t>(first_event_[table] + row);
}

std::optional<EventRef> Run::event_ref(std::uint64_t index) const {
  const auto after = std::ranges::upper_bound(first_event_, index);
  if (after == first_event_.begin()) return std::nullopt;
  const std::size_t table = static_cast<std::size_t>(after - first_event_.begin()) - 1;
  const std::uint64_t row = index - first_event_[table];
  if (row >= trace_.custom[table].size()) return std::nullopt;
  return EventRef{table, static_cast<std::size_t>(row)};
}

std::size_t Run::bytes() const { return trace_.bytes() + index_.bytes() + span_times_.bytes(); }

std::string lane_name(const analysis::Trace& trace, std::uint32_t lane) {
  const analysis::Lane& at = trace.lanes[lane];
  std::string out = "worker " + std::to_string(at.worker);
  if (at.worker == analysis::kBlockingWorker) out = "blocking";
  if (at.worker == analysis::kUnknownWorker) out = "unknown worker";
  const bool is_shared =
      at.part != 0 || (lane + 1 < trace.lanes.size() && trace.lanes[lane + 1].worker == at.worker);
  return is_shared ? out + " #" + std::to_string(at.part + 1) : out;
}

}  // namespace dial9::server
