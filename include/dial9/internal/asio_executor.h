// dial9::asio::traced_executor: the limited mode. Included by dial9/asio.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "dial9/internal/asio_namespace.h"
#include "dial9/internal/asio_seam.h"

namespace dial9::asio {
inline namespace DIAL9_ASIO_INLINE {

namespace internal {

template <class Executor, class Function>
auto execute_on(const Executor& executor, Function&& function, int)
    -> decltype(executor.execute(std::forward<Function>(function))) {
  return executor.execute(std::forward<Function>(function));
}
template <class Executor, class Function>
void execute_on(const Executor& executor, Function&& function, long) {  // Asio before 1.24
  net::execution::execute(executor, std::forward<Function>(function));
}

template <class Function>
struct TracedFunction {
  Function function;
  hooks::QueueToken queued;
  runtime::TaskRef task;
  runtime::RuntimeId runtime;

  void operator()() {
    queued.pop();
    const runtime::PollScope poll(runtime, task);
    std::move(function)();
  }
};

}  // namespace internal

// An executor that records what goes through it: for each function a wake when it is submitted and
// a poll while it runs. Wrap the executor that sockets, timers and strands are made with, or bind
// it to handlers; works beside code that knows nothing of dial9. What it can't see: when a socket
// or timer became ready (submission is when the reactor has noticed), and handlers that bypass it.
// Compares equal if the inner executors do. Requirements and queries are the inner executor's.
template <class Inner>
class traced_executor {
 public:
  explicit traced_executor(Inner inner) noexcept : inner_(std::move(inner)) {}
  const Inner& inner() const noexcept { return inner_; }

  template <class Property>
  auto query(const Property& property) const noexcept
      -> std::enable_if_t<net::can_query<const Inner&, Property>::value,
                          decltype(net::query(std::declval<const Inner&>(), property))> {
    return net::query(inner_, property);
  }
  template <class Property>
  auto require(const Property& property) const
      -> std::enable_if_t<net::can_require<const Inner&, Property>::value,
                          traced_executor<std::decay_t<
                              decltype(net::require(std::declval<const Inner&>(), property))>>> {
    return traced_executor<std::decay_t<decltype(net::require(inner_, property))>>(
        net::require(inner_, property));
  }
  template <class Property>
  auto prefer(const Property& property) const
      -> std::enable_if_t<net::can_prefer<const Inner&, Property>::value,
                          traced_executor<std::decay_t<
                              decltype(net::prefer(std::declval<const Inner&>(), property))>>> {
    return traced_executor<std::decay_t<decltype(net::prefer(inner_, property))>>(
        net::prefer(inner_, property));
  }

  template <class Function>
  void execute(Function&& function) const {
    static runtime::Place place{"traced_executor"};
    runtime::TaskRef task = runtime::current_task();
    if (task.id == 0) task = runtime::TaskRef{runtime::new_task_id(), &place};
    const runtime::RuntimeId runtime = hooks::runtime_of_context(
        &static_cast<net::execution_context&>(net::query(inner_, net::execution::context)));
    runtime::task_ready(task.id);
    internal::execute_on(
        inner_,
        internal::TracedFunction<std::decay_t<Function>>{std::forward<Function>(function),
                                                         hooks::QueueToken(runtime), task, runtime},
        0);
  }

  friend bool operator==(const traced_executor& a, const traced_executor& b) noexcept {
    return a.inner_ == b.inner_;
  }
  friend bool operator!=(const traced_executor& a, const traced_executor& b) noexcept {
    return !(a.inner_ == b.inner_);
  }

 private:
  Inner inner_;
};

// The traced executor of a context.
template <class Context>
auto traced(Context& context) noexcept {
  return traced_executor<typename Context::executor_type>(context.get_executor());
}

}  // namespace DIAL9_ASIO_INLINE
}  // namespace dial9::asio
