// loss, of another kind: what the recorder left out to keep within its user's budget, and what that
// does to every other finding. Spec: docs/spec/findings.md, "loss".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/finders.h"
#include "analysis/human.h"
#include "analysis/shed.h"

namespace dial9::analysis {
namespace {

bool is_thin(const ShedWindows& shed, const Trace& trace, const Finding& finding) {
  const bool has_time = finding.at_ns != kUnknownNs && finding.count <= 1;
  const std::uint64_t from_ns = has_time ? finding.at_ns : trace.begin_ns;
  const std::uint64_t to_ns =
      has_time && finding.end_ns != kUnknownNs ? finding.end_ns : trace.end_ns;
  for (const ShedKind kind :
       {ShedKind::kPolls, ShedKind::kWakes, ShedKind::kParks, ShedKind::kTasks}) {
    if (shed.is_thin(kind, from_ns, to_ns)) {
      return true;
    }
  }
  return false;
}

}  // namespace

void find_shed(const FindContext& context, Findings& out) {
  const Trace& trace = context.trace;
  const ShedWindows shed(trace);
  if (shed.empty()) {
    return;
  }
  for (Finding& finding : out) {
    if (finding.kind != FindingKind::kLoss && is_thin(shed, trace, finding)) {
      finding.evidence.push_back(
          "some events were left out to keep within the recorder's budget: counts and sums are "
          "lower bounds, and a worker that looks idle may have worked");
    }
  }
  const std::vector<std::string> lines = shed.lines();
  if (lines.empty()) {
    return;
  }
  Finding finding;
  finding.kind = FindingKind::kLoss;
  finding.where = "budget";
  finding.at_ns = trace.shed.front().since_ns;
  finding.end_ns = trace.shed.back().at_ns;
  for (std::size_t c = 0; c < kShedKinds.size(); ++c) {
    finding.count += shed.shed(static_cast<ShedKind>(c));
  }
  finding.message = "the recorder left out what went beyond its budget, " +
                    counted(finding.count, "unit") + " in all, and counted it";
  finding.evidence = lines;
  finding.next = "a higher max_cpu_percent or max_mb_per_sec, if more detail is worth it";
  finding.score = static_cast<double>(finding.count);
  out.push_back(std::move(finding));
}

}  // namespace dial9::analysis
