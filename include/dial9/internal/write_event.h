// The hot path: from an event struct to published wire bytes. enabled? -> reserve -> write ->
// publish; every other way out is one cold call. Strongest property: straight-line code with one
// clock read, and one release store that makes the event visible. Spec: docs/spec/recorder.md, "Hot
// path".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dial9/internal/field_traits.h"
#include "dial9/internal/pool.h"
#include "dial9/internal/thread_buffer.h"

namespace dial9::internal {

inline constexpr std::uint64_t kMaxDeltaNs = 0xFF'FFFF;
inline constexpr std::size_t kEventHeadBytes = 6;  // tag, u16 type id, u24 delta
inline constexpr std::size_t kResetBytes = 9;

// The wire id of an event type that has one from the start (runtime_events.h); 0: given at its
// first use.
template <class E>
inline constexpr std::uint32_t kFixedTypeId = 0;
inline constexpr std::uint32_t kFixedTypeIds = 3;  // how many there are, from 1

// Hidden: one in each shared object. Else two copies of the library in a process would share the
// id, which each gives from a counter of its own.
template <class E>
struct [[gnu::visibility("hidden")]] EventTypeOf {
  static constexpr std::size_t kFields = sizeof(E::dial9_fields) / sizeof(E::dial9_fields[0]) - 1;
  static inline EventType type{E::dial9_name(), E::dial9_fields, kFields, kFixedTypeId<E>};
};

// 0: none given yet.
template <class E>
inline std::uint32_t type_id() noexcept {
  if constexpr (kFixedTypeId<E> != 0) return kFixedTypeId<E>;
  return __atomic_load_n(&EventTypeOf<E>::type.id, __ATOMIC_RELAXED);
}

// The task that an event of the runtime is about, for the decision to shed it; 0: none.
template <class E>
constexpr auto event_task(const E& event, int) noexcept
    -> decltype(std::uint64_t{event.woken_task_id}) {
  return event.woken_task_id;
}
template <class E>
constexpr auto event_task(const E& event, long) noexcept -> decltype(std::uint64_t{event.task_id}) {
  return event.task_id;
}
template <class E>
constexpr std::uint64_t event_task(const E&, ...) noexcept {
  return 0;
}

// First pass: the bytes that the event needs at most, and the pool ids that the chunk knows.
template <std::size_t Fields>
struct MeasureFields {
  ThreadBuffer* buffer;
  std::size_t need = kEventHeadBytes + kResetBytes + 8;  // 8: the head is stored as one word
  std::size_t index = 0;
  bool all_known = true;
  std::uint32_t ids[Fields + 1];

  explicit MeasureFields(ThreadBuffer& b) : buffer(&b) {}

  template <class T>
  void operator()(const T& value) noexcept {
    using Traits = FieldTraits<T>;
    need += Traits::kMaxBytes + Traits::extra(value);
    if constexpr (Traits::kIsPooled) {
      const std::uint32_t id = pool_find(*buffer, value);
      all_known &= id != 0;
      ids[index] = id;
    }
    ++index;
  }
};

// Cold pass: the bytes that defining every pooled field anew takes.
struct MeasureDefinitions {
  std::size_t need = 0;
  template <class T>
  void operator()(const T& value) noexcept {
    if constexpr (FieldTraits<T>::kIsPooled) need += pool_definition_bytes(value);
  }
};

// Cold pass: finds or defines each pooled field; the room is there.
struct DefineFields {
  ThreadBuffer& buffer;
  std::uint32_t* ids;
  std::size_t index = 0;
  template <class T>
  void operator()(const T& value) noexcept {
    if constexpr (FieldTraits<T>::kIsPooled) ids[index] = pool_define(buffer, value);
    ++index;
  }
};

struct PutFields {
  std::uint8_t* at;
  const std::uint32_t* ids;
  std::size_t index = 0;
  template <class T>
  void operator()(const T& value) noexcept {
    using Traits = FieldTraits<T>;
    at = Traits::put(at, value, Traits::kIsPooled ? ids[index] : 0);
    ++index;
  }
};

// Cold: makes room and defines what the chunk lacks. By value: what the hot path measured needs no
// address, and lives in registers. `all_known` false: dropped.
template <class E, std::size_t Fields>
[[gnu::cold, gnu::noinline]] MeasureFields<Fields> prepare_event(ThreadBuffer& buffer,
                                                                 const E& event) noexcept {
  MeasureFields<Fields> measured(buffer);
  event.dial9_visit(measured);
  MeasureDefinitions definitions;
  event.dial9_visit(definitions);
  measured.all_known =
      thread_reserve(buffer, EventTypeOf<E>::type, measured.need + definitions.need);
  if (!measured.all_known) return measured;
  DefineFields define{buffer, measured.ids};
  event.dial9_visit(define);
  return measured;
}

// Writes an event's head at `at`, behind a reset frame where the stamp needs one, and the two bytes
// `next` behind it, since the head is stored as one word. Returns what follows the head.
inline std::uint8_t* put_event_head(ThreadBuffer& buffer, std::uint8_t* at, std::uint32_t type_id,
                                    std::uint64_t ns, std::uint64_t next) noexcept {
  std::uint64_t delta = ns - buffer.base_ns;
  if (__builtin_expect(delta > kMaxDeltaNs, 0)) {
    *at = 0x05;  // a timestamp reset; room for it is part of every reservation
    at = put_raw(at + 1, ns);
    delta = 0;
  }
  put_raw(at, std::uint64_t{0x02} | std::uint64_t{type_id} << 8 | delta << 24 | next << 48);
  return at + kEventHeadBytes;
}

// An event may hold what depends on its stamp, and is told it before it is written.
template <class E>
constexpr auto stamp_event(const E& event, std::uint64_t ns, int) noexcept
    -> decltype(event.dial9_stamp(ns)) {
  event.dial9_stamp(ns);
}
template <class E>
constexpr void stamp_event(const E&, std::uint64_t, long) noexcept {}

// Returns the stamp, 0 if dropped. `epoch` is not 0. Where the event is built in the same function,
// its fields stay in registers.
template <bool kHasStamp, class E>
[[gnu::always_inline]] inline std::uint64_t write_event_here(std::uint32_t epoch, const E& event,
                                                             std::uint64_t stamp) noexcept {
  ThreadBuffer& buffer = t_buffer;
  if (__builtin_expect(buffer.ready_epoch != epoch, 0)) {
    if (!thread_enter(buffer, EventTypeOf<E>::type, event_task(event, 0))) return 0;
    epoch = buffer.ready_epoch;
  }
  buffer.ready_epoch = kBusyEpoch;  // from here on a signal handler's event is `nested`
  signal_fence();

  MeasureFields<EventTypeOf<E>::kFields> measured(buffer);
  event.dial9_visit(measured);
  std::uint32_t id = type_id<E>();
  std::uint8_t* at = buffer.cursor();
  // A thread without a chunk has no room and empty tables.
  const bool is_ready = reinterpret_cast<std::uintptr_t>(at) + measured.need <=
                            reinterpret_cast<std::uintptr_t>(buffer.end) &&
                        (buffer.tables->schemas[id / 64] >> (id % 64) & 1) != 0 &&
                        measured.all_known;
  if (__builtin_expect(!is_ready, 0)) {
    // A copy: what is written below needs no address, and may live in registers.
    const E copy = event;
    measured = prepare_event<E, EventTypeOf<E>::kFields>(buffer, copy);
    if (!measured.all_known) {
      signal_fence();
      buffer.ready_epoch = epoch;
      return 0;
    }
    at = buffer.cursor();
    id = type_id<E>();
  }
  const std::uint64_t ns = kHasStamp && stamp != 0 ? stamp : now_on(buffer.clock);
  stamp_event(event, ns, 0);
  PutFields put{put_event_head(buffer, at, id, ns, 0), measured.ids};
  event.dial9_visit(put);
  buffer.base_ns = ns;
  thread_publish(buffer, put.at);
  signal_fence();
  buffer.ready_epoch = epoch;
  return ns;
}

// The same, one function for all places that record events of this type.
template <bool kHasStamp, class E>
inline std::uint64_t write_event(std::uint32_t epoch, const E& event,
                                 std::uint64_t stamp) noexcept {
  return write_event_here<kHasStamp>(epoch, event, stamp);
}

}  // namespace dial9::internal
