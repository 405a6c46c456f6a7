// queue-growth: a queue whose backlog rises and rises, or that never drains. Judged by the lowest
// depth in each slice of time, so bursts that drain don't count.
// Spec: docs/spec/findings.md, "queue-growth".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "analysis/counts.h"
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

// The longest run of slices in which the depth is never below the floor.
Run longest_backlog(const Slices& slices, double floor) {
  Run best;
  std::size_t length = 0;
  for (std::size_t s = 0; s < kSlices; ++s) {
    length = slices.lowest[s] >= floor ? length + 1 : 0;
    if (length > best.last - best.first + 1) {
      best = {s + 1 - length, s};
    }
  }
  return best;
}

double deepest(const Series& series, std::uint64_t from_ns, std::uint64_t to_ns) {
  double depth = 0;
  for (std::size_t i = 0; i < series.value.size(); ++i) {
    if (series.at_ns[i] >= from_ns && series.at_ns[i] < to_ns) {
      depth = std::max(depth, series.value[i]);
    }
  }
  return depth;
}

std::string depth_text(double depth) { return human_count(count_of(depth)); }

void judge(const FindContext& context, const Series& series, Findings& out) {
  const Slices slices = slice(series);
  const double floor = context.options.queue_depth_floor;
  Run run = best_run(slices);
  const double low = slices.lowest[run.first];
  const double high = slices.lowest[run.last];
  const bool is_rising = run.last - run.first + 1 >= kMinRun && high - low >= floor;
  if (!is_rising) {
    run = longest_backlog(slices, floor);
    if (run.last - run.first + 1 < kMinRun || slices.lowest[run.first] < floor) {
      return;
    }
  }
  Finding finding;
  finding.kind = FindingKind::kQueueGrowth;
  finding.where = std::string(context.trace.names.text(series.name));
  finding.at_ns = slices.from_ns + run.first * slices.slice_ns;
  finding.end_ns = slices.from_ns + (run.last + 1) * slices.slice_ns;
  finding.worst_ns = finding.end_ns - finding.at_ns;
  const double depth = deepest(series, finding.at_ns, finding.end_ns + 1);
  finding.severity = depth >= kCriticalDepth ? Severity::kCritical : Severity::kWarning;
  finding.count = count_of(depth);
  const std::string span = human_duration(finding.worst_ns);
  finding.message = is_rising ? finding.where + " rose from " + depth_text(low) + " to " +
                                    depth_text(high) + " over " + span + " without falling"
                              : finding.where + " was never below " + depth_text(floor) + " for " +
                                    span + " and reached " + depth_text(depth);
  std::string lowest;
  for (const double value : slices.lowest) {
    lowest += (lowest.empty() ? "" : " ") + std::to_string(count_of(value));
  }
  finding.evidence.push_back("the lowest depth of each " + human_duration(slices.slice_ns) + ": " +
                             lowest);
  finding.next = "more is posted than is run: bound the queue or slow its producer down";
  finding.score = depth;
  out.push_back(std::move(finding));
}

}  // namespace

void find_queue_growth(const FindContext& context, Findings& out) {
  for (const Series& series : context.trace.series) {
    if (series.kind == Series::Kind::kQueueDepth && series.at_ns.size() >= kSlices &&
        series.at_ns.back() - series.at_ns[0] >= kMinSpanNs) {
      judge(context, series, out);
    }
  }
}

}  // namespace dial9::analysis
