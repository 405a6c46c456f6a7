// Tasks, wakes, polls and queue counters: the warm paths of the seam.
// SPDX-License-Identifier: Apache-2.0
#include "dial9/internal/runtime_events.h"
#include "recorder/runtime_inline.h"

namespace dial9::runtime {
namespace {

using internal::Binding;
using internal::record_at;
using internal::t_state;
using internal::t_task;
using internal::ThreadState;

constinit std::atomic<std::uint64_t> g_next_task_block{0};
constexpr std::uint64_t kTaskBlock = 256;

// `when_ns` 0: now.
std::uint64_t write_start(const Poll& poll, std::uint64_t when_ns) noexcept {
  return internal::write_poll_start(internal::recording_epoch(), poll.worker, poll.task.id,
                                    internal::place_of(poll.task), when_ns);
}

// The open poll around, if any; deferred ones between are then known to be a scheduler's own.
Poll* open_around(Poll& inner) noexcept {
  for (Poll* poll = inner.outer; poll != nullptr; poll = poll->outer) {
    if (poll->state == Poll::State::kDeferred) poll->state = Poll::State::kScheduler;
    if (poll->state == Poll::State::kOpen) return poll;
    if (poll->state == Poll::State::kPaused) return nullptr;
  }
  return nullptr;
}

Poll* paused_around(Poll* poll) noexcept {
  for (; poll != nullptr; poll = poll->outer) {
    if (poll->state == Poll::State::kPaused) return poll;
    if (poll->state == Poll::State::kOpen) return nullptr;
  }
  return nullptr;
}

// With a poll around. `when_ns` 0: now.
[[gnu::noinline]] std::uint64_t start_nested(Poll& poll, std::uint64_t when_ns) noexcept {
  Poll* around = open_around(poll);
  if (around != nullptr && around->task.id == poll.task.id && around->runtime == poll.runtime) {
    poll.state = Poll::State::kMerged;
    return when_ns != 0 ? when_ns : now_ns();
  }
  const std::uint32_t epoch = internal::recording_epoch();
  poll.state = Poll::State::kOpen;
  if (around != nullptr) {
    around->state = Poll::State::kPaused;
    const std::uint64_t ended_ns = internal::write_poll_end(epoch, around->worker, when_ns);
    if (when_ns == 0) when_ns = ended_ns;  // a given one stays, though the event is shed
    internal::poll_ended(*around, when_ns);
  }
  const std::uint64_t started_ns = write_start(poll, when_ns);
  if (when_ns == 0) when_ns = started_ns;
  internal::poll_started(poll, when_ns);
  return when_ns;
}

WorkerId bind(RuntimeId runtime) noexcept {
  const Binding* binding = internal::worker_binding(t_state, runtime);
  return binding == nullptr ? kUnknownWorker : internal::event_worker(binding->worker);
}

// The thread is the worker again that the poll around made it.
void serve_again(const Poll& ended) noexcept {
  if (ended.outer->runtime != ended.runtime && is_recording()) bind(ended.outer->runtime);
}

// The poll ended at `stamp`; returns that.
[[gnu::noinline]] std::uint64_t resume_around(const Poll& ended, std::uint64_t stamp) noexcept {
  serve_again(ended);
  if (Poll* paused = paused_around(ended.outer)) {
    paused->state = Poll::State::kOpen;
    write_start(*paused, stamp);
    internal::poll_started(*paused, stamp);
  }
  return stamp;
}

[[gnu::noinline]] std::uint64_t end_unrecorded(Poll& poll) noexcept {
  if (poll.outer != nullptr) serve_again(poll);
  if (poll.state == Poll::State::kOff) internal::poll_ended(poll, 0);
  return 0;
}

}  // namespace

TaskId new_task_id() noexcept {
  ThreadState& t = t_state;
  if (t.next_task_id == t.end_task_id) {
    t.next_task_id = g_next_task_block.fetch_add(kTaskBlock, std::memory_order_relaxed) + 1;
    t.end_task_id = t.next_task_id + kTaskBlock;
  }
  return t.next_task_id++;
}

TaskId task_spawn(Place& place, RuntimeId runtime) noexcept {
  const TaskId id = new_task_id();
  if (Binding* binding = internal::counting_binding(t_state, runtime)) {
    internal::count_up(binding->counters.spawned);
  }
  record(internal::TaskSpawnEvent{id, place, true});
  return id;
}

void task_terminate(TaskId id, RuntimeId runtime) noexcept {
  if (Binding* binding = internal::counting_binding(t_state, runtime)) {
    internal::count_up(binding->counters.terminated);
  }
  record(internal::TaskTerminateEvent{id});
}

void task_ready(TaskId woken) noexcept {
  if (is_recording()) internal::write_wake(internal::recording_epoch(), polled_task(), woken, 0);
}

void task_ready_at(TaskId woken, TaskId waker, std::uint64_t when_ns) noexcept {
  if (is_recording()) internal::write_wake(internal::recording_epoch(), waker, woken, when_ns);
}

std::uint64_t poll_start(Poll& poll, RuntimeId runtime, TaskRef task) noexcept {
  ThreadState& t = t_state;
  internal::enter_poll(t, poll, runtime, task);
  poll.state = Poll::State::kOff;
  const std::uint32_t epoch = internal::recording_epoch();
  if (epoch == 0) return 0;
  poll.worker = bind(runtime);
  if (__builtin_expect(t.is_parked, 0)) unpark();
  if (__builtin_expect(poll.outer != nullptr, 0)) return poll.start_ns = start_nested(poll, 0);
  poll.state = Poll::State::kOpen;
  poll.start_ns = internal::write_poll_start(epoch, poll.worker, task.id, internal::place_of(task));
  internal::poll_started(poll, poll.start_ns);
  return poll.start_ns;
}

std::uint64_t poll_start_deferred(Poll& poll, RuntimeId runtime, TaskRef task) noexcept {
  ThreadState& t = t_state;
  internal::enter_poll(t, poll, runtime, task);
  poll.state = Poll::State::kOff;
  if (!is_recording()) return 0;
  poll.worker = bind(runtime);
  if (t.is_parked) unpark();
  poll.state = Poll::State::kDeferred;
  return poll.start_ns = now_ns();
}

void poll_confirm(Poll& poll) noexcept {
  if (poll.state != Poll::State::kDeferred) return;
  poll.start_ns = start_nested(poll, poll.start_ns);
}

std::uint64_t poll_end(Poll& poll) noexcept {
  ThreadState& t = t_state;
  poll_confirm(poll);
  t_task = poll.before;
  t.poll = poll.outer;
  if (poll.state != Poll::State::kOpen) return end_unrecorded(poll);
  const std::uint64_t stamp = internal::write_poll_end(internal::recording_epoch(), poll.worker);
  internal::poll_ended(poll, stamp);
  if (__builtin_expect(poll.outer != nullptr, 0)) return resume_around(poll, stamp);
  return stamp;
}

void switch_task(TaskRef task) noexcept {
  t_task = task;
  Poll* poll = t_state.poll;
  if (poll == nullptr || poll->task.id == task.id) return;
  if (poll->state == Poll::State::kOff) internal::poll_ended(*poll, 0);
  if (poll->state != Poll::State::kOpen) return;
  const TaskId waker = poll->task.id;
  const std::uint64_t stamp = internal::write_poll_end(internal::recording_epoch(), poll->worker);
  internal::poll_ended(*poll, stamp);
  poll->task = task;
  poll->short_id_size = 0;
  task_ready_at(task.id, waker, stamp);
  write_start(*poll, stamp);
  internal::poll_started(*poll, stamp);
}

bool is_polled(RuntimeId runtime, TaskId task) noexcept {
  for (const Poll* poll = t_state.poll; poll != nullptr; poll = poll->outer) {
    if (poll->state == Poll::State::kOpen) return poll->task.id == task && poll->runtime == runtime;
    if (poll->state == Poll::State::kPaused) return false;
  }
  return false;
}

bool is_in_poll() noexcept {
  const Poll* poll = t_state.poll;
  return poll != nullptr && poll->state != Poll::State::kOff &&
         poll->state != Poll::State::kScheduler;
}

TaskId polled_task() noexcept { return internal::polled_task(); }

std::uint64_t work_queued(RuntimeId runtime, TaskId woken) noexcept {
  queue_pushed(runtime);
  return internal::write_wake(internal::recording_epoch(), internal::polled_task(), woken,
                              internal::queued_ns(t_state.poll, woken));
}

void queue_pushed(RuntimeId runtime) noexcept {
  if (Binding* binding = internal::counting_binding(t_state, runtime)) {
    internal::count_up(binding->counters.pushed);
  }
}

void queue_popped(RuntimeId runtime) noexcept {
  if (Binding* binding = internal::counting_binding(t_state, runtime)) {
    internal::count_up(binding->counters.popped);
  }
}

}  // namespace dial9::runtime
