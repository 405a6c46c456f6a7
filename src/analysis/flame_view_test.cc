// One question for flame trees of all kinds: sums agree with the analyses they come from, whatever
// the view; and the moments behind a frame.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/flame_view.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/cpu_flame.h"
#include "analysis/off_cpu.h"
#include "analysis/testing/cpu_trace.h"
#include "analysis/testing/heap_trace.h"

namespace dial9::analysis {
namespace {

using testing::CpuTrace;
using testing::HeapTrace;
using testing::TraceBuilder;

constexpr std::uint64_t kMs = 1'000'000;

// Span 11 of task 5 on thread 7: 20 ms on the CPU, then 30 in recv and 5 in a lock; thread 8 is in
// a lock for 40, and parked for 100.
Trace request() {
  CpuTrace made;
  made.books(1'000 * kMs, 100, 20 * kMs, 2, 0);
  made.add({.at_ns = 110 * kMs, .frames = {0x3, 0x2, 0x1}, .span = 11});
  made.add({.at_ns = 120 * kMs, .frames = {0x4, 0x2, 0x1}, .span = 11});
  made.builder.off_cpu({.at_ns = 130 * kMs,
                        .proven_ns = 29 * kMs,
                        .share_ns = kMs,
                        .cause = "socket",
                        .call = "recv",
                        .frames = {0x9, 0x2, 0x1},
                        .task = 5,
                        .span = 11,
                        .label = "acme"});
  made.builder.off_cpu({.at_ns = 170 * kMs,
                        .proven_ns = 5 * kMs,
                        .cause = "lock",
                        .call = "futex",
                        .frames = {0x8, 0x2, 0x1},
                        .task = 5,
                        .span = 11});
  made.builder.off_cpu({.at_ns = 300 * kMs,
                        .proven_ns = 40 * kMs,
                        .cause = "lock",
                        .frames = {0x8, 0x7},
                        .tid = 8,
                        .thread = "db"});
  made.builder.off_cpu({.at_ns = 400 * kMs,
                        .proven_ns = 100 * kMs,
                        .cause = "events",
                        .frames = {0xE},
                        .tid = 8,
                        .thread = "db",
                        .is_parked = true});
  return made.builder.load();
}

std::string folded(const Trace& trace, const FlameQuery& query) {
  return flame_folded(flame_view(trace, query, nullptr).tree);
}

std::string notes(const FlameHeading& heading) {
  std::string text;
  for (const std::string& note : heading.notes) text += note + "\n";
  return text;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(FlameView, ShowsARequestOnAndOffTheCpuWithReasonsOnTop) {
  const Trace trace = request();
  const FlameView view = flame_view(trace, {.of = FlameOf::kTime, .filter = {.span = 11}}, nullptr);
  EXPECT_EQ(flame_folded(view.tree),
            "[blocked: socket];0x1;0x2;0x9 30000000\n"
            "[on CPU];0x1;0x2;0x3 10000000\n"
            "[on CPU];0x1;0x2;0x4 10000000\n"
            "[blocked: lock];0x1;0x2;0x8 5000000\n");
  EXPECT_TRUE(has(notes(view.heading), "on the CPU: 20.0 ms in 2 samples\n"));
  EXPECT_TRUE(has(notes(view.heading), "off it: 35.0 ms in 2 waits\n")) << notes(view.heading);
  EXPECT_EQ(view.tree.count(), 4U);
}

TEST(FlameView, TellsWhatTheAnalysesTell) {
  const Trace trace = request();
  EXPECT_EQ(folded(trace, {.of = FlameOf::kCpu}), flame_folded(cpu_flame(trace, {}, nullptr).tree));
  EXPECT_EQ(folded(trace, {.of = FlameOf::kOffCpu, .top = FlameTop::kNone}),
            flame_folded(off_cpu_report(trace, {}, nullptr).tree));
  for (const bool has_parked : {false, true}) {
    const OffCpuReport report = off_cpu_report(trace, {.has_parked = has_parked}, nullptr);
    const FlameView view =
        flame_view(trace, {.of = FlameOf::kOffCpu, .has_parked = has_parked}, nullptr);
    EXPECT_EQ(view.tree.total(), report.tree.total());
    EXPECT_EQ(notes(view.heading), notes(report.heading));
  }
}

TEST(FlameView, NamesWaitsByReasonOrCallAndSaysWhatIsNotKnown) {
  TraceBuilder builder;
  builder.off_cpu({.at_ns = kMs, .proven_ns = 4, .cause = "page_fault", .frames = {0x1}});
  builder.off_cpu({.at_ns = 2 * kMs, .proven_ns = 3, .call = "recv", .frames = {0x1}});
  builder.off_cpu(
      {.at_ns = 3 * kMs, .proven_ns = 2, .cause = "events", .frames = {0x1}, .is_parked = true});
  const Trace trace = builder.load();
  EXPECT_EQ(folded(trace, {.of = FlameOf::kOffCpu, .has_parked = true}),
            "[blocked: page fault];0x1 4\n[blocked: not known in what];0x1 3\n"
            "[parked: waits for work];0x1 2\n");
  EXPECT_EQ(folded(trace, {.of = FlameOf::kOffCpu, .top = FlameTop::kCall}),
            "[blocked: page fault];0x1 4\n[recv];0x1 3\n");
}

TEST(FlameView, InTheOrderOfTimeEachThreadStandsByItselfAndTheReasonIsTheLeaf) {
  const Trace trace = request();
  const FlameView view =
      flame_view(trace, {.of = FlameOf::kTime, .order = FlameOrder::kTime}, nullptr);
  std::string text;
  for (const FlameRow& row : flame_rows(view.tree, 100)) {
    const FlameNode& node = view.tree.nodes()[row.node];
    text += std::string(node.depth, ' ') + std::string(view.tree.name(node.frame)) + " " +
            std::to_string(row.start / kMs) + "+" + std::to_string(node.total / kMs) + "\n";
  }
  EXPECT_EQ(text,
            " 0+95\n"
            " [thread 7 io] 0+55\n"
            "  0x1 0+55\n"
            "   0x2 0+55\n"
            "    0x3 0+10\n"
            "    0x4 10+10\n"
            "    0x9 20+30\n"
            "     [blocked: socket] 20+30\n"
            "    0x8 50+5\n"
            "     [blocked: lock] 50+5\n"
            " [thread 8 db] 55+40\n"
            "  0x7 55+40\n"
            "   0x8 55+40\n"
            "    [blocked: lock] 55+40\n");
}

TEST(FlameView, LeavesSamplesWithoutARateOutOfTimeAndSaysSo) {
  CpuTrace made;
  made.add({.at_ns = 10, .frames = {0x1}});
  made.builder.off_cpu({.at_ns = 20, .proven_ns = 7, .cause = "disk", .frames = {0x1}});
  const Trace trace = made.builder.load();
  const FlameView view = flame_view(trace, {.of = FlameOf::kTime}, nullptr);
  EXPECT_EQ(flame_folded(view.tree), "[blocked: disk];0x1 7\n");
  EXPECT_TRUE(view.heading.is_uncertain);
  EXPECT_TRUE(has(notes(view.heading), "1 CPU sample left out")) << notes(view.heading);
}

TEST(FlameView, AButterflyCountsEachStackOnceByTheOutermostPlaceOfTheFunction) {
  CpuTrace made;
  made.add({.at_ns = 1, .frames = {0x5, 0x2, 0x3, 0x2, 0x1}, .weight = 4});
  made.add({.at_ns = 2, .frames = {0x2, 0x9}, .weight = 2, .is_truncated = true});
  made.add({.at_ns = 3, .frames = {0x5}, .weight = 8});
  const Trace trace = made.builder.load();
  const FlameButterfly found = flame_butterfly(trace, {}, nullptr, "0x2", "");
  EXPECT_EQ(flame_folded(found.callees), "0x2 2\n0x2;0x3;0x2;0x5 4\n");
  EXPECT_EQ(flame_folded(found.callers), "0x2;0x1 4\n0x2;0x9;[outer frames missing] 2\n");
  EXPECT_EQ(found.heading.whole, 14U) << "percents are of everything";
  EXPECT_EQ(flame_butterfly(trace, {}, nullptr, "0x77", "").callees.total(), 0U);
  const Trace waits = request();
  EXPECT_EQ(
      flame_folded(flame_butterfly(waits, {.of = FlameOf::kOffCpu}, nullptr, "0x8", "").callers),
      "0x8;0x7;[blocked: lock] 40000000\n0x8;0x2;0x1;[blocked: lock] 5000000\n");
}

TEST(FlameView, FindsTheMomentsOfEachNodeInEachView) {
  const Trace trace = request();
  for (const FlameOf of : {FlameOf::kCpu, FlameOf::kOffCpu, FlameOf::kTime}) {
    for (const bool is_inverted : {false, true}) {
      for (const FlameOrder order : {FlameOrder::kHeavy, FlameOrder::kTime}) {
        const FlameQuery query{.of = of, .is_inverted = is_inverted, .order = order};
        const FlameTree tree = flame_view(trace, query, nullptr).tree;
        const auto rows = flame_rows(tree, 100);
        for (std::uint32_t row = 0; row < rows.size(); ++row) {
          const auto moments = flame_moments(trace, query, nullptr, 100, row, 100);
          ASSERT_TRUE(moments.has_value());
          EXPECT_EQ(moments->weight, tree.nodes()[rows[row].node].total) << row;
          EXPECT_EQ(moments->moments.size(), moments->total);
        }
      }
    }
  }
  const auto all = flame_moments(trace, {.of = FlameOf::kTime}, nullptr, 100, 0, 100);
  ASSERT_EQ(all->moments.size(), 5U);
  EXPECT_EQ(all->moments[0].of, StackOf::kSample);
  EXPECT_EQ(all->moments[2].of, StackOf::kWait);
  EXPECT_EQ(trace.off_cpu[all->moments[2].index].at_ns, 130 * kMs);
  EXPECT_EQ(all->moments[2].length_ns, 29 * kMs);
  const auto few = flame_moments(trace, {.of = FlameOf::kTime}, nullptr, 100, 0, 2);
  ASSERT_EQ(few->moments.size(), 2U) << "evenly thinned";
  EXPECT_EQ(few->moments[1].at_ns, 130 * kMs);
  EXPECT_FALSE(flame_moments(trace, {}, nullptr, 100, 99, 2).has_value());
}

TEST(FlameView, LockWaitsAreTheRecordedOnesWithStacksElseWaitsInALock) {
  const Trace waits = request();
  const FlameView off = flame_view(waits, {.of = FlameOf::kLocks, .top = FlameTop::kNone}, nullptr);
  EXPECT_EQ(flame_folded(off.tree), "0x7;0x8 40000000\n0x1;0x2;0x8 5000000\n");

  TraceBuilder unknown;
  unknown.poll(10 * kMs, 90 * kMs, 0, 5);
  unknown.off_cpu({.at_ns = 20 * kMs, .proven_ns = 9 * kMs, .cause = "futex", .frames = {0x8}});
  const FlameView none =
      flame_view(unknown.load(), {.of = FlameOf::kLocks, .top = FlameTop::kNone}, nullptr);
  EXPECT_EQ(none.tree.count(), 0U);
  EXPECT_TRUE(has(notes(none.heading), "1 wait (9.00 ms) in futexes that may be locks"))
      << notes(none.heading);

  TraceBuilder builder;
  builder.poll(10 * kMs, 90 * kMs, 0, 5);
  builder.off_cpu({.at_ns = 20 * kMs, .proven_ns = 9 * kMs, .cause = "lock", .frames = {0x8}});
  format::Encoder& out = builder.encoder();
  out.schema(120, "LockWaitEvent", true,
             {{"tid", format::FieldType::kU32},
              {"task_id", format::FieldType::kVarint},
              {"duration_ns", format::FieldType::kVarint},
              {"callchain", format::FieldType::kPooledStackFrames}});
  out.begin(120, 20 * kMs);
  out.u32(7);
  out.varint(5);
  out.varint(10 * kMs);
  out.pooled_stack(std::vector<std::uint64_t>{0x8, 0x1});
  const Trace trace = builder.load();
  EXPECT_EQ(folded(trace, {.of = FlameOf::kLocks}), "0x1;0x8 10000000\n") << "not both";
  EXPECT_EQ(folded(trace, {.of = FlameOf::kLocks, .filter = {.from_ns = 25 * kMs, .task = 5}}),
            "0x1;0x8 5000000\n");
  EXPECT_EQ(folded(trace, {.of = FlameOf::kLocks, .filter = {.worker = 0}}), "0x1;0x8 10000000\n");
  for (const SampleFilter& filter :
       {SampleFilter{.span = 1}, SampleFilter{.label = "tenant"}, SampleFilter{.thread = "io"}}) {
    const FlameView view = flame_view(trace, {.of = FlameOf::kLocks, .filter = filter}, nullptr);
    EXPECT_EQ(view.tree.count(), 0U);
    EXPECT_TRUE(has(notes(view.heading), "1 wait doesn't say whose they are"));
  }
}

TEST(FlameView, LockWaitsThatNoEventTellsComeFromLooksAndHandlersThatWaitForStrandsAreNoThreads) {
  TraceBuilder builder;
  builder.poll(10 * kMs, 90 * kMs, 0, 5);
  format::Encoder& out = builder.encoder();
  out.schema(120, "LockWaitEvent", true,
             {{"tid", format::FieldType::kU32},
              {"task_id", format::FieldType::kVarint},
              {"duration_ns", format::FieldType::kVarint},
              {"callchain", format::FieldType::kPooledStackFrames, true},
              {"truncated", format::FieldType::kBool},
              {"kind", format::FieldType::kU8}});
  const auto wait = [&](std::uint64_t at_ms, std::uint64_t ms, bool has_stack,
                        LockKind kind = LockKind::kMutex) {
    out.begin(120, at_ms * kMs);
    out.u32(7);
    out.varint(5);
    out.varint(ms * kMs);
    if (has_stack) {
      out.present();
      out.pooled_stack(std::vector<std::uint64_t>{0x8, 0x1});
    } else {
      out.absent();
    }
    out.boolean(has_stack);
    out.u8(static_cast<std::uint8_t>(kind));
  };
  wait(20, 12, true);
  wait(40, 10, false);  // beyond the bound of stacks
  wait(100, 30, false, LockKind::kStrand);
  builder.off_cpu({.at_ns = 21 * kMs, .proven_ns = 9 * kMs, .cause = "lock", .frames = {0x8}});
  builder.off_cpu({.at_ns = 41 * kMs, .proven_ns = 9 * kMs, .cause = "lock", .frames = {0x8}});
  builder.off_cpu({.at_ns = 60 * kMs, .proven_ns = 3 * kMs, .cause = "lock", .frames = {0x9}});
  builder.off_cpu(
      {.at_ns = 21 * kMs, .proven_ns = 2 * kMs, .cause = "lock", .frames = {0x7}, .tid = 8});
  const Trace trace = builder.load();
  const FlameView view =
      flame_view(trace, {.of = FlameOf::kLocks, .top = FlameTop::kNone}, nullptr);
  EXPECT_EQ(flame_folded(view.tree),
            "[outer frames missing];0x1;0x8 12000000\n[no stack] 10000000\n0x9 3000000\n"
            "0x7 2000000\n");
  EXPECT_TRUE(has(notes(view.heading), "2 waits (5.00 ms) of them as looks"))
      << notes(view.heading);
  EXPECT_TRUE(has(notes(view.heading), "1 wait (30.0 ms) of handlers")) << notes(view.heading);
}

TEST(FlameView, ShowsTheHeapAllocatedAndLiveInBytesAndCounts) {
  HeapTrace made;
  made.alloc({.at_ns = 10 * kMs, .size = 100, .addr = 1, .frames = {0xA, 0xB}});
  made.alloc({.at_ns = 20 * kMs, .size = 10, .addr = 2, .frames = {0xC, 0xB}, .span = 3});
  made.alloc({.at_ns = 21 * kMs, .size = 10, .addr = 3, .frames = {0xC, 0xB}, .span = 3});
  made.free(30 * kMs, 1, 10 * kMs);
  const Trace trace = made.load();
  EXPECT_EQ(folded(trace, {.of = FlameOf::kAllocated}), "0xb;0xa 100\n0xb;0xc 20\n");
  EXPECT_EQ(folded(trace, {.of = FlameOf::kAllocated, .counts = true}), "0xb;0xc 2\n0xb;0xa 1\n");
  EXPECT_EQ(folded(trace, {.of = FlameOf::kLive}), "0xb;0xc 20\n");
  EXPECT_EQ(folded(trace, {.of = FlameOf::kLive, .filter = {.to_ns = 15 * kMs}}), "0xb;0xa 100\n");
  EXPECT_EQ(folded(trace, {.of = FlameOf::kAllocated, .filter = {.span = 3}}), "0xb;0xc 20\n");
  const auto moments = flame_moments(trace, {.of = FlameOf::kLive}, nullptr, 100, 0, 100);
  ASSERT_EQ(moments->moments.size(), 2U);
  EXPECT_EQ(moments->moments[0].at_ns, 20 * kMs);
  EXPECT_EQ(trace.heap[moments->moments[1].index].at_ns, 21 * kMs);
  const FlameView by_worker =
      flame_view(trace, {.of = FlameOf::kLive, .filter = {.worker = 0}}, nullptr);
  EXPECT_EQ(by_worker.tree.total(), 0U);
  EXPECT_TRUE(has(notes(by_worker.heading), "don't tell the worker"));
  const FlameView in_time =
      flame_view(trace, {.of = FlameOf::kLive, .order = FlameOrder::kTime}, nullptr);
  EXPECT_EQ(in_time.tree.total(), 0U);
  EXPECT_TRUE(has(notes(in_time.heading), "no order of time"));
}

// Of one site: 100 samples by unwind tables, 20 partly by frame pointers, 10 that are cut short.
TEST(FlameView, FindsTheMomentsOfASitesPartsByThemselves) {
  HeapTrace made;
  for (std::uint64_t i = 0; i < 130; ++i) {
    made.alloc({.at_ns = (10 + i) * kMs,
                .addr = 1 + i,
                .frames = {0xA},
                .unwound_by = i < 100 || i >= 120 ? "tables" : "mixed",
                .is_truncated = i >= 120});
  }
  made.alloc({.at_ns = 200 * kMs, .size = 10, .addr = 200, .frames = {}});
  made.profile(300 * kMs, 0, 0, 131);
  const Trace trace = made.load();
  for (const FlameOf of : {FlameOf::kAllocated, FlameOf::kLive}) {
    const FlameQuery query{.of = of};
    const FlameTree tree = flame_view(trace, query, nullptr).tree;
    const std::vector<FlameRow> rows = flame_rows(tree, 100);
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      const FlameNode& node = tree.nodes()[rows[row].node];
      const auto moments = flame_moments(trace, query, nullptr, 100, row, 1'000);
      ASSERT_TRUE(moments.has_value());
      EXPECT_EQ(moments->weight, node.total) << row;
      std::uint64_t bytes = 0;
      for (const FlameMoment& moment : moments->moments) bytes += trace.heap[moment.index].size;
      EXPECT_EQ(bytes, node.total) << row;
    }
    EXPECT_EQ(rows.size(), 5U);  // the root, the site's two, the mark, no stack
  }
}

TEST(FlameView, MarksHeapFiguresThatTheTraceMakesUncertain) {
  HeapTrace made;
  made.alloc({.at_ns = 10 * kMs, .addr = 1});
  made.free(11 * kMs, 1, 10 * kMs);
  made.profile(20 * kMs, 0, 5, 0);
  const Trace trace = made.load();
  EXPECT_FALSE(flame_view(trace, {.of = FlameOf::kAllocated}, nullptr).heading.is_uncertain);
  EXPECT_TRUE(flame_view(trace, {.of = FlameOf::kLive}, nullptr).heading.is_uncertain);
  EXPECT_TRUE(flame_view(trace, {.of = FlameOf::kLive, .filter = {.from_ns = 50 * kMs}}, nullptr)
                  .heading.is_uncertain)
      << "what was lost before the range counts too";
}

TEST(FlameView, SaysWhatToDoWhereTheTraceHasNothingOfAKind) {
  TraceBuilder builder;
  builder.poll(10, 20, 0, 1);
  const Trace trace = builder.load();
  for (const auto& [of, cure] : {std::pair{FlameOf::kCpu, "DIAL9_CPU_PROFILE_ENABLED"},
                                 std::pair{FlameOf::kOffCpu, "DIAL9_SCHEDULE_PROFILE_ENABLED"},
                                 std::pair{FlameOf::kTime, "DIAL9_SCHEDULE_PROFILE_ENABLED"},
                                 std::pair{FlameOf::kLocks, "DIAL9_SCHEDULE_PROFILE_ENABLED"},
                                 std::pair{FlameOf::kAllocated, "DIAL9_MEMORY_PROFILE_ENABLED"},
                                 std::pair{FlameOf::kLive, "DIAL9_MEMORY_PROFILE_ENABLED"}}) {
    const FlameView view = flame_view(trace, {.of = of}, nullptr);
    EXPECT_EQ(view.tree.count(), 0U);
    EXPECT_TRUE(has(notes(view.heading), cure)) << notes(view.heading);
    EXPECT_EQ(flame_of(flame_of_name(of)), of);
  }
  EXPECT_FALSE(flame_of("weather").has_value());
}

}  // namespace
}  // namespace dial9::analysis
