// What Asio includes as its custom handler tracking: the thin inline half of the hooks, for
// Boost.Asio and standalone Asio alike. Strongest property: with recording off a handler costs a
// few nanoseconds and behaves the same; on, nothing here locks, allocates or throws, whatever Asio
// calls it under.
//
// Never included by hand: link dial9::asio_tracking PUBLIC, which defines everything for every
// translation unit of a program. The hooks make Asio's operations larger, so code built with and
// without them must not be mixed; the linker refuses it (docs/guide/asio.md, "Mixing").
// Spec: docs/spec/events_ours.md, "Asio". C++17.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dial9/runtime.h"

#if defined(BOOST_ASIO_CUSTOM_HANDLER_TRACKING) && __has_include(<boost/asio/version.hpp>)
#include <boost/asio/version.hpp>
#endif
#if defined(ASIO_CUSTOM_HANDLER_TRACKING) && __has_include(<asio/version.hpp>)
#include <asio/version.hpp>
#endif

// Defined by the library that goes with this header; missing, the linker names it.
extern "C" const char dial9_error_asio_was_tracked_but__link_dial9_asio_tracking__is_missing;

namespace dial9::asio::hooks {

struct OpSite;

// The base of every Asio operation (64 bytes). Zero where recording was off at its start,
// but for the task and the context.
struct TrackedOp {
  runtime::TaskRef task;
  void* context = nullptr;
  union {
    void* object = nullptr;  // socket, timer, strand: the implementation's address
    std::uint64_t short_id;  // of plain work: its task's id as events have it
  };
  const OpSite* site = nullptr;
  std::uint64_t created_ns = 0;
  std::uint64_t ready_ns = 0;  // 0: not known (yet)
  std::uint32_t fd = 0;
  std::uint8_t flags = 0;
  std::uint8_t short_id_size = 0;  // bytes; 0: it has none, or isn't plain work
  std::uint16_t runtime = 0;  // of the context; 0: not looked up

 protected:
  ~TrackedOp() = default;
};

// Versions whose deadline_timer_service::implementation_type begins with the expiry, by its source;
// in others a timer's ready time is unknown.
constexpr bool is_timer_layout_known(unsigned version) {
  return version >= 101'601 && version <= 103'899;
}
#if defined(BOOST_ASIO_VERSION)
inline constexpr bool kBoostTimerIsKnown = is_timer_layout_known(BOOST_ASIO_VERSION);
#endif
#if defined(ASIO_VERSION)
inline constexpr bool kAsioTimerIsKnown = is_timer_layout_known(ASIO_VERSION);
#endif

inline constexpr unsigned kReadEvent = 1;
inline constexpr unsigned kWriteEvent = 2;
inline constexpr unsigned kErrorEvent = 4;

class Completion;

// The out-of-line halves, in the library. `epoch` is recording_epoch().
//
// Work that a task gives to a queue, where that is all there is to do; else false, and
// op_created().
bool op_posted(TrackedOp& op, std::uint32_t epoch) noexcept;
void op_created(TrackedOp& op, const char* type, void* object, std::uintptr_t native,
                const char* name, bool is_timer_known) noexcept;
void op_began(Completion& completion, std::uint32_t epoch, bool is_aborted) noexcept;
void op_ended(Completion& completion, std::uint32_t epoch) noexcept;
// Where it isn't plain work, these go on; the first perhaps with a result of its system call.
void op_began_done(Completion& completion, std::uint32_t epoch, bool is_aborted) noexcept;
void op_began_rest(Completion& completion, bool is_aborted) noexcept;
void op_ended_rest(Completion& completion) noexcept;
// Destroyed without having run, or an exception came out of its handler.
[[gnu::cold]] void op_left(Completion& completion) noexcept;
void object_operation(void* object, const char* name) noexcept;
void descriptor_registered(std::uintptr_t fd, std::uintptr_t registration) noexcept;
void descriptor_deregistered(std::uintptr_t registration) noexcept;
void descriptor_ready(std::uintptr_t registration, unsigned events) noexcept;
void descriptor_tried(TrackedOp& op, const char* name, int error) noexcept;

// Decided by the compiler, where it sees that `type` is a literal: hence always inlined, with what
// calls it.
[[gnu::always_inline]] inline bool is_queue(const char* type) noexcept {
  return __builtin_strcmp(type, "io_context") == 0 || __builtin_strcmp(type, "thread_pool") == 0 ||
         __builtin_strcmp(type, "system_executor") == 0;
}

template <bool kIsTimerKnown, class Context>
[[gnu::always_inline]] inline void creation(Context& context, TrackedOp& op, const char* type,
                                            void* object, std::uintmax_t native,
                                            const char* name) noexcept {
  op.task = runtime::current_task();
  op.context = &context;
  const std::uint32_t epoch = dial9::internal::recording_epoch();
  if (epoch == 0 || (is_queue(type) && op_posted(op, epoch))) return;
  op_created(op, type, object, static_cast<std::uintptr_t>(native), name, kIsTimerKnown);
}

template <class Error>
inline auto error_value(const Error& error, int) noexcept -> decltype(int{error.value()}) {
  return error.value();
}
template <class Other>
inline int error_value(const Other&, long) noexcept {
  return 0;
}
inline bool is_aborted() noexcept { return false; }
template <class First, class... Rest>
inline bool is_aborted(const First& first, const Rest&...) noexcept {
  return error_value(first, 0) == 125;  // ECANCELED, which is operation_aborted
}

// Lives while an operation completes: covers its handler, an exception out of it, and an operation
// that is destroyed without being run. Copies what it needs, since the operation's memory goes
// first.
class Completion {
 public:
  explicit Completion(const TrackedOp& op) noexcept : op_(op) {}
  ~Completion() {
    if (__builtin_expect(state_ != State::kEnded, 0)) op_left(*this);
  }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  template <class... Results>
  void invocation_begin(const Results&... results) noexcept {
    const std::uint32_t epoch = dial9::internal::recording_epoch();
    if (epoch == 0 && op_.flags == 0) {  // only who is who goes on
      state_ = State::kBegunOff;
      poll().before = runtime::exchange_current_task(op_.task);
      return;
    }
    op_began(*this, epoch, is_aborted(results...));
  }
  void invocation_end() noexcept {
    if (state_ == State::kBegunOff) {
      runtime::exchange_current_task(poll().before);
    } else {
      op_ended(*this, dial9::internal::recording_epoch());
    }
    state_ = State::kEnded;
  }

 private:
  friend void op_began(Completion&, std::uint32_t, bool) noexcept;
  friend void op_began_done(Completion&, std::uint32_t, bool) noexcept;
  friend void op_began_rest(Completion&, bool) noexcept;
  friend void op_ended(Completion&, std::uint32_t) noexcept;
  friend void op_ended_rest(Completion&) noexcept;
  friend void op_left(Completion&) noexcept;

  struct Op : TrackedOp {
    explicit Op(const TrackedOp& op) noexcept : TrackedOp(op) {}
  };
  enum class State : std::uint8_t { kNew, kBegunOff, kBegun, kBegunPlain, kEnded };

  // Set once the handler has begun: one that never does would clear it in vain. While kBegunOff,
  // only `before` is.
  runtime::Poll& poll() noexcept {
    return *static_cast<runtime::Poll*>(static_cast<void*>(poll_bytes_));
  }

  Op op_;
  State state_ = State::kNew;
  // NOLINTNEXTLINE: left unset on purpose.
  alignas(runtime::Poll) unsigned char poll_bytes_[sizeof(runtime::Poll)];
};

// Asio names the place where an operation was begun: for composed operations a line of Asio itself.
class Location {
 public:
  Location(const char* file, int line, const char* function) noexcept;
  ~Location();
  Location(const Location&) = delete;
  Location& operator=(const Location&) = delete;

  const char* file;
  int line;
  Location* outer;
};

template <class Context>
inline void operation(Context&, const char*, void* object, std::uintmax_t,
                      const char* name) noexcept {
  object_operation(object, name);
}
template <class Context>
inline void registration(Context&, std::uintmax_t fd, std::uintmax_t id) noexcept {
  descriptor_registered(static_cast<std::uintptr_t>(fd), static_cast<std::uintptr_t>(id));
}
template <class Context>
inline void deregistration(Context&, std::uintmax_t, std::uintmax_t id) noexcept {
  descriptor_deregistered(static_cast<std::uintptr_t>(id));
}
template <class Context>
inline void reactor_events(Context&, std::uintmax_t id, unsigned events) noexcept {
  descriptor_ready(static_cast<std::uintptr_t>(id), events);
}
template <class Error>
inline void reactor_operation(const TrackedOp& op, const char* name, const Error& error,
                              std::size_t = 0) noexcept {
  descriptor_tried(const_cast<TrackedOp&>(op), name, error.value());
}

// One reference a translation unit makes the missing library an error of the linker.
[[gnu::used]] inline const char* const kLinkGuard =
    &dial9_error_asio_was_tracked_but__link_dial9_asio_tracking__is_missing;

}  // namespace dial9::asio::hooks

// The sixteen macros that Asio asks for, in its two spellings.
#define BOOST_ASIO_INHERIT_TRACKED_HANDLER : public ::dial9::asio::hooks::TrackedOp
#define BOOST_ASIO_ALSO_INHERIT_TRACKED_HANDLER , public ::dial9::asio::hooks::TrackedOp
#define BOOST_ASIO_HANDLER_TRACKING_INIT (void)0
#define BOOST_ASIO_HANDLER_LOCATION(args) ::dial9::asio::hooks::Location tracked_location args
#define BOOST_ASIO_HANDLER_CREATION(args) \
  ::dial9::asio::hooks::creation<::dial9::asio::hooks::kBoostTimerIsKnown> args
#define BOOST_ASIO_HANDLER_COMPLETION(args) ::dial9::asio::hooks::Completion tracked_completion args
#define BOOST_ASIO_HANDLER_INVOCATION_BEGIN(args) tracked_completion.invocation_begin args
#define BOOST_ASIO_HANDLER_INVOCATION_END tracked_completion.invocation_end()
#define BOOST_ASIO_HANDLER_OPERATION(args) ::dial9::asio::hooks::operation args
#define BOOST_ASIO_HANDLER_REACTOR_REGISTRATION(args) ::dial9::asio::hooks::registration args
#define BOOST_ASIO_HANDLER_REACTOR_DEREGISTRATION(args) ::dial9::asio::hooks::deregistration args
#define BOOST_ASIO_HANDLER_REACTOR_READ_EVENT ::dial9::asio::hooks::kReadEvent
#define BOOST_ASIO_HANDLER_REACTOR_WRITE_EVENT ::dial9::asio::hooks::kWriteEvent
#define BOOST_ASIO_HANDLER_REACTOR_ERROR_EVENT ::dial9::asio::hooks::kErrorEvent
#define BOOST_ASIO_HANDLER_REACTOR_EVENTS(args) ::dial9::asio::hooks::reactor_events args
#define BOOST_ASIO_HANDLER_REACTOR_OPERATION(args) ::dial9::asio::hooks::reactor_operation args

#define ASIO_INHERIT_TRACKED_HANDLER : public ::dial9::asio::hooks::TrackedOp
#define ASIO_ALSO_INHERIT_TRACKED_HANDLER , public ::dial9::asio::hooks::TrackedOp
#define ASIO_HANDLER_TRACKING_INIT (void)0
#define ASIO_HANDLER_LOCATION(args) ::dial9::asio::hooks::Location tracked_location args
#define ASIO_HANDLER_CREATION(args) \
  ::dial9::asio::hooks::creation<::dial9::asio::hooks::kAsioTimerIsKnown> args
#define ASIO_HANDLER_COMPLETION(args) ::dial9::asio::hooks::Completion tracked_completion args
#define ASIO_HANDLER_INVOCATION_BEGIN(args) tracked_completion.invocation_begin args
#define ASIO_HANDLER_INVOCATION_END tracked_completion.invocation_end()
#define ASIO_HANDLER_OPERATION(args) ::dial9::asio::hooks::operation args
#define ASIO_HANDLER_REACTOR_REGISTRATION(args) ::dial9::asio::hooks::registration args
#define ASIO_HANDLER_REACTOR_DEREGISTRATION(args) ::dial9::asio::hooks::deregistration args
#define ASIO_HANDLER_REACTOR_READ_EVENT ::dial9::asio::hooks::kReadEvent
#define ASIO_HANDLER_REACTOR_WRITE_EVENT ::dial9::asio::hooks::kWriteEvent
#define ASIO_HANDLER_REACTOR_ERROR_EVENT ::dial9::asio::hooks::kErrorEvent
#define ASIO_HANDLER_REACTOR_EVENTS(args) ::dial9::asio::hooks::reactor_events args
#define ASIO_HANDLER_REACTOR_OPERATION(args) ::dial9::asio::hooks::reactor_operation args
