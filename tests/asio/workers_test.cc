// Workers, contexts, parks, strands and queue depth.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <barrier>
#include <cstdio>
#include <fstream>
#include <future>
#include <set>
#include <string>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "dial9/internal/thread_buffer.h"
#include "net.h"
#include "recording.h"

namespace dial9::test {
namespace {

using namespace std::chrono_literals;

std::uint32_t this_tid() { return static_cast<std::uint32_t>(syscall(SYS_gettid)); }

std::vector<std::uint64_t> ids_in(const std::string& list) {
  std::vector<std::uint64_t> ids;
  for (std::size_t at = 0; at < list.size();) {
    std::size_t used = 0;
    ids.push_back(std::stoull(list.substr(at), &used));
    at += used + 1;
  }
  return ids;
}

TEST(AsioWorkers, FourContextsOnFourThreadsAreFourRuntimesWithWorkersOfTheirOwn) {
  Trace trace;
  {
    Recording recording;
    std::vector<std::unique_ptr<net::io_context>> contexts;
    std::vector<std::thread> threads;
    std::barrier all_started(4);
    for (int i = 0; i < 4; ++i) {
      contexts.push_back(std::make_unique<net::io_context>(1));
      asio::name_context(*contexts.back(), ("shard" + std::to_string(i)).c_str());
      net::post(*contexts.back(), [&] { all_started.arrive_and_wait(); });
      threads.emplace_back([&io = *contexts.back()] { asio::run(io); });
    }
    for (std::thread& thread : threads) thread.join();
    trace = recording.finish();
  }
  std::set<std::uint64_t> all;
  for (int i = 0; i < 4; ++i) {
    const std::vector<std::uint64_t> ids =
        ids_in(trace.metadata["runtime.shard" + std::to_string(i)]);
    ASSERT_EQ(ids.size(), 1u) << i;
    all.insert(ids[0]);
  }
  EXPECT_EQ(all.size(), 4u);
  std::set<std::uint64_t> polled;
  for (const Poll& poll : trace.polls()) polled.insert(poll.worker);
  EXPECT_EQ(polled, all);
}

TEST(AsioWorkers, ThreadsOfOneContextAreItsWorkers) {
  Trace trace;
  {
    Recording recording;
    net::io_context io;
    asio::name_context(io, "shared");
    std::barrier both_inside(3);
    for (int i = 0; i < 3; ++i) net::post(io, [&] { both_inside.arrive_and_wait(); });
    std::thread first([&] { io.run(); });
    std::thread second([&] { io.run(); });
    io.run();  // the main thread is one of them
    first.join();
    second.join();
    trace = recording.finish();
  }
  EXPECT_EQ(ids_in(trace.metadata["runtime.shared"]).size(), 3u);
  std::set<std::uint64_t> workers;
  for (const Poll& poll : trace.polls()) workers.insert(poll.worker);
  EXPECT_EQ(workers.size(), 3u);
}

TEST(AsioWorkers, AThreadThatEndsLeavesItsWorkerIdToTheNext) {
  Trace trace;
  {
    Recording recording;
    net::io_context io;
    asio::name_context(io, "churn");
    for (int i = 0; i < 20; ++i) {
      net::post(io, [] {});
      std::thread([&] { io.run(); }).join();
      io.restart();
    }
    trace = recording.finish();
  }
  EXPECT_EQ(ids_in(trace.metadata["runtime.churn"]).size(), 1u);
  EXPECT_EQ(trace.polls().size(), 20u);
}

TEST(AsioWorkers, AContextAtTheAddressOfADeadOneIsAnother) {
  Trace trace;
  {
    Recording recording;
    for (const char* name : {"first", "second"}) {
      net::io_context io;
      asio::name_context(io, name);
      net::post(io, [] {});
      io.run();
    }
    trace = recording.finish();
  }
  const std::vector<std::uint64_t> first = ids_in(trace.metadata["runtime.first"]);
  const std::vector<std::uint64_t> second = ids_in(trace.metadata["runtime.second"]);
  ASSERT_EQ(first.size(), 1u);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_NE(first[0], second[0]);
}

// A new epoch sends every recording thread through its entry again: the clock's corrections are
// few, contexts that come and go may be many.
TEST(AsioWorkers, ContextsThatComeAndGoDontBeginNewEpochs) {
  Recording recording;
  int changes = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t epoch = internal::recording_epoch();
    {
      net::io_context io;
      net::post(io, [&] { net::post(io, [&] { net::post(io, [] {}); }); });
      io.run();
    }
    changes += internal::recording_epoch() != epoch ? 1 : 0;
  }
  EXPECT_LT(changes, 500);
  recording.finish();
}

// Until the thread waits in epoll_wait(): its system call's number is the first word.
void wait_for_epoll(std::uint32_t tid) {
  for (;;) {
    std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/syscall");
    std::string call;
    file >> call;
    for (const long one : {SYS_epoll_wait, SYS_epoll_pwait}) {
      if (call == std::to_string(one)) return;
    }
    std::this_thread::yield();
  }
}

TEST(AsioWorkers, AWorkerWithoutWorkParksAndUnparksAroundEachPoll) {
  if (std::ifstream file("/proc/self/syscall"); file.get() == EOF) {
    GTEST_SKIP() << "/proc doesn't show system calls here";
  }
  std::uint64_t woken_ns = 0;
  const Trace trace = record([&] {
    net::io_context io;
    net::steady_timer timer(io, 1h);  // so that it waits for events
    timer.async_wait([](NetError) {});
    std::thread waker([&, worker = this_tid()] {
      wait_for_epoll(worker);
      woken_ns = dial9::internal::now_ns();
      net::post(io, [&] { timer.cancel(); });
    });
    asio::run(io);
    waker.join();
  });
  const std::vector<Event> parks = trace.named("WorkerParkEvent");
  const std::vector<Event> unparks = trace.named("WorkerUnparkEvent");
  ASSERT_GE(parks.size(), 1u);
  ASSERT_EQ(unparks.size(), parks.size());
  const std::vector<Poll> polls = trace.polls();
  ASSERT_EQ(polls.size(), 2u) << "the wake and the cancelled timer";
  EXPECT_EQ(parks[0].number("tid"), this_tid());
  EXPECT_EQ(parks[0].number("worker_id"), polls[0].worker);
  EXPECT_GT(parks[0].number("cpu_time_ns"), 0u);
  EXPECT_GE(unparks.back().number("cpu_time_ns"), parks[0].number("cpu_time_ns"));
  constexpr std::uint64_t kClockErrorNs = 2'000;  // of two threads: 1 us each
  EXPECT_LE(parks[0].timestamp_ns, woken_ns + kClockErrorNs);
  EXPECT_GE(unparks.back().timestamp_ns + kClockErrorNs, woken_ns);
  EXPECT_LE(unparks.back().timestamp_ns, polls[0].start_ns);
}

TEST(AsioWorkers, NoParkLiesInsideAPoll) {
  const Trace trace = record([&] {
    net::thread_pool pool(3);
    for (int i = 0; i < 200; ++i) {
      asio::co_spawn(pool, "hopper", []() -> net::awaitable<void> {
        net::steady_timer timer(co_await net::this_coro::executor, 100us);
        co_await timer.async_wait(net::use_awaitable);
      });
    }
    pool.join();
  });
  std::map<std::uint64_t, bool> is_in_poll;
  std::map<std::uint64_t, bool> is_parked;
  for (const Event& event : trace.events) {
    const std::uint64_t worker = event.number("worker_id");
    if (event.name == "PollStartEvent") {
      EXPECT_FALSE(is_parked[worker]);
      is_in_poll[worker] = true;
    }
    if (event.name == "PollEndEvent") is_in_poll[worker] = false;
    if (event.name == "WorkerParkEvent") {
      EXPECT_FALSE(is_in_poll[worker]);
      is_parked[worker] = true;
    }
    if (event.name == "WorkerUnparkEvent") is_parked[worker] = false;
  }
}

TEST(AsioWorkers, PostsThatWaitAreTheQueuesDepth) {
  constexpr std::uint32_t kPosts = 1000;
  Trace trace;
  {
    Recording recording;
    net::io_context io;
    asio::name_context(io, "deep");
    std::promise<void> is_inside;
    std::promise<void> may_go_on;
    net::post(io, [&] {
      is_inside.set_value();
      may_go_on.get_future().wait();
    });
    std::thread worker([&] { io.run(); });
    is_inside.get_future().wait();
    for (std::uint32_t i = 0; i < kPosts; ++i) net::post(io, [] {});
    // Seen once the collector has looked twice since the posts; sealing a segment makes it look.
    for (bool is_seen = false; !is_seen;) {
      recording.recorder().rotate();
      for (const Event& event : recording.so_far().named("RuntimeMetricsEvent")) {
        is_seen |=
            event.text("runtime_name") == "deep" && event.number("global_queue_depth") == kPosts;
      }
    }
    may_go_on.set_value();
    worker.join();
    trace = recording.finish();
  }
  for (const Event& event : trace.named("RuntimeMetricsEvent")) {
    EXPECT_LE(event.number("global_queue_depth"), kPosts + 1);
  }
}

TEST(AsioStrands, HandlersOnAStrandArePollsAndItsTurnsAreNot) {
  constexpr int kPosts = 50;
  const Trace trace = record([&] {
    net::io_context io;
    auto strand = net::make_strand(io);
    for (int i = 0; i < kPosts; ++i) {
      net::post(strand, [&] { net::post(strand, [] {}); });
    }
    io.run();
  });
  EXPECT_EQ(trace.polls().size(), 2u * kPosts);
  for (const Poll& poll : trace.polls()) EXPECT_NE(poll.end_ns, 0u);
}

TEST(AsioStrands, APostThatFollowsAStrandsPostIsStillAPoll) {
  const Trace trace = record([&] {
    net::io_context io;
    auto strand = net::make_strand(io);
    net::post(strand, [] {});
    net::post(strand, [] {});  // queued behind: the strand's turn is posted already
    net::post(io, [] {});      // so this looks like a turn, until it runs
    io.run();
  });
  const std::vector<Poll> polls = trace.polls();
  EXPECT_EQ(polls.size(), 3u);
  for (const Poll& poll : polls) EXPECT_EQ(trace.wakes_of(poll.task).size(), 1u);
}

TEST(AsioStrands, AWaitForAStrandNamesTheThreadThatHeldIt) {
  constexpr std::uint64_t kHeldNs = 40'000'000;
  std::uint32_t holder_tid = 0;
  const Trace trace = record([&] {
    net::io_context io;
    auto strand = net::make_strand(io);
    std::promise<void> is_held;
    std::promise<void> is_queued;
    net::post(strand, [&] {
      holder_tid = this_tid();
      is_held.set_value();
      is_queued.get_future().wait();
      spin_for_ns(kHeldNs);
    });
    std::thread worker([&] { io.run(); });
    is_held.get_future().wait();
    asio::co_spawn(strand, "waiter", []() -> net::awaitable<void> { co_return; });
    is_queued.set_value();
    io.run();
    worker.join();
  });
  const std::uint64_t waiter = trace.task_named("waiter");
  std::vector<Event> waits = trace.named("LockWaitEvent");
  std::erase_if(waits, [&](const Event& wait) { return wait.number("task_id") != waiter; });
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].number("kind"), static_cast<std::uint64_t>(runtime::LockKind::kStrand));
  EXPECT_EQ(waits[0].number("owner_tid"), holder_tid);
  EXPECT_GE(waits[0].number("duration_ns"), kHeldNs);
  const Poll first = trace.polls_of(waiter).at(0);
  EXPECT_LE(waits[0].timestamp_ns + waits[0].number("duration_ns"), first.start_ns);
}

TEST(AsioStrands, AHandlerThatAFreeStrandRunsAtOnceLeavesNoWakeWithoutAPoll) {
  const Trace trace = record([] {
    net::io_context io;
    auto strand = net::make_strand(io);
    asio::co_spawn(strand, "on a strand", []() -> net::awaitable<void> {
      net::steady_timer timer(co_await net::this_coro::executor);
      for (int i = 0; i < 5; ++i) {
        timer.expires_after(std::chrono::milliseconds(1));
        co_await timer.async_wait(net::use_awaitable);
      }
    });
    io.run();
  });
  const std::uint64_t task = trace.task_named("on a strand");
  const std::vector<Event> wakes = trace.wakes_of(task);
  const std::vector<Poll> polls = trace.polls_of(task);
  ASSERT_EQ(wakes.size(), polls.size());
  for (std::size_t i = 0; i < polls.size(); ++i) {
    EXPECT_LE(wakes[i].timestamp_ns, polls[i].start_ns);
    if (i > 0) {
      EXPECT_GT(wakes[i].timestamp_ns, polls[i - 1].end_ns);
    }
  }
}

TEST(AsioStrands, OldStrandsOfAContextWorkToo) {
  int ran = 0;
  const Trace trace = record([&] {
    net::io_context io;
    net::io_context::strand strand(io);
    for (int i = 0; i < 5; ++i) net::post(strand, [&] { ++ran; });
    io.run();
  });
  EXPECT_EQ(ran, 5);
  EXPECT_EQ(trace.polls().size(), 5u);
}

TEST(AsioPolls, AHandlerThatRunsAnotherContextIsPausedWhileThatOnesTasksRun) {
  constexpr std::uint64_t kBusyNs = 5'000'000;
  const Trace trace = record([&] {
    net::io_context outer;
    net::io_context inner;
    net::post(inner, [] { spin_for_ns(kBusyNs); });
    net::post(outer, [&] { inner.run(); });
    outer.run();
  });
  const std::vector<Poll> polls = trace.polls();  // fails if two polls of one worker overlap
  ASSERT_EQ(polls.size(), 3u);
  std::uint64_t inner_ns = 0;
  std::uint64_t outer_ns = 0;
  for (const Poll& poll : polls) {
    (poll.task == polls[0].task ? outer_ns : inner_ns) += poll.end_ns - poll.start_ns;
  }
  EXPECT_GE(inner_ns, kBusyNs);
  EXPECT_EQ(polls[1].start_ns, polls[0].end_ns);
  EXPECT_EQ(polls[2].start_ns, polls[1].end_ns);
}

}  // namespace
}  // namespace dial9::test
