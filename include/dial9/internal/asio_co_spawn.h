// dial9::asio::co_spawn: Asio's, with a name. Included by dial9/asio.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "dial9/internal/asio_namespace.h"
#include "dial9/internal/asio_seam.h"

#if defined(DIAL9_ASIO_HAS_CO_AWAIT)

namespace dial9::asio {
inline namespace DIAL9_ASIO_INLINE {

namespace internal {

template <class Executor>
runtime::RuntimeId runtime_of_executor(const Executor& executor) noexcept {
  if constexpr (net::can_query<const Executor&, net::execution::context_t>::value) {
    return hooks::runtime_of_context(
        &static_cast<net::execution_context&>(net::query(executor, net::execution::context)));
  } else {
    return hooks::runtime_of_context(&static_cast<net::execution_context&>(executor.context()));
  }
}

// Makes the coroutine's task the thread's where it begins in another's poll; and gives the thread
// back to who waits for the result, since that may be resumed directly, and what it starts is its
// own.
struct Spawned {
  hooks::TaskGuard guard;
  runtime::TaskRef parent;
  bool returns_to_parent;

  void begin() const noexcept { become(guard.task()); }
  void finish() const noexcept {
    if (returns_to_parent) become(parent);
  }
  static void become(runtime::TaskRef task) noexcept {
    if (runtime::current_task().id != task.id) runtime::switch_task(task);
  }
};

// One coroutine frame around the user's: it ends the task whichever way it goes, run to its end, by
// an exception, or destroyed before.
template <class T, class Executor>
net::awaitable<T, Executor> in_task(net::awaitable<T, Executor> body, Spawned spawned) {
  spawned.begin();
  struct Finish {
    const Spawned& spawned;
    ~Finish() { spawned.finish(); }
  } finish{spawned};
  if constexpr (std::is_void_v<T>) {
    co_await std::move(body);
  } else {
    co_return co_await std::move(body);
  }
}

template <class T, class Executor, class Function>
net::awaitable<T, Executor> call_in_task(Function function, Spawned spawned) {
  spawned.begin();
  struct Finish {
    const Spawned& spawned;
    ~Finish() { spawned.finish(); }
  } finish{spawned};
  if constexpr (std::is_void_v<T>) {
    co_await function();
  } else {
    co_return co_await function();
  }
}

template <class Token>
constexpr bool kReturnsToParent = !std::is_same_v<std::decay_t<Token>, net::detached_t>;

template <class Result>
struct IsAwaitable : std::false_type {};
template <class T, class Executor>
struct IsAwaitable<net::awaitable<T, Executor>> : std::true_type {
  using Value = T;
  using AwaitableExecutor = Executor;
};

template <class Function>
using ResultOf = std::decay_t<std::invoke_result_t<std::decay_t<Function>&>>;

template <class T>
constexpr bool kIsContext = std::is_base_of_v<net::execution_context, std::remove_cv_t<T>>;

}  // namespace internal

// Asio's co_spawn, as a task of this name: spawned now, terminated when the coroutine is gone. Its
// polls, and what it starts, belong to the task on whichever thread it runs; if the token lets
// someone wait for the result, that one continues as itself. `name` is copied (up to 200 bytes,
// 4,096 names a process). Costs one more coroutine frame than Asio's. Returns what Asio's returns;
// exceptions as Asio's.
template <class Executor, class T, class AwaitableExecutor, class Token = net::detached_t,
          std::enable_if_t<!internal::kIsContext<Executor>, int> = 0>
auto co_spawn(const Executor& executor, const char* name, net::awaitable<T, AwaitableExecutor> body,
              Token&& token = {}) {
  const runtime::TaskRef parent = runtime::current_task();
  hooks::TaskGuard guard = hooks::spawn(name, internal::runtime_of_executor(executor));
  const runtime::CurrentTask current(guard.task());
  internal::Spawned spawned{std::move(guard), parent, internal::kReturnsToParent<Token>};
  return net::co_spawn(executor, internal::in_task(std::move(body), std::move(spawned)),
                       std::forward<Token>(token));
}

// The same with a callable that returns the awaitable; it is kept until the coroutine is gone.
template <class Executor, class Function, class Token = net::detached_t,
          class Awaitable = internal::IsAwaitable<internal::ResultOf<Function>>,
          std::enable_if_t<!internal::kIsContext<Executor> && Awaitable::value, int> = 0>
auto co_spawn(const Executor& executor, const char* name, Function&& function, Token&& token = {}) {
  const runtime::TaskRef parent = runtime::current_task();
  hooks::TaskGuard guard = hooks::spawn(name, internal::runtime_of_executor(executor));
  const runtime::CurrentTask current(guard.task());
  internal::Spawned spawned{std::move(guard), parent, internal::kReturnsToParent<Token>};
  return net::co_spawn(
      executor,
      internal::call_in_task<typename Awaitable::Value, typename Awaitable::AwaitableExecutor,
                             std::decay_t<Function>>(std::forward<Function>(function),
                                                     std::move(spawned)),
      std::forward<Token>(token));
}

// The same on a context's executor.
template <class Context, class Work, class Token = net::detached_t,
          std::enable_if_t<internal::kIsContext<Context>, int> = 0>
auto co_spawn(Context& context, const char* name, Work&& work, Token&& token = {}) {
  return co_spawn(context.get_executor(), name, std::forward<Work>(work),
                  std::forward<Token>(token));
}

}  // namespace DIAL9_ASIO_INLINE
}  // namespace dial9::asio

#endif  // DIAL9_ASIO_HAS_CO_AWAIT
