// Runs N operations of Asio on one thread, for callgrind to count: handler_bare CASE N, and
// handler_tracked CASE N, which records. handler: each posted by the one before (handler_off: not
// recorded). strand: posted through one by a coroutine. round_trip: eight bytes back and forth
// between two coroutines over a pair of sockets. timer: one that has expired. lock: a free mutex
// inside a handler. All stays within one chunk: two runs of different N differ by warm operations.
//
// SPDX-License-Identifier: Apache-2.0
#include <boost/asio.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "recorder/recorder_core.h"

namespace dial9 {
namespace {

namespace net = boost::asio;
using Socket = net::local::stream_protocol::socket;

void post_next(net::io_context& io, int left) {
  if (left != 0) net::post(io, [&io, left] { post_next(io, left - 1); });
}

net::awaitable<void> post_through(net::strand<net::any_io_executor> strand, int left) {
  for (; left != 0; --left) co_await net::post(strand, net::use_awaitable);
}

net::awaitable<void> echo(Socket& socket, bool is_first, int left) {
  std::array<char, 8> bytes{};
  for (; left != 0; --left) {
    if (is_first) co_await net::async_write(socket, net::buffer(bytes), net::use_awaitable);
    co_await net::async_read(socket, net::buffer(bytes), net::use_awaitable);
    if (!is_first) co_await net::async_write(socket, net::buffer(bytes), net::use_awaitable);
  }
}

net::awaitable<void> wait_often(int left) {
  net::steady_timer timer(co_await net::this_coro::executor);
  for (; left != 0; --left) {
    timer.expires_at(net::steady_timer::time_point::min());
    co_await timer.async_wait(net::use_awaitable);
  }
}

// A std::mutex asks for the real lock only in a program of several threads.
void lock_often(int left) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  for (; left != 0; --left) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  }
}

// The work of a case, on `io` alone; false: there is no such case.
bool run_case(const char* name, net::io_context& io, int count) {
  std::optional<std::pair<Socket, Socket>> ends;  // none: nor a reactor
  if (std::strncmp(name, "handler", 7) == 0) {
    post_next(io, count);
  } else if (std::strcmp(name, "strand") == 0) {
    net::co_spawn(io,
                  post_through(net::make_strand(net::any_io_executor(io.get_executor())), count),
                  net::detached);
  } else if (std::strcmp(name, "round_trip") == 0) {
    ends.emplace(Socket(io), Socket(io));
    net::local::connect_pair(ends->first, ends->second);
    net::co_spawn(io, echo(ends->first, true, count), net::detached);
    net::co_spawn(io, echo(ends->second, false, count), net::detached);
  } else if (std::strcmp(name, "timer") == 0) {
    net::co_spawn(io, wait_often(count), net::detached);
  } else if (std::strcmp(name, "lock") == 0) {
    net::post(io, [count] { lock_often(count); });
  } else {
    return false;
  }
  io.run();
  io.restart();
  return true;
}

int run(const char* name, int count) {
  internal::CoreSeams seams;
  seams.has_thread = false;
  RecorderOptions options = RecorderOptions::memory(std::uint64_t{4} << 20);
  options.starts_disabled = std::strcmp(name, "handler_off") == 0;
  Status status;
  const auto core = internal::RecorderCore::start(options, seams, &status);
  if (!status) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  net::io_context io(1);
  // The first attaches the thread and writes schemas.
  if (!run_case(name, io, 4) || !run_case(name, io, count)) return 2;
  return core->status().events_dropped == 0 ? 0 : 1;
}

}  // namespace
}  // namespace dial9

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return dial9::run(argv[1], std::atoi(argv[2]));
}
