// The general way of the events of polls and wakes, and the opening of the short one.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/poll_events.h"

#include "recorder/schema_frames.h"

namespace dial9::internal {

constinit runtime::Place g_no_place{""};

namespace {

// Defines what the chunk lacks of the three schemas, if there is room for it in this chunk: nothing
// is dropped or begun for their sake.
void open_short_way() noexcept {
  if (!is_recording()) return;
  ThreadBuffer& buffer = t_buffer;
  const std::uint32_t epoch = buffer.ready_epoch;
  if (epoch == 0 || epoch == kBusyEpoch) return;
  buffer.ready_epoch = kBusyEpoch;
  signal_fence();
  if (buffer.poll_events_end == nullptr && buffer.control != nullptr && buffer.clock.mult != 0) {
    EventType* const types[] = {&EventTypeOf<PollStartEvent>::type,
                                &EventTypeOf<PollEndEvent>::type,
                                &EventTypeOf<WakeEventEvent>::type};
    std::size_t need = kPollEventBytes;
    for (const EventType* type : types) need += schema_frame_bytes(*type);
    if (static_cast<std::size_t>(buffer.end - buffer.cursor()) > need) {
      for (EventType* type : types) thread_reserve(buffer, *type, 0);
      buffer.poll_events_end = buffer.end - kPollEventBytes;
    }
  }
  signal_fence();
  buffer.ready_epoch = epoch;
}

// `when_ns` 0: now. The stamp, 0 if off or dropped.
template <class Event>
std::uint64_t record_generally(const Event& event, std::uint64_t when_ns) noexcept {
  const std::uint32_t epoch = recording_epoch();
  const std::uint64_t stamp = epoch == 0 ? 0 : write_event_at(epoch, event, when_ns);
  open_short_way();
  return stamp;
}

}  // namespace

std::uint64_t record_poll_start(std::uint32_t worker, runtime::TaskId task, runtime::Place& place,
                                std::uint64_t when_ns) noexcept {
  return record_generally(PollStartEvent{worker, 0, task, place}, when_ns);
}

std::uint64_t record_poll_end(std::uint32_t worker, std::uint64_t when_ns) noexcept {
  return record_generally(PollEndEvent{worker}, when_ns);
}

std::uint64_t record_wake(runtime::TaskId waker, runtime::TaskId woken,
                          std::uint64_t when_ns) noexcept {
  return record_generally(
      WakeEventEvent{waker, woken, static_cast<std::uint8_t>(runtime::kUnknownWorker)}, when_ns);
}

}  // namespace dial9::internal
