// How stacks were found, as samples tell it: each weight in one sum, what isn't told in its own,
// and the cure where many may lack callers.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/unwound_by.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/cpu_flame.h"
#include "analysis/flame_view.h"
#include "analysis/heap_flame.h"
#include "analysis/off_cpu.h"
#include "analysis/testing/cpu_trace.h"
#include "analysis/testing/heap_trace.h"

namespace dial9::analysis {
namespace {

using testing::CpuTrace;
using testing::HeapTrace;
using testing::TraceBuilder;

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string notes_of(const FlameHeading& heading) {
  std::string text;
  for (const std::string& note : heading.notes) text += note + "\n";
  return text;
}

// Of 100 periods: 60 by tables, 5 by both, 20 by frame pointers, 10 not told, 5 without a stack.
Trace cpu_trace() {
  CpuTrace made;
  made.module("/lib/libjit.so", 0x1000);
  made.add({.at_ns = 10, .frames = {0x1, 0x2}, .weight = 60, .unwound_by = "tables"});
  made.add({.at_ns = 20, .frames = {0x3, 0x2}, .weight = 5, .unwound_by = "mixed"});
  made.add({.at_ns = 30,
            .frames = {0x4, 0x1010},
            .weight = 20,
            .is_truncated = true,
            .unwound_by = "frame_pointers"});
  made.add({.at_ns = 40, .frames = {0x5, 0x2}, .weight = 10});
  made.add({.at_ns = 50, .frames = {}, .weight = 5});
  return made.builder.load();
}

TEST(UnwoundBy, IsASumByKindThatAddsUpToTheTree) {
  const CpuFlame flame = cpu_flame(cpu_trace(), {}, nullptr);
  const UnwoundSums& sums = flame.tree.unwound();
  EXPECT_EQ(sums.of(UnwoundBy::kTables), 60U);
  EXPECT_EQ(sums.of(UnwoundBy::kMixed), 5U);
  EXPECT_EQ(sums.of(UnwoundBy::kFramePointers), 20U);
  EXPECT_EQ(sums.of(UnwoundBy::kUnknown), 10U) << "a sample that doesn't say";
  EXPECT_EQ(sums.of(UnwoundBy::kNoStack), 5U);
  EXPECT_EQ(sums.truncated, 20U);
  EXPECT_EQ(sums.total(), flame.tree.total());
}

TEST(UnwoundBy, IsToldInTheTextAndInJson) {
  const CpuFlame flame = cpu_flame(cpu_trace(), {}, nullptr);
  const std::string text = flame_text(flame.tree, flame.heading, 10);
  EXPECT_TRUE(has(text,
                  "\nstacks: 60.0 % by unwind tables, 20.0 % by frame pointers, 5.00 % partly by "
                  "frame pointers, 5.00 % without a stack, 10.0 % not recorded how\n"))
      << text;
  EXPECT_TRUE(has(flame_json(flame.tree, flame.heading),
                  "\"unwound\": {\"tables\": 60, \"frame_pointers\": 20, \"mixed\": 5, "
                  "\"guessed\": 0, \"one_frame\": 0, \"no_stack\": 5, \"unknown\": 10}"));
}

TEST(UnwoundBy, NamesTheCureWhereManyStacksMayLackCallersAndWhereTheyEnd) {
  const std::string notes = notes_of(cpu_flame(cpu_trace(), {}, nullptr).heading);
  EXPECT_TRUE(has(notes, "25.0 % lies in stacks that were followed by frame pointers")) << notes;
  EXPECT_TRUE(has(notes, "-fno-omit-frame-pointer")) << notes;
  EXPECT_TRUE(has(notes, "20.0 % lies in stacks that were cut short, mostly in libjit.so: "))
      << notes;
  EXPECT_EQ(notes, notes_of(cpu_flame(cpu_trace(), {}, nullptr, true).heading)) << "inverted too";
}

TEST(UnwoundBy, IsNoCureForAFew) {
  CpuTrace made;
  made.add({.at_ns = 10, .frames = {0x1}, .weight = 95, .unwound_by = "tables"});
  made.add({.at_ns = 20,
            .frames = {0x2},
            .weight = 5,
            .is_truncated = true,
            .unwound_by = "frame_pointers"});
  const CpuFlame flame = cpu_flame(made.builder.load(), {}, nullptr);
  EXPECT_FALSE(has(notes_of(flame.heading), "lies in stacks")) << notes_of(flame.heading);
}

TEST(UnwoundBy, OfAWriterThatTellsNoneIsUnknownAndSaid) {
  CpuTrace made;
  made.add({.at_ns = 10, .frames = {0x1}, .weight = 3});
  const CpuFlame flame = cpu_flame(made.builder.load(), {}, nullptr);
  EXPECT_EQ(flame.tree.unwound().of(UnwoundBy::kUnknown), 3U);
  EXPECT_TRUE(has(flame_text(flame.tree, flame.heading, 10),
                  "\nhow the stacks were found isn't recorded\n"));
}

TEST(UnwoundBy, IsUnknownWhereItIsAWordFromALaterWriter) {
  EXPECT_EQ(unwound_by("shadow_stack"), UnwoundBy::kUnknown);
  EXPECT_EQ(unwound_by(""), UnwoundBy::kUnknown);
  EXPECT_EQ(unwound_by("", true), UnwoundBy::kUnknown);
  EXPECT_EQ(unwound_by("none"), UnwoundBy::kOneFrame);
  EXPECT_EQ(unwound_by("tables", true), UnwoundBy::kGuessed);
}

TEST(UnwoundBy, OfWaitsTellsThoseFromAGuessedFramePointer) {
  TraceBuilder builder;
  builder.off_cpu({.at_ns = 10, .proven_ns = 6, .frames = {0x1}, .unwound_by = "tables"});
  builder.off_cpu(
      {.at_ns = 20, .proven_ns = 3, .frames = {0x2}, .unwound_by = "tables", .is_guessed = true});
  builder.off_cpu({.at_ns = 30, .proven_ns = 1});
  const Trace trace = builder.load();
  const OffCpuReport report = off_cpu_report(trace, {}, nullptr);
  const UnwoundSums& sums = report.tree.unwound();
  EXPECT_EQ(sums.of(UnwoundBy::kTables), 6U);
  EXPECT_EQ(sums.of(UnwoundBy::kGuessed), 3U);
  EXPECT_EQ(sums.of(UnwoundBy::kNoStack), 1U);
  EXPECT_EQ(sums.of(UnwoundBy::kUnknown), 0U);
  for (const FlameOrder order : {FlameOrder::kHeavy, FlameOrder::kTime}) {
    const FlameView view =
        flame_view(trace, {.of = FlameOf::kOffCpu, .order = order, .top = FlameTop::kReason}, {});
    EXPECT_EQ(view.tree.unwound().weight, sums.weight);
  }
}

TEST(UnwoundBy, AroundAFunctionIsOfItsStacks) {
  CpuTrace made;
  made.add({.at_ns = 10, .frames = {0x1, 0x2}, .weight = 6, .unwound_by = "tables"});
  made.add({.at_ns = 20, .frames = {0x3, 0x2}, .weight = 2, .unwound_by = "frame_pointers"});
  const FlameButterfly found = flame_butterfly(made.builder.load(), {}, nullptr, "0x3", "");
  for (const FlameTree* tree : {&found.callers, &found.callees}) {
    EXPECT_EQ(tree->unwound().of(UnwoundBy::kFramePointers), 2U);
    EXPECT_EQ(tree->unwound().total(), 2U);
  }
}

TEST(UnwoundBy, OfTheHeapIsInBytesOfWhatIsAllocatedAndOfWhatLives) {
  HeapTrace made;
  made.alloc({.at_ns = 10, .size = 60, .addr = 1, .frames = {0xA}, .unwound_by = "tables"});
  made.alloc({.at_ns = 20,
              .size = 40,
              .addr = 2,
              .frames = {0xB},
              .unwound_by = "frame_pointers",
              .is_truncated = true});
  made.free(30, 1, 10);
  const Trace trace = made.load();
  const HeapReport report = heap_report(trace, {}, HeapBy::kTask);
  const std::string text = heap_text(trace, report, HeapOrder::kAllocated, 10, {});
  EXPECT_TRUE(has(text, "\nstacks: 60.0 % by unwind tables, 40.0 % by frame pointers\n")) << text;
  EXPECT_TRUE(has(text, "\n40.0 % in stacks whose outer frames are missing\n")) << text;
  EXPECT_TRUE(has(text, "note: 40.0 % lies in stacks that were followed by frame pointers"));
  const std::string json = heap_json(trace, report, {});
  EXPECT_TRUE(has(json, "\"unwound\": {\"allocated\": {\"tables\": 60, ")) << json;
  EXPECT_TRUE(has(json, "\"live\": {\"tables\": 0, \"frame_pointers\": 40, ")) << json;
  const HeapFlame flame =
      heap_flame(trace, heap_report(trace, {}, HeapBy::kSite), HeapOrder::kLive, false, nullptr);
  EXPECT_EQ(flame_folded(flame.tree), "[outer frames missing];0xb 40\n");
  EXPECT_EQ(flame.tree.unwound().of(UnwoundBy::kFramePointers), 40U);
}

TEST(UnwoundBy, OfASiteWhoseSamplesDifferIsToldByTheirShares) {
  HeapTrace made;
  made.alloc({.at_ns = 10, .size = 60, .addr = 1, .frames = {0xA}, .unwound_by = "tables"});
  made.alloc({.at_ns = 20, .size = 40, .addr = 2, .frames = {0xA}, .unwound_by = "mixed"});
  made.alloc({.at_ns = 30, .size = 40, .addr = 3, .frames = {0xA}, .unwound_by = "mixed"});
  const Trace trace = made.load();
  const HeapReport report = heap_report(trace, {}, HeapBy::kSite);
  ASSERT_EQ(report.groups.size(), 1U);
  const HeapFlame flame = heap_flame(trace, report, HeapOrder::kAllocated, false, nullptr);
  EXPECT_EQ(flame.tree.unwound().of(UnwoundBy::kTables), 60U);
  EXPECT_EQ(flame.tree.unwound().of(UnwoundBy::kMixed), 80U);
  EXPECT_EQ(flame.tree.count(), 3U);
}

// Of a thousand samples of a site one had no room for its stack.
TEST(UnwoundBy, OneSampleOfASiteThatIsCutShortIsThatOneAlone) {
  HeapTrace made;
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    made.alloc({.at_ns = 10 + i,
                .addr = 1 + i,
                .frames = {0xA},
                .unwound_by = "tables",
                .is_truncated = i == 500});
  }
  made.alloc({.at_ns = 2'000, .size = 7, .addr = 5'000, .frames = {0xB}});
  made.free(3'000, 1, 10);
  const Trace trace = made.load();
  const HeapReport report = heap_report(trace, {}, HeapBy::kSite);
  const HeapFlame flame = heap_flame(trace, report, HeapOrder::kAllocated, false, nullptr);
  EXPECT_EQ(flame_folded(flame.tree), "0xa 99900\n[outer frames missing];0xa 100\n0xb 7\n");
  EXPECT_EQ(flame.tree.truncated(), 100U);
  const std::string text = heap_text(trace, report, HeapOrder::kAllocated, 10, {"a", "b"});
  EXPECT_TRUE(has(text, "  a  [outer frames missing: 0.10 %]\n")) << text;
  EXPECT_TRUE(has(text, "  b\n")) << text;
  const std::string json = heap_json(trace, report, {"a", "b"});
  EXPECT_TRUE(has(json, "\"samples\": 1000, \"truncated_bytes\": 100, "
                        "\"truncated_samples\": 1}, \"live\""))
      << json;
  EXPECT_TRUE(has(json, "\"samples\": 999, \"truncated_bytes\": 100, ")) << json;
}

// What a sample of SharesOfASiteSumToIt stands for.
double bytes_of(std::uint64_t i) {
  return heap_weight(100 + i, 300 + i) * static_cast<double>(100 + i);
}

// Estimates are cut into whole numbers that sum to the site's, whatever their fractions are.
TEST(UnwoundBy, SharesOfASiteSumToIt) {
  HeapTrace made;
  for (std::uint64_t i = 0; i < 7; ++i) {
    made.alloc({.at_ns = 10 + i,
                .size = 100 + i,
                .addr = 1 + i,
                .frames = {0xA},
                .rate = 300 + i,
                .unwound_by = i % 3 == 0 ? "tables" : "mixed",
                .is_truncated = i % 2 == 0});
  }
  made.free(100, 2, 11);
  const Trace trace = made.load();
  SampleFilter since;
  since.from_ns = 14;
  const auto is_truncated = [](std::uint64_t i) { return i % 2 == 0; };
  const auto is_by_tables = [](std::uint64_t i) { return i % 3 == 0; };
  // Sample 1 is freed, and 0 to 3 lived before.
  const auto sum_of = [](HeapOrder order, bool (*is_meant)(std::uint64_t)) {
    double sum = 0;
    for (std::uint64_t i = order == HeapOrder::kGrowth ? 4 : 0; i < 7; ++i) {
      const bool is_gone = order == HeapOrder::kLive && i == 1;
      sum += is_meant(i) && !is_gone ? bytes_of(i) : 0;
    }
    return sum;
  };
  for (const HeapOrder order : {HeapOrder::kAllocated, HeapOrder::kLive, HeapOrder::kGrowth}) {
    const HeapReport report =
        heap_report(trace, order == HeapOrder::kGrowth ? since : SampleFilter{}, HeapBy::kSite);
    const HeapGroup& site = report.groups.at(0);
    const double bytes = order == HeapOrder::kAllocated ? site.allocated.bytes
                         : order == HeapOrder::kLive    ? site.live.bytes
                                                        : site.growth_bytes();
    const HeapFlame flame = heap_flame(trace, report, order, false, nullptr);
    EXPECT_EQ(flame.tree.total(), static_cast<std::uint64_t>(bytes + 0.5));
    EXPECT_EQ(flame.tree.unwound().total(), flame.tree.total());
    EXPECT_NEAR(static_cast<double>(flame.tree.truncated()), sum_of(order, is_truncated), 1);
    EXPECT_NEAR(static_cast<double>(flame.tree.unwound().of(UnwoundBy::kTables)),
                sum_of(order, is_by_tables), 1);
  }
}

// Of 800 bytes that a site grew by, in stacks of three kinds: 400 less, 300 and 900 more.
TEST(UnwoundBy, PartsThatShrankAreTakenOffThoseThatGrew) {
  HeapTrace made;
  for (std::uint64_t i = 0; i < 10; ++i) {
    made.alloc({.at_ns = 10 + i, .addr = 1 + i, .frames = {0xA}, .unwound_by = "tables"});
  }
  for (std::uint64_t i = 0; i < 4; ++i) made.free(200 + i, 1 + i, 10 + i);
  for (std::uint64_t i = 0; i < 12; ++i) {
    made.alloc({.at_ns = 300 + i,
                .addr = 100 + i,
                .frames = {0xA},
                .unwound_by = i < 3 ? "mixed" : "tables",
                .is_truncated = i >= 3});
  }
  made.profile(400, 0, 0, 18);
  const Trace trace = made.load();
  const HeapReport report = heap_report(trace, {.from_ns = 100}, HeapBy::kSite);
  const HeapFlame flame = heap_flame(trace, report, HeapOrder::kGrowth, false, nullptr);
  EXPECT_EQ(flame_folded(flame.tree), "[outer frames missing];0xa 600\n0xa 200\n");
  EXPECT_EQ(flame.tree.unwound().of(UnwoundBy::kTables), 600U);
  EXPECT_EQ(flame.tree.unwound().of(UnwoundBy::kMixed), 200U);
  const std::string growth = heap_text(trace, report, HeapOrder::kGrowth, 10, {"a"});
  EXPECT_TRUE(has(growth, "\nstacks: 75.0 % by unwind tables, 25.0 % partly by frame pointers\n"))
      << growth;
  EXPECT_TRUE(has(growth, "\n75.0 % in stacks whose outer frames are missing\n")) << growth;
  EXPECT_TRUE(has(growth, "  a  [outer frames missing: 75.0 %]")) << growth;
  const std::string live = heap_text(trace, report, HeapOrder::kLive, 10, {"a"});
  EXPECT_TRUE(has(live, "  a  [outer frames missing: 50.0 %]\n")) << live;
}

// Not of what lived before, nor of a site that shrank.
TEST(UnwoundBy, OfWhatGrewIsOfTheBytesThatItGrewBy) {
  HeapTrace made;
  for (std::uint64_t i = 0; i < 100; ++i) {
    made.alloc({.at_ns = 10 + i, .addr = 1 + i, .frames = {0xA}});
  }
  made.alloc({.at_ns = 10, .size = 5'000, .addr = 1'000, .frames = {0xB}, .is_truncated = true});
  made.free(300, 1'000, 10);
  for (std::uint64_t i = 0; i < 10; ++i) {
    made.alloc({.at_ns = 300 + i, .addr = 500 + i, .frames = {0xA}, .is_truncated = true});
  }
  made.alloc({.at_ns = 300, .addr = 2'000, .frames = {0xB}, .unwound_by = "tables"});
  made.profile(400, 0, 0, 111);
  const Trace trace = made.load();
  const HeapReport report = heap_report(trace, {.from_ns = 200}, HeapBy::kSite);
  const std::string text = heap_text(trace, report, HeapOrder::kGrowth, 10, {"a", "b"});
  EXPECT_TRUE(has(text, "  a  [outer frames missing: 100 %]")) << text;
  EXPECT_TRUE(has(text, "  b\n")) << text;
  EXPECT_TRUE(has(text, "\n100 % in stacks whose outer frames are missing\n")) << text;
  EXPECT_FALSE(has(text, "by unwind tables")) << text;
  const HeapFlame flame = heap_flame(trace, report, HeapOrder::kGrowth, false, nullptr);
  EXPECT_EQ(flame_folded(flame.tree), "[outer frames missing];0xa 1000\n");
}

TEST(UnwoundBy, OfOneStackIsAFact) {
  EXPECT_EQ(unwound_fact(UnwoundBy::kTables, false), "by unwind tables");
  EXPECT_EQ(unwound_fact(UnwoundBy::kMixed, true),
            "partly by frame pointers; its outer frames are missing");
  EXPECT_EQ(unwound_fact(UnwoundBy::kUnknown, true), "its outer frames are missing");
  EXPECT_EQ(unwound_fact(UnwoundBy::kUnknown, false), "");
}

}  // namespace
}  // namespace dial9::analysis
