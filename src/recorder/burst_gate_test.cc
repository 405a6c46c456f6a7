// A burst that the collector sleeps through: when threads thin the classes, what they tell of it,
// and what a kill leaves of that. Time is the test's; judged are counts and bytes.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/burst_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <iterator>
#include <set>
#include <thread>
#include <vector>

#include "dial9/event.h"
#include "recorder/arena_reader.h"
#include "recorder/recovery.h"
#include "recorder/shedding.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_EVENT(Order, (std::uint64_t, number), (std::uint64_t, amount));

constexpr double kBudgetBytes = 2e6;
// As the gate counts them: 13 bytes each, within a chunk's grain.
constexpr std::uint64_t kOrders = 400'000;  // over twice what a second allows
constexpr std::size_t kEvents = static_cast<std::size_t>(ShedClass::kEvents);

TEST(GateLevel, IsNoneWithinWhatAPeriodAndTheTimeSinceThePassAllow) {
  EXPECT_EQ(gate_level(0, 0), 0U);
  EXPECT_EQ(gate_level(kGateDepthNs, 0), 0U);
  EXPECT_EQ(gate_level(kGateDepthNs + 50, 50), 0U);
  EXPECT_EQ(gate_level(~std::uint64_t{0} / 2, ~std::uint64_t{0} / 2), 0U);
}

TEST(GateLevel, RisesByOneForEachEighthOfAPeriodBeyondIt) {
  EXPECT_EQ(gate_level(kGateDepthNs + 1, 0), 1U);
  EXPECT_EQ(gate_level(kGateDepthNs + kGateLevelNs + 1, 0), 2U);
  EXPECT_EQ(gate_level(2 * kGateDepthNs, 0), 9U);
  EXPECT_EQ(gate_level(2 * kGateDepthNs, kGateDepthNs), 0U);
}

TEST(Thinned, GoesByTheOrderOfTheClassesToTheFirstLimitOfAllAndThenToTheSecond) {
  EXPECT_EQ(thinned(kKeepAll, 0), kKeepAll);
  EXPECT_EQ(thinned(kKeepAll, 1), (KeepOneIn{4, 1, 1, 1, 1, 1}));
  EXPECT_EQ(thinned(kKeepAll, 3), (KeepOneIn{32, 1, 1, 1, 1, 1}));
  EXPECT_EQ(thinned(kKeepAll, 5), (KeepOneIn{32, 16, 1, 1, 1, 1}));
  EXPECT_EQ(thinned(kKeepAll, 19), (KeepOneIn{128, 32, 32, 32, 32, 32}));
  KeepOneIn last;
  last.fill(kKeepLimits[1]);
  EXPECT_EQ(thinned(kKeepAll, 1'000), last);
}

TEST(Thinned, GoesOnFromTheRatesThatThereAre) {
  EXPECT_EQ(thinned({32, 5, 1, 1, 1, 1}, 1), (KeepOneIn{32, 20, 1, 1, 1, 1}));
}

TEST(RatesHold, IsHeldByOneAtATime) {
  const SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  {
    const RatesHold first;
    EXPECT_TRUE(first);
    const RatesHold second;
    EXPECT_FALSE(second);
  }
  EXPECT_TRUE(RatesHold());
}

std::uint64_t stands_still() noexcept { return 1; }

RecorderOptions within_budget(RecorderOptions options) {
  options.max_mb_per_sec = kBudgetBytes / 1e6;
  return options;
}

// A recorder under a budget, after a silence; the gate's clock stands still.
class Burst : public ::testing::Test {
 protected:
  Burst() { set_gate_clock(stands_still); }
  ~Burst() override { set_gate_clock(nullptr); }

  // So many orders on each of the threads; the collector sleeps. One after the other: of two at a
  // time one may have the rates in its hands and no CPU, while the other goes on.
  static void record_orders(std::size_t threads, std::uint64_t orders) {
    for (std::size_t t = 0; t < threads; ++t) {
      std::thread([orders] {
        for (std::uint64_t i = 0; i < orders; ++i) record(Order{i, 100 + i % 37});
      }).join();
    }
  }
};

// What the orders of a trace stand for, by the rates in it.
struct Estimate {
  double orders = 0;
  std::uint64_t kept = 0;
};
Estimate estimate_of(const Trace& trace) {
  const std::vector<std::uint64_t> ends = trace.stamps("RecorderShedEvent");
  const std::vector<std::uint64_t> begins = trace.numbers("RecorderShedEvent", "since_ns");
  const std::vector<std::uint64_t> kept = trace.numbers("RecorderShedEvent", "kept");
  const std::vector<std::uint64_t> shed = trace.numbers("RecorderShedEvent", "shed");
  const std::vector<std::string> classes = trace.texts("RecorderShedEvent", "class");
  Estimate estimate;
  for (const std::uint64_t stamp : trace.stamps("Order")) {
    double weight = 1;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (classes[i] != "events" || kept[i] == 0 || stamp < begins[i] || stamp >= ends[i]) continue;
      weight = 1 + static_cast<double>(shed[i]) / static_cast<double>(kept[i]);
    }
    estimate.orders += weight;
    ++estimate.kept;
  }
  return estimate;
}

TEST_F(Burst, OutOfSilenceIsBoundedBeforeTheCollectorWakes) {
  SteppedRecorder recorder(within_budget(RecorderOptions::memory(std::uint64_t{64} << 20)));
  const ShedCounts before = shed_counts();
  recorder.step();
  constexpr std::size_t kThreads = 4;
  record_orders(kThreads, kOrders / kThreads);
  EXPECT_TRUE(is_shedding());
  EXPECT_GT(shed_counts().since(before).shed[kEvents], kOrders / 2);
  recorder.advance(kTestSecond / 4);
  recorder.step();
  // What a period allows, a level for each step to the last limit of a class and to the first of
  // all others, and each thread's chunk.
  const double most = kBudgetBytes * (0.1 + 20 * 0.0125) + kThreads * kChunkBytes;
  EXPECT_LE(static_cast<double>(recorder->status().bytes_written), most);
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.count("Order") + shed_counts().since(before).shed[kEvents], kOrders);
  EXPECT_EQ(recorder->status().events_shed, shed_counts().since(before).shed[kEvents]);
  const Estimate estimate = estimate_of(trace);
  EXPECT_NEAR(estimate.orders, static_cast<double>(kOrders), kOrders * 0.03);
}

TEST_F(Burst, IsChargedOnceThoughThePassThatSawItEndsLater) {
  SteppedRecorder recorder(within_budget(RecorderOptions::memory(std::uint64_t{64} << 20)));
  recorder.step();
  record_orders(1, kOrders / 2);
  ASSERT_TRUE(is_shedding());
  // The collector's pass, up to where it would write to the disk.
  const KeepOneIn half = {2, 1, 1, 1, 1, 1};
  open_gate({.max_bytes = kBudgetBytes}, {}, half);
  publish_shedding(half, true);
  const ShedCounts before = shed_counts();
  record_orders(1, 5'000);  // well within what a period allows
  EXPECT_NEAR(static_cast<double>(shed_counts().since(before).shed[kEvents]), 2'500, 500);
}

TEST_F(Burst, OfEventsAlsoKeepsToABudgetOfCpu) {
  RecorderOptions options = RecorderOptions::memory(std::uint64_t{64} << 20);
  options.max_cpu_percent = 0.01;
  SteppedRecorder recorder(options);
  const ShedCounts before = shed_counts();
  recorder.step();
  record_orders(1, kOrders);
  EXPECT_TRUE(is_shedding());
  EXPECT_GT(shed_counts().since(before).shed[kEvents], kOrders / 2);
}

TEST_F(Burst, TellsEachRateBeforeWhatWasKeptUnderIt) {
  SteppedRecorder recorder(within_budget(RecorderOptions::memory(std::uint64_t{64} << 20)));
  recorder.step();
  record_orders(4, kOrders / 4);
  recorder.step();
  const Trace trace = recorder.read();
  std::vector<std::uint64_t> rates = trace.stamps("RecorderShedEvent");
  std::sort(rates.begin(), rates.end());
  ASSERT_GT(rates.size(), 2U);
  std::uint64_t told_ns = 0;  // the last rate so far
  std::uint64_t late = 0;
  for (const auto& event : trace.raw().events) {
    const std::string& name = trace.raw().schemas[event.schema].name;
    if (name == "RecorderShedEvent") told_ns = std::max(told_ns, event.timestamp_ns);
    if (name != "Order") continue;
    const auto after = std::upper_bound(rates.begin(), rates.end(), event.timestamp_ns);
    if (after != rates.begin() && told_ns < *std::prev(after)) ++late;
  }
  EXPECT_EQ(late, 0U);
}

TEST_F(Burst, IsGovernedFromTheNextPassOnAndRecordedInFullAgainAfterIt) {
  SteppedRecorder recorder(within_budget(RecorderOptions::memory(std::uint64_t{64} << 20)));
  recorder.step();
  record_orders(4, kOrders / 4);
  for (int i = 0; i < 50; ++i) {
    recorder.advance(kTestSecond / 10);
    recorder.step();
  }
  EXPECT_FALSE(is_shedding());
  const std::uint64_t before = recorder.read().count("Order");
  record_orders(1, 100);
  EXPECT_EQ(recorder.read().count("Order"), before + 100);
}

TEST_F(Burst, BelowTheBudgetIsLeftAloneHoweverManyChunksItFills) {
  SteppedRecorder recorder(within_budget(RecorderOptions::memory(std::uint64_t{64} << 20)));
  recorder.step();
  for (int pass = 0; pass < 20; ++pass) {
    record_orders(1, 10'000);  // 100 to 200 KB in a tenth of a second
    recorder.advance(kTestSecond / 10);
    recorder.step();
  }
  EXPECT_EQ(recorder->status().events_shed, 0U);
}

TEST_F(Burst, ThinsAsFarAsItGoesWhenNoPlaceForAnotherRaiseIsLeft) {
  SteppedRecorder recorder(within_budget(RecorderOptions::memory(std::uint64_t{64} << 20)));
  recorder.step();
  record_orders(1, 4 * kOrders);
  recorder.advance(kTestSecond / 4);
  recorder.step();
  const Trace trace = recorder.read();
  const std::vector<std::uint64_t> stamps = trace.stamps("RecorderShedEvent");
  const std::vector<std::string> classes = trace.texts("RecorderShedEvent", "class");
  const std::vector<std::uint64_t> rates = trace.numbers("RecorderShedEvent", "keep_one_in");
  double tasks = 0;  // the last class in the order: by steps it isn't there yet
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    if (classes[i] == "tasks") tasks = std::max(tasks, std::bit_cast<double>(rates[i]));
  }
  EXPECT_EQ(tasks, kKeepLimits[1]);
  EXPECT_LE(std::set(stamps.begin(), stamps.end()).size(), kMostRaises + 2U);
}

TEST_F(Burst, DoesNotOutlastItsRecorder) {
  for (const bool has_budget : {false, true}) {
    {
      SteppedRecorder recorder(within_budget(RecorderOptions::memory(std::uint64_t{64} << 20)));
      recorder.step();
      record_orders(1, kOrders);
      EXPECT_TRUE(is_shedding());
    }  // stopped before the collector has seen the raises
    EXPECT_FALSE(is_shedding());
    const RecorderOptions options = RecorderOptions::memory(std::uint64_t{64} << 20);
    SteppedRecorder next(has_budget ? within_budget(options) : options);
    record_orders(1, 1'000);
    next.step();
    record_orders(1, 1'000);
    const Trace trace = next.read();
    EXPECT_EQ(trace.count("Order"), 2'000U);
    EXPECT_EQ(trace.count("RecorderShedEvent"), 0U);
    EXPECT_EQ(next->status().events_shed, 0U);
  }
}

TEST_F(Burst, IsNobodysConcernWithoutABudget) {
  SteppedRecorder recorder(RecorderOptions::memory(std::uint64_t{64} << 20));
  recorder.step();
  record_orders(1, kOrders / 2);
  EXPECT_FALSE(is_shedding());
}

TEST_F(Burst, HasItsRatesInTheArenaWhenItIsKilled) {
  const TempDir live;
  const TempDir dead;
  const std::string run = dead.path() + "/dead-999999999";
  {
    SteppedRecorder recorder(within_budget(RecorderOptions::disk(live.path())));
    recorder.step();
    record_orders(1, kOrders);
    std::filesystem::copy(recorder->status().directory, run);
  }
  const RunReport report = recover_run(run, {});
  EXPECT_GT(report.events, 0U);
  const Trace trace = Trace::of_directory(run);
  const std::vector<std::uint64_t> rates = trace.stamps("RecorderShedEvent");
  const std::vector<std::uint64_t> orders = trace.stamps("Order");
  ASSERT_FALSE(rates.empty());
  EXPECT_LT(rates.front(), orders.back());
  // All but what was decided after the last rate is weighed by counts.
  const std::vector<std::uint64_t> shed = trace.numbers("RecorderShedEvent", "shed");
  std::uint64_t told = 0;
  for (const std::uint64_t n : shed) told += n;
  EXPECT_GT(told, 0U);
  EXPECT_LT(told, kOrders);
}

}  // namespace
}  // namespace dial9::internal
