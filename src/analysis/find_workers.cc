// worker-imbalance: one worker is busy while another of the same group idles, and work waits for
// the busy one. A group is a runtime, or runtimes whose names differ in a number only
// (thread-per-core). Spec: docs/spec/findings.md, "worker-imbalance".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "analysis/finders.h"
#include "analysis/human.h"
#include "analysis/segment_gaps.h"

namespace dial9::analysis {
namespace {

constexpr double kInfoBusy = 0.30;  // share of its time that the busiest spends in polls
constexpr double kWarningBusy = 0.60;
constexpr double kInfoRatio = 4;  // to the least busy
constexpr double kWarningRatio = 5;
constexpr std::uint64_t kLateNs = 2'000'000;
constexpr std::uint64_t kMinLate = 50;
constexpr double kCriticalBusy = 0.95;

std::string group_of(std::string_view runtime) {
  std::size_t end = runtime.size();
  while (end != 0 && runtime[end - 1] >= '0' && runtime[end - 1] <= '9') {
    --end;
  }
  while (end != 0 && (runtime[end - 1] == '-' || runtime[end - 1] == '_' ||
                      runtime[end - 1] == ' ' || runtime[end - 1] == '#')) {
    --end;
  }
  return std::string(runtime.substr(0, end));
}

struct Group {
  std::vector<std::uint32_t> lanes;
};

struct Late {
  std::uint64_t count = 0;
  std::uint32_t worst = kNoIndex;
};

// Polls of the busy lane that began late while the idle one was parked all the time.
Late late_while_idle(const Trace& trace, std::uint32_t busy, std::uint32_t idle) {
  Late late;
  const Range polls = trace.lanes[busy].polls;
  for (std::uint32_t poll = polls.first; poll < polls.last; ++poll) {
    const std::uint64_t delay_ns = trace.polls.delay_ns(poll);
    if (delay_ns == kUnknownNs || delay_ns < kLateNs ||
        coverage_of(trace.polls.ready_source[poll]) != Coverage::kKnown) {
      continue;
    }
    const std::uint32_t park = trace.park_at(idle, trace.polls.ready_ns[poll]);
    if (park == kNoIndex || trace.parks.end_ns[park] < trace.polls.start_ns[poll]) {
      continue;
    }
    ++late.count;
    if (late.worst == kNoIndex || delay_ns > trace.polls.delay_ns(late.worst)) {
      late.worst = poll;
    }
  }
  return late;
}

// Time in the lane's polls that the platform may have added to them, at most.
std::uint64_t stalled_in_polls_ns(const FindContext& context, const Lane& lane) {
  std::uint64_t stalled_ns = 0;
  if (context.platform.empty()) {
    return stalled_ns;
  }
  for (std::uint32_t poll = lane.polls.first; poll < lane.polls.last; ++poll) {
    const std::uint64_t start_ns = context.trace.polls.start_ns[poll];
    const std::uint64_t end_ns = context.trace.polls.end_ns[poll];
    stalled_ns += std::min(context.platform.most_ns(start_ns, end_ns), end_ns - start_ns);
  }
  return std::min(stalled_ns, lane.busy_ns);
}

void judge(const FindContext& context, const std::string& name, const Group& group, Findings& out) {
  const Trace& trace = context.trace;
  const auto by_busy = [&](std::uint32_t a, std::uint32_t b) {
    return trace.lanes[a].busy_ns < trace.lanes[b].busy_ns;
  };
  const auto [least, most] = std::minmax_element(group.lanes.begin(), group.lanes.end(), by_busy);
  const Lane& busiest = trace.lanes[*most];
  const Lane& idlest = trace.lanes[*least];
  const auto wall = static_cast<double>(std::max<std::uint64_t>(trace.duration_ns(), 1));
  const double idle = static_cast<double>(idlest.busy_ns) / wall;
  const auto is_apart = [&](double share) {
    return share >= kInfoBusy && share >= kInfoRatio * idle;
  };
  if (!is_apart(static_cast<double>(busiest.busy_ns) / wall)) {
    return;
  }
  const std::uint64_t stalled_ns = stalled_in_polls_ns(context, busiest);
  const double busy = static_cast<double>(busiest.busy_ns - stalled_ns) / wall;
  if (!is_apart(busy)) {
    return;
  }
  Finding finding;
  finding.kind = FindingKind::kWorkerImbalance;
  const Late late = late_while_idle(trace, *most, *least);
  if (busy >= kWarningBusy && busy >= kWarningRatio * idle && late.count >= kMinLate) {
    finding.severity = busy >= kCriticalBusy ? Severity::kCritical : Severity::kWarning;
  }
  finding.where = name;
  finding.lane = *most;
  finding.count = late.count;
  if (late.worst != kNoIndex) {
    point_at_poll(trace, late.worst, finding);
    finding.worst_ns = trace.polls.delay_ns(late.worst);
    finding.at_ns = trace.polls.ready_ns[late.worst];
    finding.end_ns = trace.polls.start_ns[late.worst];
  }
  finding.message = worker_text(trace, *most) + " spent " + human_share(busy) +
                    " of the time in polls, " + worker_text(trace, *least) + " only " +
                    human_share(idle);
  finding.evidence.push_back(counted(late.count, "poll") + " of the busy one began over " +
                             human_duration(kLateNs) + " late while the other was parked");
  if (stalled_ns != 0) {
    finding.evidence.push_back("stalls of the platform, up to " + human_duration(stalled_ns) +
                               " of its polls, are taken off");
  }
  if (!trace.loss.empty()) {
    const bool is_lossy = std::any_of(
        trace.loss.begin(), trace.loss.end(),
        [&](const LossRecord& record) { return trace.names.text(record.cause) != kRecordingOff; });
    finding.evidence.push_back(std::string(is_lossy ? "events were lost" : "recording was off") +
                               ": times in polls are lower bounds, and a worker that looks idle "
                               "may have worked");
  }
  for (const std::uint32_t lane : group.lanes) {
    if (finding.evidence.size() <= 8) {
      finding.evidence.push_back(worker_text(trace, lane) + ": " +
                                 counted(trace.lanes[lane].polls.size(), "poll") + ", busy " +
                                 human_duration(trace.lanes[lane].busy_ns));
    }
  }
  finding.next = "spread connections or keys over the workers, or let them share one queue";
  finding.score = busy - idle;
  out.push_back(std::move(finding));
}

}  // namespace

void find_worker_imbalance(const FindContext& context, Findings& out) {
  const Trace& trace = context.trace;
  std::map<std::string, Group> groups;
  for (std::uint32_t i = 0; i < trace.lanes.size(); ++i) {
    const Lane& lane = trace.lanes[i];
    if (lane.worker != kUnknownWorker && lane.worker != kBlockingWorker) {
      groups[group_of(trace.names.text(lane.runtime))].lanes.push_back(i);
    }
  }
  for (const auto& [name, group] : groups) {
    if (group.lanes.size() >= 2) {
      judge(context, name, group, out);
    }
  }
}

}  // namespace dial9::analysis
