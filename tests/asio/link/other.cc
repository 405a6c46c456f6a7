// The other half: knows nothing of dial9, includes no header of it, and only posts.
// SPDX-License-Identifier: Apache-2.0
#include <boost/asio.hpp>

void post_one(boost::asio::io_context& io, int& count) {
  boost::asio::post(io, [&count] { ++count; });
}
