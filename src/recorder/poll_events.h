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
#include "recorder/runtime_state.h"

namespace dial9::internal {

// What one of them takes at most, and what a wide store touches beyond.
inline constexpr std::size_t kPollEventBytes = kEventHeadBytes + kResetBytes + 3 * 10 + 8;

extern constinit runtime::Place g_no_place;

// The general way. `when_ns` 0: now. Each returns the stamp, 0 if off or dropped.
[[gnu::cold, gnu::noinline]] std::uint64_t record_poll_start(std::uint32_t worker,
                                                             runtime::TaskId task,
                                                             runtime::Place& place,
                                                             std::uint64_t when_ns) noexcept;
[[gnu::cold, gnu::noinline]] std::uint64_t record_poll_end(std::uint32_t worker,
                                                           std::uint64_t when_ns) noexcept;
[[gnu::cold, gnu::noinline]] std::uint64_t record_wake(runtime::TaskId waker, runtime::TaskId woken,
                                                       std::uint64_t when_ns) noexcept;

// Marks the thread as inside a record call. False: the short way isn't open, nothing is marked.
// `epoch` may be 0: a thread whose own is 0 has no poll_events_end.
[[gnu::always_inline]] inline bool begin_poll_event(ThreadBuffer& buffer,
                                                    std::uint32_t epoch) noexcept {
  if (__builtin_expect(buffer.ready_epoch != epoch, 0)) return false;
  buffer.ready_epoch = kBusyEpoch;
  signal_fence();
  if (__builtin_expect(buffer.cursor() < buffer.poll_events_end, 1)) return true;
  signal_fence();
  buffer.ready_epoch = epoch;
  return false;
}

inline void leave_poll_event(ThreadBuffer& buffer, std::uint32_t epoch) noexcept {
  signal_fence();
  buffer.ready_epoch = epoch;
}

// Publishes an event of so many bytes.
[[gnu::always_inline]] inline void finish_poll_event(ThreadBuffer& buffer, std::uint32_t epoch,
                                                     std::size_t size, std::uint64_t ns) noexcept {
  buffer.base_ns = ns;
  thread_publish(buffer, size);
  leave_poll_event(buffer, epoch);
}

// Ids are dense from 1: those below this are made at once, in at most four bytes; once a task and
// handed on with it where that is open (runtime::Poll, asio::hooks::TrackedOp).
inline constexpr runtime::TaskId kShortTasks = runtime::TaskId{1} << 28;
struct ShortVarint {
  std::uint32_t bytes;
  std::uint32_t size;  // 0: not made
};
[[gnu::always_inline]] inline ShortVarint short_varint(runtime::TaskId id) noexcept {
  const auto low = static_cast<std::uint32_t>(id);
  if (id < 0x80) return {low, 1};
  const std::uint32_t two = (low & 0x7F) | (low << 1 & 0x7F00) | 0x80;
  if (id < 0x4000) return {two, 2};
  const std::uint32_t three = two | (low << 2 & 0x7F'0000) | 0x8000;
  if (__builtin_expect(id < 0x20'0000, 1)) return {three, 3};
  return {three | (low << 3 & 0x7F00'0000) | 0x80'0000, 4};
}

// A task's id as its events have it, and behind it the byte of "any worker", with which a wake
// ends.
struct ShortId {
  std::uint64_t bytes;
  std::uint32_t size;  // of the id; 0: not made
};
inline constexpr std::uint64_t kAnyWorker = runtime::kUnknownWorker;
[[gnu::always_inline]] inline ShortId short_id(runtime::TaskId id) noexcept {
  const ShortVarint varint = short_varint(id);
  return {varint.bytes | kAnyWorker << (8 * varint.size), varint.size};
}

// begin_poll_event() for a poll's start: the chunk must know its place.
[[gnu::always_inline]] inline bool begin_poll_start(ThreadBuffer& buffer, std::uint32_t epoch,
                                                    const runtime::Place& place) noexcept {
  if (__builtin_expect(!begin_poll_event(buffer, epoch), 0)) return false;
  const std::uint32_t id = __atomic_load_n(&place.id, __ATOMIC_RELAXED);
  if (__builtin_expect(buffer.tables->symbols[id % kSymbolSlots] == id, 1)) return true;
  leave_poll_event(buffer, epoch);
  return false;
}

// The second halves, after a begin. `worker` is below kShortWorkers, so that it and an empty local
// queue fit into the word of the head; tasks are below kShortTasks. Return the stamp. What is taken
// by reference, and the task's ShortId, are read after the clock: no register is needed meanwhile.
template <class Task>
[[gnu::always_inline]] inline std::uint64_t finish_poll_start(
    ThreadBuffer& buffer, std::uint32_t epoch, const std::uint32_t& worker, const Task& task,
    runtime::Place* const& place, std::uint64_t when_ns = 0) noexcept {
  const std::uint64_t ns = when_ns != 0 ? when_ns : line_at(buffer.clock, read_ticks());
  std::uint8_t* const at =
      put_event_head(buffer, buffer.cursor(), head_of<PollStartEvent>(), ns, worker);
  // One store for both: stores are what a handler's events wait for. The symbol takes the place of
  // the id's last byte, which is not this event's.
  const ShortId id = task();
  const std::uint64_t symbol = __atomic_load_n(&place->id, __ATOMIC_RELAXED);
  put_raw(at + kEventHeadBytes + 2, id.bytes + ((symbol - kAnyWorker) << (8 * id.size)));
  signal_fence();  // the registers of what is written are free for what follows
  const std::size_t id_size = task().size;
  finish_poll_event(buffer, epoch, kEventHeadBytes + 2 + id_size + sizeof(std::uint32_t), ns);
  return ns;
}
[[gnu::always_inline]] inline std::uint64_t finish_poll_end(ThreadBuffer& buffer,
                                                            std::uint32_t epoch,
                                                            const std::uint32_t& worker,
                                                            std::uint64_t when_ns = 0) noexcept {
  const std::uint64_t ns = when_ns != 0 ? when_ns : line_at(buffer.clock, read_ticks());
  put_event_head(buffer, buffer.cursor(), head_of<PollEndEvent>(), ns, worker);
  finish_poll_event(buffer, epoch, kEventHeadBytes + 1, ns);
  return ns;
}
[[gnu::always_inline]] inline void finish_wake(ThreadBuffer& buffer, std::uint32_t epoch,
                                               const runtime::TaskId& waker,
                                               const runtime::TaskId& woken,
                                               std::uint64_t ns) noexcept {
  std::uint8_t* const at =
      put_event_head(buffer, buffer.cursor(), head_of<WakeEventEvent>(), ns, 0);
  const ShortVarint by = short_varint(waker);
  const ShortId id = short_id(woken);
  put_raw(at + kEventHeadBytes, by.bytes);
  put_raw(at + kEventHeadBytes + by.size, id.bytes);
  finish_poll_event(buffer, epoch, kEventHeadBytes + by.size + id.size + 1, ns);
}

// A task that queues work of its own in its poll: at the thread's last stamp plus 1 ns.
[[gnu::always_inline]] inline std::uint64_t finish_own_wake(ThreadBuffer& buffer,
                                                            std::uint32_t epoch,
                                                            const ShortId& id) noexcept {
  std::uint8_t* const at = buffer.cursor();
  put_raw(at, head_of<WakeEventEvent>() | std::uint64_t{1} << 24);
  put_raw(at + kEventHeadBytes, id.bytes);
  put_raw(at + kEventHeadBytes + id.size, id.bytes);
  signal_fence();  // the registers of what is written are free for what follows
  const std::uint64_t ns = buffer.base_ns + 1;
  finish_poll_event(buffer, epoch, kEventHeadBytes + 2 * id.size + 1, ns);
  return ns;
}

// The whole events. `epoch` is recording_epoch(), which may be 0. `when_ns` 0: now.
inline std::uint64_t write_poll_start(std::uint32_t epoch, std::uint32_t worker,
                                      runtime::TaskId task, runtime::Place& place,
                                      std::uint64_t when_ns = 0) noexcept {
  if (__builtin_expect(
          worker < kShortWorkers && task < kShortTasks && begin_poll_start(t_buffer, epoch, place),
          1)) {
    const auto id = [&] { return short_id(task); };
    return finish_poll_start(t_buffer, epoch, worker, id, &place, when_ns);
  }
  return record_poll_start(worker, task, place, when_ns);
}
inline std::uint64_t write_poll_end(std::uint32_t epoch, std::uint32_t worker,
                                    std::uint64_t when_ns = 0) noexcept {
  if (__builtin_expect(worker < kShortWorkers && begin_poll_event(t_buffer, epoch), 1)) {
    return finish_poll_end(t_buffer, epoch, worker, when_ns);
  }
  return record_poll_end(worker, when_ns);
}
inline std::uint64_t write_wake(std::uint32_t epoch, runtime::TaskId waker, runtime::TaskId woken,
                                std::uint64_t when_ns) noexcept {
  const bool is_short = waker < kShortTasks && woken < kShortTasks;
  if (__builtin_expect(!is_short || !begin_poll_event(t_buffer, epoch), 0)) {
    return record_wake(waker, woken, when_ns);
  }
  const std::uint64_t ns = when_ns != 0 ? when_ns : line_at(t_buffer.clock, read_ticks());
  finish_wake(t_buffer, epoch, waker, woken, ns);
  return ns;
}

}  // namespace dial9::internal
