// dial9 for Asio programs: names for tasks and contexts, tasks for callback code, run(), and the
// traced executor. For Boost.Asio; for standalone Asio with DIAL9_ASIO_STANDALONE (or
// ASIO_STANDALONE) defined before. Strongest property: each call behaves as the Asio call that it
// stands for, recording or not.
//
//   dial9::asio::name_context(io, "http");
//   dial9::asio::co_spawn(io, "session", session(std::move(socket)), boost::asio::detached);
//   dial9::asio::run(io);
//
// Link dial9::asio_tracking to record every handler, dial9::asio to record what goes through these
// calls. Guide: docs/guide/asio.md. C++17; co_spawn C++20.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "dial9/internal/asio_co_spawn.h"
#include "dial9/internal/asio_executor.h"
#include "dial9/internal/asio_namespace.h"
#include "dial9/internal/asio_seam.h"

namespace dial9::asio {
inline namespace DIAL9_ASIO_INLINE {

// Tells when its context goes, so that another at the same address isn't taken for it.
class ContextWatch : public net::execution_context::service {
 public:
  using key_type = ContextWatch;
  static inline net::execution_context::id id;

  explicit ContextWatch(net::execution_context& context)
      : net::execution_context::service(context), context_(&context) {}

 private:
  void shutdown() override { hooks::forget_context(context_); }
  const net::execution_context* context_;
};

// Names the runtime that the context's workers, polls and queue belong to (`runtime.{name}` in the
// trace). Before or after its first handler; the name is copied (63 bytes). Contexts without a name
// are called after DIAL9_RUNTIME_NAME or "main", "main-2", ... in the order of their first
// handlers; if a program makes and destroys such contexts, one that takes the address of another
// continues its name.
template <class Context>
void name_context(Context& context, const char* name) {
  static_assert(
      std::is_base_of<net::execution_context, Context>::value,
      "dial9: name_context takes an execution context, such as io_context or thread_pool");
  if (!net::has_service<ContextWatch>(context)) net::use_service<ContextWatch>(context);
  hooks::name_context(&static_cast<net::execution_context&>(context), name);
}

// A task of callback code: what is started while a task_scope of it lives belongs to it, and what
// that starts, and so on, across sockets, timers, strands and threads. Recorded as spawned when
// made and as terminated when destroyed; keep it in what the callbacks share, such as a connection
// object. Movable. Any thread. Cost: an event each; the name is looked up by its text.
class task {
 public:
  explicit task(const char* name) noexcept : guard_(hooks::spawn(name, 0)) {}
  // The same, counted in alive_tasks of the context's runtime.
  template <class Context>
  task(Context& context, const char* name) noexcept
      : guard_(hooks::spawn(
            name, hooks::runtime_of_context(&static_cast<net::execution_context&>(context)))) {}

  runtime::TaskId id() const noexcept { return guard_.task().id; }
  runtime::TaskRef ref() const noexcept { return guard_.task(); }

 private:
  hooks::TaskGuard guard_;
};

// What is started in its lifetime, on its thread, belongs to the task.
class task_scope {
 public:
  explicit task_scope(const task& of) noexcept : current_(of.ref()) {}

 private:
  runtime::CurrentTask current_;
};

// io.run(), with this thread shown as a worker of the context from the start: its first park is in
// the trace too, before its first handler. Where the library's own definitions of epoll_wait and
// friends aren't linked in (sanitizer builds), it asks for ready handlers without waiting before
// each wait, so that the wait is seen: one more epoll_wait(0) an idle turn. Returns, throws and
// stops as io.run().
inline std::size_t run(net::io_context& io) {
  runtime::enter_worker(hooks::runtime_of_context(&static_cast<net::execution_context&>(io)));
#if defined(DIAL9_ASIO_TRACKING)
  if (!hooks::has_interposer()) {
    struct Park {  // the first handler unparks; this does if none runs
      Park() noexcept { runtime::park(); }
      ~Park() { runtime::unpark(); }
    };
    for (std::size_t count = 0;;) {
      count += io.poll();
      if (io.stopped()) return count;
      const Park park;
      const std::size_t one = io.run_one();
      if (one == 0) return count;
      count += one;
    }
  }
#endif
  return io.run();
}

}  // namespace DIAL9_ASIO_INLINE
}  // namespace dial9::asio
