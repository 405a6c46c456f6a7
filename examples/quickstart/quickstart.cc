// The smallest recorded program: a recorder, a task on an io_context, an event of one's own.
//
//   build/dev/quickstart DIRECTORY && build/dev/dial9 info DIRECTORY
//
// SPDX-License-Identifier: Apache-2.0
#include <dial9/asio.h>
#include <dial9/event.h>
#include <dial9/recorder.h>

#include <boost/asio.hpp>
#include <cstdio>

namespace asio = boost::asio;

DIAL9_EVENT(Brewed, (std::uint32_t, cup), (dial9::interned, kind));

asio::awaitable<void> brew() {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (std::uint32_t cup = 1; cup <= 100; ++cup) {
    timer.expires_after(std::chrono::milliseconds(1));
    co_await timer.async_wait(asio::use_awaitable);
    dial9::record(Brewed{cup, "tea"});
  }
}

int main(int argc, char** argv) {
  const auto options = dial9::RecorderOptions::disk(argc > 1 ? argv[1] : "traces");
  auto [recorder, status] = dial9::Recorder::start(options);
  if (!status) std::fprintf(stderr, "not recording: %s\n", status.message().c_str());
  asio::io_context io;
  dial9::asio::co_spawn(io.get_executor(), "brew", brew());
  io.run();
}
