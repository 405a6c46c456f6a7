// The other half: knows nothing of dial9, includes no header of it, and only posts.
// SPDX-License-Identifier: Apache-2.0
#include <asio.hpp>

void post_one(asio::io_context& io, int& count) {
  asio::post(io, [&count] { ++count; });
}
