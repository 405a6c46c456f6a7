// What every span has, whatever its fields: identity, parent, and the accounting of active and idle
// time across polls. Strongest property: a span that a task holds over a suspension is charged only
// while that task runs, on whichever thread. Spec: docs/spec/recorder.md, "Spans".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dial9/event.h"

namespace dial9::runtime {
struct Poll;
}

namespace dial9::internal {

// The seam (src/recorder/runtime_polls.cc) calls these as a recorded poll begins and ends on this
// thread, with the stamp of its event (0, if that was dropped: the clock is read where it matters).
// A task without open spans costs one or two loads. Neither touches a span.
void span_poll_start(runtime::Poll& poll, std::uint64_t stamp_ns) noexcept;
void span_poll_end(runtime::Poll& poll, std::uint64_t stamp_ns) noexcept;

// A number whose wire bytes were made beforehand: at most 16, all of which are stored; what follows
// overwrites the rest.
struct EncodedVarint {
  std::uint64_t low;
  std::uint64_t high;
  std::size_t size;
};
inline constexpr std::size_t kSpanIdBytes = 8 + 2;  // on the wire: the top bit of an id is set

// One open span; lies in the span object. Touched by the calls below only, by the code that owns
// it.
struct SpanCore {
  std::uint64_t id = 0;  // 0: not recorded, and nothing below is set
  // From span_begin() on:
  std::uint64_t wire_parent_low;
  std::uint32_t wire_parent_high;  // 16 bits
  std::uint32_t wire_parent_size;  // 0: none
  std::uint64_t task;              // 0: belongs to the thread, and what follows its entry isn't set
  void* slot;                      // the task's, while it is open
  std::uint64_t wire_id_low;
  std::uint32_t exceptions;    // in flight at its begin
  std::uint32_t wire_id_high;  // 16 bits; above them: kBegunLeaving
  std::uint64_t generation;    // as of its begin
  // From span_entered() on:
  std::uint64_t entered_ns;
  std::uint64_t active_before_ns;  // the slot's sums as it began
  std::uint64_t polls_before;
  // From span_end() on:
  std::int64_t active_ns;          // without the poll that runs; below 0 where that began before
  std::uint64_t running_since_ns;  // of that poll; 0: suspended
  std::uint64_t polls;
};

// Of SpanCore::wire_id_high: the span began while its thread was being unwound to its end (it was
// cancelled, or called pthread_exit()), in a destructor.
inline constexpr std::uint32_t kBegunLeaving = 1U << 16;

// What a thread keeps for its spans. `worker`: the one that it is, as the events of its spans have
// it; span_begin() and span_end() bring it up to date.
inline constexpr std::uint32_t kThreadSpanDepth = 16;
struct ThreadSpans {
  EncodedVarint worker;
  // span_generation() as of which all this holds. 0: the worker isn't known (at the start, and when
  // the thread begins to serve another). kLinking: a span is being linked.
  std::uint64_t generation;
  std::uint64_t next_id;
  std::uint64_t end_id;
  std::uint64_t wire_id_low;  // of the block's first id
  std::uint16_t wire_id_high;
  std::uint32_t depth;
  std::uint32_t strays_seen;
  const std::uint32_t* exceptions;  // in flight on this thread: the C++ runtime's own count
  const std::uint32_t* leaving;     // the C library's word that has kLeavingBit; never null with it
  // Of the open spans outside tasks, by id only: one that ends on a foreign thread leaves no
  // pointer behind. The innermost last; deeper ones have the 16th as their parent.
  std::uint64_t ids[kThreadSpanDepth];

  std::uint64_t innermost() const { return depth == 0 ? 0 : ids[depth - 1]; }
  void push(std::uint64_t id) {
    if (depth == kThreadSpanDepth) return;
    ids[depth] = id;
    signal_fence();  // a signal handler that sees the depth sees the id: span_sampled()
    ++depth;
  }
  void remove(std::uint64_t id) {
    std::uint32_t at = depth;
    while (at > 0 && ids[at - 1] != id) --at;
    if (at == 0) return;
    for (--depth; at <= depth; ++at) ids[at - 1] = ids[at];
  }
};
extern __thread ThreadSpans t_spans __attribute__((tls_model("initial-exec")));

// The fields that both events of a span begin with, read where they lie: a copy of the id in pieces
// that are wider than those it was written in would wait for them.
struct WorkerField {};
struct SpanIdField {
  const SpanCore* span;
};
struct SpanParentField {
  const SpanCore* span;
};
template <>
struct FieldTraits<WorkerField, false> : FixedField<kWireVarint, 16> {
  static std::uint8_t* put(std::uint8_t* p, const WorkerField&, std::uint32_t) noexcept {
    const EncodedVarint& wire = t_spans.worker;
    put_raw(put_raw(p, wire.low), wire.high);
    return p + wire.size;
  }
};
template <>
struct FieldTraits<SpanIdField, false> : FixedField<kWireVarint, kSpanIdBytes> {
  static std::uint8_t* put(std::uint8_t* p, const SpanIdField& v, std::uint32_t) noexcept {
    return put_raw(put_raw(p, v.span->wire_id_low),
                   static_cast<std::uint16_t>(v.span->wire_id_high));
  }
};
template <>
struct FieldTraits<SpanParentField, false>
    : FixedField<kWireVarint | kWireOptional, 1 + kSpanIdBytes> {
  static std::uint8_t* put(std::uint8_t* p, const SpanParentField& v, std::uint32_t) noexcept {
    const std::uint32_t size = v.span->wire_parent_size;
    if (size == 0) return put_raw(p, std::uint8_t{0});
    p = put_raw(p, std::uint8_t{1});
    put_raw(put_raw(p, v.span->wire_parent_low),
            static_cast<std::uint16_t>(v.span->wire_parent_high));
    return p + size;
  }
};
struct SpanHead {
  DIAL9_PP_MEMBERS(SpanHead, (WorkerField, worker_id), (SpanIdField, span_id),
                   (SpanParentField, parent_span_id))
};
struct SpanName {
  DIAL9_PP_MEMBERS(SpanName, (SymbolField, span_name))
};
struct SpanTimes {
  std::uint64_t active_ns;
  std::uint64_t idle_ns;
  std::uint64_t poll_count;
};

// An event made of parts: the fields of A, then B, then C. `Name` gives dial9_name().
template <std::size_t N>
struct FieldList {
  FieldSpec items[N];
};
template <class... Parts>
constexpr auto join_fields() {
  FieldList<(0 + ... + (sizeof(Parts::dial9_fields) / sizeof(FieldSpec) - 1)) + 1> list{};
  std::size_t at = 0;
  const auto add = [&](const FieldSpec* fields) {
    for (; fields->name != nullptr; ++fields) list.items[at++] = *fields;
  };
  (add(Parts::dial9_fields), ...);
  return list;
}
template <class Name, class A, class B, class C>
struct JoinedEvent {
  A a;
  B b;
  const C& c;

  static constexpr auto kList = join_fields<A, B, C>();
  static constexpr const auto& dial9_fields = kList.items;
  static constexpr const char* dial9_name() { return Name::text(); }
  template <class Visitor>
  constexpr void dial9_visit(Visitor& visitor) const {
    a.dial9_visit(visitor);
    b.dial9_visit(visitor);
    c.dial9_visit(visitor);
  }
};

// A recorder starts: spans that began before end unrecorded.
void span_recording_begins() noexcept;
// What writes the enter event; `fields` as they were given to span_begin(). Calls span_entered() or
// span_not_entered().
using WriteEnter = void (*)(SpanCore& span, const void* fields) noexcept;
// What writes the exit event.
using WriteExit = void (*)(const SpanCore& span, const void* late, bool completed) noexcept;

// Gives the span its id and its parent (`parent_id` 0: the innermost open span of the task or
// thread), links it, and goes on to `write`, as its last step: neither of the two keeps anything
// over the other. No room in the table of tasks with open spans: the span is lost, and counted.
void span_begin(SpanCore& span, std::uint64_t parent_id, const void* fields,
                WriteEnter write) noexcept;
void span_entered_in_task(SpanCore& span, std::uint64_t now_ns) noexcept;
// The enter event was recorded at `now_ns`: time runs.
inline void span_entered(SpanCore& span, std::uint64_t now_ns) noexcept {
  span.entered_ns = now_ns;
  if (span.task != 0) span_entered_in_task(span, now_ns);
}
// The enter event was dropped: there will be no exit either, which is a loss of the same cause, or
// (`was_recording` false) none.
[[gnu::cold, gnu::noinline]] void span_not_entered(SpanCore& span, bool was_recording) noexcept;
// Takes the span out of its chain, and goes on to `write`, as its last step, unless the span's
// recording is over. Completed is one that ends in the course of its work: its task or thread is
// running it, no exception has come up since its begin, and its thread isn't being unwound to its
// end since then.
void span_end(SpanCore& span, const void* late, WriteExit write) noexcept;
// Up to `now_ns`, after the span was taken out.
inline std::uint64_t span_elapsed(const SpanCore& span, std::uint64_t now_ns) noexcept {
  return __builtin_expect(now_ns < span.entered_ns, 0) ? 0 : now_ns - span.entered_ns;
}
inline SpanTimes span_times(const SpanCore& span, std::uint64_t now_ns) noexcept {
  const std::uint64_t elapsed = span_elapsed(span, now_ns);
  if (span.task == 0) return {elapsed, 0, 1};
  std::int64_t active = span.active_ns;
  if (span.running_since_ns != 0 && now_ns > span.running_since_ns) {
    active += static_cast<std::int64_t>(now_ns - span.running_since_ns);
  }
  // Short where another thread hasn't ended its poll of the task yet; long where two polls of the
  // task ran at a time.
  const std::uint64_t kept = active < 0 ? 0 : static_cast<std::uint64_t>(active);
  const std::uint64_t active_ns = kept < elapsed ? kept : elapsed;
  return {active_ns, elapsed - active_ns, span.polls};
}
// The exit event's own fields, written in one go. Its times run up to its own stamp.
struct SpanEnd {
  const SpanCore* span;
  bool completed;
  mutable std::uint64_t now_ns;

  static constexpr FieldSpec dial9_fields[] = {describe<ns_u64>("active_ns"),
                                               describe<ns_u64>("idle_ns"),
                                               describe<std::uint64_t>("poll_count"),
                                               describe<bool>("completed"),
                                               {}};
  template <class Visitor>
  constexpr void dial9_visit(Visitor& visitor) const {
    visitor(*this);
  }
};
template <>
struct FieldTraits<SpanEnd, false> : FixedField<kWireVarint, 3 * 10 + 1> {
  [[gnu::always_inline]] static std::uint8_t* put_times(std::uint8_t* p, const SpanTimes& times,
                                                        bool completed) noexcept {
    p = put_varint(p, times.active_ns);
    if (times.idle_ns == 0 && times.poll_count == 1) {  // within one poll: the rest by one store
      put_raw(p, std::uint32_t{completed} << 16 | 1U << 8);
      return p + 3;
    }
    p = put_varint(put_varint(p, times.idle_ns), times.poll_count);
    return put_raw(p, static_cast<std::uint8_t>(completed));
  }
  static std::uint8_t* put(std::uint8_t* p, const SpanEnd& v, std::uint32_t) noexcept {
    if (__builtin_expect(v.span->task == 0, 1)) {
      return put_times(p, {span_elapsed(*v.span, v.now_ns), 0, 1}, v.completed);
    }
    return put_times(p, span_times(*v.span, v.now_ns), v.completed);
  }
};
// In a WriteEnter or a WriteExit.
inline SpanHead span_head(const SpanCore& span) noexcept { return {{}, {&span}, {&span}}; }
template <class Name, class Late>
struct ExitEvent : JoinedEvent<Name, SpanHead, SpanEnd, Late> {
  void dial9_stamp(std::uint64_t ns) const noexcept { this->b.now_ns = ns; }
};
// The innermost open span of the running task, or of the thread outside tasks; 0: none.
std::uint64_t span_current() noexcept;
// The same for a signal handler on this thread: of the task, or (0) of the thread outside tasks.
std::uint64_t span_sampled(std::uint64_t task) noexcept;

}  // namespace dial9::internal
