// See task_json.h.
// Strongest property: every poll and wake of the task is in exactly one page.
// Spec: docs/spec/http_api.md, "One task".
// SPDX-License-Identifier: Apache-2.0
#include "server/task_json.h"

#include <algorithm>

#include "server/json.h"
#include "server/profile_json.h"
#include "server/summary_json.h"

namespace dial9::server {
namespace {

using analysis::kNoIndex;
using analysis::kUnknownNs;

// Walks a task's life in order of time: of equal moments spawn comes first, then wakes, dumps (of
// the suspension before), polls, end.
class Life {
 public:
  Life(const Run& run, std::uint32_t task)
      : trace_(run.trace()),
        task_(task),
        polls_(trace_.tasks.polls[task]),
        wakes_(trace_.tasks.wakes[task]),
        dumps_(trace_.dumps_of_task(task)) {
    spawn_ns_ = trace_.tasks.spawn_ns[task];
    end_ns_ = trace_.tasks.terminate_ns[task];
  }

  enum class What { kSpawn, kWake, kDump, kPoll, kEnd, kDone };
  struct Step {
    What what = What::kDone;
    std::uint32_t index = kNoIndex;  // of the wake, dump or poll
  };

  std::uint64_t total() const {
    return polls_.size() + wakes_.size() + dumps_.size() + (spawn_ns_ != kUnknownNs ? 1 : 0) +
           (end_ns_ != kUnknownNs ? 1 : 0);
  }

  Step next() {
    const bool has_wake = wakes_.first < wakes_.last;
    const bool has_poll = polls_.first < polls_.last;
    const std::uint64_t wake = has_wake ? trace_.wakes.at_ns[wakes_.first] : kUnknownNs;
    const std::uint32_t poll_index = has_poll ? trace_.task_polls[polls_.first] : kNoIndex;
    const std::uint64_t poll = has_poll ? trace_.polls.start_ns[poll_index] : kUnknownNs;
    const bool has_dump = dumps_.first < dumps_.last;
    const std::uint64_t dump = has_dump ? trace_.dumps[dumps_.first].at_ns : kUnknownNs;
    if (spawn_ns_ != kUnknownNs && spawn_ns_ <= std::min({wake, dump, poll, end_ns_})) {
      spawn_ns_ = kUnknownNs;
      return {What::kSpawn, task_};
    }
    if (has_wake && wake <= std::min({dump, poll, end_ns_})) return {What::kWake, wakes_.first++};
    if (has_dump && dump <= std::min(poll, end_ns_)) return {What::kDump, dumps_.first++};
    if (has_poll && poll <= end_ns_) {
      ++polls_.first;
      return {What::kPoll, poll_index};
    }
    if (end_ns_ == kUnknownNs) return {};
    end_ns_ = kUnknownNs;
    return {What::kEnd, task_};
  }

 private:
  const analysis::Trace& trace_;
  std::uint32_t task_;
  analysis::Range polls_;
  analysis::Range wakes_;
  analysis::Range dumps_;
  std::uint64_t spawn_ns_ = kUnknownNs;
  std::uint64_t end_ns_ = kUnknownNs;
};

json row_of(const char* what, const Run& run, std::uint64_t at_ns) {
  return {{"what", what},      {"at_ns", run.relative(at_ns)},
          {"dur_ns", nullptr}, {"delay_ns", nullptr},
          {"lane", nullptr},   {"poll", nullptr},
          {"by", nullptr},     {"dump", nullptr},
          {"where", nullptr}};
}

json row_json(const Run& run, const Life::Step& step) {
  const auto& trace = run.trace();
  switch (step.what) {
    case Life::What::kSpawn:
      return row_of("spawn", run, trace.tasks.spawn_ns[step.index]);
    case Life::What::kEnd:
      return row_of("end", run, trace.tasks.terminate_ns[step.index]);
    case Life::What::kWake: {
      json row = row_of("wake", run, trace.wakes.at_ns[step.index]);
      const std::uint32_t waker = trace.wakes.waker[step.index];
      if (waker != kNoIndex) row["by"] = std::to_string(trace.tasks.id[waker]);
      return row;
    }
    case Life::What::kDump: {
      json row = row_of("dump", run, trace.dumps[step.index].at_ns);
      row["dump"] = step.index;
      const std::string where = leaf_text(run, trace.dumps[step.index].stack);
      if (!where.empty()) row["where"] = where;
      return row;
    }
    default: {
      json row = row_of("poll", run, trace.polls.start_ns[step.index]);
      row["dur_ns"] = trace.polls.duration_ns(step.index);
      row["delay_ns"] = duration_json(trace.polls.delay_ns(step.index));
      row["lane"] = trace.polls.lane[step.index];
      row["poll"] = step.index;
      return row;
    }
  }
}

json rows_json(const Run& run, std::uint32_t task, std::uint64_t offset, std::uint64_t limit) {
  Life life(run, task);
  json out = json::array();
  for (std::uint64_t i = 0; out.size() < limit; ++i) {
    const Life::Step step = life.next();
    if (step.what == Life::What::kDone) break;
    if (i >= offset) out.push_back(row_json(run, step));
  }
  return out;
}

struct Totals {
  std::uint32_t worst = kNoIndex;
  std::uint64_t known_delays = 0;
  std::uint64_t worst_delay = kUnknownNs;
};

Totals totals_of(const analysis::Trace& trace, analysis::Range polls) {
  Totals out;
  for (std::uint32_t i = polls.first; i < polls.last; ++i) {
    const std::uint32_t poll = trace.task_polls[i];
    if (out.worst == kNoIndex ||
        trace.polls.duration_ns(poll) > trace.polls.duration_ns(out.worst)) {
      out.worst = poll;
    }
    const std::uint64_t delay = trace.polls.delay_ns(poll);
    if (delay == kUnknownNs) continue;
    ++out.known_delays;
    if (out.worst_delay == kUnknownNs || delay > out.worst_delay) out.worst_delay = delay;
  }
  return out;
}

}  // namespace

json task_json(const Run& run, std::uint32_t task, std::uint64_t offset, std::uint64_t limit) {
  const auto& trace = run.trace();
  const auto& tasks = trace.tasks;
  const Totals totals = totals_of(trace, tasks.polls[task]);
  json worst;
  if (totals.worst != kNoIndex) {
    worst = {{"index", totals.worst},
             {"at_ns", run.relative(trace.polls.start_ns[totals.worst])},
             {"dur_ns", trace.polls.duration_ns(totals.worst)},
             {"lane", trace.polls.lane[totals.worst]},
             {"is_open", (trace.polls.flags[totals.worst] & analysis::kPollOpen) != 0}};
  }
  const bool is_spawn_seen = (tasks.flags[task] & analysis::kTaskSpawnSeen) != 0;
  const bool is_instrumented = (tasks.flags[task] & analysis::kTaskInstrumented) != 0;
  const std::string_view loc = trace.names.text(tasks.spawn_loc[task]);
  return {
      {"task", std::to_string(tasks.id[task])},
      {"spawned_ns", moment_json(run, tasks.spawn_ns[task])},
      {"spawn_loc", loc.empty() ? json() : json(loc)},
      {"ended_ns", moment_json(run, tasks.terminate_ns[task])},
      {"instrumented", is_spawn_seen ? json(is_instrumented) : json()},
      {"polls_total", tasks.polls[task].size()},
      {"busy_ns", tasks.busy_ns[task]},
      {"worst_poll", std::move(worst)},
      {"delay", {{"known", totals.known_delays}, {"worst_ns", duration_json(totals.worst_delay)}}},
      {"first_ns", moment_json(run, tasks.first_ns[task])},
      {"last_ns", moment_json(run, tasks.last_ns[task])},
      {"wakes_total", tasks.wakes[task].size()},
      {"dumps_total", trace.dumps_of_task(task).size()},
      {"migrations", tasks.migrations[task]},
      {"rows", rows_json(run, task, offset, limit)},
      {"rows_total", Life(run, task).total()},
      {"offset", offset}};
}

}  // namespace dial9::server
