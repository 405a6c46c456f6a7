// The limited mode: built without tracking, beside plain Asio code; only what goes through the
// traced executor and dial9's calls shows.
// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "net.h"
#include "recording.h"

namespace dial9::test {
namespace {

using namespace std::chrono_literals;

TEST(AsioLimited, PostsThroughATracedExecutorArePollsWithAReadyTime) {
  int ran = 0;
  const Trace trace = record([&] {
    net::io_context io;
    auto executor = asio::traced(io);
    for (int i = 0; i < 10; ++i) net::post(executor, [&] { ++ran; });
    for (int i = 0; i < 90; ++i) net::post(io, [&] { ++ran; });
    io.run();
  });
  EXPECT_EQ(ran, 100);
  const std::vector<Poll> polls = trace.polls();
  ASSERT_EQ(polls.size(), 10u);
  for (const Poll& poll : polls) {
    ASSERT_EQ(trace.wakes_of(poll.task).size(), 1u);
    EXPECT_LE(trace.wakes_of(poll.task)[0].timestamp_ns, poll.start_ns);
  }
}

TEST(AsioLimited, StrandsTimersAndAnyExecutorsCanBeMadeOfIt) {
  std::vector<int> order;
  const Trace trace = record([&] {
    net::io_context io;
    const net::any_io_executor executor = asio::traced(io);
    auto strand = net::make_strand(executor);
    net::steady_timer timer(executor, 1ms);
    timer.async_wait([&](NetError) { order.push_back(2); });
    net::post(strand, [&] { order.push_back(1); });
    io.run();
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_GE(trace.polls().size(), 2u);
}

TEST(AsioLimited, ACoroutineOnItIsOneNamedTask) {
  const Trace trace = record([&] {
    net::io_context io;
    asio::co_spawn(asio::traced(io), "walker", []() -> net::awaitable<void> {
      for (int i = 0; i < 3; ++i)
        co_await net::post(co_await net::this_coro::executor, net::use_awaitable);
    });
    io.run();
  });
  const std::uint64_t task = trace.task_named("walker");
  EXPECT_GE(trace.polls_of(task).size(), 3u);
  EXPECT_EQ(trace.polls_of(task).size(), trace.polls().size());
  EXPECT_EQ(trace.named("TaskTerminateEvent").size(), 1u);
}

TEST(AsioLimited, AnExceptionEndsThePollAndPassesThrough) {
  const Trace trace = record([&] {
    net::io_context io;
    net::post(asio::traced(io), [] { throw std::runtime_error("thrown on purpose"); });
    EXPECT_THROW(io.run(), std::runtime_error);
  });
  ASSERT_EQ(trace.polls().size(), 1u);
  EXPECT_NE(trace.polls()[0].end_ns, 0u);
}

TEST(AsioLimited, ComparesAsItsInnerExecutor) {
  net::io_context first;
  net::io_context second;
  EXPECT_TRUE(asio::traced(first) == asio::traced(first));
  EXPECT_TRUE(asio::traced(first) != asio::traced(second));
  EXPECT_EQ(&net::query(asio::traced(first), net::execution::context), &first);
}

TEST(AsioLimited, WorkThatIsDestroyedUnrunLeavesTheQueue) {
  Recording recording;
  {
    net::io_context io;
    asio::name_context(io, "left");
    for (int i = 0; i < 3; ++i) net::post(asio::traced(io), [] {});
  }
  net::io_context io;
  net::post(asio::traced(io), [] {});
  io.run();
  for (bool is_empty = false; !is_empty;) {
    recording.recorder().rotate();
    for (const Event& event : recording.so_far().named("RuntimeMetricsEvent")) {
      if (event.text("runtime_name") == "left") is_empty = event.number("global_queue_depth") == 0;
    }
  }
}

TEST(AsioLimited, RunShowsTheThreadAsAWorker) {
  if (!asio::hooks::has_interposer()) {
    GTEST_SKIP() << "without tracking only the interposer sees waits: this build leaves it out";
  }
  Trace trace;
  {
    Recording recording;
    net::io_context io;
    asio::name_context(io, "plain");
    net::steady_timer timer(io, 1ms);
    timer.async_wait([](NetError) {});
    EXPECT_EQ(asio::run(io), 1u);
    trace = recording.finish();
  }
  EXPECT_EQ(trace.metadata.count("runtime.plain"), 1u);
  EXPECT_GE(trace.named("WorkerParkEvent").size(), 1u);
}

}  // namespace
}  // namespace dial9::test
