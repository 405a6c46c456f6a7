// long-poll: polls far above the program's own distribution, place by place. A poll that the kernel
// may have stretched by not running its thread is not counted.
// Spec: docs/spec/findings.md, "long-poll".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <unordered_map>

#include "analysis/finders.h"
#include "analysis/human.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

// 8 × p90: a program whose handlers normally take long isn't accused of it.
constexpr std::uint64_t kTimesP90 = 8;
constexpr std::uint64_t kMinCount = 5;
constexpr std::uint64_t kMinTotalNs = 50'000'000;
constexpr std::uint64_t kAloneNs = 200'000'000;  // so long that one is enough
constexpr std::uint64_t kCriticalNs = 1'000'000'000;
constexpr double kCriticalShare = 0.10;  // of a worker's time
constexpr std::size_t kMaxPlaces = 8;

struct Place {
  NameId spawn_loc = kNoName;
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t explained = 0;     // by kernel wait
  std::uint64_t excused = 0;       // by the platform's stalls
  std::uint64_t taken_off_ns = 0;  // of total_ns, for them
  std::uint64_t worst_ns = 0;
  std::uint32_t worst = kNoIndex;
};

struct Candidate {
  std::uint32_t poll;
  std::uint64_t over_ns;     // what would have to be kernel wait for it to be an ordinary poll
  std::uint64_t stalled_ns;  // of it, at most, by the platform
};

// Thresholds by the name of the runtime.
std::unordered_map<NameId, Distribution> distributions(const Trace& trace) {
  std::unordered_map<NameId, Distribution> by_runtime;
  for (const Lane& lane : trace.lanes) {
    Distribution& durations = by_runtime[lane.runtime];
    for (std::uint32_t poll = lane.polls.first; poll < lane.polls.last; ++poll) {
      if (trace.polls.is_complete(poll)) {
        durations.add(trace.polls.duration_ns(poll));
      }
    }
  }
  return by_runtime;
}

// What the records say that the poll did: the calls and locks inside it, the longest by name.
std::string inside_text(const Trace& trace, std::uint32_t poll) {
  std::uint64_t blocked_ns = 0;
  std::uint64_t counted_to_ns =
      0;  // blocks are by start, and may overlap: a call, and its wait off the CPU
  std::uint64_t longest_ns = 0;
  std::string longest;
  for (std::size_t i = 0; i < trace.blocks.size(); ++i) {
    const Block& block = trace.blocks[i];
    if (block.poll != poll || block.kind == BlockKind::kPreempted) {
      continue;
    }
    const std::uint64_t from_ns = std::max(block.start_ns, counted_to_ns);
    blocked_ns += block.end_ns() > from_ns ? block.end_ns() - from_ns : 0;
    counted_to_ns = std::max(counted_to_ns, block.end_ns());
    if (block.duration_ns > longest_ns) {
      longest_ns = block.duration_ns;
      const std::string_view call = trace.names.text(block.call);
      longest = block.kind == BlockKind::kLock ? "a lock"
                : call.empty()                 ? "off the CPU"
                                               : std::string(call);
    }
  }
  if (blocked_ns == 0) {
    return "no call or lock that blocks was recorded inside the longest; short ones, and those "
           "that aren't watched, leave no record";
  }
  return "of the longest poll (" + human_duration(trace.polls.duration_ns(poll)) + "), " +
         human_duration(std::min(blocked_ns, trace.polls.duration_ns(poll))) +
         " went into recorded calls, locks and waits off the CPU, most into " + longest + " (" +
         human_duration(longest_ns) + ")";
}

void add_evidence(const FindContext& context, const Place& place, const Distribution& durations,
                  bool has_sched, Finding& finding) {
  const Trace& trace = context.trace;
  finding.evidence.push_back("all polls of this runtime: " + spread_text(durations) + " over " +
                             counted(durations.count(), "poll"));
  finding.evidence.push_back("the worst: " + task_text(trace, finding.task) + " on " +
                             worker_text(trace, finding.lane));
  if (place.taken_off_ns != 0) {
    finding.evidence.push_back("stalls of the platform, up to " +
                               human_duration(place.taken_off_ns) +
                               " of these polls, are taken off");
  }
  if (place.excused != 0) {
    finding.evidence.push_back(more_are(place.excused) +
                               " left out: the platform stalled meanwhile");
  }
  if (place.explained != 0) {
    finding.evidence.push_back(more_are(place.explained) +
                               " left out: the kernel may have kept the thread waiting");
  } else if (!has_sched) {
    finding.evidence.push_back(
        "the kernel's run-queue wait wasn't recorded, so a busy machine may be part of this");
  }
  if (!trace.blocks.empty()) {
    finding.evidence.push_back(inside_text(trace, place.worst));
  }
}

Finding make_finding(const FindContext& context, const Place& place) {
  const Trace& trace = context.trace;
  Finding finding;
  finding.kind = FindingKind::kLongPoll;
  finding.count = place.count;
  finding.worst_ns = place.worst_ns;
  finding.where = place_text(trace, place.spawn_loc);
  point_at_poll(trace, place.worst, finding);
  const double share = static_cast<double>(place.total_ns) /
                       static_cast<double>(std::max<std::uint64_t>(trace.duration_ns(), 1));
  const bool is_many = place.count >= kMinCount && place.total_ns >= kMinTotalNs;
  if (is_many || finding.worst_ns >= kAloneNs) {
    finding.severity = finding.worst_ns >= kCriticalNs || share >= kCriticalShare
                           ? Severity::kCritical
                           : Severity::kWarning;
  }
  finding.message = counted(place.count, "poll") + " of tasks from " + finding.where +
                    " held a worker for up to " + human_duration(finding.worst_ns) + " (" +
                    human_duration(place.total_ns) + " in all, " + human_share(share) +
                    " of one worker)";
  finding.next =
      "all other tasks of that worker wait meanwhile: split the work, move it to a pool, or await";
  finding.score = static_cast<double>(place.total_ns) + static_cast<double>(finding.worst_ns);
  return finding;
}

using Places = std::map<std::pair<NameId, NameId>, Place>;  // by runtime and place

// Those that are long also without what the platform may have added; the others are excused.
std::vector<Candidate> long_polls(const FindContext& context,
                                  const std::unordered_map<NameId, Distribution>& by_runtime,
                                  Places& places) {
  const Trace& trace = context.trace;
  std::vector<Candidate> candidates;
  for (const Lane& lane : trace.lanes) {
    const std::uint64_t p90_ns = by_runtime.at(lane.runtime).quantile(0.9);
    const std::uint64_t threshold_ns =
        std::max(context.options.long_poll_floor_ns,
                 p90_ns > ~std::uint64_t{0} / kTimesP90 ? ~std::uint64_t{0} : kTimesP90 * p90_ns);
    for (std::uint32_t poll = lane.polls.first; poll < lane.polls.last; ++poll) {
      const std::uint64_t duration_ns = trace.polls.duration_ns(poll);
      if (!trace.polls.is_complete(poll) || duration_ns < threshold_ns ||
          lane.worker == kBlockingWorker) {
        continue;
      }
      const std::uint64_t stalled_ns =
          context.platform.most_ns(trace.polls.start_ns[poll], trace.polls.end_ns[poll]);
      if (duration_ns - stalled_ns < threshold_ns) {
        ++places[{lane.runtime, trace.polls.spawn_loc[poll]}].excused;
      } else {
        candidates.push_back({poll, duration_ns - stalled_ns - threshold_ns, stalled_ns});
      }
    }
  }
  return candidates;
}

}  // namespace

void find_long_polls(const FindContext& context, Findings& out) {
  const Trace& trace = context.trace;
  const auto by_runtime = distributions(trace);
  Places places;
  std::vector<Candidate> candidates = long_polls(context, by_runtime, places);
  // The cheapest to explain first: so the kernel's wait explains away as many as it can.
  dial9::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.over_ns < b.over_ns; });
  KernelWaitBudget budget(trace);
  for (const Candidate& candidate : candidates) {
    const std::uint32_t poll = candidate.poll;
    const Lane& lane = trace.lanes[trace.polls.lane[poll]];
    Place& place = places[{lane.runtime, trace.polls.spawn_loc[poll]}];
    place.spawn_loc = trace.polls.spawn_loc[poll];
    const std::uint64_t start_ns = trace.polls.start_ns[poll];
    const std::uint64_t end_ns = trace.polls.end_ns[poll];
    if (budget.most(lane.worker, start_ns, end_ns) > candidate.over_ns) {
      budget.take(lane.worker, start_ns, end_ns, candidate.over_ns + 1);
      ++place.explained;
      continue;
    }
    ++place.count;
    const std::uint64_t claimed_ns = end_ns - start_ns - candidate.stalled_ns;
    place.total_ns += claimed_ns;
    place.taken_off_ns += candidate.stalled_ns;
    if (place.worst == kNoIndex || claimed_ns > place.worst_ns) {
      place.worst = poll;
      place.worst_ns = claimed_ns;
    }
  }
  struct Found {
    Finding finding;
    std::pair<NameId, NameId> key;
  };
  std::vector<Found> found;
  for (const auto& [key, place] : places) {
    if (place.count != 0) {
      found.push_back({make_finding(context, place), key});
    }
  }
  dial9::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return a.finding.severity != b.finding.severity ? a.finding.severity > b.finding.severity
                                                    : a.finding.score > b.finding.score;
  });
  if (found.size() > kMaxPlaces) {
    found.erase(found.begin() + kMaxPlaces, found.end());
  }
  for (Found& one : found) {  // evidence only of what is shown: it looks through all blocks
    const Place& place = places.at(one.key);
    const std::uint32_t worker = trace.lanes[trace.polls.lane[place.worst]].worker;
    add_evidence(context, place, by_runtime.at(one.key.first), budget.is_known(worker),
                 one.finding);
    out.push_back(std::move(one.finding));
  }
}

}  // namespace dial9::analysis
