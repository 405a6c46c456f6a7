// ready-delay: tasks that were ready and waited for a worker that ran something else. Waits that
// the kernel may explain are not counted. Spec: docs/spec/findings.md, "ready-delay".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "analysis/counts.h"
#include "analysis/delays.h"
#include "analysis/finders.h"
#include "analysis/human.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

constexpr std::uint64_t kMinCount = 20;
constexpr double kMinShare = 0.001;  // of polls with a known delay
constexpr double kCriticalShare = 0.10;
constexpr std::size_t kMaxRuntimes = 8;

struct PerRuntime {
  std::uint64_t known = 0;
  std::uint64_t count = 0;      // late, and a busy worker shows why
  std::uint64_t explained = 0;  // late, but the kernel may be why
  std::uint64_t total_ns = 0;
  std::uint32_t worst = kNoIndex;
  Distribution delays;
};

// Running sums of poll time on a lane, for "how much of this interval was the worker busy".
class BusyTime {
 public:
  BusyTime(const Trace& trace, const Lane& lane) : trace_(trace), lane_(lane) {
    sums_.reserve(lane.polls.size() + 1);
    sums_.push_back(0);
    for (std::uint32_t poll = lane.polls.first; poll < lane.polls.last; ++poll) {
      sums_.push_back(sums_.back() + trace.polls.duration_ns(poll));
    }
  }

  // Polls that lie before `poll` and after `from_ns`, the one that covers `from_ns` cut there.
  std::uint64_t between(std::uint64_t from_ns, std::uint32_t poll) const {
    std::uint32_t low = lane_.polls.first;
    std::uint32_t high = poll;
    while (low < high) {  // the first that ends after from_ns
      const std::uint32_t middle = low + (high - low) / 2;
      if (trace_.polls.end_ns[middle] > from_ns) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (low == poll) {
      return 0;
    }
    const std::uint64_t whole = sums_[poll - lane_.polls.first] - sums_[low - lane_.polls.first];
    const std::uint64_t start_ns = trace_.polls.start_ns[low];
    return whole - (start_ns < from_ns ? from_ns - start_ns : 0);
  }

 private:
  const Trace& trace_;
  const Lane& lane_;
  std::vector<std::uint64_t> sums_;
};

Finding make_finding(const FindContext& context, NameId runtime, const PerRuntime& found,
                     const DelaySummary& summary) {
  const Trace& trace = context.trace;
  Finding finding;
  finding.kind = FindingKind::kReadyDelay;
  finding.count = found.count;
  finding.worst_ns = trace.polls.delay_ns(found.worst);
  finding.where = std::string(trace.names.text(runtime));
  point_at_poll(trace, found.worst, finding);
  finding.at_ns = trace.polls.ready_ns[found.worst];
  finding.end_ns = trace.polls.start_ns[found.worst];
  const double share = static_cast<double>(found.count) / static_cast<double>(found.known);
  if (found.count >= kMinCount && share >= kMinShare) {
    finding.severity = share >= kCriticalShare ? Severity::kCritical : Severity::kWarning;
  }
  finding.message = counted(found.count, "poll") +
                    (finding.where.empty() ? "" : " of runtime " + finding.where) + " began over " +
                    human_duration(context.options.ready_delay_floor_ns) + " after " +
                    (found.count == 1 ? "its" : "their") + " task was ready, up to " +
                    human_duration(finding.worst_ns) + ", while the worker ran other polls (" +
                    human_share(share) + " of those with a known delay)";
  finding.evidence.push_back("known delays: " + spread_text(found.delays));
  finding.evidence.push_back(
      "coverage of the whole trace: " + human_count(summary.polls(Coverage::kKnown)) + " known, " +
      human_count(summary.polls(Coverage::kInferred)) + " from a spawn, " +
      human_count(summary.polls(Coverage::kMissing)) + " without a known ready time");
  finding.evidence.push_back("the worst: " + task_text(trace, finding.task) + " from " +
                             place_text(trace, trace.polls.spawn_loc[found.worst]) + " on " +
                             worker_text(trace, finding.lane));
  if (found.explained != 0) {
    finding.evidence.push_back(counted(found.explained, "late poll", "is", "are") +
                               " left out: idle or descheduled workers or a stalled platform "
                               "explain them");
  }
  finding.next = "see what the worker ran in that time: long polls, or more work than workers";
  finding.score = static_cast<double>(found.total_ns);
  return finding;
}

}  // namespace

void find_ready_delays(const FindContext& context, Findings& out) {
  const Trace& trace = context.trace;
  const KernelWaitBudget budget(trace);
  std::unordered_map<NameId, PerRuntime> runtimes;
  for (const Lane& lane : trace.lanes) {
    PerRuntime& runtime = runtimes[lane.runtime];
    const BusyTime busy(trace, lane);
    for (std::uint32_t poll = lane.polls.first; poll < lane.polls.last; ++poll) {
      if (coverage_of(trace.polls.ready_source[poll]) != Coverage::kKnown) {
        continue;
      }
      const std::uint64_t delay_ns = trace.polls.delay_ns(poll);
      ++runtime.known;
      runtime.delays.add(delay_ns);
      if (delay_ns < context.options.ready_delay_floor_ns) {
        continue;
      }
      const std::uint64_t ready_ns = trace.polls.ready_ns[poll];
      const std::uint64_t busy_ns = busy.between(ready_ns, poll);
      const std::uint64_t wait_ns =
          sum_of(budget.most(lane.worker, ready_ns, trace.polls.start_ns[poll]),
                 context.platform.most_ns(ready_ns, trace.polls.start_ns[poll]));
      if (busy_ns < sum_of(wait_ns, context.options.ready_delay_floor_ns)) {
        ++runtime.explained;
        continue;
      }
      ++runtime.count;
      runtime.total_ns += delay_ns;
      if (runtime.worst == kNoIndex || delay_ns > trace.polls.delay_ns(runtime.worst)) {
        runtime.worst = poll;
      }
    }
  }
  Findings found;
  const DelaySummary summary = summarize_delays(trace);
  for (const auto& [name, runtime] : runtimes) {
    if (runtime.count != 0) {
      found.push_back(make_finding(context, name, runtime, summary));
    }
  }
  dial9::stable_sort(found.begin(), found.end(),
                     [](const Finding& a, const Finding& b) { return a.score > b.score; });
  if (found.size() > kMaxRuntimes) {
    found.erase(found.begin() + kMaxRuntimes, found.end());
  }
  out.insert(out.end(), found.begin(), found.end());
}

}  // namespace dial9::analysis
