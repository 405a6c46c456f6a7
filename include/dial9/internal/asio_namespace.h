// Which Asio dial9/asio.h is for: Boost.Asio, or standalone Asio where DIAL9_ASIO_STANDALONE (or
// ASIO_STANDALONE) is defined first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(DIAL9_ASIO_STANDALONE) || (defined(ASIO_STANDALONE) && !defined(BOOST_ASIO_HPP))
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/execution.hpp>
#include <asio/execution_context.hpp>
#include <asio/io_context.hpp>
#define DIAL9_ASIO_NAMESPACE ::asio
#define DIAL9_ASIO_INLINE standalone_asio
#if defined(ASIO_HAS_CO_AWAIT)
#define DIAL9_ASIO_HAS_CO_AWAIT 1
#endif
#else
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#define DIAL9_ASIO_NAMESPACE ::boost::asio
#define DIAL9_ASIO_INLINE boost_asio
#if defined(BOOST_ASIO_HAS_CO_AWAIT)
#define DIAL9_ASIO_HAS_CO_AWAIT 1
#endif
#endif

namespace dial9::asio {
inline namespace DIAL9_ASIO_INLINE {
namespace net = DIAL9_ASIO_NAMESPACE;
}  // namespace DIAL9_ASIO_INLINE
}  // namespace dial9::asio
