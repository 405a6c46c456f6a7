// What a reader makes of a trace that its recorder has thinned to keep within a budget.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/shed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "analysis/census.h"
#include "analysis/findings.h"
#include "analysis/polls.h"
#include "analysis/report.h"
#include "analysis/span_report.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using testing::TraceBuilder;

TEST(Shed, WeighsAKeptUnitByWhatWasCountedInItsStretch) {
  TraceBuilder builder;
  builder.shed(1'000, "polls", 4, 1'000, 0, 0);
  builder.shed(2'000, "polls", 2, 1'000, 10, 35);
  builder.shed(3'000, "polls", 1, 2'000, 10, 10);
  const ShedWindows shed(builder.load());
  EXPECT_EQ(shed.weight(ShedKind::kPolls, 999), 1);
  EXPECT_EQ(shed.weight(ShedKind::kPolls, 1'000), 4.5);
  EXPECT_EQ(shed.weight(ShedKind::kPolls, 2'500), 2);
  EXPECT_EQ(shed.weight(ShedKind::kPolls, 3'000), 1);
  EXPECT_EQ(shed.weight(ShedKind::kWakes, 1'500), 1);
  EXPECT_EQ(shed.shed(ShedKind::kPolls), 45U);
}

TEST(Shed, TakesARepeatedRateOnce) {
  TraceBuilder builder;
  for (int segment = 0; segment < 2; ++segment) {
    builder.shed(1'000, "events", 4, 1'000, 0, 0);
    builder.shed(2'000, "events", 1, 1'000, 10, 30);
    builder.new_stream();
  }
  const ShedWindows shed(builder.load());
  EXPECT_EQ(shed.shed(ShedKind::kEvents), 30U);
  EXPECT_EQ(shed.weight(ShedKind::kEvents, 1'500), 4);
}

TEST(Shed, GoesByTheRateWhereTheRecordsEndBeforeTheCounts) {
  TraceBuilder builder;
  builder.shed(1'000, "events", 8, 1'000, 0, 0);
  const ShedWindows shed(builder.load());
  EXPECT_EQ(shed.weight(ShedKind::kEvents, 5'000), 8);
  EXPECT_TRUE(shed.is_open(ShedKind::kEvents));
  ASSERT_EQ(shed.lines().size(), 1U);
  EXPECT_TRUE(shed.lines()[0].starts_with("at least "));
}

TEST(Shed, EstimatesPollsFromThoseThatWereKept) {
  TraceBuilder builder;
  builder.shed(1'000, "polls", 5, 1'000, 0, 0);
  for (std::uint64_t i = 0; i < 20; ++i) builder.poll(1'000 + i * 10, 1'004 + i * 10, 0, 7);
  builder.shed(2'000, "polls", 1, 1'000, 20, 80);
  builder.poll(3'000, 3'010, 0, 7);
  const Trace trace = builder.load();
  const PollSummary polls = summarize_polls(trace);
  EXPECT_EQ(polls.complete, 21U);
  EXPECT_EQ(polls.estimated_complete, 101);
  EXPECT_EQ(polls.places[0].estimated_total_ns, 100 * 4 + 10);
}

TEST(Shed, KnowsADelayOnlyWhereNeitherWakeNorPollCanBeMissing) {
  TraceBuilder builder;
  builder.poll(900, 910, 0, 7);
  builder.shed(1'000, "wakes", 4, 1'000, 0, 0);
  builder.wake(1'100, 7);
  builder.poll(1'200, 1'210, 0, 7);  // an earlier wake may be missing
  builder.wake(1'300, 7);
  builder.poll(1'400, 1'410, 0, 7);  // kept whole: the poll before is of the same stretch
  builder.shed(2'000, "wakes", 1, 1'000, 2, 6);
  builder.wake(2'100, 7);
  builder.poll(2'200, 2'210, 0, 7);  // as the first
  builder.wake(2'300, 7);
  builder.poll(2'400, 2'410, 0, 7);
  const Trace trace = builder.load();
  ASSERT_EQ(trace.polls.size(), 5U);
  EXPECT_EQ(trace.polls.ready_source[1], ReadySource::kEventsLost);
  EXPECT_EQ(trace.polls.ready_ns[1], kUnknownNs);
  EXPECT_EQ(trace.polls.ready_ns[2], 1'300U);
  EXPECT_EQ(trace.polls.ready_source[3], ReadySource::kEventsLost);
  EXPECT_EQ(trace.polls.ready_ns[4], 2'300U);
}

TEST(Shed, IsAFindingAndMakesLowerBoundsOfTheOthers) {
  TraceBuilder builder;
  builder.shed(1'000, "polls", 5, 1'000, 0, 0);
  for (std::uint64_t i = 0; i < 50; ++i) builder.poll(2'000 + i * 10, 2'004 + i * 10, 0, 7);
  builder.poll(10'000, 90'000'000, 0, 7);
  builder.shed(100'000'000, "polls", 1, 1'000, 51, 200);
  const Trace trace = builder.load();
  const std::vector<Finding> findings = diagnose(trace);
  const auto is_budget = [](const Finding& f) { return f.where == "budget"; };
  const auto is_long = [](const Finding& f) { return f.kind == FindingKind::kLongPoll; };
  const auto budget = std::find_if(findings.begin(), findings.end(), is_budget);
  ASSERT_NE(budget, findings.end());
  EXPECT_EQ(budget->count, 200U);
  const auto poll = std::find_if(findings.begin(), findings.end(), is_long);
  ASSERT_NE(poll, findings.end());
  EXPECT_NE(poll->evidence.back().find("lower bounds"), std::string::npos);
  EXPECT_NE(report_text(trace, findings).find("about 251 polls in all"), std::string::npos);
  EXPECT_NE(report_json(trace, findings).find("\"shed\": {\"polls\": 200}"), std::string::npos);
}

TEST(Shed, IsSummedByTheCensus) {
  TraceBuilder builder;
  for (int segment = 0; segment < 2; ++segment) {
    builder.shed(1'000, "events", 4, 1'000, 0, 0);
    builder.shed(2'000, "events", 1, 1'000, 10, 30);
    builder.new_stream();
  }
  const std::vector<std::uint8_t> bytes = builder.take();
  Census census;
  format::Decoder decoder(census.visitor());
  census.begin_input(decoder);
  ASSERT_TRUE(decoder.feed(bytes));
  ASSERT_EQ(census.shed().size(), 1U);
  EXPECT_EQ(census.shed().at("events").shed, 30U);
  EXPECT_EQ(census.shed().at("events").keep_one_in, 4);
}

TEST(Shed, IsSummedByTheCensusOverRunsOfTheSameTime) {
  TraceBuilder builder;
  for (const std::string_view run : {"abcd-1", "efgh-2", "abcd-1"}) {  // the last repeats the first
    builder.metadata(500, "boot_id", run);
    builder.shed(1'000, "events", 4, 1'000, 0, 0);
    builder.shed(2'000, "events", 1, 1'000, 10, run == "abcd-1" ? 30U : 7U);
    builder.new_stream();
  }
  const std::vector<std::uint8_t> bytes = builder.take();
  Census census;
  format::Decoder decoder(census.visitor());
  census.begin_input(decoder);
  ASSERT_TRUE(decoder.feed(bytes));
  EXPECT_EQ(census.shed().at("events").shed, 37U);
}

TEST(Shed, CountsBeyondWhatANumberHoldsStopAtTheLargest) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  TraceBuilder builder;
  builder.shed(1'000, "polls", 4, 1'000, 0, 0);
  builder.shed(2'000, "polls", 4, 1'000, 1, kMost);
  builder.shed(3'000, "polls", 1, 2'000, 1, kMost);
  for (std::uint64_t i = 0; i < 3; ++i) builder.poll(1'100 + i * 100, 1'150 + i * 100, 0, 7);
  const Trace trace = builder.load();
  EXPECT_EQ(ShedWindows(trace).shed(ShedKind::kPolls), kMost);
  EXPECT_NE(report_text(trace, {}).find("about 18,446,744,073,709,551,615 polls in all"),
            std::string::npos);
}

TEST(Shed, ARateThatIsNoRateIsBounded) {
  for (const double told : {std::numeric_limits<double>::infinity(), 1e300}) {
    TraceBuilder builder;
    builder.shed(1'000, "polls", told, 1'000, 0, 0);
    builder.shed(2'000, "polls", 1, 1'000, 10, 35);
    const ShedWindows shed(builder.load());
    EXPECT_EQ(shed.most(ShedKind::kPolls), 1e9);
    EXPECT_EQ(shed.lines(),
              std::vector<std::string>{"35 polls (at times only one in 1,000,000,000.0 was kept)"});
  }
  for (const double told : {std::numeric_limits<double>::quiet_NaN(), -4.0, 0.5}) {
    TraceBuilder builder;
    builder.shed(1'000, "polls", told, 1'000, 0, 0);
    EXPECT_EQ(ShedWindows(builder.load()).most(ShedKind::kPolls), 1);
  }
}

TEST(Shed, CountsAgainstTheMemoryOfTheTrace) {
  TraceBuilder builder;
  const std::size_t before = builder.load().bytes();
  for (std::uint64_t i = 1; i <= 1'000; ++i) builder.shed(1'000 * i, "polls", 2, 1'000 * i, 1, 1);
  EXPECT_GE(builder.load().bytes(), before + 1'000 * sizeof(ShedRecord));
}

TEST(Shed, IsSaidBeforeTheSpansThatItMakesFewer) {
  TraceBuilder builder;
  builder.shed(1'000, "spans", 4, 1'000, 0, 0);
  builder.shed(2'000, "spans", 1, 1'000, 10, 30);
  const Trace trace = builder.load();
  EXPECT_TRUE(span_json(trace, {}).ends_with(
      "\"shed\": [\"30 spans (at times only one in 4.0 was kept)\"]}\n"));
}

}  // namespace
}  // namespace dial9::analysis
