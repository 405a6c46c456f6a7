// The Asio under test: every test of this folder is built with Boost.Asio and with standalone Asio.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(DIAL9_ASIO_STANDALONE)
#include <asio.hpp>
namespace net = asio;
using NetError = std::error_code;
#else
#include <boost/asio.hpp>
namespace net = boost::asio;
using NetError = boost::system::error_code;
#endif

#include "dial9/asio.h"
