// Stands in for include/dial9/asio.h where the checkout service is built without dial9's Asio
// integration (bench/peers/end_to_end): each call is the plain Boost.Asio call. Strongest property:
// no hook, no interposed libc function and no task identity is left. Method: bench/peers/README.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <utility>

namespace dial9::asio {

inline void name_context(boost::asio::io_context&, const char*) {}

template <class Target, class Body, class Token>
auto co_spawn(Target&& target, const char*, Body&& body, Token&& token) {
  return boost::asio::co_spawn(std::forward<Target>(target), std::forward<Body>(body),
                               std::forward<Token>(token));
}

inline std::size_t run(boost::asio::io_context& io) { return io.run(); }

}  // namespace dial9::asio
