// Who is who: tasks by name, by scope, and by inheritance, through every kind of operation.
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "net.h"
#include "recording.h"

namespace dial9::test {
namespace {

using namespace std::chrono_literals;

TEST(AsioTasks, RawPostsArePollsWithAReadyTimeEach) {
  int ran = 0;
  const Trace trace = record([&] {
    net::io_context io;
    for (int i = 0; i < 10; ++i) net::post(io, [&] { ++ran; });
    io.run();
  });
  EXPECT_EQ(ran, 10);
  const std::vector<Poll> polls = trace.polls();
  ASSERT_EQ(polls.size(), 10u);
  std::set<std::uint64_t> tasks;
  for (const Poll& poll : polls) {
    tasks.insert(poll.task);
    EXPECT_GE(poll.end_ns, poll.start_ns);
    const std::vector<Event> wakes = trace.wakes_of(poll.task);
    ASSERT_EQ(wakes.size(), 1u);
    EXPECT_EQ(wakes[0].number("waker_task_id"), 0u);
    EXPECT_LE(wakes[0].timestamp_ns, poll.start_ns);
  }
  EXPECT_EQ(tasks.size(), 10u) << "each post that no task made is a task of its own";
}

TEST(AsioTasks, AWorkOfOneTaskWaitsForTheOneBefore) {
  constexpr std::uint64_t kBusyNs = 50'000'000;
  const Trace trace = record([&] {
    net::io_context io;
    net::post(io, [&] { spin_for_ns(kBusyNs); });
    net::post(io, [] {});
    io.run();
  });
  const std::vector<Poll> polls = trace.polls();
  ASSERT_EQ(polls.size(), 2u);
  const std::uint64_t delay_ns = polls[1].start_ns - trace.wakes_of(polls[1].task)[0].timestamp_ns;
  EXPECT_GE(delay_ns, kBusyNs);
  EXPECT_GE(polls[1].start_ns, polls[0].end_ns);
  EXPECT_GE(polls[0].end_ns - polls[0].start_ns, kBusyNs);
}

TEST(AsioTasks, ANamedCoroutineIsOneTaskAcrossItsAwaits) {
  const Trace trace = record([&] {
    net::io_context io;
    asio::co_spawn(io, "sleeper", [&]() -> net::awaitable<void> {
      for (int i = 0; i < 3; ++i) {
        net::steady_timer timer(co_await net::this_coro::executor, 1ms);
        co_await timer.async_wait(net::use_awaitable);
      }
    });
    io.run();
  });
  const std::uint64_t task = trace.task_named("sleeper");
  EXPECT_GE(trace.polls_of(task).size(), 4u);
  EXPECT_EQ(trace.polls_of(task).size(), trace.polls().size());
  for (const Poll& poll : trace.polls()) EXPECT_EQ(poll.spawn_loc, "sleeper");
  const std::vector<Event> ended = trace.named("TaskTerminateEvent");
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].number("task_id"), task);
}

net::awaitable<int> answer() {
  net::steady_timer timer(co_await net::this_coro::executor, 1ms);
  co_await timer.async_wait(net::use_awaitable);
  co_return 42;
}

TEST(AsioTasks, AParentThatAwaitsANamedChildGoesOnAsItself) {
  int result = 0;
  const Trace trace = record([&] {
    net::io_context io;
    asio::co_spawn(io, "parent", [&]() -> net::awaitable<void> {
      auto executor = co_await net::this_coro::executor;
      result = co_await asio::co_spawn(executor, "child", answer(), net::use_awaitable);
      net::steady_timer timer(executor, 1ms);
      co_await timer.async_wait(net::use_awaitable);
    });
    io.run();
  });
  EXPECT_EQ(result, 42);
  const std::uint64_t parent = trace.task_named("parent");
  const std::uint64_t child = trace.task_named("child");
  const std::vector<Poll> polls = trace.polls();
  ASSERT_FALSE(polls.empty());
  EXPECT_EQ(polls.back().task, parent);
  bool is_parent_woken_by_child = false;
  for (const Event& wake : trace.wakes_of(parent)) {
    is_parent_woken_by_child |= wake.number("waker_task_id") == child;
  }
  EXPECT_TRUE(is_parent_woken_by_child);
}

TEST(AsioTasks, AnExceptionOutOfAHandlerEndsItsPoll) {
  const Trace trace = record([&] {
    net::io_context io;
    net::post(io, [] { throw std::runtime_error("thrown on purpose"); });
    net::post(io, [] {});
    EXPECT_THROW(io.run(), std::runtime_error);
    io.run();
  });
  const std::vector<Poll> polls = trace.polls();
  ASSERT_EQ(polls.size(), 2u);
  for (const Poll& poll : polls) EXPECT_NE(poll.end_ns, 0u);
}

TEST(AsioTasks, AnExceptionOutOfACoroutineTerminatesItsTask) {
  const Trace trace = record([&] {
    net::io_context io;
    asio::co_spawn(
        io, "thrower",
        []() -> net::awaitable<void> {
          co_await net::post(co_await net::this_coro::executor, net::use_awaitable);
          throw std::runtime_error("thrown on purpose");
        },
        [](std::exception_ptr error) { EXPECT_TRUE(error != nullptr); });
    io.run();
  });
  const std::vector<Event> ended = trace.named("TaskTerminateEvent");
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].number("task_id"), trace.task_named("thrower"));
}

TEST(AsioTasks, WorkThatIsDestroyedUnrunIsTerminatedAndLeavesTheQueue) {
  Recording recording;
  {
    net::io_context io;
    net::post(io, [] {});
    asio::co_spawn(io, "never", []() -> net::awaitable<void> { co_return; });
  }
  const Trace trace = recording.finish();
  EXPECT_TRUE(trace.polls().empty());
  std::set<std::uint64_t> ended;
  for (const Event& event : trace.named("TaskTerminateEvent"))
    ended.insert(event.number("task_id"));
  EXPECT_TRUE(ended.count(trace.task_named("never")));
  EXPECT_TRUE(ended.count(trace.named("WakeEventEvent").at(0).number("woken_task_id")));
}

net::awaitable<void> post_thrice() {
  auto executor = co_await net::this_coro::executor;
  for (int i = 0; i < 3; ++i) net::post(executor, [] {});
}

// A child begins in its parent's poll, which knows the parent's id in wire bytes by then.
TEST(AsioTasks, WorkThatAChildQueuesIsTheChilds) {
  const Trace trace = record([&] {
    net::io_context io;
    asio::co_spawn(io, "parent", [&]() -> net::awaitable<void> {
      auto executor = co_await net::this_coro::executor;
      co_await net::post(executor, net::use_awaitable);
      net::post(executor, [] {});
      co_await asio::co_spawn(executor, "child", post_thrice(), net::use_awaitable);
    });
    io.run();
  });
  const std::uint64_t child = trace.task_named("child");
  EXPECT_GE(trace.polls_of(child).size(), 3u);
  EXPECT_GE(trace.wakes_of(child).size(), 3u);
  for (const Poll& poll : trace.polls()) {
    EXPECT_EQ(poll.spawn_loc, poll.task == child ? "child" : "parent");
  }
}

// Ids from 2^28 on don't fit into what hot events have room for.
TEST(AsioTasks, LongIdsAreWrittenWhole) {
  constexpr runtime::TaskId kLong = runtime::TaskId{1} << 28;
  static runtime::Place place{"a place"};
  const runtime::TaskId small = runtime::new_task_id();
  char byte = 0;
  const Trace trace = record([&] {
    net::io_context io;
    net::local::stream_protocol::socket near(io);
    net::local::stream_protocol::socket far(io);
    net::local::connect_pair(near, far);
    const auto post_as = [&](runtime::TaskId id, auto work) {
      const runtime::CurrentTask as({id, &place});
      net::post(io, work);
    };
    {
      const runtime::CurrentTask as({kLong, &place});
      near.async_read_some(net::buffer(&byte, 1), [](NetError, std::size_t) {});
    }
    post_as(kLong, [&] {
      post_as(kLong, [] {});
      post_as(small, [] {});
    });
    post_as(small, [&] {
      post_as(kLong, [] {});
      net::write(far, net::buffer("x", 1));
    });
    io.run();
  });
  EXPECT_EQ(trace.polls().size(), 6u);
  EXPECT_EQ(trace.polls_of(kLong).size(), 4u);
  EXPECT_EQ(trace.polls_of(small).size(), 2u);
  EXPECT_EQ(trace.wakes_of(kLong).size(), 4u);
  EXPECT_EQ(trace.wakes_of(small).size(), 2u);
}

TEST(AsioTasks, CallbacksStartedInATaskScopeAreThatTask) {
  const Trace trace = record([&] {
    net::io_context io;
    auto connection = std::make_shared<asio::task>(io, "connection");
    {
      const asio::task_scope scope(*connection);
      auto timer = std::make_shared<net::steady_timer>(io, 1ms);
      timer->async_wait([&io, timer, connection](NetError) { net::post(io, [connection] {}); });
    }
    net::post(io, [] {});
    connection.reset();
    io.run();
  });
  const std::uint64_t task = trace.task_named("connection");
  EXPECT_EQ(trace.polls_of(task).size(), 2u);
  EXPECT_EQ(trace.polls().size(), 3u);
  EXPECT_EQ(trace.named("TaskTerminateEvent").size(), 1u);
}

TEST(AsioTasks, ATaskIsTheSameOnEveryThread) {
  const Trace trace = record([&] {
    net::thread_pool pool(4);
    asio::co_spawn(pool, "traveller", [&]() -> net::awaitable<void> {
      for (int i = 0; i < 100; ++i) {
        co_await net::post(co_await net::this_coro::executor, net::use_awaitable);
      }
    });
    pool.join();
  });
  const std::uint64_t task = trace.task_named("traveller");
  EXPECT_GE(trace.polls_of(task).size(), 100u);
  EXPECT_EQ(trace.polls_of(task).size(), trace.polls().size());
}

TEST(AsioTasks, ARecordingTurnedOnInTheMiddleKnowsTasksNamedBefore) {
  net::io_context io;
  asio::task before("spawned before");
  {
    const asio::task_scope scope(before);
    net::post(io, [&io] { net::post(io, [] {}); });
  }
  net::post(io, [] {});
  const Trace trace = record([&] { io.run(); });
  EXPECT_EQ(trace.polls_of(before.id()).size(), 2u);
  EXPECT_EQ(trace.polls().size(), 3u);
  EXPECT_EQ(trace.named("TaskSpawnEvent").size(), 0u);
  // The posts made before the recording have no known ready time; the one made in it has.
  EXPECT_EQ(trace.named("WakeEventEvent").size(), 1u);
}

TEST(AsioTasks, NothingIsRecordedWhileDisabled) {
  Recording recording;
  net::io_context io;
  recording.recorder().disable();
  net::post(io, [] {});
  io.run();
  io.restart();
  recording.recorder().enable();
  net::post(io, [] {});
  io.run();
  const Trace trace = recording.finish();
  EXPECT_EQ(trace.polls().size(), 1u);
}

std::vector<int> order_of_handlers() {
  std::vector<int> order;
  net::io_context io(1);
  auto strand = net::make_strand(io);
  net::steady_timer timer(io, net::steady_timer::time_point());  // over long since
  timer.async_wait([&](NetError) { order.push_back(100); });
  for (int i = 0; i < 5; ++i) {
    net::post(io, [&, i] {
      order.push_back(i);
      net::dispatch(strand, [&, i] { order.push_back(10 + i); });
      net::defer(io, [&, i] { order.push_back(20 + i); });
    });
    net::post(strand, [&, i] { order.push_back(30 + i); });
  }
  order.push_back(static_cast<int>(io.run()));
  return order;
}

TEST(AsioTasks, HandlersRunInTheSameOrderWithAndWithoutARecording) {
  const std::vector<int> without = order_of_handlers();
  std::vector<int> with;
  record([&] { with = order_of_handlers(); });
  EXPECT_EQ(with, without);
}

}  // namespace
}  // namespace dial9::test
