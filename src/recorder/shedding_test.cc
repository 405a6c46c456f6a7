// Keep or shed: what stays together, what the counts say, and what a whole recorder makes of it.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/shedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

#include "dial9/internal/runtime_events.h"
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
    EXPECT_EQ(shed_class_of(name), ShedClass::kNever) << name;
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
