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
  static inline EventType type{E::dial9_name(), E::dial9_fields, kFields, kFixedTypeId<E>,
                               event_head(kFixedTypeId<E>)};
};

// 0: none given yet.
template <class E>
inline std::uint32_t type_id() noexcept {
  if constexpr (kFixedTypeId<E> != 0) return kFixedTypeId<E>;
  return __atomic_load_n(&EventTypeOf<E>::type.id, __ATOMIC_RELAXED);
}

template <class E>
inline std::uint32_t head_of() noexcept {
  if constexpr (kFixedTypeId<E> != 0) return event_head(kFixedTypeId<E>);
  return __atomic_load_n(&EventTypeOf<E>::type.head, __ATOMIC_RELAXED);
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

inline constexpr std::size_t kMostHeadBytes = kEventHeadBytes + kResetBytes + 8;  // 8: as one word

// First pass: the bytes that the event needs at most.
struct MeasureFields {
  std::size_t need = kMostHeadBytes;

  template <class T>
  [[gnu::always_inline]] void operator()(const T& value) noexcept {
    using Traits = FieldTraits<T>;
    need += Traits::kMaxBytes + Traits::extra(value);
  }
};

// Second pass: the pool ids that the chunk, which is there, knows.
template <std::size_t Fields>
struct FindFields {
  ThreadBuffer& buffer;
  std::size_t index = 0;
  bool all_known = true;
  std::uint32_t ids[Fields + 1];

  explicit FindFields(ThreadBuffer& b) : buffer(b) {}

  template <class T>
  [[gnu::always_inline]] void operator()(const T& value) noexcept {
    if constexpr (FieldTraits<T>::kIsPooled) {
      all_known = all_known && pool_find(buffer, value, ids[index]);
    }
    ++index;
  }
};

// Cold pass: the same bytes, and those that defining every pooled field anew takes.
struct MeasureAll {
  std::size_t need = kMostHeadBytes;
  template <class T>
  void operator()(const T& value) noexcept {
    using Traits = FieldTraits<T>;
    need += Traits::kMaxBytes + Traits::extra(value);
    if constexpr (Traits::kIsPooled) need += pool_definition_bytes(value);
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
  [[gnu::always_inline]] void operator()(const T& value) noexcept {
    using Traits = FieldTraits<T>;
    at = Traits::put(at, value, Traits::kIsPooled ? ids[index] : 0);
    ++index;
  }
};

// Makes room, and finds or defines what the event needs of the chunk; `ids` are those of its pooled
// fields. False: dropped.
template <class E>
bool prepare_event(ThreadBuffer& buffer, const E& event, std::uint32_t* ids) noexcept {
  MeasureAll all;
  event.dial9_visit(all);
  if (!thread_reserve(buffer, EventTypeOf<E>::type, all.need)) return false;
  DefineFields define{buffer, ids};
  event.dial9_visit(define);
  return true;
}

// Writes an event's head at `at`, the cursor, which it moves behind a reset frame where the stamp
// needs one, and the two bytes `next` behind the head, since that is stored as one word. Returns
// where the head is.
[[gnu::always_inline]] inline std::uint8_t* put_event_head(ThreadBuffer& buffer, std::uint8_t* at,
                                                           std::uint32_t head, std::uint64_t ns,
                                                           std::uint64_t next) noexcept {
  std::uint64_t delta = ns - buffer.base_ns;
  if (__builtin_expect(delta > kMaxDeltaNs, 0)) {
    *at = 0x05;  // a timestamp reset; room for it is part of every reservation
    at = put_raw(at + 1, ns);
    buffer.written += kResetBytes;  // thread_publish() adds the event alone
    buffer.base_ns = ns;
    delta = 0;
  }
  put_raw(at, head | delta << 24 | next << 48);
  return at;
}

// An event may hold what depends on its stamp, and is told it before it is written.
template <class E>
constexpr auto stamp_event(const E& event, std::uint64_t ns, int) noexcept
    -> decltype(event.dial9_stamp(ns)) {
  event.dial9_stamp(ns);
}
template <class E>
constexpr void stamp_event(const E&, std::uint64_t, long) noexcept {}

// Writes the event at `at`, the cursor, and publishes it: there is room, and the chunk knows what
// it needs.
template <class E>
[[gnu::always_inline]] inline void put_event(ThreadBuffer& buffer, std::uint8_t* at, const E& event,
                                             const std::uint32_t* pool_ids,
                                             std::uint64_t ns) noexcept {
  stamp_event(event, ns, 0);
  at = put_event_head(buffer, at, head_of<E>(), ns, 0);
  PutFields put{at + kEventHeadBytes, pool_ids};
  event.dial9_visit(put);
  buffer.base_ns = ns;
  thread_publish(buffer, static_cast<std::size_t>(put.at - at));
}

// The ordinary case, without a call: the thread is ready for `epoch` (0: it has no chunk, so no
// room), the clock is the counter, there is room, and the chunk knows what the event needs. `ns` is
// the event's stamp where that is given, else set to it. False: nothing is done, and the event is
// left to write_event_slowly() as the last step of whoever asks, so that no register is saved for
// its sake.
template <bool kHasStamp, class E>
[[gnu::always_inline]] inline bool try_write_event(std::uint32_t epoch, const E& event,
                                                   std::uint64_t& ns) noexcept {
  ThreadBuffer& buffer = t_buffer;
  if (__builtin_expect(buffer.ready_epoch != epoch, 0)) return false;
  buffer.ready_epoch = kBusyEpoch;  // from here on a signal handler's event is `nested`
  signal_fence();

  MeasureFields measured;
  event.dial9_visit(measured);
  FindFields<EventTypeOf<E>::kFields> found(buffer);
  const std::uint32_t id = type_id<E>();
  std::uint8_t* const at = buffer.cursor();
  bool is_ready = reinterpret_cast<std::uintptr_t>(at) + measured.need <=
                      reinterpret_cast<std::uintptr_t>(buffer.short_way_end) &&
                  (buffer.tables->schemas[id / 64] >> (id % 64) & 1) != 0;
  if (__builtin_expect(is_ready, 1)) {
    event.dial9_visit(found);
    is_ready = found.all_known;
  }
  if (__builtin_expect(is_ready, 1)) {
    if (!kHasStamp) ns = line_at(buffer.clock, read_ticks());
    put_event(buffer, at, event, found.ids, ns);
  }
  signal_fence();
  buffer.ready_epoch = epoch;
  return is_ready;
}

// The general case. `stamp` 0: now. Returns the stamp, 0 if dropped.
template <class E>
[[gnu::cold, gnu::noinline]] std::uint64_t write_event_slowly(std::uint32_t epoch, const E& event,
                                                              std::uint64_t stamp) noexcept {
  ThreadBuffer& buffer = t_buffer;
  if (buffer.ready_epoch != epoch) {
    if (!thread_enter(buffer, EventTypeOf<E>::type, event_task(event, 0))) return 0;
    epoch = buffer.ready_epoch;
  }
  buffer.ready_epoch = kBusyEpoch;
  signal_fence();
  std::uint64_t ns = 0;
  std::uint32_t ids[EventTypeOf<E>::kFields + 1];
  if (prepare_event(buffer, event, ids)) {
    ns = stamp != 0 ? stamp : now_on(buffer.clock);
    put_event(buffer, buffer.cursor(), event, ids, ns);
  }
  signal_fence();
  buffer.ready_epoch = epoch;
  return ns;
}

// Both, one function for all places that record events of this type.
template <class E>
inline std::uint64_t write_event(std::uint32_t epoch, const E& event) noexcept {
  std::uint64_t ns = 0;
  if (__builtin_expect(try_write_event<false>(epoch, event, ns), 1)) return ns;
  return write_event_slowly(epoch, event, 0);
}
// With the stamp of another event or of the past; 0: now.
template <class E>
inline std::uint64_t write_event_at(std::uint32_t epoch, const E& event,
                                    std::uint64_t stamp) noexcept {
  if (__builtin_expect(stamp != 0 && try_write_event<true>(epoch, event, stamp), 1)) return stamp;
  const E copy = event;  // no clock read hides a store: what is written above needs no address
  return write_event_slowly(epoch, copy, stamp);
}

}  // namespace dial9::internal
