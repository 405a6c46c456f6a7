// Keep or shed: what stays together, what the counts say, and what a whole recorder makes of it.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/shedding.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

#include "dial9/internal/runtime_events.h"
#include "dial9/runtime.h"
#include "dial9/span.h"
#include "recorder/own_cost.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_EVENT(Numbered, (std::uint64_t, number));
DIAL9_EVENT(Other, (std::uint64_t, number));
DIAL9_SPAN(Request, "request", DIAL9_FIELDS((std::uint64_t, number)));

KeepOneIn rates(double events, double others = 1) {
  KeepOneIn keep;
  keep.fill(others);
  keep[0] = events;
  return keep;
}

// A recorder whose rates the test sets: it has no sources, so its collector sets none.
class Shedding : public ::testing::Test {
 protected:
  Shedding() : recorder_(RecorderOptions::memory(kTestBudget), false), before_(shed_counts()) {}
  ~Shedding() override { publish_shedding(kKeepAll, false); }

  ShedCounts counts() const { return shed_counts().since(before_); }

  SteppedRecorder recorder_;
  ShedCounts before_;
};

TEST_F(Shedding, counts_every_event_that_it_keeps_or_sheds) {
  publish_shedding(rates(7), true);
  for (std::uint64_t i = 0; i < 10'000; ++i) record(Numbered{i});
  const Trace trace = recorder_.read();
  EXPECT_EQ(trace.count("Numbered"), counts().kept[0]);
  EXPECT_EQ(counts().kept[0] + counts().shed[0], 10'000U);
}

TEST_F(Shedding, keeps_one_of_n_of_each_type_whatever_the_pattern) {
  publish_shedding(rates(8), true);
  for (std::uint64_t i = 0; i < 16'000; ++i) {
    if (i % 2 == 0) {
      record(Numbered{i});
    } else {
      record(Other{i});
    }
  }
  const Trace trace = recorder_.read();
  EXPECT_NEAR(static_cast<double>(trace.count("Numbered")), 1'000, 150);
  EXPECT_NEAR(static_cast<double>(trace.count("Other")), 1'000, 150);
}

TEST_F(Shedding, keeps_the_share_that_a_fraction_asks_for) {
  publish_shedding(rates(1.25), true);
  for (std::uint64_t i = 0; i < 10'000; ++i) record(Numbered{i});
  EXPECT_NEAR(static_cast<double>(counts().kept[0]), 8'000, 10);
}

TEST_F(Shedding, takes_the_slot_back_from_a_thread_of_which_all_was_shed) {
  publish_shedding(rates(1e9), true);
  record(Numbered{0});
  const std::size_t taken = shed_slots_taken();
  for (std::uint64_t i = 0; i < 300; ++i) std::thread([i] { record(Numbered{i}); }).join();
  EXPECT_EQ(shed_slots_taken(), taken);
  EXPECT_EQ(counts().kept[0] + counts().shed[0], 301U);
}

// Records at the end of its thread, in the given round of key destructors only. Its key was made
// after the recorder's, which is asked first in each round.
class RecordsInRound {
 public:
  explicit RecordsInRound(std::uintptr_t round) {
    round_ = round;
    EXPECT_EQ(::pthread_key_create(&key_, at_exit), 0);
  }
  ~RecordsInRound() { ::pthread_key_delete(key_); }
  static void watch() { ::pthread_setspecific(key_, reinterpret_cast<void*>(std::uintptr_t{1})); }

 private:
  static void at_exit(void* value) {
    const auto round = reinterpret_cast<std::uintptr_t>(value);
    if (round == round_) {
      record(Numbered{round});
    } else {
      ::pthread_setspecific(key_, reinterpret_cast<void*>(round + 1));
    }
  }
  static inline pthread_key_t key_ = 0;
  static inline std::uintptr_t round_ = 0;
};

TEST_F(Shedding, takes_the_slot_back_that_a_thread_took_at_its_very_end) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer's own state of a thread goes before the last of its keys";
#endif
  const std::size_t taken = shed_slots_taken();
  for (std::uintptr_t round = 1; round <= 3; ++round) {
    const RecordsInRound at_end(round);
    publish_shedding(rates(1e9), true);
    std::thread([] { RecordsInRound::watch(); }).join();
    EXPECT_EQ(shed_slots_taken(), taken) << "its first record call was in round " << round;
    publish_shedding(kKeepAll, false);
    std::thread([] {
      record(Numbered{0});
      RecordsInRound::watch();
      publish_shedding(rates(1e9), true);
    }).join();
    EXPECT_EQ(shed_slots_taken(), taken) << "it was first asked in round " << round;
  }
}

TEST_F(Shedding, records_everything_again_when_it_ends) {
  publish_shedding(rates(1'000), true);
  record(Numbered{1});
  publish_shedding(kKeepAll, false);
  for (std::uint64_t i = 0; i < 100; ++i) record(Numbered{i});
  EXPECT_GE(recorder_.read().count("Numbered"), 100U);
  EXPECT_EQ(counts().kept[0] + counts().shed[0], 1U);
}

TEST_F(Shedding, lasts_over_a_pause_of_the_recording) {
  publish_shedding(rates(1'000), true);
  recorder_->disable();
  recorder_->enable();
  for (std::uint64_t i = 0; i < 5'000; ++i) record(Numbered{i});
  EXPECT_EQ(counts().shed[0], 5'000U - recorder_.read().count("Numbered"));
  EXPECT_GT(counts().shed[0], 4'900U);
}

TEST_F(Shedding, drops_a_span_whole) {
  publish_shedding(rates(1, 4), true);
  for (std::uint64_t i = 0; i < 4'000; ++i) const span<Request> scope({i});
  const Trace trace = recorder_.read();
  const auto enters = counts().kept[static_cast<std::size_t>(ShedClass::kSpans)];
  EXPECT_NEAR(static_cast<double>(enters), 1'000, 2);
  std::uint64_t seen_enters = 0;
  std::uint64_t seen_exits = 0;
  for (const auto& event : trace.raw().events) {
    const std::string& name = trace.raw().schemas[event.schema].name;
    seen_enters += name.starts_with("SpanEnter:") ? 1U : 0U;
    seen_exits += name.starts_with("SpanExit:") ? 1U : 0U;
  }
  EXPECT_EQ(seen_enters, enters);
  EXPECT_EQ(seen_exits, enters);
}

TEST_F(Shedding, drops_a_poll_whole_and_all_polls_of_a_task_in_a_window_or_none) {
  publish_shedding(rates(1, 4), true);
  for (std::uint64_t round = 0; round < 5; ++round) {
    for (std::uint64_t task = 1; task <= 400; ++task) {
      runtime::task_ready_at(task, 0, now_ns());
      const runtime::PollScope poll(0, {task, nullptr});
    }
  }
  const Trace trace = recorder_.read();
  const std::vector<std::uint64_t> polls = trace.numbers("PollStartEvent", "task_id");
  const std::vector<std::uint64_t> wakes = trace.numbers("WakeEventEvent", "woken_task_id");
  EXPECT_EQ(polls.size(), trace.count("PollEndEvent"));
  EXPECT_EQ(polls.size(), counts().kept[static_cast<std::size_t>(ShedClass::kPolls)]);
  const std::set<std::uint64_t> tasks(polls.begin(), polls.end());
  EXPECT_EQ(polls.size(), tasks.size() * 5);
  EXPECT_NEAR(static_cast<double>(tasks.size()), 100, 45);
  EXPECT_EQ(wakes.size(), polls.size());
  EXPECT_EQ(std::set<std::uint64_t>(wakes.begin(), wakes.end()), tasks);
}

TEST_F(Shedding, draws_other_tasks_in_the_next_window) {
  std::set<std::uint64_t> seen;
  for (int window = 0; window < 100; ++window) {
    publish_shedding(rates(1, 4), true);
    for (std::uint64_t task = 1; task <= 10; ++task) {
      if (keeps_unit(ShedClass::kPolls, task)) seen.insert(task);
    }
  }
  EXPECT_EQ(seen.size(), 10U);
}

TEST_F(Shedding, keeps_the_end_of_a_poll_that_began_before) {
  publish_shedding(rates(1, 1e9), true);
  {
    const runtime::PollScope shed(0, {1, nullptr});
    publish_shedding(kKeepAll, false);
  }  // its end goes with none of the starts
  {
    const runtime::PollScope kept(0, {2, nullptr});
    publish_shedding(rates(1, 1e9), true);
  }
  const Trace trace = recorder_.read();
  EXPECT_EQ(trace.numbers("PollStartEvent", "task_id"), (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(trace.count("PollEndEvent"), 2U);
}

TEST_F(Shedding, drops_a_park_whole) {
  runtime::enter_worker(runtime::register_runtime("shed"));
  publish_shedding(rates(1, 4), true);
  for (int i = 0; i < 400; ++i) {
    runtime::park();
    runtime::unpark();
  }
  const Trace trace = recorder_.read();
  EXPECT_NEAR(static_cast<double>(trace.count("WorkerParkEvent")), 100, 1);
  EXPECT_EQ(trace.count("WorkerParkEvent"), trace.count("WorkerUnparkEvent"));
}

TEST_F(Shedding, keeps_a_task_from_its_spawn_to_its_end_over_all_windows) {
  runtime::Place place{"task"};
  std::vector<runtime::TaskId> tasks;
  publish_shedding(rates(1, 4), true);
  for (int i = 0; i < 400; ++i) tasks.push_back(runtime::task_spawn(place));
  for (int i = 0; i < 5; ++i) publish_shedding(rates(1, 4), true);
  for (const runtime::TaskId task : tasks) runtime::task_terminate(task);
  const Trace trace = recorder_.read();
  EXPECT_GT(trace.count("TaskSpawnEvent"), 0U);
  EXPECT_LT(trace.count("TaskSpawnEvent"), 200U);
  EXPECT_EQ(trace.numbers("TaskSpawnEvent", "task_id"),
            trace.numbers("TaskTerminateEvent", "task_id"));
}

TEST_F(Shedding, counts_each_thread_and_goes_on_where_it_ended) {
  publish_shedding(rates(3), true);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([] {
        for (std::uint64_t i = 0; i < 100; ++i) record(Numbered{i});
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(counts().kept[0] + counts().shed[0], 16'000U);
  EXPECT_EQ(recorder_.read().count("Numbered"), counts().kept[0]);
}

TEST_F(Shedding, never_sheds_what_says_how_much_is_missing) {
  for (const char* name :
       {"RecorderLossEvent", "RecorderShedEvent", "RecorderBillEvent", "RuntimeMetricsEvent",
        "SegmentMetadataEvent", "ClockSyncEvent", "BlockingCallEvent", "LockWaitEvent"}) {
    EXPECT_EQ(shed_role_of(name), ShedRole::kNever) << name;
  }
  publish_shedding(rates(1'000, 1'000), true);
  for (std::uint32_t i = 0; i < 100; ++i) record(RuntimeMetricsEvent{"main", i, 1});
  EXPECT_EQ(recorder_.read().count("RuntimeMetricsEvent"), 100U);
}

TEST(OwnCost, is_calibrated_without_a_trace_of_it) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  record(Numbered{1});
  const ShedCounts before = shed_counts();
  const ProducerCosts costs = calibrate_producer_costs();
  EXPECT_GT(costs.event_ns, 0.1);
  EXPECT_LT(costs.event_ns, 100'000);
  EXPECT_GT(costs.shed_ns, 0.1);
  record(Numbered{2});
  EXPECT_EQ(recorder.read().numbers("Numbered", "number"), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(shed_counts().since(before).kept[0], 0U);
}

}  // namespace
}  // namespace dial9::internal
