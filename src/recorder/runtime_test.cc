// The core seam: workers, nested polls, parks, counters and the collector's samples.
// SPDX-License-Identifier: Apache-2.0
#include "dial9/runtime.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <barrier>
#include <set>
#include <thread>

#include "recorder/runtime_host.h"
#include "recorder/runtime_state.h"
#include "recorder/test_support.h"
#include "recorder/wait_stacks.h"

namespace dial9::runtime {
namespace {

using internal::runtime_collect;
using internal::SteppedRecorder;
using internal::Trace;

constinit Place g_a{"task a"};
constinit Place g_b{"task b"};

// A time for the collector, later than any it has seen in this process.
std::uint64_t later(std::uint64_t by_ns) {
  static std::uint64_t now = std::uint64_t{1} << 60;
  return now += by_ns;
}

std::size_t count_present(const Trace& trace, const std::string& event, const std::string& field) {
  std::size_t count = 0;
  for (const format::OwnedEvent& owned : trace.raw().events) {
    if (trace.raw().schemas[owned.schema].name != event) continue;
    const format::OwnedValue* value = trace.raw().field(owned, field);
    count += value != nullptr && value->is_present;
  }
  return count;
}

TEST(Runtime, GivesEachThreadAWorkerIdAndKeepsTheReservedOnesFree) {
  constexpr int kThreads = 300;
  const RuntimeId id = register_runtime("crowd");
  std::vector<WorkerId> ids(kThreads);
  std::barrier all_bound(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ids[i] = enter_worker(id);
      EXPECT_EQ(enter_worker(id), ids[i]);
      all_bound.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::set<WorkerId> unique(ids.begin(), ids.end());
  EXPECT_EQ(unique.size(), std::size_t{kThreads});
  EXPECT_EQ(unique.count(kUnknownWorker), 0U);
  EXPECT_EQ(unique.count(kBlockingWorker), 0U);
}

TEST(Runtime, TellsRuntimesOfOneNameApart) {
  for (const char* expected : {"runtime.twin", "runtime.twin-2"}) {
    const RuntimeId id = register_runtime("twin");
    std::thread([id] { enter_worker(id); }).join();
    bool is_found = false;
    for (const auto& [key, workers] : internal::runtime_metadata()) {
      is_found |= key == expected && !workers.empty();
    }
    EXPECT_TRUE(is_found) << expected;
  }
}

TEST(Runtime, IsOnePlaceForOneText) {
  const std::string text = "some/file.cc:12";
  EXPECT_EQ(intern_place(text.data(), text.size()), intern_place(text.data(), text.size()));
  EXPECT_NE(intern_place(text.data(), text.size()), intern_place(text.data(), text.size() - 1));
}

TEST(Runtime, ATaskIdIsNeverGivenTwice) {
  std::vector<std::vector<TaskId>> ids(4);
  std::vector<std::thread> threads;
  for (auto& mine : ids) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < 1000; ++i) mine.push_back(new_task_id());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<TaskId> unique;
  for (const auto& mine : ids) unique.insert(mine.begin(), mine.end());
  EXPECT_EQ(unique.size(), 4000U);
  EXPECT_EQ(unique.count(0), 0U);
}

TEST(Runtime, APollOfTheSameTaskInsideAPollIsPartOfIt) {
  SteppedRecorder recorder;
  const RuntimeId id = register_runtime("merge");
  {
    const PollScope outer(id, {7, &g_a});
    const PollScope inner(id, {7, &g_a});
    EXPECT_TRUE(is_in_poll());
  }
  EXPECT_FALSE(is_in_poll());
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.numbers("PollStartEvent", "task_id"), (std::vector<std::uint64_t>{7}));
  EXPECT_EQ(trace.count("PollEndEvent"), 1U);
}

TEST(Runtime, APollOfAnotherTaskInsideAPollPausesIt) {
  SteppedRecorder recorder;
  const RuntimeId id = register_runtime("pause");
  {
    const PollScope outer(id, {7, &g_a});
    {
      const PollScope inner(id, {8, &g_b});
    }
  }
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.numbers("PollStartEvent", "task_id"), (std::vector<std::uint64_t>{7, 8, 7}));
  EXPECT_EQ(trace.texts("PollStartEvent", "spawn_loc"),
            (std::vector<std::string>{"task a", "task b", "task a"}));
  const std::vector<std::uint64_t> starts = trace.stamps("PollStartEvent");
  const std::vector<std::uint64_t> ends = trace.stamps("PollEndEvent");
  ASSERT_EQ(ends.size(), 3U);
  EXPECT_LE(ends[0], starts[1]);
  EXPECT_EQ(ends[1], starts[2]);
}

TEST(Runtime, ADeferredPollWithAPollInsideIsNone) {
  SteppedRecorder recorder;
  const RuntimeId id = register_runtime("defer");
  Poll turn;
  poll_start_deferred(turn, id, {7, &g_a});
  {
    const PollScope inner(id, {8, &g_b});
  }
  {
    const PollScope inner(id, {9, &g_b});
  }
  poll_end(turn);
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.numbers("PollStartEvent", "task_id"), (std::vector<std::uint64_t>{8, 9}));
}

TEST(Runtime, ADeferredPollKeepsItsStartWhereTheEndOfThePollAroundIsLost) {
  SteppedRecorder recorder;
  const RuntimeId id = register_runtime("defer inside");
  const PollScope around(id, {6, &g_a});
  Poll poll;
  const std::uint64_t start_ns = poll_start_deferred(poll, id, {7, &g_b});
  const std::uint32_t epoch = internal::t_buffer.ready_epoch;
  internal::t_buffer.ready_epoch = internal::kBusyEpoch;  // what is recorded now is lost, as nested
  poll_confirm(poll);
  internal::t_buffer.ready_epoch = epoch;
  EXPECT_EQ(poll.start_ns, start_ns);
  poll_end(poll);
}

TEST(Runtime, ADeferredPollWithNothingInsideIsRecordedWithItsStart) {
  SteppedRecorder recorder;
  const RuntimeId id = register_runtime("defer too");
  Poll poll;
  const std::uint64_t start_ns = poll_start_deferred(poll, id, {7, &g_a});
  poll_end(poll);
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.stamps("PollStartEvent"), (std::vector<std::uint64_t>{start_ns}));
  EXPECT_EQ(trace.count("PollEndEvent"), 1U);
}

TEST(Runtime, WorkThatGoesOnAsAnotherTaskIsWokenByTheFirst) {
  SteppedRecorder recorder;
  const RuntimeId id = register_runtime("switch");
  {
    const PollScope poll(id, {7, &g_a});
    switch_task({8, &g_b});
    EXPECT_EQ(polled_task(), 8U);
  }
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.numbers("PollStartEvent", "task_id"), (std::vector<std::uint64_t>{7, 8}));
  EXPECT_EQ(trace.numbers("WakeEventEvent", "waker_task_id"), (std::vector<std::uint64_t>{7}));
  EXPECT_EQ(trace.numbers("WakeEventEvent", "woken_task_id"), (std::vector<std::uint64_t>{8}));
  EXPECT_EQ(trace.count("PollEndEvent"), 2U);
}

TEST(Runtime, AnUnboundThreadAndAPollDoNotPark) {
  SteppedRecorder recorder;
  const RuntimeId id = register_runtime("no park");
  std::thread([id] {
    EXPECT_FALSE(park());
    {
      const PollScope poll(id, {7, &g_a});
      EXPECT_FALSE(park());
    }
    EXPECT_TRUE(park());
    EXPECT_FALSE(park()) << "parked already";
    unpark();
    unpark();
  }).join();
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.count("WorkerParkEvent"), 1U);
  EXPECT_EQ(trace.count("WorkerUnparkEvent"), 1U);
}

TEST(Runtime, APollOnAParkedWorkerUnparksIt) {
  SteppedRecorder recorder;
  const RuntimeId id = register_runtime("unpark");
  enter_worker(id);
  ASSERT_TRUE(park());
  {
    const PollScope poll(id, {7, &g_a});
  }
  const Trace trace = recorder.read();
  ASSERT_EQ(trace.count("WorkerUnparkEvent"), 1U);
  EXPECT_LE(trace.stamps("WorkerUnparkEvent")[0], trace.stamps("PollStartEvent")[0]);
}

TEST(Runtime, OneParkInTenKnowsItsKernelWaitAndTheOthersSayNothing) {
  SteppedRecorder recorder;
  const RuntimeId id = register_runtime("sampled");
  internal::runtime_set_sched_wait_sample_rate(10);
  std::thread([id] {
    enter_worker(id);
    for (int i = 0; i < 40; ++i) {
      park();
      unpark();
    }
  }).join();
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.count("WorkerUnparkEvent"), 40U);
  EXPECT_EQ(count_present(trace, "WorkerUnparkEvent", "sched_wait_ns"), 4U);
  const std::vector<std::uint64_t> cpu = trace.numbers("WorkerParkEvent", "cpu_time_ns");
  EXPECT_TRUE(std::is_sorted(cpu.begin(), cpu.end()));
  EXPECT_GT(cpu[0], 0U);
}

TEST(Runtime, AFloorKeepsShortWaitsOut) {
  SteppedRecorder recorder;
  blocking_call(g_a, now_ns(), kDefaultBlockingFloorNs - 1);
  blocking_call(g_a, now_ns(), kDefaultBlockingFloorNs);
  lock_wait(LockKind::kMutex, 7, 0x1000, 0, now_ns(), kDefaultLockFloorNs - 1);
  lock_wait(LockKind::kMutex, 7, 0x1000, 0, now_ns(), kDefaultLockFloorNs);
  lock_wait(LockKind::kMutex, 7, 0x1000, 42, now_ns(), kDefaultLockFloorNs);
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.count("BlockingCallEvent"), 1U);
  EXPECT_EQ(trace.count("LockWaitEvent"), 2U);
  EXPECT_EQ(count_present(trace, "LockWaitEvent", "owner_tid"), 1U);
}

TEST(Runtime, ASlowLockWaitHasTheStackThatIsGivenForItAndSoManyASecondDo) {
  SteppedRecorder recorder;
  static int asked = 0;
  asked = 0;
  internal::set_wait_stacks(
      [](const void* caller, std::uint64_t* room) noexcept -> internal::WaitStack {
        ++asked;
        room[0] = reinterpret_cast<std::uintptr_t>(caller);
        room[1] = 0x22;
        return {room, 2, true};
      },
      3);
  const auto* const caller = reinterpret_cast<const void*>(std::uintptr_t{0x11});
  std::thread([caller] {
    const std::uint64_t at_ns = now_ns();
    internal::lock_wait_of(caller, 7, 0x1000, 0, at_ns, kDefaultLockFloorNs - 1);
    for (int i = 0; i < 5; ++i) {
      internal::lock_wait_of(caller, 7, 0x1000, 0, at_ns, kDefaultLockFloorNs);
    }
    lock_wait(LockKind::kStrand, 7, 0x2000, 0, at_ns, kDefaultLockFloorNs);  // nobody called
    internal::lock_wait_of(caller, 7, 0x1000, 0, at_ns + 1'000'000'000, kDefaultLockFloorNs);
  }).join();
  internal::set_wait_stacks(nullptr, 0);
  internal::lock_wait_of(caller, 7, 0x1000, 0, now_ns(), kDefaultLockFloorNs);
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.count("LockWaitEvent"), 8U) << "each is recorded, with a stack or without";
  EXPECT_EQ(count_present(trace, "LockWaitEvent", "callchain"), 4U);
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(trace.numbers("LockWaitEvent", "kind"),
            (std::vector<std::uint64_t>{1, 1, 1, 1, 1, 2, 1, 1}));
  const auto truncated = trace.numbers("LockWaitEvent", "truncated");
  EXPECT_EQ(std::count(truncated.begin(), truncated.end(), 1U), 4);
}

TEST(RuntimeMetrics, SumTheCountersOfThreadsThatLiveAndThatEnded) {
  SteppedRecorder recorder;
  const RuntimeId id = register_runtime("summed");
  std::thread([id] {
    for (int i = 0; i < 5; ++i) queue_pushed(id);
    task_spawn(g_a, id);
    task_spawn(g_a, id);
  }).join();
  queue_popped(id);
  task_terminate(1, id);
  runtime_collect(later(20'000'000));
  const Trace trace = recorder.read();
  const std::vector<std::string> names = trace.texts("RuntimeMetricsEvent", "runtime_name");
  const auto at = std::find(names.begin(), names.end(), "summed");
  ASSERT_NE(at, names.end());
  EXPECT_EQ(trace.numbers("RuntimeMetricsEvent", "global_queue_depth")[at - names.begin()], 4U);
  EXPECT_EQ(trace.numbers("RuntimeMetricsEvent", "alive_tasks")[at - names.begin()], 1U);
}

TEST(RuntimeMetrics, AreRepeatedOnceASecondWhileNothingMoves) {
  SteppedRecorder recorder;
  const RuntimeId id = register_runtime("quiet");
  queue_pushed(id);
  for (int i = 0; i < 150; ++i) runtime_collect(later(10'000'000));  // a second and a half
  const Trace trace = recorder.read();
  std::size_t count = 0;
  for (const std::string& name : trace.texts("RuntimeMetricsEvent", "runtime_name")) {
    count += name == "quiet";
  }
  EXPECT_EQ(count, 2U);
}

TEST(RuntimeMetrics, ABusyWorkerThatNeverParksShowsItsKernelWait) {
  SteppedRecorder recorder;
  const RuntimeId id = register_runtime("crowded");
  cpu_set_t one;
  CPU_ZERO(&one);
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
  }
  std::atomic<bool> is_done{false};
  std::vector<std::thread> rivals;
  for (int i = 0; i < 2; ++i) {
    rivals.emplace_back([&] {
      pthread_setaffinity_np(pthread_self(), sizeof one, &one);
      enter_worker(id);
      while (!is_done.load(std::memory_order_relaxed)) {
      }
    });
  }
  std::uint64_t wait_ns = 0;
  std::uint64_t run_ns = 0;
  while (wait_ns < 1'000'000 || run_ns == 0) {
    runtime_collect(later(100'000'000));
    const Trace trace = recorder.read();
    for (std::uint64_t ns : trace.numbers("WorkerSchedEvent", "wait_ns"))
      wait_ns = std::max(wait_ns, ns);
    for (std::uint64_t ns : trace.numbers("WorkerSchedEvent", "run_ns"))
      run_ns = std::max(run_ns, ns);
    std::this_thread::yield();
  }
  is_done = true;
  for (std::thread& rival : rivals) rival.join();
}

}  // namespace
}  // namespace dial9::runtime
