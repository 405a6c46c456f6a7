// The report of waits off the CPU, over traces whose times are known.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/off_cpu.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/testing/cpu_trace.h"
#include "analysis/testing/off_cpu_text.h"
#include "analysis/testing/symbols.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using format::FieldType;
using testing::add_symbol;
using testing::groups;
using testing::has;
using testing::notes;
using testing::OffCpuWaitEvent;
using testing::TraceBuilder;

constexpr std::uint64_t kMs = 1'000'000;

TEST(OffCpuReport, RunningRunnableAndBlockedSumToWhatPassed) {
  TraceBuilder builder;
  builder.thread_times({.at_ns = 1'000 * kMs,
                        .running_ns = 300 * kMs,
                        .runnable_ns = 7,
                        .blocked_ns = 700 * kMs - 7,
                        .seen_ns = 500 * kMs,
                        .share_ns = 100 * kMs});
  builder.thread_times(
      {.at_ns = 2'000 * kMs, .running_ns = 1'000 * kMs, .runnable_ns = 0, .blocked_ns = 0});
  builder.thread_times({.at_ns = 1'000 * kMs, .blocked_ns = 900 * kMs, .tid = 8, .thread = "db"});
  const OffCpuReport report = off_cpu_report(builder.load(), {}, nullptr);
  ASSERT_EQ(report.threads.size(), 2U);
  EXPECT_EQ(report.threads[0].tid, 8U) << "most blocked first";
  const OffCpuThread& io = report.threads[1];
  EXPECT_EQ(io.elapsed_ns, 2'000 * kMs);
  EXPECT_EQ(io.running_ns, 1'300 * kMs);
  EXPECT_EQ(io.runnable_ns, 7U);
  EXPECT_EQ(io.blocked_ns, 700 * kMs - 7);
  EXPECT_EQ(io.running_ns + io.runnable_ns + io.blocked_ns, io.elapsed_ns);
  EXPECT_EQ(io.unseen_ns, 100 * kMs - 7);
  EXPECT_EQ(report.unseen_ns, 1'000 * kMs - 7);
  EXPECT_TRUE(has(notes(report), "in waits that nobody saw")) << notes(report);
}

TEST(OffCpuReport, KeepsProvenAndEstimatedTimeApartAndThePercentIsOfBoth) {
  TraceBuilder builder;
  builder.off_cpu({.at_ns = 10 * kMs,
                   .proven_ns = 6 * kMs,
                   .share_ns = 1 * kMs,
                   .cause = "lock",
                   .frames = {0x11, 0x21}});
  builder.off_cpu({.at_ns = 40 * kMs, .proven_ns = 2 * kMs, .frames = {0x12, 0x21}});
  builder.off_cpu({.at_ns = 60 * kMs, .share_ns = 1 * kMs, .cause = "lock"});
  const Trace trace = builder.load();
  EXPECT_EQ(groups(trace), "lock 6000000+2000000 2\n? 2000000+0 1\n");
  const OffCpuReport report = off_cpu_report(trace, {}, nullptr);
  EXPECT_EQ(report.tree.total(), 10 * kMs);
  EXPECT_EQ(report.proven_ns, 8 * kMs);
  EXPECT_EQ(report.estimated_ns, 2 * kMs);
  EXPECT_EQ(report.tree.count(), 3U);
  EXPECT_EQ(flame_folded(report.tree),
            "0x21;0x11 7000000\n0x21;0x12 2000000\n[no stack] 1000000\n");
  const std::string text = off_cpu_text(trace, report, OffCpuBy::kReason, 10);
  EXPECT_TRUE(has(text, "80.0 %    6.00 ms    2.00 ms          2  lock\n")) << text;
  EXPECT_TRUE(has(text, "20.0 %    2.00 ms       0 ns          1  unknown\n")) << text;
}

TEST(OffCpuReport, PiecesOfAWaitAreOneWait) {
  TraceBuilder builder;
  const auto piece = [&](std::uint64_t at_ms, bool is_continued, std::uint32_t tid = 7) {
    builder.off_cpu({.at_ns = at_ms * kMs,
                     .proven_ns = 10 * kMs,
                     .cause = "disk",
                     .tid = tid,
                     .is_continued = is_continued});
  };
  piece(10, false);
  piece(15, false, 8);
  piece(20, true);
  piece(30, true);
  piece(50, false);
  const Trace trace = builder.load();
  EXPECT_EQ(groups(trace), "disk 50000000+0 3\n");
  EXPECT_EQ(groups(trace, {.filter = {.from_ns = 25 * kMs, .to_ns = 40 * kMs}}),
            "disk 15000000+0 1\n")
      << "cut to the range; of the wait that began before it there is one";
}

TEST(OffCpuReport, LeavesParkedWorkersOutUnlessAskedForAndSaysSo) {
  TraceBuilder builder;
  builder.off_cpu({.at_ns = 1, .proven_ns = 30 * kMs, .cause = "events", .is_parked = true});
  builder.off_cpu({.at_ns = 50 * kMs, .proven_ns = 10 * kMs, .cause = "socket"});
  const Trace trace = builder.load();
  const OffCpuReport report = off_cpu_report(trace, {}, nullptr);
  EXPECT_EQ(report.tree.total(), 10 * kMs);
  EXPECT_EQ(report.parked_ns, 30 * kMs);
  EXPECT_TRUE(has(notes(report), "30.0 ms of workers that wait for work")) << notes(report);
  EXPECT_TRUE(has(notes(report), "'Idle workers' on the page")) << "the cure of each face";
  EXPECT_EQ(groups(trace, {.has_parked = true}), "events 30000000+0 1\nsocket 10000000+0 1\n");
}

TEST(OffCpuReport, WaitsForACpuAreNotBlockedTime) {
  TraceBuilder builder;
  builder.off_cpu({.at_ns = 1, .proven_ns = 30 * kMs, .reason = 1});
  const OffCpuReport report = off_cpu_report(builder.load(), {}, nullptr);
  EXPECT_EQ(report.tree.total(), 0U);
  EXPECT_TRUE(has(notes(report), "1 wait for a CPU (")) << notes(report);
}

// Blocked for 20 ms, woken 10 ms before it ran; preempted for 5 ms; and 4 ms seen by looks.
Trace switched(std::uint64_t throttled_ns) {
  TraceBuilder builder;
  builder.off_cpu({.at_ns = 100 * kMs,
                   .proven_ns = 30 * kMs,
                   .cause = "socket",
                   .is_exact = true,
                   .runnable_ns = 10 * kMs});
  builder.off_cpu({.at_ns = 200 * kMs, .proven_ns = 5 * kMs, .reason = 1, .is_exact = true});
  builder.off_cpu({.at_ns = 300 * kMs, .proven_ns = 4 * kMs, .cause = "lock", .tid = 8});
  builder.thread_times({.at_ns = 1'000 * kMs,
                        .running_ns = 965 * kMs,
                        .runnable_ns = 15 * kMs,
                        .blocked_ns = 20 * kMs,
                        .seen_ns = 20 * kMs,
                        .is_exact = true});
  builder.thread_times({.at_ns = 1'000 * kMs, .blocked_ns = 1'000 * kMs, .tid = 8});
  if (throttled_ns != 0) {
    builder.platform_stall(100 * kMs, 180 * kMs, "cpu_throttled", throttled_ns);
  }
  return builder.load();
}

TEST(OffCpuReport, AnExactWaitIsBlockedUntilItWasRunnable) {
  const Trace trace = switched(0);
  EXPECT_EQ(groups(trace), "socket 20000000+0 1\nlock 4000000+0 1\n");
  const OffCpuReport report = off_cpu_report(trace, {}, nullptr);
  EXPECT_EQ(report.exact_ns, 20 * kMs);
  EXPECT_EQ(report.runnable_ns, 15 * kMs);
  EXPECT_EQ(report.throttled_ns, 0U);
  EXPECT_EQ(report.threads[1].exact_ns, 1'000 * kMs);
  EXPECT_EQ(report.threads[0].exact_ns, 0U);
  const std::string text = notes(report);
  EXPECT_TRUE(has(text, "24.0 ms proven, 0 ns estimated (around the proven part); 20.0 ms from "))
      << text;
  EXPECT_TRUE(has(text, "2 waits for a CPU (15.0 ms) left out")) << text;
  EXPECT_TRUE(has(text, "times of threads: 50.0 % by their switches")) << text;
}

TEST(OffCpuReport, WaitsForACpuAreShownWhereAskedForAndThoseThatALimitExplainsAreThrottled) {
  EXPECT_EQ(groups(switched(0), {.has_runnable = true}),
            "socket 20000000+0 1\ncpu 15000000+0 2\nlock 4000000+0 1\n");
  EXPECT_EQ(groups(switched(4 * kMs), {.has_runnable = true}),
            "socket 20000000+0 1\ncpu 15000000+0 2\nlock 4000000+0 1\n")
      << "less than half of the wait";
  const Trace trace = switched(6 * kMs);
  EXPECT_EQ(groups(trace, {.has_runnable = true}),
            "socket 20000000+0 1\nthrottled 10000000+0 1\ncpu 5000000+0 1\nlock 4000000+0 1\n");
  EXPECT_EQ(
      groups(trace, {.filter = {.from_ns = 125 * kMs, .to_ns = 300 * kMs}, .has_runnable = true}),
      "cpu 5000000+0 1\nthrottled 5000000+0 1\n")
      << "cut to the range";
  const OffCpuReport report = off_cpu_report(trace, {}, nullptr);
  EXPECT_EQ(report.throttled_ns, 10 * kMs);
  EXPECT_EQ(report.threads[1].throttled_ns, 6 * kMs) << "at most so much of its 15 ms runnable";
  const std::string text = notes(report);
  EXPECT_TRUE(has(text, "10.0 ms of waits for a CPU are throttled")) << text;
  EXPECT_TRUE(has(text, "of 15.0 ms runnable up to 6.00 ms are the cgroup's CPU limit")) << text;
}

TEST(OffCpuReport, AWaitThatNoLookSawIsAParkedWorkersWhereTheWorkerSaysSo) {
  TraceBuilder builder;
  builder.park(100, 3, 7);
  builder.unpark(200, 3, TraceBuilder::kNoWait, 7);
  builder.poll(250, 600, 3, 42);
  builder.park(900, 3, 7);
  builder.off_cpu({.at_ns = 110, .proven_ns = 80, .is_exact = true});
  builder.off_cpu({.at_ns = 300, .proven_ns = 70, .is_exact = true});
  const Trace trace = builder.load();
  EXPECT_EQ(groups(trace), "? 70+0 1\n");
  EXPECT_EQ(off_cpu_report(trace, {}, nullptr).parked_ns, 80U);
}

TEST(OffCpuReport, AStackOfASwitchIsNamedByTheInstructionAndParksAreNoWaits) {
  TraceBuilder builder;
  builder.park(100, 3, 7);
  builder.unpark(200, 3, TraceBuilder::kNoWait, 7);
  builder.park(900, 3, 7);
  add_symbol(builder.encoder(), {0x1000, 0x10, "before"});
  add_symbol(builder.encoder(), {0x1010, 0x10, "here"});
  builder.off_cpu({.at_ns = 110, .proven_ns = 80, .frames = {0x1010}, .is_exact = true});
  builder.off_cpu({.at_ns = 300, .proven_ns = 70, .frames = {0x1010}, .is_exact = true});
  const OffCpuReport report = off_cpu_report(builder.load(), {}, nullptr);
  EXPECT_EQ(flame_folded(report.tree), "here 70\n");
  EXPECT_EQ(report.parked_ns, 80U);
}

TEST(OffCpuReport, OfASlowWaitForAConnectionTheLastReadingIsToldAsTheKernelDid) {
  TraceBuilder builder;
  builder.off_cpu({.at_ns = 100 * kMs, .proven_ns = 1'200 * kMs, .cause = "socket"});
  builder.socket_wait({.at_ns = 200 * kMs,
                       .waited_ns = 100 * kMs,
                       .rtt_ns = 300'000,
                       .since_received_ns = 150 * kMs});
  builder.socket_wait({.at_ns = 900 * kMs,
                       .waited_ns = 800 * kMs,
                       .rtt_ns = 300'000,
                       .since_received_ns = 850 * kMs});
  builder.socket_wait({.at_ns = 500 * kMs,
                       .waited_ns = 60 * kMs,
                       .call = "send",
                       .peer = {},
                       .tid = 8,
                       .retransmits = 2,
                       .total_retransmits = 5,
                       .unsent_bytes = 2'048});
  const Trace trace = builder.load();
  const OffCpuReport report = off_cpu_report(trace, {}, nullptr);
  ASSERT_EQ(report.sockets.size(), 2U);
  const std::string text = off_cpu_text(trace, report, OffCpuBy::kReason, 10);
  EXPECT_TRUE(has(text,
                  "     800 ms  in recv(fd 12, peer 10.0.0.7:6379), thread 7: the peer had sent "
                  "nothing for 850 ms; rtt 300 µs; no retransmits\n"))
      << text;
  EXPECT_TRUE(has(text,
                  "    60.0 ms  in send(fd 12), thread 8: the peer had never sent anything; 2.00 "
                  "KiB written that the peer hasn't acknowledged; 2 retransmission time-outs in a "
                  "row\n"))
      << text;
  const std::string json = off_cpu_json(trace, report, OffCpuBy::kReason);
  EXPECT_TRUE(has(json, "\"since_received_ns\": 850000000")) << json;
  EXPECT_TRUE(has(json, "\"rtt_ns\": null")) << "the other's";
  EXPECT_EQ(off_cpu_report(trace, {.filter = {.from_ns = 600 * kMs}}, nullptr).sockets.size(), 1U);
}

TEST(OffCpuReport, AReadingOfAConnectionTellsNoLabelAndIsCountedUnderOne) {
  TraceBuilder builder;
  builder.off_cpu({.at_ns = 100 * kMs, .proven_ns = 50 * kMs, .cause = "socket", .label = "acme"});
  builder.socket_wait({.at_ns = 140 * kMs, .waited_ns = 40 * kMs});
  const OffCpuReport report =
      off_cpu_report(builder.load(), {.filter = {.label = "tenant=acme"}}, nullptr);
  EXPECT_TRUE(report.sockets.empty());
  EXPECT_TRUE(has(notes(report), "1 connection reading doesn't say whose")) << notes(report);
}

Trace two_requests() {
  TraceBuilder builder;
  builder.spawn(1, 5, "app.cc:3");
  builder.off_cpu({.at_ns = 10,
                   .proven_ns = 300,
                   .cause = "socket",
                   .call = "recv",
                   .task = 5,
                   .span = 17,
                   .label = "acme"});
  builder.off_cpu({.at_ns = 400, .proven_ns = 200, .cause = "lock", .tid = 9, .thread = "db"});
  return builder.load();
}

TEST(OffCpuReport, SumsByReasonCallThreadTaskSpanAndLabel) {
  const Trace trace = two_requests();
  EXPECT_EQ(groups(trace), "socket 300+0 1\nlock 200+0 1\n");
  EXPECT_EQ(groups(trace, {.by = OffCpuBy::kCall}), "recv 300+0 1\n? 200+0 1\n");
  EXPECT_EQ(groups(trace, {.by = OffCpuBy::kThread}), "7 io 300+0 1\n9 db 200+0 1\n");
  EXPECT_EQ(groups(trace, {.by = OffCpuBy::kTask}), "5 app.cc:3 300+0 1\n? 200+0 1\n");
  EXPECT_EQ(groups(trace, {.by = OffCpuBy::kSpan}), "0x11 300+0 1\n? 200+0 1\n");
  EXPECT_EQ(groups(trace, {.by = OffCpuBy::kLabel}), "tenant=acme 300+0 1\n? 200+0 1\n");
}

TEST(OffCpuReport, TakesOnlyWhatTheFilterSays) {
  const Trace trace = two_requests();
  EXPECT_EQ(groups(trace, {.filter = {.thread = "db"}}), "lock 200+0 1\n");
  EXPECT_EQ(groups(trace, {.filter = {.label = "tenant=acme"}}), "socket 300+0 1\n");
  EXPECT_EQ(groups(trace, {.filter = {.label = "tenant=bolt"}}), "");
  EXPECT_EQ(groups(trace, {.filter = {.span = 17}}), "socket 300+0 1\n");
  const OffCpuReport of_task = off_cpu_report(trace, {.filter = {.task = 5}}, nullptr);
  EXPECT_EQ(of_task.tree.total(), 300U);
  EXPECT_FALSE(of_task.has_threads);
  EXPECT_TRUE(has(notes(of_task), "1 wait doesn't say whose")) << notes(of_task);
  EXPECT_TRUE(has(notes(off_cpu_report(trace, {.filter = {.thread = "x"}}, nullptr)),
                  "no wait is taken by the filter"));
}

TEST(OffCpuReport, AWaitInAPollIsThatTasksWhereTheWriterDoesNotSay) {
  TraceBuilder builder;
  builder.park(10, 3, 7);
  builder.unpark(20, 3, TraceBuilder::kNoWait, 7);
  builder.poll(30, 600, 3, 42, "app.cc:9");
  builder.park(900, 3, 7);
  builder.off_cpu({.at_ns = 100, .proven_ns = 200, .cause = "disk"});
  builder.off_cpu({.at_ns = 100, .proven_ns = 50, .cause = "disk", .tid = 8});
  const Trace trace = builder.load();
  EXPECT_EQ(groups(trace, {.by = OffCpuBy::kTask}), "42 app.cc:9 200+0 1\n? 50+0 1\n");
  EXPECT_EQ(groups(trace, {.filter = {.task = 42}}), "disk 200+0 1\n");
  EXPECT_EQ(groups(trace, {.filter = {.worker = 3}}), "disk 200+0 1\n");
}

TEST(OffCpuReport, WaitsThatAreLongerThanTheirThreadWasBlockedAreSaidToBe) {
  for (const std::uint64_t blocked_ms : {60U, 80U}) {
    TraceBuilder builder;
    builder.off_cpu({.at_ns = 10 * kMs, .proven_ns = 50 * kMs, .is_exact = true});
    builder.off_cpu({.at_ns = 80 * kMs, .proven_ns = 50 * kMs, .is_exact = true});  // 20 in it
    builder.off_cpu({.at_ns = 70 * kMs, .proven_ns = 5 * kMs, .reason = 1, .is_exact = true});
    builder.thread_times({.at_ns = 100 * kMs,
                          .running_ns = 90 * kMs - blocked_ms * kMs,
                          .runnable_ns = 10 * kMs,
                          .blocked_ns = blocked_ms * kMs,
                          .is_exact = true});
    const OffCpuReport report = off_cpu_report(builder.load(), {}, nullptr);
    EXPECT_EQ(report.excess_ns, blocked_ms == 60 ? 10 * kMs : 0U);
    EXPECT_EQ(has(notes(report), "at least 10.0 ms was spent woken, waiting for a CPU"),
              blocked_ms == 60)
        << notes(report);
  }
}

TEST(OffCpuReport, WaitsBetweenAThreadsRecordsAreNotHeldAgainstTheTimeInThem) {
  for (const std::uint64_t begin_ms : {190U, 200U}) {
    TraceBuilder builder;
    builder.off_cpu({.at_ns = 20 * kMs, .proven_ns = 60 * kMs, .is_exact = true});
    builder.off_cpu({.at_ns = 120 * kMs, .proven_ns = 50 * kMs, .is_exact = true});
    builder.off_cpu({.at_ns = begin_ms * kMs, .proven_ns = 70 * kMs, .is_exact = true});
    for (const std::uint64_t at_ms : {100U, 300U}) {  // nothing of what is between
      builder.thread_times({.at_ns = at_ms * kMs,
                            .running_ns = 30 * kMs,
                            .runnable_ns = 10 * kMs,
                            .blocked_ns = 60 * kMs,
                            .is_exact = true});
    }
    const std::uint64_t excess_ns = begin_ms == 200 ? 10 * kMs : 0;
    EXPECT_EQ(off_cpu_report(builder.load(), {}, nullptr).excess_ns, excess_ns);
  }
}

// A wait of 20 ms with 50 around it, in a span of 60 ms and in one that is open.
Trace wait_of_a_span(bool is_open) {
  TraceBuilder builder;
  format::Encoder& out = builder.encoder();
  out.schema(100, "SpanEnter:a.cc:1:0", true,
             {{"worker_id", format::FieldType::kVarint},
              {"span_id", format::FieldType::kVarint},
              {"span_name", format::FieldType::kPooledString}});
  out.begin(100, 100 * kMs);
  out.varint(0);
  out.varint(17);
  out.pooled_string("request");
  if (!is_open) {
    out.schema(101, "SpanExit:a.cc:1:0", true,
               {{"worker_id", format::FieldType::kVarint},
                {"span_id", format::FieldType::kVarint},
                {"active_ns", format::FieldType::kVarint},
                {"idle_ns", format::FieldType::kVarint},
                {"completed", format::FieldType::kBool}});
    out.begin(101, 160 * kMs);
    out.varint(0);
    out.varint(17);
    out.varint(0);
    out.varint(0);
    out.boolean(true);
  }
  builder.off_cpu({.at_ns = 110 * kMs,
                   .proven_ns = 20 * kMs,
                   .share_ns = 50 * kMs,
                   .cause = "socket",
                   .span = 17});
  return builder.load();
}

TEST(OffCpuReport, WhatIsEstimatedAroundAWaitIsNoMoreThanItsSpanOrTheRangeHasRoomFor) {
  const auto estimated_ms = [](bool is_open, const SampleFilter& filter) {
    const OffCpuReport report =
        off_cpu_report(wait_of_a_span(is_open), {.filter = filter}, nullptr);
    EXPECT_EQ(report.tree.total(), report.proven_ns + report.estimated_ns);
    return report.estimated_ns / kMs;
  };
  EXPECT_EQ(estimated_ms(false, {}), 50U);
  EXPECT_EQ(estimated_ms(false, {.span = 17}), 40U) << "10 before it and 30 after it";
  EXPECT_EQ(estimated_ms(true, {.span = 17}), 50U) << "nobody knows when it ended";
  EXPECT_EQ(estimated_ms(false, {.from_ns = 105 * kMs, .span = 17}), 35U);
  EXPECT_EQ(estimated_ms(false, {.to_ns = 140 * kMs, .span = 17}), 20U);
  EXPECT_EQ(estimated_ms(false, {.from_ns = 105 * kMs, .to_ns = 120 * kMs}), 5U);
}

TEST(OffCpuReport, OfThreadsOnlyRecordsInTheRangeCount) {
  TraceBuilder builder;
  for (const std::uint64_t at_ms : {1'000U, 2'000U, 3'000U}) {
    builder.thread_times({.at_ns = at_ms * kMs,
                          .running_ns = at_ms * kMs / 10,
                          .blocked_ns = 1'000 * kMs - at_ms * kMs / 10});
  }
  const OffCpuReport report = off_cpu_report(
      builder.load(), {.filter = {.from_ns = 900 * kMs, .to_ns = 2'900 * kMs}}, nullptr);
  ASSERT_EQ(report.threads.size(), 1U);
  EXPECT_EQ(report.threads[0].elapsed_ns, 1'000 * kMs);
  EXPECT_EQ(report.threads[0].running_ns, 200 * kMs);
}

TEST(OffCpuReport, ShowsStacksWithoutTheirOuterFramesAndNamesReturnAddresses) {
  TraceBuilder builder;
  add_symbol(builder.encoder(), {0x1000, 0x10, "recv"});
  add_symbol(builder.encoder(), {0x1010, 0x10, "next"});
  builder.off_cpu({.at_ns = 1, .proven_ns = 5, .frames = {0x1010}, .is_truncated = true});
  EXPECT_EQ(flame_folded(off_cpu_report(builder.load(), {}, nullptr).tree),
            "[outer frames missing];recv 5\n");
}

TEST(OffCpuReport, SaysWhatToDoWhereThereAreNoSamples) {
  TraceBuilder builder;
  builder.poll(10, 20, 0, 1);
  builder.metadata(1, "off_cpu.start_error", "no /proc");
  const std::string text = notes(off_cpu_report(builder.load(), {}, nullptr));
  EXPECT_TRUE(has(text, "DIAL9_SCHEDULE_PROFILE_ENABLED")) << text;
  EXPECT_TRUE(has(text, "the recorder says: no /proc")) << text;
}

// As the Rust dial9 records them.
TEST(OffCpuReport, TellsOfSamplesAtSwitchesThatHaveNoLength) {
  testing::CpuTrace trace;
  trace.add({.at_ns = 10, .frames = {0x1}});
  trace.add({.at_ns = 20, .frames = {0x1}, .is_switch = true});
  trace.add({.at_ns = 30, .frames = {0x2}, .is_switch = true});
  const OffCpuReport report = off_cpu_report(trace.builder.load(), {}, nullptr);
  EXPECT_TRUE(report.heading.is_unknown);
  const std::string text = notes(report);
  EXPECT_TRUE(has(text, "dial9 for C++ records them with add_off_cpu_samples()")) << text;
  EXPECT_TRUE(has(text, "2 samples of context switches left out")) << text;
  EXPECT_TRUE(has(text, "not for how long")) << text;
}

TEST(OffCpuReport, NamesTheCureOfTheWriterThatRecordedTheTrace) {
  for (const bool is_ours : {false, true}) {
    TraceBuilder builder;
    if (is_ours) builder.metadata(1, "dial9.writer", "dial9-cpp");
    builder.poll(10, 20, 0, 1);
    const std::string text = notes(off_cpu_report(builder.load(), {}, nullptr));
    EXPECT_EQ(has(text, ": record with add_off_cpu_samples()"), is_ours) << text;
    EXPECT_FALSE(has(text, "context switches")) << text;
  }
}

TEST(OffCpuReport, NumbersBeyondAllBoundsStopAtTheLargest) {
  TraceBuilder builder;
  for (int i = 0; i < 2; ++i) {
    builder.off_cpu({.at_ns = ~std::uint64_t{0} - 5,
                     .proven_ns = ~std::uint64_t{0},
                     .share_ns = ~std::uint64_t{0},
                     .cause = "lock"});
  }
  const OffCpuReport report = off_cpu_report(builder.load(), {}, nullptr);
  EXPECT_EQ(report.estimated_ns, ~std::uint64_t{0});
  EXPECT_EQ(report.proven_ns, 10U) << "the clock ends there";
}

}  // namespace
}  // namespace dial9::analysis
