// What a filter takes of waits off the CPU: estimates of a span beside the account of its time.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/wait_times.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/off_cpu.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using format::FieldType;
using testing::TraceBuilder;

constexpr std::uint64_t kMs = 1'000'000;

// "name proven+estimated waits", a line a group.
std::string groups(const Trace& trace, const OffCpuReportOptions& options) {
  std::string text;
  for (const OffCpuGroup& group : off_cpu_report(trace, options, nullptr).groups) {
    text += (group.name.empty() ? "?" : group.name) + " " + std::to_string(group.proven_ns) + "+" +
            std::to_string(group.estimated_ns) + " " + std::to_string(group.waits) + "\n";
  }
  return text;
}

std::string notes(const OffCpuReport& report) {
  std::string text;
  for (const std::string& note : report.heading.notes) text += note + "\n";
  return text;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Span 17 of a task, from 100 to 110 ms in one poll of a worker that was on a CPU for 7 of them,
// and three waits in it: of 1 ms proven and 4 estimated, of 0 and 2, and one of another task.
TraceBuilder span_on_a_cpu(std::uint64_t proven_ns = 1 * kMs) {
  TraceBuilder builder;
  builder.spawn(10 * kMs, 42);
  builder.park(50 * kMs, 3, 7, 1'000);
  builder.unpark(100 * kMs, 3, TraceBuilder::kNoWait, 7, 1'000);
  builder.poll(100 * kMs, 110 * kMs, 3, 42);
  builder.park(110 * kMs, 3, 7, 1'000 + 7 * kMs);
  builder.unpark(150 * kMs, 3, TraceBuilder::kNoWait, 7, 1'000 + 7 * kMs);
  format::Encoder& out = builder.encoder();
  out.schema(150, "SpanEnter:request", true,
             {{"worker_id", FieldType::kVarint}, {"span_id", FieldType::kVarint}});
  out.schema(151, "SpanExit:request", true,
             {{"worker_id", FieldType::kVarint},
              {"span_id", FieldType::kVarint},
              {"active_ns", FieldType::kVarint},
              {"idle_ns", FieldType::kVarint}});
  out.begin(150, 100 * kMs);
  out.varint(3);
  out.varint(17);
  out.begin(151, 110 * kMs);
  out.varint(3);
  out.varint(17);
  out.varint(10 * kMs);
  out.varint(0);
  const auto wait = [&](std::uint64_t at_ns, std::uint64_t proven, std::uint64_t share_ns,
                        std::string_view cause, std::uint64_t task) {
    builder.off_cpu({.at_ns = at_ns,
                     .proven_ns = proven,
                     .share_ns = share_ns,
                     .cause = cause,
                     .task = task,
                     .span = 17});
  };
  wait(101 * kMs, proven_ns, 4 * kMs, "socket", 42);
  wait(108 * kMs, 0, 2 * kMs, "lock", 42);
  wait(109 * kMs, 0, 1 * kMs, "pipe", 43);
  return builder;
}

TEST(WaitTimes, EstimatesOfASpanAreNoMoreThanItsOwnAccountHasRoomFor) {
  const Trace trace = span_on_a_cpu().load();
  EXPECT_EQ(groups(trace, {}), "socket 1000000+4000000 1\nlock 0+2000000 1\npipe 0+1000000 1\n");
  const OffCpuReportOptions of_span{.filter = {.span = 17}};
  EXPECT_EQ(groups(trace, of_span),
            "socket 1000000+1333333 1\npipe 0+1000000 1\nlock 0+666666 1\n")
      << "2 of the 3 ms that it was off a CPU are left; another task's are in no account of it";
  const OffCpuReport report = off_cpu_report(trace, of_span, nullptr);
  EXPECT_EQ(report.room_ns, 3 * kMs);
  EXPECT_EQ(report.cut_ns, 4 * kMs);
  EXPECT_EQ(report.tree.total(), report.proven_ns + report.estimated_ns);
  EXPECT_TRUE(report.heading.is_uncertain);
  EXPECT_TRUE(has(notes(report), "of the estimates 4.00 ms is left out, of each the same part: the "
                                 "span's own account has room for 3.00 ms off the CPU at most\n"))
      << notes(report);
  EXPECT_TRUE(has(flame_text(report.tree, report.heading, 5), "4.00 ms in 3 waits, uncertain\n"))
      << flame_text(report.tree, report.heading, 5);
  EXPECT_TRUE(has(off_cpu_json(trace, report, OffCpuBy::kReason),
                  "\"room_ns\": 3000000, \"cut_ns\": 4000000"));
  const OffCpuReport begin =
      off_cpu_report(trace, {.filter = {.to_ns = 105 * kMs, .span = 17}}, nullptr);
  EXPECT_EQ(begin.estimated_ns, 1'333'333U) << "the same part in each range";
}

TEST(WaitTimes, WhereTheProvenWaitsOfASpanFillItsAccountNothingIsEstimatedBesideThem) {
  const Trace trace = span_on_a_cpu(6 * kMs).load();
  const OffCpuReport report = off_cpu_report(trace, {.filter = {.span = 17}}, nullptr);
  EXPECT_EQ(report.proven_ns, 6 * kMs);
  EXPECT_EQ(report.estimated_ns, 1 * kMs) << "the other task's";
  EXPECT_EQ(report.room_ns, 6 * kMs) << "what is proven is in the account";
}

TEST(WaitTimes, WithoutAnAccountOfTheSpanItsEstimatesAreAsTheyWere) {
  TraceBuilder lossy = span_on_a_cpu();
  lossy.loss(160 * kMs, "ring full", 1, 104 * kMs, 105 * kMs);
  const Trace lost = lossy.load();
  const OffCpuReport of_lost = off_cpu_report(lost, {.filter = {.span = 17}}, nullptr);
  EXPECT_EQ(of_lost.room_ns, 10 * kMs) << "all of it may have been off the CPU";
  EXPECT_EQ(of_lost.cut_ns, 0U);
  TraceBuilder twice = span_on_a_cpu();
  twice.poll(100 * kMs, 109 * kMs, 4, 42);
  const OffCpuReport of_two = off_cpu_report(twice.load(), {.filter = {.span = 17}}, nullptr);
  EXPECT_EQ(of_two.room_ns, std::nullopt) << "on two threads at a time";
  EXPECT_EQ(of_two.estimated_ns, 7 * kMs);
  EXPECT_FALSE(of_two.heading.is_uncertain);
}

}  // namespace
}  // namespace dial9::analysis
