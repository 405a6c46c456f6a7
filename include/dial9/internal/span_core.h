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
  // From span_link() on:
  std::uint64_t parent_id;  // 0: none
  std::uint64_t task;       // 0: belongs to the thread, and what follows its entry isn't set
  void* slot;               // the task's, while it is open
  std::uint64_t wire_id_low;
  std::uint32_t exceptions;    // in flight at its begin
  std::uint32_t wire_id_high;  // 16 bits; above them: kBegunLeaving
  std::uint64_t generation;  // as of its begin
  // From span_entered() on:
  std::uint64_t entered_ns;
  std::uint64_t active_before_ns;  // the slot's sums as it began
  std::uint64_t polls_before;
  // From span_unlink() on:
  std::int64_t active_ns;          // without the poll that runs; below 0 where that began before
  std::uint64_t running_since_ns;  // of that poll; 0: suspended
  std::uint64_t polls;
};

// Of SpanCore::wire_id_high: the span began while its thread was being unwound to its end (it was
// cancelled, or called pthread_exit()), in a destructor.
inline constexpr std::uint32_t kBegunLeaving = 1U << 16;

// What a thread keeps for its spans. `worker`: the one that it is, as the events of its spans have
// it; span_link() and span_unlink() bring it up to date.
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
struct SpanHead {
  DIAL9_PP_MEMBERS(SpanHead, (WorkerField, worker_id), (SpanIdField, span_id),
                   (::dial9::optional<std::uint64_t>, parent_span_id))
};
struct SpanName {
  DIAL9_PP_MEMBERS(SpanName, (SymbolField, span_name))
};
struct SpanTimes {
  DIAL9_PP_MEMBERS(SpanTimes, (::dial9::ns_u64, active_ns), (::dial9::ns_u64, idle_ns),
                   (std::uint64_t, poll_count), (bool, completed))
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
  mutable B b;
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
// Gives the span its id and its parent (`parent_id` 0: the innermost open span of the task or
// thread) and links it. False: no room in the table of tasks with open spans; counted as a loss.
bool span_link(SpanCore& span, std::uint64_t parent_id) noexcept;
void span_entered_in_task(SpanCore& span, std::uint64_t now_ns) noexcept;
// The enter event was recorded at `now_ns`: time runs.
inline void span_entered(SpanCore& span, std::uint64_t now_ns) noexcept {
  span.entered_ns = now_ns;
  if (span.task != 0) span_entered_in_task(span, now_ns);
}
// The enter event was dropped: there will be no exit either, which is a loss of the same cause.
[[gnu::cold, gnu::noinline]] void span_not_entered(SpanCore& span) noexcept;
// Takes the span out of its chain; its id is 0 then if its recording is over. True if it ends in
// the course of its work: its task or thread is running it, no exception has come up since its
// begin, and its thread isn't being unwound to its end since then.
bool span_unlink(SpanCore& span) noexcept;
// The times up to `now_ns`, after span_unlink().
inline SpanTimes span_times(const SpanCore& span, std::uint64_t now_ns, bool completed) noexcept {
  const std::uint64_t elapsed = now_ns > span.entered_ns ? now_ns - span.entered_ns : 0;
  if (span.task == 0) return {elapsed, 0, 1, completed};
  std::int64_t active = span.active_ns;
  if (span.running_since_ns != 0 && now_ns > span.running_since_ns) {
    active += static_cast<std::int64_t>(now_ns - span.running_since_ns);
  }
  // Short where another thread hasn't ended its poll of the task yet; long where two polls of the
  // task ran at a time.
  const std::uint64_t kept = active < 0 ? 0 : static_cast<std::uint64_t>(active);
  const std::uint64_t active_ns = kept < elapsed ? kept : elapsed;
  return {active_ns, elapsed - active_ns, span.polls, completed};
}
// After span_link() or span_unlink() on this thread.
inline SpanHead span_head(const SpanCore& span) noexcept {
  SpanHead head{{}, {&span}, {}};
  if (span.parent_id != 0) head.parent_span_id = span.parent_id;
  return head;
}
// The exit event: its times run up to its own stamp.
template <class Name, class Late>
struct ExitEvent : JoinedEvent<Name, SpanHead, SpanTimes, Late> {
  const SpanCore& span;
  bool completed;

  ExitEvent(const SpanCore& of, bool is_completed, const Late& late) noexcept
      : JoinedEvent<Name, SpanHead, SpanTimes, Late>{span_head(of), {}, late},
        span(of),
        completed(is_completed) {}
  void dial9_stamp(std::uint64_t ns) const noexcept { this->b = span_times(span, ns, completed); }
};
// The innermost open span of the running task, or of the thread outside tasks; 0: none.
std::uint64_t span_current() noexcept;
// The same for a signal handler on this thread: of the task, or (0) of the thread outside tasks.
std::uint64_t span_sampled(std::uint64_t task) noexcept;

}  // namespace dial9::internal
