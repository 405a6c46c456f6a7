// queue-growth: a queue whose backlog only rises. Judged by the lowest depth in each slice of time,
// so bursts that drain don't count. Spec: docs/spec/findings.md, "queue-growth".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "analysis/finders.h"
#include "analysis/human.h"

namespace dial9::analysis {
namespace {

constexpr std::size_t kSlices = 20;
constexpr std::size_t kMinRun = 6;                   // slices that rise one after the other
constexpr std::uint64_t kMinSpanNs = 1'000'000'000;  // of the whole series
constexpr double kCriticalDepth = 1'000;

struct Slices {
  std::array<double, kSlices> lowest{};
  std::uint64_t from_ns = 0;
  std::uint64_t slice_ns = 0;
};

// A value holds until the next sample.
Slices slice(const Series& series) {
  Slices out;
  out.from_ns = series.at_ns[0];
  out.slice_ns = std::max<std::uint64_t>((series.at_ns.back() - out.from_ns) / kSlices, 1);
  double held = series.value[0];
  std::size_t i = 0;
  for (std::size_t s = 0; s < kSlices; ++s) {
    const std::uint64_t end_ns = out.from_ns + (s + 1) * out.slice_ns;
    double lowest = held;
    for (; i < series.at_ns.size() && series.at_ns[i] < end_ns; ++i) {
      held = series.value[i];
      lowest = std::min(lowest, held);
    }
    out.lowest[s] = lowest;
  }
  return out;
}

struct Run {
  std::size_t first = 0;
  std::size_t last = 0;  // inclusive
};

// The run of slices, none lower than the one before, that gains most.
Run best_run(const Slices& slices) {
  Run best;
  std::size_t first = 0;
  for (std::size_t s = 1; s < kSlices; ++s) {
    first = slices.lowest[s] < slices.lowest[s - 1] ? s : first;
    if (slices.lowest[s] - slices.lowest[first] >
        slices.lowest[best.last] - slices.lowest[best.first]) {
      best = {first, s};
    }
  }
  return best;
}

}  // namespace

void find_queue_growth(const FindContext& context, Findings& out) {
  const Trace& trace = context.trace;
  for (const Series& series : trace.series) {
    if (series.kind != Series::Kind::kQueueDepth || series.at_ns.size() < kSlices ||
        series.at_ns.back() - series.at_ns[0] < kMinSpanNs) {
      continue;
    }
    const Slices slices = slice(series);
    const Run run = best_run(slices);
    const double low = slices.lowest[run.first];
    const double high = slices.lowest[run.last];
    if (run.last - run.first + 1 < kMinRun || high - low < context.options.queue_depth_floor) {
      continue;
    }
    Finding finding;
    finding.kind = FindingKind::kQueueGrowth;
    finding.severity = high >= kCriticalDepth ? Severity::kCritical : Severity::kWarning;
    finding.where = std::string(trace.names.text(series.name));
    finding.at_ns = slices.from_ns + run.first * slices.slice_ns;
    finding.end_ns = slices.from_ns + (run.last + 1) * slices.slice_ns;
    finding.count = static_cast<std::uint64_t>(high);
    finding.worst_ns = finding.end_ns - finding.at_ns;
    double deepest = 0;
    for (std::size_t i = 0; i < series.value.size(); ++i) {
      deepest = std::max(deepest, series.value[i]);
    }
    const auto rise = static_cast<std::uint64_t>(high - low);
    finding.message = finding.where + " rose from " + human_count(static_cast<std::uint64_t>(low)) +
                      " to " + human_count(static_cast<std::uint64_t>(high)) + " over " +
                      human_duration(finding.end_ns - finding.at_ns) + " without falling";
    finding.evidence.push_back("the lowest depth of each " + human_duration(slices.slice_ns) +
                               " never fell in that time; deepest " +
                               human_count(static_cast<std::uint64_t>(deepest)));
    finding.next = "more is posted than is run: bound the queue or slow its producer down";
    finding.score = static_cast<double>(rise);
    out.push_back(std::move(finding));
  }
}

}  // namespace dial9::analysis
