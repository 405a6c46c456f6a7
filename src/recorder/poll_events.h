// The three events that every handler costs, written by hand: a wake, a poll's start, a poll's end.
// Strongest property: the bytes are those that record() writes (poll_events_test.cc), published in
// the same way; what it checks for each event, here one comparison covers.
//
// `ThreadBuffer::poll_events_end` is set while the thread's chunk has the schemas of all three and
// its clock is the counter. Else, and for whatever is rare (a worker beyond 127, a place that the
// chunk lacks, no room), the event takes the general way, behind one cold call.
// Spec: docs/spec/recorder.md, "Hot path".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dial9/internal/runtime_events.h"
#include "dial9/runtime.h"

namespace dial9::internal {

// What one of them takes at most, and what a wide store touches beyond.
inline constexpr std::size_t kPollEventBytes = kEventHeadBytes + kResetBytes + 3 * 10 + 8;

extern constinit runtime::Place g_no_place;

// The general way. `when_ns` 0: now. Each returns the stamp, 0 if off or dropped.
[[gnu::cold, gnu::noinline]] std::uint64_t record_poll_start(std::uint32_t worker,
                                                             runtime::TaskId task,
                                                             runtime::Place& place,
                                                             std::uint64_t when_ns) noexcept;
[[gnu::cold, gnu::noinline]] std::uint64_t record_poll_end(std::uint32_t worker) noexcept;
[[gnu::cold, gnu::noinline]] std::uint64_t record_wake(runtime::TaskId waker, runtime::TaskId woken,
                                                       std::uint64_t when_ns) noexcept;

// Marks the thread as inside a record call. False: the short way isn't open, nothing is marked.
[[gnu::always_inline]] inline bool begin_poll_event(ThreadBuffer& buffer,
                                                    std::uint32_t epoch) noexcept {
  if (__builtin_expect(buffer.ready_epoch != epoch, 0)) return false;
  buffer.ready_epoch = kBusyEpoch;
  signal_fence();
  if (__builtin_expect(buffer.cursor < buffer.poll_events_end, 1)) return true;
  signal_fence();
  buffer.ready_epoch = epoch;
  return false;
}

inline void leave_poll_event(ThreadBuffer& buffer, std::uint32_t epoch) noexcept {
  signal_fence();
  buffer.ready_epoch = epoch;
}

// Publishes what lies up to `end`.
[[gnu::always_inline]] inline void finish_poll_event(ThreadBuffer& buffer, std::uint32_t epoch,
                                                     std::uint8_t* end, std::uint64_t ns) noexcept {
  buffer.base_ns = ns;
  buffer.cursor = end;
  thread_publish(buffer);
  leave_poll_event(buffer, epoch);
}

// Ids are dense from 1: few bytes.
inline std::uint8_t* put_task_id(std::uint8_t* at, runtime::TaskId id) noexcept {
  while (__builtin_expect(id >= 0x80, 0)) {
    *at++ = static_cast<std::uint8_t>(id | 0x80);
    id >>= 7;
  }
  *at = static_cast<std::uint8_t>(id);
  return at + 1;
}

// A worker's id and an empty local queue fit into the word of the head.
inline constexpr std::uint32_t kShortWorkers = 0x80;

// begin_poll_event() for a poll's start: the chunk must know its place.
[[gnu::always_inline]] inline bool begin_poll_start(ThreadBuffer& buffer, std::uint32_t epoch,
                                                    const runtime::Place& place) noexcept {
  if (__builtin_expect(!begin_poll_event(buffer, epoch), 0)) return false;
  const std::uint32_t id = __atomic_load_n(&place.id, __ATOMIC_RELAXED);
  if (__builtin_expect(id != 0 && buffer.tables->symbols[id % kSymbolSlots] == id, 1)) return true;
  leave_poll_event(buffer, epoch);
  return false;
}

// The second halves, after a begin. `worker` is below kShortWorkers. Return the stamp.
[[gnu::always_inline]] inline std::uint64_t finish_poll_start(
    ThreadBuffer& buffer, std::uint32_t epoch, std::uint32_t worker, runtime::TaskId task,
    const runtime::Place& place) noexcept {
  const std::uint64_t ns = line_at(buffer.clock, read_ticks());
  std::uint8_t* at =
      put_event_head(buffer, buffer.cursor, kFixedTypeId<PollStartEvent>, ns, worker);
  at = put_raw(put_task_id(at + 2, task), __atomic_load_n(&place.id, __ATOMIC_RELAXED));
  finish_poll_event(buffer, epoch, at, ns);
  return ns;
}
[[gnu::always_inline]] inline std::uint64_t finish_poll_end(ThreadBuffer& buffer,
                                                            std::uint32_t epoch,
                                                            std::uint32_t worker) noexcept {
  const std::uint64_t ns = line_at(buffer.clock, read_ticks());
  std::uint8_t* at = put_event_head(buffer, buffer.cursor, kFixedTypeId<PollEndEvent>, ns, worker);
  finish_poll_event(buffer, epoch, at + 1, ns);
  return ns;
}
[[gnu::always_inline]] inline std::uint64_t finish_wake(ThreadBuffer& buffer, std::uint32_t epoch,
                                                        runtime::TaskId waker,
                                                        runtime::TaskId woken,
                                                        std::uint64_t when_ns) noexcept {
  const std::uint64_t ns = when_ns != 0 ? when_ns : line_at(buffer.clock, read_ticks());
  std::uint8_t* at = put_event_head(buffer, buffer.cursor, kFixedTypeId<WakeEventEvent>, ns, 0);
  at = put_task_id(put_task_id(at, waker), woken);
  *at = static_cast<std::uint8_t>(runtime::kUnknownWorker);  // any may take it
  finish_poll_event(buffer, epoch, at + 1, ns);
  return ns;
}

// The whole events. `epoch` is recording_epoch(), which may be 0. Now.
inline std::uint64_t write_poll_start(std::uint32_t epoch, std::uint32_t worker,
                                      runtime::TaskId task, runtime::Place& place) noexcept {
  if (__builtin_expect(worker < kShortWorkers && begin_poll_start(t_buffer, epoch, place), 1)) {
    return finish_poll_start(t_buffer, epoch, worker, task, place);
  }
  return record_poll_start(worker, task, place, 0);
}
inline std::uint64_t write_poll_end(std::uint32_t epoch, std::uint32_t worker) noexcept {
  if (__builtin_expect(worker < kShortWorkers && begin_poll_event(t_buffer, epoch), 1)) {
    return finish_poll_end(t_buffer, epoch, worker);
  }
  return record_poll_end(worker);
}
// `when_ns` 0: now.
inline std::uint64_t write_wake(std::uint32_t epoch, runtime::TaskId waker, runtime::TaskId woken,
                                std::uint64_t when_ns) noexcept {
  if (__builtin_expect(begin_poll_event(t_buffer, epoch), 1)) {
    return finish_wake(t_buffer, epoch, waker, woken, when_ns);
  }
  return record_wake(waker, woken, when_ns);
}

}  // namespace dial9::internal
