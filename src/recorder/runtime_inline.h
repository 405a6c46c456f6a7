// The inline halves of the seam, for the seam itself and for hooks that run at every handler: the
// ordinary case without a call. Strongest property: what isn't ordinary (no recording, a poll
// around, a parked or unbound thread, open spans) is left to the calls of dial9/runtime.h, which do
// the same.
// Spec: docs/spec/events_ours.md, "The seam's state".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "dial9/internal/span_core.h"
#include "recorder/poll_events.h"
#include "recorder/runtime_state.h"

namespace dial9::internal {

// Ever: a task had an open span. Programs without spans stop here.
extern constinit bool g_has_task_spans __attribute__((visibility("hidden")));

[[gnu::always_inline]] inline void enter_poll(ThreadState& t, runtime::Poll& poll,
                                              runtime::RuntimeId runtime,
                                              const runtime::TaskRef& task) noexcept {
  poll.task = task;
  poll.before = t_task;
  poll.outer = t.poll;
  poll.spans = nullptr;
  poll.runtime = static_cast<std::uint16_t>(runtime);
  poll.short_id_size = 0;
  t_task = task;
  t.poll = &poll;
}

// The events are written: notes the poll, and accounts for the task's open spans.
inline void poll_started(runtime::Poll& poll, std::uint64_t stamp_ns) noexcept {
  t_state.last_poll_task = poll.task.id;
  t_state.last_poll_start_ns = stamp_ns;
  if (__builtin_expect(__atomic_load_n(&g_has_task_spans, __ATOMIC_RELAXED), 0)) {
    span_poll_start(poll, stamp_ns);
  }
}
inline void poll_ended(runtime::Poll& poll, std::uint64_t stamp_ns) noexcept {
  if (__builtin_expect(poll.spans != nullptr, 0)) span_poll_end(poll, stamp_ns);
}

inline runtime::Place& place_of(const runtime::TaskRef& task) noexcept {
  return task.place == nullptr ? g_no_place : *task.place;
}

// A wake of the task for work that is ready since `ready_ns` and begins now is consumed already if
// the thread has begun a poll of the task since (docs/spec/events.md, "Ready-time rules"): other
// work of the task came first. This work waits since that poll's end.
inline bool is_wake_consumed(runtime::TaskId task, std::uint64_t ready_ns) noexcept {
  const ThreadState& t = t_state;
  return __builtin_expect(ready_ns < t.last_poll_start_ns, 0) && t.last_poll_task == task;
}
// The stamp that says so: just inside that poll.
inline std::uint64_t wake_stamp(runtime::TaskId task, std::uint64_t ready_ns) noexcept {
  return is_wake_consumed(task, ready_ns) ? t_state.last_poll_start_ns + 1 : ready_ns;
}

// Of the poll's task; empty until it is made.
[[gnu::always_inline]] inline ShortId short_id_of(const runtime::Poll& poll) noexcept {
  return {poll.short_id, poll.short_id_size};
}
// No poll around, no spans: by one store.
[[gnu::always_inline]] inline void set_outermost(runtime::Poll& poll) noexcept {
  using runtime::Poll;
  static_assert(offsetof(Poll, spans) == offsetof(Poll, outer) + sizeof(Poll::outer));
  std::memset(reinterpret_cast<std::uint8_t*>(&poll) + offsetof(Poll, outer), 0,
              sizeof(Poll::outer) + sizeof(Poll::spans));
}
// Open, of the thread's plain runtime and worker: all of that by one store.
[[gnu::always_inline]] inline void set_open(runtime::Poll& poll, const ThreadState& t,
                                            ShortId id) noexcept {
  using runtime::Poll;
  static_assert(offsetof(Poll, state) == offsetof(Poll, runtime) + 2 &&
                offsetof(Poll, short_id_size) == offsetof(Poll, runtime) + 3 &&
                offsetof(Poll, worker) == offsetof(Poll, runtime) + 4 &&
                sizeof(Poll) == offsetof(Poll, runtime) + 16);
  static_assert(offsetof(ThreadState, plain_state) == offsetof(ThreadState, plain_runtime) + 2 &&
                offsetof(ThreadState, plain_worker) == offsetof(ThreadState, plain_runtime) + 4);
  std::uint64_t head;
  std::memcpy(&head,
              reinterpret_cast<const std::uint8_t*>(&t) + offsetof(ThreadState, plain_runtime),
              sizeof head);
  put_raw(reinterpret_cast<std::uint8_t*>(&poll) + offsetof(Poll, runtime),
          head | std::uint64_t{id.size} << 24);
  poll.short_id = id.bytes;
}
// Makes it. False: there is no task, or its id isn't short.
inline bool make_short_id(runtime::Poll& poll) noexcept {
  if (poll.task.id == 0 || poll.task.id >= kShortTasks) return false;
  const ShortId id = short_id(poll.task.id);
  poll.short_id = id.bytes;
  poll.short_id_size = static_cast<std::uint8_t>(id.size);
  return true;
}

// What start_plain_poll() asks besides the buffer's state.
[[gnu::always_inline]] inline bool can_start_plain_poll(runtime::RuntimeId runtime,
                                                        const runtime::TaskRef& task) noexcept {
  const ThreadState& t = t_state;
  return t.poll == nullptr && t.plain_runtime == runtime && task.place != nullptr;
}

// queue_popped() and poll_start() in the ordinary case: recording, outside polls, on a thread whose
// last work was for the same runtime. `epoch` is recording_epoch(). False: nothing is done. Calls
// nothing before its end and needs few registers: a hook that leaves the rest to a tail call saves
// none on the stack. For the same reason `get_poll` and `short_id` give the poll, and the
// ShortId of the task (which is below kShortTasks), when they are needed.
template <class GetPoll, class GetShortId>
[[gnu::always_inline]] inline bool start_plain_poll(const GetPoll& get_poll, std::uint32_t epoch,
                                                    runtime::RuntimeId runtime,
                                                    const runtime::TaskRef& task,
                                                    const GetShortId& short_id) noexcept {
  ThreadState& t = t_state;
  ThreadBuffer& buffer = t_buffer;
  if (__builtin_expect(!can_start_plain_poll(runtime, task), 0)) return false;
  if (__builtin_expect(!begin_poll_start(buffer, epoch, *task.place), 0)) return false;
  const std::uint64_t stamp =
      finish_poll_start(buffer, epoch, t.plain_worker, short_id, task.place);
  count_up(t.binding->counters.popped);
  runtime::Poll& poll = get_poll();
  poll.task = task;
  poll.before = t_task;
  set_outermost(poll);
  poll.start_ns = stamp;
  set_open(poll, t, short_id());
  t_task = task;
  t.poll = &poll;
  poll_started(poll, stamp);
  return true;
}

// poll_end() of a poll that start_plain_poll() began, in the ordinary case. False: nothing is done.
[[gnu::always_inline]] inline bool end_plain_poll(runtime::Poll& poll,
                                                  std::uint32_t epoch) noexcept {
  ThreadBuffer& buffer = t_buffer;
  if (__builtin_expect(
          poll.state != runtime::Poll::State::kOpen || !begin_poll_event(buffer, epoch), 0)) {
    return false;
  }
  const std::uint64_t stamp = finish_poll_end(buffer, epoch, poll.worker);
  t_task = poll.before;
  t_state.poll = nullptr;
  poll_ended(poll, stamp);
  return true;
}

inline runtime::TaskId polled_task() noexcept {
  return t_state.poll == nullptr ? 0 : t_state.poll->task.id;
}

inline bool is_own_poll(const runtime::Poll* poll, runtime::TaskId task) noexcept {
  return poll != nullptr && poll->task.id == task && poll->state == runtime::Poll::State::kOpen;
}

// When work that the thread queues now is ready: 0, which is now; but the next poll of the task
// whose poll it is in counts from the end of that one, so the last stamp does.
inline std::uint64_t queued_ns(const runtime::Poll* poll, runtime::TaskId woken) noexcept {
  if (!is_own_poll(poll, woken) || poll->start_ns == 0) return 0;  // 0: its start wasn't recorded
  return (t_buffer.base_ns > poll->start_ns ? t_buffer.base_ns : poll->start_ns) + 1;
}

// work_queued() in the ordinary cases, for the runtime of t_state.counting, which isn't null; the
// counter is left to the caller. `epoch` is recording_epoch(). `stamp` is set if true; false:
// nothing is done. Tasks are below kShortTasks.
//
// In an open poll of the task itself, which has its short id.
[[gnu::always_inline]] inline bool try_queue_own_work(std::uint32_t epoch,
                                                      const runtime::Poll& poll,
                                                      std::uint64_t& stamp) noexcept {
  ThreadBuffer& buffer = t_buffer;
  // False too where the poll's start is 0 (not recorded) or above the base: the chunk is new, or
  // the last stamp was one of the past.
  const bool is_base_inside = poll.start_ns - 1 < buffer.base_ns;
  if (__builtin_expect(!is_base_inside || !begin_poll_event(buffer, epoch), 0)) return false;
  stamp = finish_own_wake(buffer, epoch, short_id_of(poll));
  return true;
}
// Wherever.
inline bool try_queue_work(std::uint32_t epoch, runtime::TaskId waker, runtime::TaskId woken,
                           std::uint64_t& stamp) noexcept {
  ThreadBuffer& buffer = t_buffer;
  if (__builtin_expect(!begin_poll_event(buffer, epoch), 0)) return false;
  const std::uint64_t queued = queued_ns(t_state.poll, woken);
  stamp = queued != 0 ? queued : line_at(buffer.clock, read_ticks());
  finish_wake(buffer, epoch, waker, woken, stamp);
  return true;
}

}  // namespace dial9::internal
