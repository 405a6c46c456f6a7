// Declare an event type in one line, record it in one call. Strongest property: recording costs
// about one clock read; off, one relaxed load and a branch. No lock, no system call, no allocation,
// no wait.
//
//   DIAL9_EVENT(OrderPlaced, (std::uint64_t, order_id), (dial9::bytes_u64, size),
//               (dial9::interned, tier), (dial9::optional<std::uint32_t>, coupon));
//   dial9::record(OrderPlaced{17, 4096, "gold", {}});
//
// Field types: internal/fields.h; another type doesn't compile.
// Spec: docs/spec/recorder.md, "Events".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dial9/internal/field_traits.h"
#include "dial9/internal/fields.h"
#include "dial9/internal/macros.h"
#include "dial9/internal/thread_buffer.h"
#include "dial9/internal/write_event.h"

// Declares a struct `name` with the given fields, to be recorded as the event `name`. At namespace
// scope; up to 32 fields, each as (type, field); a type with a comma in it needs an alias.
#define DIAL9_EVENT(...) DIAL9_PP_EVENT(__VA_ARGS__)

namespace dial9 {

// True while a recorder records: the check that every record call makes itself. Worth asking only
// before expensive work for the fields.
inline bool is_recording() noexcept { return internal::recording_epoch() != 0; }

// Records `event` with the time of now. Dropped and counted where it can't be kept
// (RecorderLossEvent); nothing at all while off. Any thread, any context: signal handlers (an event
// inside another one's record call is counted as `nested`), destructors of thread_locals, after
// main. In the child of a fork: nothing. Cost: bench/record.
template <class E>
inline void record(const E& event) noexcept {
  const std::uint32_t epoch = internal::recording_epoch();
  if (__builtin_expect(epoch == 0, 1)) return;
  internal::write_event(epoch, event);
}

namespace internal {

// The same with the caller's CLOCK_MONOTONIC stamp: a second event of one moment (no clock read),
// or one in the past (a reset frame goes before it). Stamp 0, what record_stamped() returns for a
// dropped event: now.
template <class E>
inline void record_at(const E& event, std::uint64_t timestamp_ns) noexcept {
  const std::uint32_t epoch = recording_epoch();
  if (__builtin_expect(epoch == 0, 1)) return;
  write_event_at(epoch, event, timestamp_ns);
}

// record(), and returns the stamp that it used, for record_at() of what belongs to the same moment.
// 0 if off or dropped before the clock was read.
template <class E>
inline std::uint64_t record_stamped(const E& event) noexcept {
  const std::uint32_t epoch = recording_epoch();
  if (__builtin_expect(epoch == 0, 1)) return 0;
  return write_event(epoch, event);
}

}  // namespace internal
}  // namespace dial9
