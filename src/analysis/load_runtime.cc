// Handlers for what runtimes record: polls, parks, tasks, wakes, queue depths.
// Spec: docs/spec/events.md, "Runtime".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "analysis/loader_impl.h"

namespace dial9::analysis {

using format::Event;

RawWorker& Loader::Impl::worker(std::uint64_t id, std::uint64_t at_ns) {
  if (last_worker_ == nullptr || last_worker_id_ != id) {
    last_worker_ = &workers_[id];
    last_worker_id_ = id;
  }
  RawWorker& raw = *last_worker_;
  if (at_ns < raw.last_ns && raw.last_stream == stream_ && id != kUnknownWorker &&
      id != kBlockingWorker) {
    ++trace_.inversions;
  }
  raw.last_ns = at_ns;
  raw.last_stream = stream_;
  return raw;
}

void Loader::Impl::add_poll(std::uint64_t worker_id, const RawPoll& poll) {
  RawWorker& raw = worker(worker_id, poll.at_ns);
  if (!raw.polls.empty() && raw.polls.back().at_ns > poll.at_ns) {
    raw.has_poll_disorder = true;
  }
  raw.polls.push_back(poll);
}

void Loader::Impl::add_park(std::uint64_t worker_id, const RawPark& park) {
  RawWorker& raw = worker(worker_id, park.at_ns);
  if (!raw.parks.empty() && raw.parks.back().at_ns > park.at_ns) {
    raw.has_park_disorder = true;
  }
  raw.parks.push_back(park);
}

void Loader::Impl::on_poll_start(const Event& event, const Plan& plan) {
  const std::uint32_t task = task_index(identity(event, plan.field[2], 0), event.timestamp_ns);
  const std::uint64_t depth = number(event, plan.field[1], kUnknownDepth);
  add_poll(number32(event, plan.field[0], kUnknownWorker),
           {event.timestamp_ns, task, text(event, plan.field[3]), stream_, RawPollKind::kStart,
            static_cast<std::uint8_t>(std::min<std::uint64_t>(depth, kUnknownDepth))});
}

void Loader::Impl::on_poll_end(const Event& event, const Plan& plan) {
  add_poll(number32(event, plan.field[0], kUnknownWorker),
           {event.timestamp_ns, kNoIndex, kNoName, stream_, RawPollKind::kEnd, kUnknownDepth});
}

void Loader::Impl::on_park(const Event& event, const Plan& plan) {
  add_park(number32(event, plan.field[0], kUnknownWorker),
           {event.timestamp_ns, number(event, plan.field[1], kUnknownNs), kUnknownNs,
            number32(event, plan.field[2], 0), stream_, true});
}

void Loader::Impl::on_unpark(const Event& event, const Plan& plan) {
  add_park(number32(event, plan.field[0], kUnknownWorker),
           {event.timestamp_ns, number(event, plan.field[1], kUnknownNs),
            number(event, plan.field[2], kUnknownNs), number32(event, plan.field[3], 0), stream_,
            false});
}

void Loader::Impl::on_task_spawn(const Event& event, const Plan& plan) {
  const std::uint32_t task = task_index(identity(event, plan.field[0], 0), event.timestamp_ns);
  if (task == kNoIndex) {
    return;
  }
  trace_.tasks.spawn_ns[task] = event.timestamp_ns;
  trace_.tasks.spawn_loc[task] = text(event, plan.field[1]);
  // Older writers don't say; what they spawn has wakes where it is instrumented at all.
  const bool is_instrumented = number(event, plan.field[2], 1) != 0;
  trace_.tasks.flags[task] = static_cast<std::uint8_t>(
      kTaskSpawnSeen | (is_instrumented ? kTaskInstrumented : std::uint8_t{0}));
}

void Loader::Impl::on_task_terminate(const Event& event, const Plan& plan) {
  const std::uint32_t task = task_index(identity(event, plan.field[0], 0), event.timestamp_ns);
  if (task != kNoIndex) {
    trace_.tasks.terminate_ns[task] = event.timestamp_ns;
  }
}

void Loader::Impl::on_wake(const Event& event, const Plan& plan) {
  const std::uint32_t woken = task_index(identity(event, plan.field[1], 0), event.timestamp_ns);
  if (woken == kNoIndex) {
    return;
  }
  wakes_.push_back({event.timestamp_ns, woken,
                    task_index(identity(event, plan.field[0], 0), event.timestamp_ns)});
}

Series& Loader::Impl::series(NameId runtime, Series::Kind kind) {
  const std::uint64_t key = std::uint64_t{runtime} << 8 | static_cast<std::uint64_t>(kind);
  const auto [known, is_new] =
      series_of_.try_emplace(key, static_cast<std::uint32_t>(trace_.series.size()));
  if (!is_new) {
    return trace_.series[known->second];
  }
  std::string name(trace_.names.text(runtime));
  name += name.empty() ? "" : ": ";
  switch (kind) {
    case Series::Kind::kQueueDepth:
      name += "queue depth";
      break;
    case Series::Kind::kAliveTasks:
      name += "tasks alive";
      break;
    case Series::Kind::kResidentBytes:
      name += "resident bytes";
      break;
    case Series::Kind::kAcceptQueue:
      name += "accept queue";
      break;
  }
  Series made;
  made.name = trace_.names.intern(name);
  made.kind = kind;
  made.runtime = runtime;
  return trace_.series.emplace_back(std::move(made));
}

void Loader::Impl::add_sample(NameId runtime, Series::Kind kind, std::uint64_t at_ns,
                              double value) {
  Series& target = series(runtime, kind);
  target.at_ns.push_back(at_ns);
  target.value.push_back(value);
}

void Loader::Impl::on_runtime_metrics(const Event& event, const Plan& plan) {
  const NameId runtime = text(event, plan.field[0]);
  const std::uint64_t depth = number(event, plan.field[1], kUnknownNs);
  const std::uint64_t alive = number(event, plan.field[2], kUnknownNs);
  if (depth != kUnknownNs) {
    add_sample(runtime, Series::Kind::kQueueDepth, event.timestamp_ns, static_cast<double>(depth));
  }
  if (alive != kUnknownNs) {
    add_sample(runtime, Series::Kind::kAliveTasks, event.timestamp_ns, static_cast<double>(alive));
  }
}

void Loader::Impl::on_queue_sample(const Event& event, const Plan& plan) {
  const std::uint64_t depth = number(event, plan.field[0], kUnknownNs);
  if (depth != kUnknownNs) {
    add_sample(kNoName, Series::Kind::kQueueDepth, event.timestamp_ns, static_cast<double>(depth));
  }
}

void Loader::Impl::on_worker_sched(const Event& event, const Plan& plan) {
  trace_.sched.push_back({event.timestamp_ns, number32(event, plan.field[0], kUnknownWorker),
                          number32(event, plan.field[1], 0), number(event, plan.field[2], 0),
                          number(event, plan.field[3], 0), number(event, plan.field[4], 0)});
}

}  // namespace dial9::analysis
