// Runs N handlers of Asio, each posted by the one before, for callgrind to count: handler_bare CASE
// N and handler_tracked CASE N, which records (handler) or doesn't (handler_off). All of it stays
// within one chunk, so that two runs of different N differ by warm handlers only.
// SPDX-License-Identifier: Apache-2.0
#include <boost/asio.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "recorder/recorder_core.h"

namespace dial9 {
namespace {

namespace net = boost::asio;

void post_next(net::io_context& io, int left) {
  if (left != 0) net::post(io, [&io, left] { post_next(io, left - 1); });
}

int run(bool is_recorded, int count) {
  internal::CoreSeams seams;
  seams.has_thread = false;
  RecorderOptions options = RecorderOptions::memory(std::uint64_t{4} << 20);
  options.starts_disabled = !is_recorded;
  Status status;
  const auto core = internal::RecorderCore::start(options, seams, &status);
  if (!status) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  net::io_context io(1);
  post_next(io, 4);  // attaches the thread, writes schemas
  io.run();
  io.restart();
  post_next(io, count);
  io.run();
  return core->status().events_dropped == 0 ? 0 : 1;
}

}  // namespace
}  // namespace dial9

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return dial9::run(std::strcmp(argv[1], "handler") == 0, std::atoi(argv[2]));
}
