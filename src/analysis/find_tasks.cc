// task-leak: tasks of one place that are spawned all the time and never end. migration: tasks that
// change the worker at nearly every poll. Spec: docs/spec/findings.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <unordered_map>

#include "analysis/finders.h"
#include "analysis/human.h"

namespace dial9::analysis {
namespace {

constexpr std::size_t kQuarters = 4;
constexpr double kMinIdleShare = 0.9;    // of the place's living tasks, that sleep
constexpr double kMinLivingShare = 0.5;  // of the tasks spawned there
constexpr std::uint64_t kMinDurationNs = 2'000'000'000;
constexpr std::uint64_t kCriticalLeaks = 10'000;
constexpr std::uint64_t kMinMoves = 500;
constexpr double kMinMoveShare = 0.8;
constexpr std::uint64_t kMinChain = 8;  // changes of the runtime in a row
constexpr double kMinHopShare = 0.2;
constexpr double kAboveChance = 0.5;  // of what is left above moving by chance

struct Births {
  std::uint64_t spawned = 0;
  std::uint64_t living = 0;  // spawned in the trace, not ended
  std::uint64_t idle = 0;    // of those, without a poll in the last part of their life
  std::array<std::uint64_t, kQuarters> living_by_quarter{};  // of their spawn
  std::uint32_t oldest = kNoIndex;
};

// Sleeps since the first half of its recorded life.
bool is_idle(const Trace& trace, std::uint32_t task) {
  const std::uint64_t spawn_ns = trace.tasks.spawn_ns[task];
  return trace.tasks.last_ns[task] - spawn_ns <= (trace.end_ns - spawn_ns) / 2;
}

std::unordered_map<NameId, Births> count_births(const Trace& trace) {
  std::unordered_map<NameId, Births> places;
  const std::uint64_t quarter_ns = std::max<std::uint64_t>(trace.duration_ns() / kQuarters, 1);
  for (std::uint32_t task = 0; task < trace.tasks.size(); ++task) {
    const std::uint64_t spawn_ns = trace.tasks.spawn_ns[task];
    if (spawn_ns == kUnknownNs) {
      continue;
    }
    Births& births = places[trace.tasks.spawn_loc[task]];
    ++births.spawned;
    if (trace.tasks.terminate_ns[task] != kUnknownNs) {
      continue;
    }
    ++births.living;
    births.idle += is_idle(trace, task) ? 1U : 0U;
    const std::uint64_t quarter = (spawn_ns - trace.begin_ns) / quarter_ns;
    ++births.living_by_quarter[std::min<std::uint64_t>(quarter, kQuarters - 1)];
    if (births.oldest == kNoIndex || spawn_ns < trace.tasks.spawn_ns[births.oldest]) {
      births.oldest = task;
    }
  }
  return places;
}

// Every quarter of the trace adds to them: at least an eighth each.
bool grows_throughout(const Births& births) {
  return std::all_of(births.living_by_quarter.begin(), births.living_by_quarter.end(),
                     [&](std::uint64_t count) { return count * 8 >= births.living; });
}

Finding leak(const FindContext& context, NameId place, const Births& births) {
  const Trace& trace = context.trace;
  Finding finding;
  finding.kind = FindingKind::kTaskLeak;
  finding.count = births.living;
  finding.where = place_text(trace, place);
  finding.task = births.oldest;
  finding.at_ns = trace.tasks.spawn_ns[births.oldest];
  finding.end_ns = trace.end_ns;
  finding.worst_ns = trace.end_ns - finding.at_ns;
  finding.severity = births.living >= kCriticalLeaks ? Severity::kCritical : Severity::kWarning;
  const std::uint64_t lost = trace.lost_events();
  if (trace.has_unknown_loss() || lost * 2 >= births.living) {
    finding.severity = Severity::kInfo;
    finding.evidence.push_back((trace.has_unknown_loss() ? "an unknown number of events is"
                                                         : counted(lost, "event", "was", "were")) +
                               std::string(" lost: the ends of these tasks may be among them"));
  }
  finding.message = human_count(births.living) + " of " + counted(births.spawned, "task") +
                    " from " + finding.where + " never ended, and " + human_count(births.idle) +
                    (births.idle == 1 ? " of them has" : " of them have") + " long been asleep";
  std::string quarters;
  for (const std::uint64_t count : births.living_by_quarter) {
    quarters += (quarters.empty() ? "" : ", ") + human_count(count);
  }
  finding.evidence.push_back("still there, by the quarter of the trace they were spawned in: " +
                             quarters);
  finding.evidence.push_back("the oldest: " + task_text(trace, births.oldest) + ", asleep for " +
                             human_duration(trace.end_ns - trace.tasks.last_ns[births.oldest]));
  finding.next = "see what they wait for: a missing timeout, or a notification that got lost";
  finding.score = static_cast<double>(births.living);
  return finding;
}

struct Moves {
  std::uint64_t polls = 0;
  std::uint64_t chances = 0;  // polls after a task's first
  std::uint64_t moves = 0;
  std::uint64_t hops = 0;  // of those, in chains of kMinChain changes of the runtime in a row
  std::uint64_t tasks = 0;
  std::uint32_t worst = kNoIndex;    // task
  std::uint64_t worst_delay_ns = 0;  // of a poll after a change, where known
  std::unordered_map<std::uint32_t, std::uint64_t> by_worker;
};

void add_moves(const Trace& trace, std::uint32_t task, Moves& moves) {
  const Range polls = trace.tasks.polls[task];
  moves.polls += polls.size();
  moves.chances += polls.size() - 1;
  moves.moves += trace.tasks.migrations[task];
  ++moves.tasks;
  const Lane* before = nullptr;
  std::uint64_t chain = 0;
  for (std::uint32_t i = polls.first; i < polls.last; ++i) {
    const std::uint32_t poll = trace.task_polls[i];
    const Lane& lane = trace.lanes[trace.polls.lane[poll]];
    ++moves.by_worker[lane.worker];
    const bool has_moved = before != nullptr && lane.worker != before->worker;
    chain = has_moved && lane.runtime != before->runtime ? chain + 1 : 0;
    moves.hops += chain == kMinChain ? kMinChain : chain > kMinChain ? 1 : 0;
    before = &lane;
    if (has_moved && coverage_of(trace.polls.ready_source[poll]) == Coverage::kKnown) {
      moves.worst_delay_ns = std::max(moves.worst_delay_ns, trace.polls.delay_ns(poll));
    }
  }
  if (moves.worst == kNoIndex ||
      trace.tasks.migrations[task] > trace.tasks.migrations[moves.worst]) {
    moves.worst = task;
  }
}

// The share of moves if each poll picked its worker by the shares seen.
double by_chance(const Moves& moves) {
  double same = 0;
  for (const auto& [worker, polls] : moves.by_worker) {
    const double share = static_cast<double>(polls) / static_cast<double>(moves.polls);
    same += share * share;
  }
  return 1 - same;
}

Finding migration(const Trace& trace, NameId place, const Moves& moves) {
  Finding finding;
  finding.kind = FindingKind::kMigration;
  finding.severity = Severity::kWarning;
  finding.count = moves.moves;
  finding.where = place_text(trace, place);
  point_at_poll(trace, trace.task_polls[trace.tasks.polls[moves.worst].first], finding);
  finding.end_ns = trace.tasks.last_ns[moves.worst];
  finding.worst_ns = moves.worst_delay_ns == 0 ? kUnknownNs : moves.worst_delay_ns;
  const double share = static_cast<double>(moves.moves) / static_cast<double>(moves.chances);
  finding.message = "tasks from " + finding.where + " changed the worker at " + human_share(share) +
                    " of their polls (" + counted(moves.moves, "time") + ", " +
                    counted(moves.tasks, "task") + ")";
  if (moves.hops != 0) {
    finding.evidence.push_back(human_count(moves.hops) + " of the changes " +
                               (moves.hops == 1 ? "comes" : "come") + " in rows of " +
                               std::to_string(kMinChain) + " and more, each to another runtime");
  }
  finding.evidence.push_back("by chance it would be " + human_share(by_chance(moves)) + ", with " +
                             counted(moves.by_worker.size(), "worker") + " seen");
  finding.evidence.push_back("the most: " + task_text(trace, moves.worst) + ", " +
                             counted(trace.tasks.migrations[moves.worst], "change"));
  finding.next = "each change costs a wake-up and the caches: keep a task on one executor";
  finding.score = static_cast<double>(moves.moves);
  return finding;
}

}  // namespace

void find_task_leaks(const FindContext& context, Findings& out) {
  const Trace& trace = context.trace;
  if (trace.duration_ns() < kMinDurationNs) {
    return;
  }
  for (const auto& [place, births] : count_births(trace)) {
    const auto living = static_cast<double>(births.living);
    if (births.living >= context.options.task_leak_floor &&
        living >= kMinLivingShare * static_cast<double>(births.spawned) &&
        static_cast<double>(births.idle) >= kMinIdleShare * living && grows_throughout(births)) {
      out.push_back(leak(context, place, births));
    }
  }
}

void find_migrations(const FindContext& context, Findings& out) {
  const Trace& trace = context.trace;
  std::unordered_map<NameId, Moves> places;
  for (std::uint32_t task = 0; task < trace.tasks.size(); ++task) {
    if (trace.tasks.polls[task].size() >= 2) {
      add_moves(trace, task, places[trace.tasks.spawn_loc[task]]);
    }
  }
  for (const auto& [place, moves] : places) {
    const auto chances = static_cast<double>(std::max<std::uint64_t>(moves.chances, 1));
    const double share = static_cast<double>(moves.moves) / chances;
    const double hop_share = static_cast<double>(moves.hops) / chances;
    const double chance = by_chance(moves);
    const bool is_everywhere = moves.moves >= kMinMoves && share >= kMinMoveShare &&
                               share >= chance + kAboveChance * (1 - chance);
    const bool is_hopping = moves.hops >= kMinMoves && hop_share >= kMinHopShare;
    if (is_everywhere || is_hopping) {
      out.push_back(migration(trace, place, moves));
    }
  }
}

}  // namespace dial9::analysis
