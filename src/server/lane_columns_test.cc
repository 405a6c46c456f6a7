// SPDX-License-Identifier: Apache-2.0
#include "server/lane_columns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "server/columns.h"
#include "server/series_columns.h"
#include "server/span_columns.h"
#include "server/testing/column_reader.h"
#include "server/testing/sample_runs.h"

namespace dial9::server {
namespace {

using testing::ColumnReader;
using testing::load_run;

constexpr double kMs = 1e6;

// 100 bins of 1 ms from the start.
constexpr WindowQuery kWhole{0, kMs, 100, 100};

TEST(LaneColumns, GiveExactSlicesWithTaskAndPlace) {
  const auto run = load_run(testing::sample_trace(), 42);
  const ColumnReader reader(lane_columns(*run, kWhole, {0, 2}));
  EXPECT_EQ(reader.u8("mode"), (std::vector<std::uint8_t>{kModeExact, kModeExact}));
  EXPECT_EQ(reader.u32("rows"), (std::vector<std::uint32_t>{0, 9, 12}));
  EXPECT_EQ(reader.f64("start")[0], 10 * kMs);
  EXPECT_EQ(reader.f64("dur")[0], kMs);
  EXPECT_EQ(reader.text("tasks")[reader.u32("task")[0]], "7");
  EXPECT_EQ(reader.text("locs")[reader.u32("loc")[0]], "main.cc:7");
  EXPECT_EQ(reader.u32("index")[8], 8u);
  EXPECT_EQ(reader.f64("ready")[0], 9.5 * kMs);
  EXPECT_TRUE(std::isnan(reader.f64("ready")[9])) << "no wake of task 8 was recorded";
}

TEST(LaneColumns, TellPollsParksAndKernelWaitsApart) {
  const auto run = load_run(testing::sample_trace());
  const ColumnReader reader(lane_columns(*run, kWhole, {1, 1}));
  EXPECT_EQ(reader.u8("kind"), (std::vector<std::uint8_t>{0, 1, 2}));
  EXPECT_EQ(reader.f64("start"), (std::vector<double>{20 * kMs, 75 * kMs, 91 * kMs}));
  EXPECT_EQ(reader.f64("dur"), (std::vector<double>{50 * kMs, 20 * kMs, 4 * kMs}));
  EXPECT_EQ(reader.u32("index"), (std::vector<std::uint32_t>{9, kNoIndex, kNoIndex}));
}

TEST(LaneColumns, GiveWhatTouchesTheWindowOnly) {
  const auto run = load_run(testing::sample_trace());
  const ColumnReader reader(lane_columns(*run, {69 * kMs, kMs, 2, 100}, {0, 2}));
  EXPECT_EQ(reader.u32("rows"), (std::vector<std::uint32_t>{0, 1, 2}));
  const ColumnReader nothing(lane_columns(*run, {-50 * kMs, kMs, 10, 100}, {0, 2}));
  EXPECT_EQ(nothing.u8("mode"), (std::vector<std::uint8_t>{kModeEmpty, kModeEmpty}));
}

TEST(LaneColumns, SumBinsUpToTheTrueTimeSplitAtTheirEdges) {
  const auto run = load_run(testing::sample_trace());
  const ColumnReader reader(lane_columns(*run, {0.5 * kMs, kMs, 100, 1}, {0, 2}));
  EXPECT_EQ(reader.u8("mode"), (std::vector<std::uint8_t>{kModeBins, kModeBins}));
  const auto bins = reader.u32("bin");
  const auto poll = reader.f32("poll");
  // Task 7's poll from 10 to 11 ms: half in [9.5, 10.5), half in [10.5, 11.5).
  EXPECT_EQ(bins[0], 9u);
  EXPECT_FLOAT_EQ(poll[0], 0.5f);
  EXPECT_FLOAT_EQ(poll[1], 0.5f);
  const auto brows = reader.u32("brows");
  const float busy = std::accumulate(poll.begin() + brows[1], poll.begin() + brows[2], 0.0f);
  EXPECT_NEAR(busy, 50, 1e-3);
  const auto wait = reader.f32("wait");
  EXPECT_NEAR(std::accumulate(wait.begin(), wait.end(), 0.0f), 4, 1e-3);
}

TEST(LaneColumns, NameTheLongestPollOfABin) {
  const auto run = load_run(testing::sample_trace());
  const ColumnReader reader(lane_columns(*run, {0, 100 * kMs, 1, 1}, {0, 2}));
  EXPECT_EQ(reader.f32("maxdur"), (std::vector<float>{1e6f, 50e6f}));
  EXPECT_EQ(reader.u32("maxidx")[1], 9u);
  EXPECT_EQ(reader.u32("n"), (std::vector<std::uint32_t>{9, 1}));
}

TEST(LaneColumns, DoNotGrowWithTheTrace) {
  const auto few = load_run(testing::dense_trace(10'000));
  const auto many = load_run(testing::dense_trace(40'000));
  const WindowQuery window{0, 20'000, 100, 100};
  EXPECT_EQ(lane_columns(*few, window, {0, 1}).size(), lane_columns(*many, window, {0, 1}).size());
}

TEST(TaskLaneColumns, ShowTheTaskAndNobodyElse) {
  const auto run = load_run(testing::sample_trace());
  const std::uint32_t task = run->trace().task_by_id.at(7);
  const ColumnReader reader(task_lane_columns(*run, kWhole, {0, 2}, task));
  EXPECT_EQ(reader.u32("rows"), (std::vector<std::uint32_t>{0, 9, 9}));
  EXPECT_EQ(reader.u8("mode")[1], kModeEmpty);
}

TEST(TaskLaneColumns, ShowAPollThatBeganBeforeTheWindowAlsoWhenPollsOfTheTaskOverlap) {
  const auto run = load_run(testing::overlapping_trace());
  const ColumnReader reader(task_lane_columns(*run, {50 * kMs, kMs, 10, 10}, {0, 2}, 0));
  EXPECT_EQ(reader.u32("rows"), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(reader.f64("start"), (std::vector<double>{10 * kMs, 55 * kMs}));
}

TEST(TaskLaneColumns, AgreeWithTheWholeLaneBinByBin) {
  const auto run = load_run(testing::sample_trace());
  const std::uint32_t task = run->trace().task_by_id.at(8);
  for (const double t0 : {0.0, 3.3 * kMs, 40 * kMs}) {
    const WindowQuery window{t0, 1.7 * kMs, 20, 1};
    WindowQuery binned = window;
    // The task has one poll, so ask the whole lane (which has a park too) for the reference.
    const ColumnReader whole(lane_columns(*run, binned, {1, 1}));
    binned.exact = 0;
    const ColumnReader alone(task_lane_columns(*run, binned, {1, 1}, task));
    ASSERT_EQ(alone.u8("mode")[0], kModeBins);
    std::vector<float> expected(20), got(20);
    if (whole.u8("mode")[0] == kModeBins) {
      for (std::size_t i = 0; i < whole.u32("bin").size(); ++i) {
        expected[whole.u32("bin")[i]] = whole.f32("poll")[i];
      }
      for (std::size_t i = 0; i < alone.u32("bin").size(); ++i) {
        got[alone.u32("bin")[i]] = alone.f32("poll")[i];
      }
      for (std::size_t i = 0; i < 20; ++i) EXPECT_NEAR(got[i], expected[i], 1e-5) << t0 << " " << i;
    }
  }
}

TEST(QueueColumns, CarryTheLastValueIntoTheWindow) {
  const auto run = load_run(testing::sample_trace());
  const auto& series = run->trace().series;
  ASSERT_FALSE(series.empty());
  std::uint32_t depth = 0;
  while (series[depth].kind != analysis::Series::Kind::kQueueDepth) ++depth;
  const ColumnReader later(queue_columns(*run, {40 * kMs, kMs, 10, 10}));
  EXPECT_EQ(later.f32("carry")[depth], 5.0f);
  EXPECT_TRUE(later.u32("bin").empty());
  const ColumnReader whole(queue_columns(*run, kWhole));
  EXPECT_TRUE(std::isnan(whole.f32("carry")[depth]));
  std::vector<float> values;
  for (std::size_t i = 0; i < whole.u32("series").size(); ++i) {
    if (whole.u32("series")[i] == depth) values.push_back(whole.f32("last")[i]);
  }
  EXPECT_EQ(values, (std::vector<float>{0, 5}));
}

TEST(EventColumns, GiveTimesAndValuesAndNaNWithoutOne) {
  const auto run = load_run(testing::sample_trace());
  const ColumnReader reader(event_columns(*run, kWhole, "OrderPlaced", "amount"));
  EXPECT_EQ(reader.f64("time"), (std::vector<double>{5 * kMs, 6 * kMs, 90 * kMs}));
  EXPECT_EQ(reader.f64("value")[1], 2.5);
  EXPECT_TRUE(std::isnan(reader.f64("value")[2]));
  const ColumnReader text(event_columns(*run, kWhole, "OrderPlaced", "note"));
  EXPECT_TRUE(std::isnan(text.f64("value")[0]));
}

TEST(EventColumns, BecomeBinsWithTheLargestValueWhereThereAreMany) {
  const auto run = load_run(testing::custom_only_trace(1000));
  const ColumnReader reader(event_columns(*run, {0, 100 * kMs, 10, 10}, "Tick", "n"));
  EXPECT_TRUE(reader.f64("time").empty());
  EXPECT_EQ(reader.u32("n"), std::vector<std::uint32_t>(10, 100));
  EXPECT_EQ(reader.f32("max")[3], 399.0f);
  EXPECT_EQ(reader.f32("min")[3], 300.0f);
  EXPECT_EQ(reader.u32("maxidx")[3], 399u);
}

TEST(SpanColumns, GiveSpansWithTheirName) {
  const auto run = load_run(testing::sample_trace());
  ASSERT_EQ(run->trace().spans.size(), 1u);
  const ColumnReader reader(span_columns(*run, kWhole, 0, 1));
  EXPECT_EQ(reader.f64("start"), (std::vector<double>{10 * kMs}));
  EXPECT_EQ(reader.f64("dur"), (std::vector<double>{50 * kMs}));
  EXPECT_EQ(reader.text("names"), (std::vector<std::string>{"checkout"}));
}

TEST(Minimap, ShowsBusyTimeLossAndEventsOfTheWholeTrace) {
  const auto run = load_run(testing::sample_trace());
  const ColumnReader reader(minimap_columns(*run, 99));
  const auto busy = reader.f32("busy");
  // 9 + 50 ms of polls over two lanes, in bins of 1 ms.
  EXPECT_NEAR(std::accumulate(busy.begin(), busy.end(), 0.0f), 59.0 / 2, 1e-2);
  EXPECT_EQ(reader.u8("loss")[42], 1);
  EXPECT_EQ(reader.u8("loss")[50], 0);
}

TEST(Minimap, ShowsATraceThatHasNothingButCustomEvents) {
  const auto run = load_run(testing::custom_only_trace(1000));
  const auto events = ColumnReader(minimap_columns(*run, 10)).u32("events");
  EXPECT_EQ(std::accumulate(events.begin(), events.end(), 0u), 1000u);
}

}  // namespace
}  // namespace dial9::server
