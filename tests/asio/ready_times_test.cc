// When work became ready: timers by their expiry, sockets by the reactor's report, cancelled ones
// by the cancel, and nothing where it isn't known.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <thread>

#include <gtest/gtest.h>

#include "net.h"
#include "recording.h"

namespace dial9::test {
namespace {

using namespace std::chrono_literals;
using Tcp = net::ip::tcp;

std::uint64_t ns_of(std::chrono::steady_clock::time_point time) {
  return static_cast<std::uint64_t>(time.time_since_epoch().count());
}

TEST(AsioReadyTimes, ATimerIsReadyAtItsExpiry) {
  std::uint64_t expiry_ns = 0;
  const Trace trace = record([&] {
    net::io_context io;
    net::steady_timer timer(io, 3ms);
    expiry_ns = ns_of(timer.expiry());
    timer.async_wait([](NetError) {});
    io.run();
  });
  const std::vector<Poll> polls = trace.polls();
  ASSERT_EQ(polls.size(), 1u);
  const std::vector<Event> wakes = trace.wakes_of(polls[0].task);
  ASSERT_EQ(wakes.size(), 1u);
  EXPECT_EQ(wakes[0].timestamp_ns, expiry_ns);
  EXPECT_LE(wakes[0].timestamp_ns, polls[0].start_ns);
}

TEST(AsioReadyTimes, ATimerBehindABusyHandlerIsLateByIt) {
  constexpr std::uint64_t kBusyNs = 30'000'000;
  const Trace trace = record([&] {
    net::io_context io;
    net::steady_timer timer(io, 1ms);
    timer.async_wait([](NetError) {});
    net::post(io, [&] { spin_for_ns(kBusyNs); });
    io.run();
  });
  const std::vector<Poll> polls = trace.polls();
  ASSERT_EQ(polls.size(), 2u);
  EXPECT_GE(polls[1].start_ns - trace.wakes_of(polls[1].task).at(0).timestamp_ns,
            kBusyNs - 1'000'000);
}

TEST(AsioReadyTimes, ASystemTimersExpiryIsConvertedToTheMonotonicClock) {
  std::uint64_t before_ns = 0;
  std::uint64_t after_ns = 0;
  const Trace trace = record([&] {
    net::io_context io;
    before_ns = now_ns();
    net::system_timer timer(io, 5ms);
    after_ns = now_ns();
    timer.async_wait([](NetError) {});
    io.run();
  });
  const std::vector<Event> wakes = trace.named("WakeEventEvent");
  ASSERT_EQ(wakes.size(), 1u);
  EXPECT_GE(wakes[0].timestamp_ns, before_ns + 4'900'000);
  EXPECT_LE(wakes[0].timestamp_ns, after_ns + 5'100'000);
}

TEST(AsioReadyTimes, ACancelledTimerIsReadyAtTheCancelByWhoCancelled) {
  std::uint64_t before_ns = 0;
  std::uint64_t after_ns = 0;
  const Trace trace = record([&] {
    net::io_context io;
    net::steady_timer timer(io, 1h);
    asio::co_spawn(io, "waiter", [&]() -> net::awaitable<void> {
      NetError error;
      co_await timer.async_wait(net::redirect_error(net::use_awaitable, error));
      EXPECT_EQ(error, net::error::operation_aborted);
    });
    asio::co_spawn(io, "canceller", [&]() -> net::awaitable<void> {
      before_ns = now_ns();
      timer.cancel();
      after_ns = now_ns();
      co_return;
    });
    io.run();
  });
  const std::uint64_t waiter = trace.task_named("waiter");
  bool is_found = false;
  for (const Event& wake : trace.wakes_of(waiter)) {
    if (wake.number("waker_task_id") != trace.task_named("canceller")) continue;
    is_found = true;
    EXPECT_GE(wake.timestamp_ns, before_ns);
    EXPECT_LE(wake.timestamp_ns, after_ns);
  }
  EXPECT_TRUE(is_found);
}

// A connected pair of sockets of one context.
struct Pair {
  explicit Pair(net::io_context& io) : client(io), server(io) {
    Tcp::acceptor acceptor(io, Tcp::endpoint(net::ip::address_v4::loopback(), 0));
    client.connect(acceptor.local_endpoint());
    acceptor.accept(server);
  }
  Tcp::socket client;
  Tcp::socket server;
};

TEST(AsioReadyTimes, ASocketIsReadyWhenTheReactorReportsIt) {
  constexpr std::uint64_t kBusyNs = 30'000'000;
  std::uint64_t written_ns = 0;
  std::uint64_t busy_from_ns = 0;
  const Trace trace = record([&] {
    net::io_context io;
    Pair pair(io);
    std::array<char, 8> bytes{};
    asio::co_spawn(io, "reader", [&]() -> net::awaitable<void> {
      co_await pair.server.async_read_some(net::buffer(bytes), net::use_awaitable);
    });
    asio::co_spawn(io, "second reader", [&]() -> net::awaitable<void> {
      co_await pair.client.async_read_some(net::buffer(bytes), net::use_awaitable);
      busy_from_ns = now_ns();
      spin_for_ns(kBusyNs);
    });
    net::post(io, [&] {
      // Both become readable before the reactor looks; whoever is second waits for the first.
      written_ns = now_ns();
      pair.server.send(net::buffer("pong", 4));
      pair.client.send(net::buffer("ping", 4));
    });
    io.run();
  });
  const std::uint64_t reader = trace.task_named("reader");
  const std::vector<Event> wakes = trace.wakes_of(reader);
  const std::vector<Poll> polls = trace.polls_of(reader);
  ASSERT_GE(wakes.size(), 2u);  // started, and readable
  EXPECT_GE(wakes.back().timestamp_ns, written_ns);
  EXPECT_LE(wakes.back().timestamp_ns, polls.back().start_ns);
  const std::vector<Poll> second = trace.polls_of(trace.task_named("second reader"));
  const Poll& last = polls.back().start_ns > second.back().start_ns ? polls.back() : second.back();
  EXPECT_LE(trace.wakes_of(last.task).back().timestamp_ns, busy_from_ns)
      << "ready before the busy handler, since the reactor reported both at once";
}

TEST(AsioReadyTimes, AReadThatSucceedsAtOnceIsReadyAtItsStart) {
  std::uint64_t before_ns = 0;
  std::uint64_t after_ns = 0;
  const Trace trace = record([&] {
    net::io_context io;
    Pair pair(io);
    std::array<char, 4> bytes{};
    pair.client.send(net::buffer("ping", 4));
    pair.server.wait(net::socket_base::wait_read);
    before_ns = now_ns();
    pair.server.async_read_some(net::buffer(bytes), [](NetError, std::size_t) {});
    after_ns = now_ns();
    io.run();
  });
  const std::vector<Event> wakes = trace.named("WakeEventEvent");
  ASSERT_EQ(wakes.size(), 1u);
  EXPECT_GE(wakes[0].timestamp_ns, before_ns);
  EXPECT_LE(wakes[0].timestamp_ns, after_ns);
}

TEST(AsioReadyTimes, ADescriptorThatIsReusedStartsAnew) {
  using Local = net::local::stream_protocol;
  std::vector<std::uint64_t> started_ns;
  const Trace trace = record([&] {
    net::io_context io;
    int first_fd = -1;
    for (int i = 0; i < 2; ++i) {
      Local::socket near(io);
      Local::socket far(io);
      net::local::connect_pair(near, far);
      if (i == 0) first_fd = near.native_handle();
      EXPECT_EQ(near.native_handle(), first_fd);
      std::array<char, 4> bytes{};
      started_ns.push_back(now_ns());
      near.async_read_some(net::buffer(bytes), [](NetError, std::size_t) {});
      io.restart();
      io.poll();
      far.send(net::buffer("ping", 4));
      io.run();
    }
  });
  const std::vector<Event> wakes = trace.named("WakeEventEvent");
  ASSERT_EQ(wakes.size(), 2u);
  EXPECT_GE(wakes[0].timestamp_ns, started_ns[0]);
  EXPECT_LE(wakes[0].timestamp_ns, started_ns[1]);
  EXPECT_GE(wakes[1].timestamp_ns, started_ns[1]);
}

TEST(AsioReadyTimes, WorkThatRunsAtOnceInsideItsTasksPollIsNoWake) {
  bool has_run = false;
  const Trace trace = record([&] {
    net::io_context io;
    const auto strand = net::make_strand(io);
    asio::co_spawn(io, "caller", [&]() -> net::awaitable<void> {
      net::dispatch(strand, [&] { has_run = true; });  // the strand is free
      EXPECT_TRUE(has_run);
      net::steady_timer timer(io, 1ms);
      co_await timer.async_wait(net::use_awaitable);
    });
    io.run();
  });
  const std::uint64_t caller = trace.task_named("caller");
  const std::vector<Poll> polls = trace.polls_of(caller);
  ASSERT_EQ(polls.size(), 2u);
  std::vector<Event> wakes = trace.wakes_of(caller);
  std::erase_if(wakes, [&](const Event& wake) { return wake.timestamp_ns < polls[0].start_ns; });
  ASSERT_EQ(wakes.size(), 1u) << "the second poll answers the timer alone";
  EXPECT_GE(wakes[0].timestamp_ns, polls[0].end_ns);
}

TEST(AsioReadyTimes, WorkOfATaskThatWaitsBehindItsOwnCountsFromThatPollsEnd) {
  const Trace trace = record([&] {
    net::io_context io;
    const asio::task task("twice");
    {
      const asio::task_scope scope(task);
      for (int i = 0; i < 3; ++i) net::post(io, [] { spin_for_ns(100'000); });
    }
    io.run();
  });
  const std::uint64_t task = trace.task_named("twice");
  const std::vector<Poll> polls = trace.polls_of(task);
  ASSERT_EQ(polls.size(), 3u);
  const std::vector<Event> wakes = trace.wakes_of(task);
  for (std::size_t i = 1; i < polls.size(); ++i) {
    const auto answered = std::count_if(wakes.begin(), wakes.end(), [&](const Event& wake) {
      return wake.timestamp_ns > polls[i - 1].start_ns && wake.timestamp_ns < polls[i - 1].end_ns;
    });
    EXPECT_EQ(answered, 1) << "a wake inside poll " << i - 1 << " counts from its end";
  }
}

TEST(AsioReadyTimes, AResolversAnswerHasNoKnownReadyTime) {
  const Trace trace = record([&] {
    net::io_context io;
    Tcp::resolver resolver(io);
    resolver.async_resolve("127.0.0.1", "80",
                           Tcp::resolver::numeric_host | Tcp::resolver::numeric_service,
                           [](NetError, Tcp::resolver::results_type) {});
    io.run();
  });
  EXPECT_EQ(trace.polls().size(), 1u);
  EXPECT_EQ(trace.named("WakeEventEvent").size(), 0u);
}

}  // namespace
}  // namespace dial9::test
