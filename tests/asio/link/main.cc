// The tracked half of a program: posts through a function of the other half.
// SPDX-License-Identifier: Apache-2.0
#include <boost/asio.hpp>

void post_one(boost::asio::io_context& io, int& count);

int main() {
  boost::asio::io_context io;
  int count = 0;
  post_one(io, count);
  boost::asio::post(io, [&count] { ++count; });
  io.run();
  return count == 2 ? 0 : 1;
}
