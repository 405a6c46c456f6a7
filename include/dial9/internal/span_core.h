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

// One open span; lies in the span object. Touched by the calls below only, by the code that owns
// it.
struct SpanCore {
  std::uint64_t id = 0;  // 0: not recorded, and nothing below is set
  // From span_link() on:
  std::uint64_t parent_id;  // 0: none
  std::uint64_t task;       // 0: belongs to the thread
  void* slot;               // the task's, while it is open
  int exceptions;           // in flight at its begin
  // From span_entered() on:
  std::uint64_t entered_ns;
  std::uint64_t active_before_ns;  // the slot's sums as it began
  std::uint64_t polls_before;
  // Of a thread from span_entered(), of a task from span_unlink() on:
  std::int64_t active_ns;          // without the poll that runs; below 0 where that began before
  std::uint64_t running_since_ns;  // of that poll; 0: suspended
  std::uint64_t polls;
};

// The fields that both events of a span begin with.
struct SpanHead {
  DIAL9_PP_MEMBERS(SpanHead, (std::uint64_t, worker_id), (std::uint64_t, span_id),
                   (::dial9::optional<std::uint64_t>, parent_span_id))
};
struct SpanName {
  DIAL9_PP_MEMBERS(SpanName, (::dial9::interned, span_name))
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

// Gives the span its id and its parent (`parent_id` 0: the innermost open span of the task or
// thread) and links it. False: no room in the table of tasks with open spans; counted as a loss.
bool span_link(SpanCore& span, std::uint64_t parent_id) noexcept;
// The enter event was recorded at `now_ns`: time runs.
void span_entered(SpanCore& span, std::uint64_t now_ns) noexcept;
// Takes the span out of its chain. True if it ends in the course of its work: its task or thread is
// running it, and no exception has come up since its begin.
bool span_unlink(SpanCore& span) noexcept;
// The times up to `now_ns`, after span_unlink().
SpanTimes span_times(const SpanCore& span, std::uint64_t now_ns, bool completed) noexcept;
SpanHead span_head(const SpanCore& span) noexcept;
// The innermost open span of the running task, or of the thread outside tasks; 0: none.
std::uint64_t span_current() noexcept;

}  // namespace dial9::internal
