// Spans: one enter event, one exit event, with the time that the work was active and idle between
// them. Strongest property: exactly one enter and one exit a span, however often its coroutine is
// suspended and on however many threads it runs; work that was destroyed before its end, threw, or
// whose thread was cancelled or called pthread_exit() exits with completed = false.
//
//   DIAL9_SPAN(Checkout, "checkout", DIAL9_FIELDS((std::uint64_t, order_id)),
//              DIAL9_FIELDS((std::uint32_t, http_status)));
//   {
//     dial9::span<Checkout> span({17});
//     ...                            // co_await as you like
//     span.late.http_status = 200;   // written with the exit; absent if never set
//   }
//
// Spec: docs/spec/recorder.md, "Spans"; the events in docs/spec/events.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dial9/event.h"
#include "dial9/internal/span_core.h"

// A list of fields for DIAL9_SPAN, each as (type, field); DIAL9_NO_FIELDS for none.
#define DIAL9_FIELDS(...) (~, __VA_ARGS__)
#define DIAL9_NO_FIELDS (~)

// Declares a kind of span at namespace scope: its C++ name, the name that readers show (a literal),
// the fields of its enter event, and those that may be set until its exit. The last two may be left
// out.
#define DIAL9_SPAN(...) DIAL9_PP_SPAN(__VA_ARGS__, DIAL9_NO_FIELDS, DIAL9_NO_FIELDS, ~)

#define DIAL9_PP_SPAN(kind, shown_name, fields, late, ...)                   \
  struct kind {                                                              \
    struct Fields {                                                          \
      DIAL9_PP_MEMBERS_OF(DIAL9_PP_FIELD, DIAL9_PP_DESCRIBE, fields)         \
    };                                                                       \
    struct Late {                                                            \
      DIAL9_PP_MEMBERS_OF(DIAL9_PP_LATE_FIELD, DIAL9_PP_LATE_DESCRIBE, late) \
    };                                                                       \
    struct Enter {                                                           \
      static constexpr const char* text() {                                  \
        return "SpanEnter:" __FILE__ ":" DIAL9_PP_TEXT(__LINE__) ":0";       \
      }                                                                      \
    };                                                                       \
    struct Exit {                                                            \
      static constexpr const char* text() {                                  \
        return "SpanExit:" __FILE__ ":" DIAL9_PP_TEXT(__LINE__) ":0";        \
      }                                                                      \
    };                                                                       \
    static ::dial9::Symbol& dial9_span_name() {                              \
      static ::dial9::Symbol name{shown_name};                               \
      return name;                                                           \
    }                                                                        \
  }

namespace dial9 {

// A span's identity, for a parent that isn't the one around: work that another task does for it.
struct span_parent {
  std::uint64_t id = 0;
};

// The innermost open span of the running task (outside tasks: of this thread); id 0: none.
inline span_parent current_span() noexcept { return {internal::span_current()}; }

// One span, open from construction to destruction. Its time is active while its thread, or the task
// that it was made in, runs; idle while that task is suspended. Neither copied nor moved: it lives
// where the work lives (a coroutine's frame, a scope, an object of the task). It ends in the task
// that it began in, or once that task runs no more. Inert if recording was off at its construction;
// one that outlives its recorder has no exit. In a signal handler as record(); one that is opened
// while its thread opens another is lost, and counted as nested.
// Cost: two events; nothing but a load and a branch while off (bench/span).
template <class Kind>
class span {
 public:
  using Fields = typename Kind::Fields;

  // The parent is the span around it in the same task or thread.
  explicit span(const Fields& fields = {}) noexcept : span(fields, span_parent{}) {}
  span(const Fields& fields, span_parent parent) noexcept {
    if (__builtin_expect(is_recording(), 0)) {
      internal::span_begin(core_, parent.id, &fields, &write_enter);
    }
  }
  ~span() {
    if (__builtin_expect(core_.id != 0, 0)) internal::span_end(core_, &late, &write_exit);
  }
  span(const span&) = delete;
  span& operator=(const span&) = delete;

  // For span_parent of other work; 0 if not recorded.
  span_parent as_parent() const noexcept { return {core_.id}; }

  typename Kind::Late late{};

 private:
  using Enter =
      internal::JoinedEvent<typename Kind::Enter, internal::SpanHead, internal::SpanName, Fields>;
  using Exit = internal::ExitEvent<typename Kind::Exit, typename Kind::Late>;

  static Enter enter_event(const internal::SpanCore& core, const void* fields) noexcept {
    return {internal::span_head(core),
            {{&Kind::dial9_span_name()}},
            *static_cast<const Fields*>(fields)};
  }
  static Exit exit_event(const internal::SpanCore& core, const void* late,
                         bool completed) noexcept {
    return {{internal::span_head(core),
             {&core, completed, 0},
             *static_cast<const typename Kind::Late*>(late)}};
  }

  // One function a kind, which goes on where span_begin() or span_end() leaves off: the event is
  // built and written in one go.
  static void write_enter(internal::SpanCore& core, const void* fields) noexcept {
    const std::uint32_t epoch = internal::recording_epoch();
    std::uint64_t ns = 0;
    const bool is_written = internal::try_write_event<false>(epoch, enter_event(core, fields), ns);
    if (__builtin_expect(!is_written, 0)) return write_enter_slowly(core, fields);
    internal::span_entered(core, ns);
  }
  [[gnu::cold, gnu::noinline]] static void write_enter_slowly(internal::SpanCore& core,
                                                              const void* fields) noexcept {
    const std::uint32_t epoch = internal::recording_epoch();
    if (epoch == 0) return internal::span_not_entered(core, false);
    const std::uint64_t ns = internal::write_event_slowly(epoch, enter_event(core, fields), 0);
    if (ns == 0) return internal::span_not_entered(core, true);
    internal::span_entered(core, ns);
  }

  static void write_exit(const internal::SpanCore& core, const void* late,
                         bool completed) noexcept {
    const std::uint32_t epoch = internal::recording_epoch();
    std::uint64_t ns = 0;
    const bool is_written =
        internal::try_write_event<false>(epoch, exit_event(core, late, completed), ns);
    if (__builtin_expect(!is_written, 0)) write_exit_slowly(core, late, completed);
  }
  [[gnu::cold, gnu::noinline]] static void write_exit_slowly(const internal::SpanCore& core,
                                                             const void* late,
                                                             bool completed) noexcept {
    const std::uint32_t epoch = internal::recording_epoch();
    if (epoch != 0) internal::write_event_slowly(epoch, exit_event(core, late, completed), 0);
  }

  internal::SpanCore core_;
};

}  // namespace dial9
