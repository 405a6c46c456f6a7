// The page of `dial9 top` at any size of the terminal.
// SPDX-License-Identifier: Apache-2.0
#include "cli/top_page.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/testing/trace_builder.h"
#include "cli/snapshot_text.h"

namespace dial9::cli {
namespace {

using analysis::testing::TraceBuilder;

constexpr std::uint64_t kMs = 1'000'000;

ProcessView view_of(TraceBuilder& builder, std::uint64_t now_ns) {
  internal::TargetLook look;
  look.kernel.pid = 70;
  look.kernel.name = "service";
  look.now_ns = now_ns;
  look.realtime_ns = 1'790'000'000'000 * kMs;
  look.chunks_total = 1'024;
  look.parts.push_back({"chunk", builder.take()});
  return make_view(std::move(look), 10);
}

ProcessView busy_view(std::uint64_t workers) {
  TraceBuilder builder;
  for (std::uint64_t i = 0; i < workers; ++i) {
    builder.poll(10 * kMs, 20 * kMs, i, 1, "a/very/long/path/\xC3\xA9t\xC3\xA9/session.cc:42");
    builder.poll(50 * kMs, 60 * kMs, i, 1, "other.cc:1");
  }
  builder.metrics(60 * kMs, "http", 7, 9);
  return view_of(builder, 110 * kMs);
}

std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

bool has_line(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST(TopPage, NoLineIsWiderAndNoPageHigherThanTheTerminal) {
  const ProcessView view = busy_view(40);
  for (std::size_t width = 20; width < 160; width += 7) {
    for (std::size_t height = 5; height < 70; height += 9) {
      const auto lines = top_page(view, width, height);
      EXPECT_LE(lines.size(), height);
      for (const std::string& line : lines) EXPECT_LE(columns(line), width) << line;
    }
  }
}

TEST(TopPage, AStateThatALossMayHaveEndedHasAQuestionMark) {
  TraceBuilder builder;
  builder.poll_start(10 * kMs, 0, 1);
  builder.loss(60 * kMs, "arena_full", 4, 20 * kMs, 50 * kMs);
  EXPECT_TRUE(has_line(top_page(view_of(builder, 110 * kMs), 80, 40), "in poll?"));
  builder.poll_start(10 * kMs, 0, 1);
  EXPECT_FALSE(has_line(top_page(view_of(builder, 110 * kMs), 80, 40), "in poll?"));
}

TEST(TopPage, ANarrowTerminalHasTheHeadInMoreLines) {
  const auto lines = top_page(busy_view(2), 40, 24);
  EXPECT_EQ(lines[0].find("service (70)  "), 0U) << lines[0];
  EXPECT_EQ(lines[1], "2 workers: 0 in polls, 0 parked");
  EXPECT_TRUE(has_line(lines, "ready, not run: "));
}

TEST(TopPage, WorkersThatDoNotFitAreCounted) {
  EXPECT_TRUE(has_line(top_page(busy_view(40), 100, 24), "more"));
  EXPECT_FALSE(has_line(top_page(busy_view(40), 100, kNoHeight), "more"));
}

TEST(TopPage, RatesAreThoseOfTheRecordedWindow) {
  // From 10 ms to 110 ms: one poll after the first record, 20 ms inside polls.
  const auto lines = top_page(busy_view(1), 120, kNoHeight);
  EXPECT_TRUE(has_line(lines, " between   50.0 ms        10   20 % ")) << lines[4];
}

// A poll that is open when events are lost is certain up to then; one that ended, for good.
TEST(TopPage, RatesAreTheLeastWhereRecordsOfTheWindowMayBeMissing) {
  TraceBuilder builder;
  builder.poll(10 * kMs, 20 * kMs, 0, 1, "a.cc:1");
  builder.poll_start(50 * kMs, 0, 2, "b.cc:2");
  builder.loss(109 * kMs, "recording_off", 0, 60 * kMs, 109 * kMs);
  const auto lines = top_page(view_of(builder, 110 * kMs), 120, kNoHeight);
  EXPECT_TRUE(has_line(lines, "in poll?  60.0 ms      >=10 >=20 % ")) << lines[4];
  EXPECT_TRUE(has_line(lines, "(runs?) b.cc:2"));
  EXPECT_TRUE(has_line(lines, "1 in polls, 0 parked, 1 uncertain"));
}

// It tells of polls that it left out only afterwards.
TEST(TopPage, RatesAreTheLeastWhereABudgetMayLeaveOutPolls) {
  TraceBuilder builder;
  builder.metadata(1 * kMs, "dial9.governed", "true");
  builder.poll(10 * kMs, 20 * kMs, 0, 1, "a.cc:1");
  builder.poll(50 * kMs, 60 * kMs, 0, 1, "a.cc:1");
  const auto lines = top_page(view_of(builder, 110 * kMs), 120, kNoHeight);
  EXPECT_TRUE(has_line(lines, "      >=10 >=20 % ")) << lines[5];
}

TEST(TopPage, QueuesAndTheSlowestHandlersAreShown) {
  const auto lines = top_page(busy_view(1), 120, kNoHeight);
  EXPECT_TRUE(has_line(lines, "7         9"));
  EXPECT_TRUE(has_line(lines, "session.cc:42"));
  EXPECT_TRUE(has_line(lines, "slowest handlers"));
}

TEST(TopPage, AQueueOfAnyDepthIsShownAsItWasSampled) {
  TraceBuilder builder;
  builder.poll(10 * kMs, 20 * kMs, 0, 1);
  auto& out = builder.encoder();
  out.schema(100, "RuntimeMetricsEvent", true,
             {{"runtime_name", format::FieldType::kString},
              {"global_queue_depth", format::FieldType::kVarint},
              {"alive_tasks", format::FieldType::kVarint}});
  out.begin(100, 60 * kMs);
  out.string("http");
  out.varint(~std::uint64_t{0} - 1);
  out.varint(~std::uint64_t{0} - 1);
  const ProcessView view = view_of(builder, 110 * kMs);
  ASSERT_EQ(view.now.queues.size(), 1U);
  EXPECT_NE(snapshot_text(view, "").find("http: 18,446,744,073,709,551,615 queued"),
            std::string::npos);
  EXPECT_NE(snapshot_json(view, "").find("\"depth\": 18446744073709551615"), std::string::npos);
  EXPECT_TRUE(has_line(top_page(view, 120, kNoHeight), "18,446"));
}

TEST(TopPage, AHandlerThatStillRunsSaysSo) {
  TraceBuilder builder;
  builder.poll_start(10 * kMs, 0, 1, "hang.cc:7");
  EXPECT_TRUE(has_line(top_page(view_of(builder, 110 * kMs), 120, kNoHeight), "(runs) hang.cc:7"));
}

TEST(TopPage, ATaskThatWaitsHasANumberWhereItsPlaceIsUnknown) {
  TraceBuilder builder;
  builder.poll(10 * kMs, 20 * kMs, 0, 1, "other.cc:1");
  builder.wake(30 * kMs, 1583);
  EXPECT_TRUE(has_line(top_page(view_of(builder, 110 * kMs), 120, kNoHeight),
                       "ready, not run: >=1, longest >=80.0 ms (task 1583)"));
}

// The chunks alone reach back some milliseconds: who waits for longer isn't known.
TEST(TopPage, WaitsAreTheLeastWhereTheHistoryIsNotWhole) {
  TraceBuilder builder;
  builder.wake(30 * kMs, 1583);
  ProcessView view = view_of(builder, 110 * kMs);
  EXPECT_TRUE(has_line(top_page(view, 120, kNoHeight), "ready, not run: 1, longest 80.0 ms"));
  EXPECT_NE(snapshot_text(view, "").find("ready, but not run, the longest first: 1 task\n"),
            std::string::npos);
  view.complete_since_ns = 20 * kMs;
  EXPECT_TRUE(has_line(top_page(view, 120, kNoHeight), "ready, not run: >=1, longest >=80.0 ms"));
  const std::string text = snapshot_text(view, "");
  EXPECT_NE(text.find("ready, but not run, the longest first: at least 1 task\n"),
            std::string::npos);
  EXPECT_NE(text.find("suspended, the longest first: none known\n"), std::string::npos);
}

TEST(TopPage, AProcessWithoutWorkersHasAPageToo) {
  TraceBuilder builder;
  builder.clock_sync(1 * kMs, 1'790'000'000'000 * kMs);
  EXPECT_TRUE(has_line(top_page(view_of(builder, 2 * kMs), 80, 24), "no worker in the records"));
}

TEST(CutTo, NeverCutsACharacterInTwo) {
  EXPECT_EQ(cut_to("\xC3\xA9t\xC3\xA9", 1), "\xC3\xA9");
  EXPECT_EQ(cut_to("\xC3\xA9t\xC3\xA9", 3), "\xC3\xA9t\xC3\xA9");
  EXPECT_EQ(cut_to("abc", 0), "");
}

// One too wide, and the terminal breaks the line and scrolls the page.
TEST(CutTo, CountsTwoColumnsForWideCharacters) {
  const std::string wide = "\xE6\xB3\xA8\xE6\x96\x87";  // two ideographs
  EXPECT_EQ(cut_to(wide, 4), wide);
  EXPECT_EQ(cut_to(wide, 3), wide.substr(0, 3));
  EXPECT_EQ(cut_to("a" + wide, 2), "a");
  EXPECT_EQ(cut_to("\xF0\x9F\x98\x80", 1), "");
}

}  // namespace
}  // namespace dial9::cli
