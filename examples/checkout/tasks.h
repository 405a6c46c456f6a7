// Starts a named task. The one place that says how the service's coroutines are spawned, so that a
// recording shows each under its name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dial9/asio.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

namespace checkout {

// Runs `body` on `executor`, detached; nobody sees an exception that leaves it. `name` must live
// for ever.
template <class Executor>
void spawn(const Executor& executor, const char* name, boost::asio::awaitable<void> body) {
  dial9::asio::co_spawn(executor, name, std::move(body), boost::asio::detached);
}

}  // namespace checkout
