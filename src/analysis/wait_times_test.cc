// What a filter takes of waits off the CPU: estimates of a span beside the account of its time.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/wait_times.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/flame_view.h"
#include "analysis/off_cpu.h"
#include "analysis/span_times.h"
#include "analysis/testing/off_cpu_text.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using format::FieldType;
using testing::groups;
using testing::has;
using testing::notes;
using testing::TraceBuilder;

constexpr std::uint64_t kMs = 1'000'000;

// Span 17, of worker 3.
void add_span(TraceBuilder& builder, std::uint64_t from_ns, std::uint64_t to_ns,
              std::uint64_t active_ns) {
  format::Encoder& out = builder.encoder();
  out.schema(150, "SpanEnter:request", true,
             {{"worker_id", FieldType::kVarint}, {"span_id", FieldType::kVarint}});
  out.schema(151, "SpanExit:request", true,
             {{"worker_id", FieldType::kVarint},
              {"span_id", FieldType::kVarint},
              {"active_ns", FieldType::kVarint},
              {"idle_ns", FieldType::kVarint}});
  out.begin(150, from_ns);
  out.varint(3);
  out.varint(17);
  out.begin(151, to_ns);
  out.varint(3);
  out.varint(17);
  out.varint(active_ns);
  out.varint(0);
}

// Span 17 of a task, from 100 to 110 ms in one poll of a worker that was off the CPU for 3 of
// them, and three waits in it: of 1 ms proven and 4 estimated, of 0 and 2, and one of another task.
TraceBuilder span_on_a_cpu(std::uint64_t proven_ns = 1 * kMs, std::uint64_t off_ns = 3 * kMs) {
  const std::uint64_t cpu_ns = 1'000 + 10 * kMs - off_ns;
  TraceBuilder builder;
  builder.spawn(10 * kMs, 42);
  builder.park(50 * kMs, 3, 7, 1'000);
  builder.unpark(100 * kMs, 3, TraceBuilder::kNoWait, 7, 1'000);
  builder.poll(100 * kMs, 110 * kMs, 3, 42);
  builder.park(110 * kMs, 3, 7, cpu_ns);
  builder.unpark(150 * kMs, 3, TraceBuilder::kNoWait, 7, cpu_ns);
  add_span(builder, 100 * kMs, 110 * kMs, 10 * kMs);
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
  EXPECT_EQ(report.cut_ns, 4 * kMs + 1) << "what isn't shown, to the nanosecond";
  EXPECT_EQ(report.estimated_ns + report.cut_ns, 7 * kMs);
  EXPECT_EQ(report.tree.total(), report.proven_ns + report.estimated_ns);
  EXPECT_TRUE(report.heading.is_uncertain);
  EXPECT_TRUE(has(notes(report), "of the estimates 4.00 ms is left out, of each the same part: the "
                                 "span's own account has room for 3.00 ms off the CPU at most\n"))
      << notes(report);
  EXPECT_TRUE(has(flame_text(report.tree, report.heading, 5), "4.00 ms in 3 waits, uncertain\n"))
      << flame_text(report.tree, report.heading, 5);
  EXPECT_TRUE(has(off_cpu_json(trace, report, OffCpuBy::kReason),
                  "\"room_ns\": 3000000, \"cut_ns\": 4000001"));
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

// By the rest of the filter, not by the span alone.
TEST(WaitTimes, WhatIsLeftOutIsOfTheWaitsThatTheFilterTakes) {
  const Trace trace = span_on_a_cpu().load();
  const auto report_of = [&](const OffCpuReportOptions& options) {
    return off_cpu_report(trace, options, nullptr);
  };
  const auto expect_whole = [&](const OffCpuReport& report, std::uint64_t estimated_ns) {
    EXPECT_EQ(report.estimated_ns, estimated_ns);
    EXPECT_EQ(report.cut_ns, 0U);
    EXPECT_FALSE(report.heading.is_uncertain);
    EXPECT_FALSE(has(notes(report), "left out")) << notes(report);
  };
  expect_whole(report_of({.filter = {.from_ns = 109 * kMs, .to_ns = 110 * kMs, .span = 17}}), kMs);
  expect_whole(report_of({.filter = {.from_ns = 120 * kMs, .to_ns = 130 * kMs, .span = 17}}), 0);
  expect_whole(report_of({.filter = {.thread = "nobody", .span = 17}}), 0);
  const OffCpuReport locks = report_of({.filter = {.span = 17}, .cause = "lock"});
  EXPECT_EQ(locks.cut_ns, 1'333'334U);
  EXPECT_TRUE(locks.heading.is_uncertain);
  EXPECT_TRUE(has(notes(locks), "of the estimates 1.33 ms is left out")) << notes(locks);
  const auto heading_of_locks = [&](const SampleFilter& filter) {
    return flame_view(trace, {.of = FlameOf::kLocks, .filter = filter}, nullptr).heading;
  };
  EXPECT_TRUE(heading_of_locks({.span = 17}).is_uncertain);
  EXPECT_FALSE(heading_of_locks({.thread = "nobody", .span = 17}).is_uncertain);
}

TEST(WaitTimes, OfAWaitWhoseWholeEstimateIsLeftOutTheCutIsTold) {
  const Trace trace = span_on_a_cpu(6 * kMs).load();
  const OffCpuReport locks =
      off_cpu_report(trace, {.filter = {.span = 17}, .cause = "lock"}, nullptr);
  EXPECT_EQ(locks.tree.count(), 0U);
  EXPECT_EQ(locks.cut_ns, 2 * kMs);
  EXPECT_TRUE(locks.heading.is_uncertain);
  EXPECT_FALSE(has(notes(locks), "no wait is taken")) << notes(locks);
}

// Span 18 is inside span 17, and goes on for 90 ms when that has ended.
TEST(WaitTimes, WaitsOfASpanInsideThatOutlivedItUseUpNoneOfItsRoom) {
  TraceBuilder builder = span_on_a_cpu();
  builder.poll(155 * kMs, 200 * kMs, 3, 42);
  format::Encoder& out = builder.encoder();
  out.schema(152, "SpanEnter:inside", true,
             {{"worker_id", FieldType::kVarint},
              {"span_id", FieldType::kVarint},
              {"parent_span_id", FieldType::kVarint, true}});
  out.schema(153, "SpanExit:inside", true,
             {{"worker_id", FieldType::kVarint}, {"span_id", FieldType::kVarint}});
  out.begin(152, 105 * kMs);
  out.varint(3);
  out.varint(18);
  out.present();
  out.varint(17);
  out.begin(153, 200 * kMs);
  out.varint(3);
  out.varint(18);
  builder.off_cpu({.at_ns = 160 * kMs,
                   .proven_ns = 35 * kMs,
                   .share_ns = 5 * kMs,
                   .cause = "disk",
                   .task = 42,
                   .span = 18});
  const Trace trace = builder.load();
  EXPECT_EQ(groups(trace, {.filter = {.span = 17}}),
            "disk 35000000+5000000 1\nsocket 1000000+1333333 1\npipe 0+1000000 1\nlock 0+666666 "
            "1\n");
  const OffCpuReport begin =
      off_cpu_report(trace, {.filter = {.to_ns = 105 * kMs, .span = 17}}, nullptr);
  EXPECT_EQ(begin.room_ns, 3 * kMs);
  EXPECT_EQ(begin.estimated_ns, 1'333'333U);
}

// Span 17 of task 42, which is suspended from 101 to 149 ms. Meanwhile its worker polls task 44,
// which works for task 42 (task_scope): its wait of 18 ms tells task 42 and span 17.
TEST(WaitTimes, AWaitForATaskInAnotherOnesPollIsInNoAccountOfIt) {
  for (const std::uint64_t proven_ns : {std::uint64_t{0}, 1 * kMs, 10 * kMs}) {
    TraceBuilder builder;
    builder.spawn(10 * kMs, 42);
    builder.spawn(10 * kMs, 44);
    builder.park(50 * kMs, 3, 7, 1'000);
    builder.unpark(100 * kMs, 3, TraceBuilder::kNoWait, 7, 1'000);
    builder.poll(100 * kMs, 101 * kMs, 3, 42);
    builder.poll(105 * kMs, 130 * kMs, 3, 44);
    builder.wake(149 * kMs, 42);
    builder.poll(149 * kMs, 150 * kMs, 3, 42);
    builder.park(150 * kMs, 3, 7, 1'000 + 50 * kMs - proven_ns);
    add_span(builder, 100 * kMs, 150 * kMs, 2 * kMs);
    builder.off_cpu({.at_ns = 110 * kMs,
                     .proven_ns = proven_ns,
                     .share_ns = 8 * kMs,
                     .cause = "socket",
                     .task = 42,
                     .span = 17});
    const OffCpuReport report = off_cpu_report(builder.load(), {.filter = {.span = 17}}, nullptr);
    EXPECT_EQ(report.proven_ns, proven_ns);
    EXPECT_EQ(report.estimated_ns, 8 * kMs) << proven_ns;
    EXPECT_EQ(report.cut_ns, 0U);
    EXPECT_FALSE(report.heading.is_uncertain);
  }
}

TEST(WaitTimes, NorIsOneOnAnotherWorkerWhileTheTaskItselfIsPolled) {
  TraceBuilder builder = span_on_a_cpu();
  builder.park(50 * kMs, 4, 8, 1'000);
  builder.unpark(99 * kMs, 4, TraceBuilder::kNoWait, 8, 1'000);
  builder.poll(99 * kMs, 111 * kMs, 4, 44);
  builder.park(112 * kMs, 4, 8, 2'000);
  builder.off_cpu({.at_ns = 102 * kMs,
                   .proven_ns = 1 * kMs,
                   .share_ns = 2 * kMs,
                   .cause = "disk",
                   .tid = 8,
                   .task = 42,
                   .span = 17});
  EXPECT_EQ(groups(builder.load(), {.filter = {.span = 17}}),
            "disk 1000000+2000000 1\nsocket 1000000+1333333 1\npipe 0+1000000 1\nlock 0+666666 "
            "1\n");
}

TEST(WaitTimes, AButterflyOfMoreThanItsSpanTookIsMarkedToo) {
  TraceBuilder builder = span_on_a_cpu();
  builder.off_cpu({.at_ns = 101 * kMs,
                   .proven_ns = 8 * kMs,
                   .cause = "disk",
                   .frames = {0x2, 0x1},
                   .tid = 8,
                   .task = 43,
                   .span = 17});
  const Trace trace = builder.load();
  const FlameQuery query{.of = FlameOf::kTime,
                         .filter = {.from_ns = 101 * kMs, .to_ns = 102 * kMs, .span = 17}};
  const FlameQuery whole{.of = FlameOf::kOffCpu, .filter = {.span = 17}};
  for (const FlameQuery& asked : {query, whole}) {
    const FlameView view = flame_view(trace, asked, nullptr);
    const FlameButterfly found = flame_butterfly(trace, asked, nullptr, "0x2", "");
    EXPECT_EQ(found.heading.whole, view.tree.total());
    ASSERT_FALSE(found.heading.notes.empty());
    EXPECT_EQ(found.heading.notes.front(), view.heading.notes.front());
    EXPECT_TRUE(has(found.heading.notes.front(), "the sum is longer"));
    EXPECT_TRUE(found.heading.is_uncertain);
  }
}

// Of a trace in which the worker was off the CPU for 5 ms, not 3: what is asked is what was given.
TEST(WaitTimes, TheAccountIsAskedOfWhoeverHasIt) {
  const Trace trace = span_on_a_cpu().load();
  const Trace other = span_on_a_cpu(1 * kMs, 5 * kMs).load();
  const SpanTimes times(other);
  const auto room_ns = [&](const SampleFilter& filter) {
    return off_cpu_report(trace, {.filter = filter, .span_times = &times}, nullptr).room_ns;
  };
  EXPECT_EQ(room_ns({.span = 17}), 5 * kMs);
  for (const FlameOf of : {FlameOf::kOffCpu, FlameOf::kTime, FlameOf::kLocks}) {
    const FlameQuery query{.of = of, .filter = {.span = 17}, .span_times = &times};
    std::string text;
    for (const std::string& note : flame_view(trace, query, nullptr).heading.notes) text += note;
    EXPECT_TRUE(has(text, "has room for 5.00 ms off the CPU")) << text;
  }
}

TEST(WaitTimes, WhereNothingIsEstimatedOfASpanNoAccountIsMade) {
  TraceBuilder builder;
  builder.spawn(10 * kMs, 42);
  builder.poll(100 * kMs, 110 * kMs, 3, 42);
  add_span(builder, 100 * kMs, 110 * kMs, 10 * kMs);
  builder.off_cpu({.at_ns = 101 * kMs, .proven_ns = kMs, .task = 42, .span = 17});
  const OffCpuReport report = off_cpu_report(builder.load(), {.filter = {.span = 17}}, nullptr);
  EXPECT_EQ(report.proven_ns, kMs);
  EXPECT_EQ(report.room_ns, std::nullopt);
}

}  // namespace
}  // namespace dial9::analysis
