// Heap samples in, figures out: estimates, what lives, ages, growth, and what makes them uncertain.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/heap_report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analysis/heap_flame.h"
#include "analysis/testing/heap_trace.h"
#include "analysis/testing/symbols.h"

namespace dial9::analysis {
namespace {

using testing::add_symbol;
using testing::HeapTrace;
using testing::MadeAlloc;

constexpr std::uint64_t kMs = 1'000'000;

bool mentions(const HeapReport& report, std::string_view text) {
  for (const std::string& note : report.notes) {
    if (note.find(text) != std::string::npos) return true;
  }
  return false;
}

TEST(HeapWeight, IsOneOverTheChanceOfBeingASample) {
  EXPECT_DOUBLE_EQ(heap_weight(100, 1), 1);
  EXPECT_DOUBLE_EQ(heap_weight(100, 0), 1) << "not known";
  EXPECT_NEAR(heap_weight(512, 512), 1 / (1 - std::exp(-1)), 1e-12);
  EXPECT_NEAR(heap_weight(1, 1'000'000), 1'000'000.5, 1e-3);
  EXPECT_NEAR(heap_weight(std::uint64_t{1} << 40, 512), 1, 1e-12);
  EXPECT_TRUE(std::isfinite(heap_weight(0, 512)));
}

TEST(HeapReport, AFreeIsOfTheAllocationThatItNamesWhateverComesToLieThereLater) {
  HeapTrace made;
  made.alloc({.at_ns = 10, .addr = 0x1000});
  made.alloc({.at_ns = 30, .addr = 0x1000});
  made.alloc({.at_ns = 50, .addr = 0x1000});
  made.free(40, 0x1000, 30);
  made.free(20, 0x1000, 10);
  made.free(60, 0x2000, 5);
  const Trace trace = made.load();
  ASSERT_EQ(trace.heap.size(), 3U);
  EXPECT_EQ(trace.heap[0].freed_ns, 20U);
  EXPECT_EQ(trace.heap[1].freed_ns, 40U);
  EXPECT_EQ(trace.heap[2].freed_ns, kNotFreed);
  EXPECT_EQ(trace.heap_frees_unmatched, 1U);
}

TEST(HeapReport, GroupsSumToTheTotalBySiteTaskSpanLabelAndThread) {
  HeapTrace made;
  for (std::uint64_t i = 0; i < 60; ++i) {
    made.alloc({.at_ns = 100 + i,
                .size = 1'000 + i,
                .addr = 0x1000 * (i + 1),
                .frames = {0xA0 + i % 3, 0xB},
                .tid = static_cast<std::uint32_t>(1 + i % 4),
                .task = i % 5,
                .span = i % 2,
                .label_value = i % 3 == 0 ? "red" : "blue",
                .rate = 4'096});
    if (i % 2 == 0) made.free(1'000 + i, 0x1000 * (i + 1), 100 + i);
  }
  const Trace trace = made.load();
  double bytes = 0;
  double live = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto size = static_cast<double>(1'000 + i);
    const double all = size / (1 - std::exp(-size / 4'096));
    bytes += all;
    live += i % 2 == 0 ? 0 : all;
  }
  const std::pair<HeapBy, std::size_t> kinds[] = {{HeapBy::kSite, 3},
                                                  {HeapBy::kTask, 5},
                                                  {HeapBy::kSpan, 2},
                                                  {HeapBy::kLabel, 2},
                                                  {HeapBy::kThread, 4}};
  for (const auto& [by, groups] : kinds) {
    const HeapReport report = heap_report(trace, {}, by);
    EXPECT_EQ(report.groups.size(), groups);
    EXPECT_NEAR(report.total.allocated.bytes, bytes, 1e-6);
    EXPECT_NEAR(report.total.live.bytes, live, 1e-6);
    double sum = 0;
    for (const HeapGroup& group : report.groups) sum += group.allocated.bytes;
    EXPECT_NEAR(sum, bytes, 1e-6);
  }
  SampleFilter filter;
  filter.label = "tenant=red";
  filter.thread = "1";
  EXPECT_EQ(heap_report(trace, filter, HeapBy::kSite).total.allocated.samples, 5U);
  filter = {};
  filter.task = 3;
  EXPECT_EQ(heap_report(trace, filter, HeapBy::kSite).total.allocated.samples, 12U);
}

TEST(HeapReport, TheStandardErrorIsThatOfTheEstimate) {
  HeapTrace made;
  made.alloc({.at_ns = 1, .size = 512, .addr = 1, .rate = 512});
  made.alloc({.at_ns = 2, .size = 64, .addr = 2, .rate = 1});
  const Trace trace = made.load();
  const double weight = 1 / (1 - std::exp(-1));
  const HeapFigure figure = heap_report(trace, {}, HeapBy::kSite).total.allocated;
  EXPECT_NEAR(figure.bytes_error(), 512 * std::sqrt(weight * (weight - 1)), 1e-9);
  EXPECT_NEAR(figure.count_error(), std::sqrt(weight * (weight - 1)), 1e-9);
  const HeapReport report = heap_report(trace, {}, HeapBy::kSite);
  const std::string text = heap_text(trace, report, HeapOrder::kAllocated, 10, {});
  EXPECT_NE(text.find("allocated: 874 B ± 56.2 % in 3 ± 37.2 % allocations (2 samples)"),
            std::string::npos)
      << text;
  EXPECT_NE(heap_json(trace, report, {}).find("\"count_error\": 0.95"), std::string::npos);
}

TEST(HeapReport, AllocatedIsWithinTheRangeAndLiveIsAtItsEnd) {
  HeapTrace made;
  made.alloc({.at_ns = 10 * kMs, .size = 1, .addr = 1});
  made.alloc({.at_ns = 20 * kMs, .size = 10, .addr = 2});
  made.alloc({.at_ns = 30 * kMs, .size = 100, .addr = 3});
  made.alloc({.at_ns = 40 * kMs, .size = 1'000, .addr = 4});
  made.free(35 * kMs, 2, 20 * kMs);
  made.free(50 * kMs, 3, 30 * kMs);
  const Trace trace = made.load();
  SampleFilter filter;
  filter.from_ns = 15 * kMs;
  filter.to_ns = 36 * kMs;
  const HeapReport report = heap_report(trace, filter, HeapBy::kSite);
  EXPECT_EQ(report.total.allocated.bytes, 110);
  EXPECT_EQ(report.total.live.bytes, 101) << "the first, and the third that is freed later";
  EXPECT_EQ(report.total.live_before.bytes, 1);
  EXPECT_EQ(report.total.growth_bytes(), 100);
  EXPECT_EQ(report.total.median_age_ns().value_or(0), 15 * kMs);
}

// A leak among allocations that come and go, a cache that was full before, one burst at the end.
TEST(HeapReport, AGrowingSiteWhoseOldOnesStayIsALeakCandidateAndNoOtherIs) {
  HeapTrace made;
  std::uint64_t addr = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    made.alloc({.at_ns = i * kMs, .addr = ++addr, .frames = {0xCACE}});
  }
  for (std::uint64_t i = 100; i < 300; ++i) {
    made.alloc({.at_ns = i * kMs, .addr = ++addr, .frames = {0x1EAC}});
    made.alloc({.at_ns = i * kMs, .addr = ++addr, .frames = {0x7E39}});
    made.free(i * kMs + kMs / 2, addr, i * kMs);
  }
  for (std::uint64_t i = 0; i < 50; ++i) {
    made.alloc({.at_ns = 299 * kMs + i, .addr = ++addr, .frames = {0xB125}});
  }
  const Trace trace = made.load();
  SampleFilter filter;
  filter.from_ns = 100 * kMs;
  filter.to_ns = 300 * kMs;
  for (const HeapGroup& group : heap_report(trace, filter, HeapBy::kSite).groups) {
    const Range range = trace.stacks.ranges[group.key];
    EXPECT_EQ(group.is_leak_candidate(), trace.stacks.frames[range.first] == 0x1EAC);
  }
}

TEST(HeapReport, GrowthWithinItsErrorIsNoLeak) {
  HeapTrace made;
  made.alloc({.at_ns = 100 * kMs, .size = 10, .addr = 1, .rate = 1 << 20});
  made.free(900 * kMs, 99, 1);
  const Trace trace = made.load();
  SampleFilter filter;
  filter.from_ns = 50 * kMs;
  filter.to_ns = 800 * kMs;
  const HeapReport report = heap_report(trace, filter, HeapBy::kSite);
  EXPECT_GT(report.total.growth_bytes(), 1'000'000);
  EXPECT_FALSE(report.total.is_leak_candidate()) << "one sample";
}

TEST(HeapReport, LossesMakeFiguresUncertainAndSayWhichWay) {
  HeapTrace sure;
  sure.alloc({.at_ns = 10, .addr = 1});
  sure.profile(20, 0, 0, 1);
  EXPECT_FALSE(heap_report(sure.load(), {}, HeapBy::kSite).is_live_uncertain);
  HeapTrace lost;
  lost.alloc({.at_ns = 10, .addr = 1});
  lost.profile(20, 3, 2, 4);
  const HeapReport report = heap_report(lost.load(), {}, HeapBy::kSite);
  EXPECT_TRUE(report.is_live_uncertain);
  EXPECT_TRUE(mentions(report, "3 samples were lost"));
  EXPECT_TRUE(mentions(report, "2 frees weren't recorded"));
  EXPECT_TRUE(mentions(report, "3 live samples aren't in this trace"));
  HeapTrace full;
  full.alloc({.at_ns = 10, .addr = 1, .is_tracked = false});
  full.profile(20, 0, 0, 0);
  const HeapReport untracked = heap_report(full.load(), {}, HeapBy::kSite);
  EXPECT_TRUE(untracked.is_live_uncertain);
  EXPECT_EQ(untracked.total.live.samples, 0U);
  EXPECT_TRUE(mentions(untracked, "1 sample isn't tracked"));
}

TEST(HeapReport, ThinnedSamplesWeighByTheirOwnRateAndANoteSaysSo) {
  HeapTrace made;
  made.builder().metadata(5, "memory.sample_rate_bytes", "512");
  made.alloc({.at_ns = 10, .size = 1, .addr = 1, .rate = 512});
  made.alloc({.at_ns = 15, .size = 1, .addr = 2, .rate = 8192});
  made.profile(20, 0, 0, 2);
  const HeapReport report = heap_report(made.load(), {}, HeapBy::kSite);
  EXPECT_NEAR(report.total.allocated.count, 512.5 + 8192.5, 0.1);
  EXPECT_FALSE(report.is_live_uncertain);
  EXPECT_TRUE(mentions(report, "at times one sample in 16 was taken"));
  HeapTrace all;
  all.builder().metadata(5, "memory.sample_rate_bytes", "512");
  all.alloc({.at_ns = 10, .rate = 512});
  all.profile(20, 0, 0, 1);
  EXPECT_FALSE(mentions(heap_report(all.load(), {}, HeapBy::kSite), "at times"));
}

TEST(HeapReport, WhatARunAskedForIsNotHeldAgainstAnotherRunsSamples) {
  const auto report = [](std::uint64_t asked, std::uint64_t then_asked) {
    HeapTrace made;  // all samples of both runs are at 4096
    for (const std::uint64_t rate : {asked, then_asked}) {
      const std::uint64_t at_ns = rate == asked ? 2'000'000 : 4'000'000;
      made.builder().metadata(at_ns, "memory.sample_rate_bytes", std::to_string(rate));
      made.alloc({.at_ns = at_ns + 10, .addr = at_ns, .rate = 4096});
      made.profile(at_ns + 1'000'000, 0, 0, 1, 4096, rate);
    }
    return heap_report(made.load(), {}, HeapBy::kSite);
  };
  EXPECT_TRUE(mentions(report(512, 4096), "at times one sample in 8 was taken"));
  EXPECT_TRUE(mentions(report(4096, 512), "at times one sample in 8 was taken"));
  HeapTrace whole;
  whole.alloc({.at_ns = 10, .addr = 1, .rate = 4096});
  whole.profile(20, 0, 0, 1, 4096, 4096);
  whole.builder().metadata(30, "memory.sample_rate_bytes", "4096");
  whole.alloc({.at_ns = 35, .addr = 2, .rate = 512});
  whole.profile(40, 0, 0, 2, 512, 512);
  whole.builder().metadata(45, "memory.sample_rate_bytes", "512");
  EXPECT_FALSE(mentions(heap_report(whole.load(), {}, HeapBy::kSite), "at times"));
}

TEST(HeapReport, WithoutFreesNothingIsSaidToLive) {
  HeapTrace made;
  made.alloc({.at_ns = 10, .addr = 1, .is_tracked = false});
  const Trace trace = made.load();
  const HeapReport report = heap_report(trace, {}, HeapBy::kSite);
  EXPECT_FALSE(report.is_live_known);
  const std::string text = heap_text(trace, report, HeapOrder::kAllocated, 10, {});
  EXPECT_NE(text.find("live: unknown"), std::string::npos) << text;
  EXPECT_NE(heap_json(trace, report, {}).find("\"live\": null"), std::string::npos);
}

TEST(HeapFlame, ASiteBeginsWithTheInnermostFunctionThatIsNobodysPlumbing) {
  HeapTrace made;
  const std::vector<std::string> functions = {
      "operator new(unsigned long)",
      "std::__new_allocator<shop::Item>::allocate(unsigned long)",
      "shop::Item& std::vector<shop::Item>::emplace_back<int>(int&&)",
      "std::string shop::render<int>(int)",
      "shop::Cart::add(int)",
      "main",
      "_start"};
  std::vector<std::uint64_t> frames;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const std::uint64_t at = 0x1000 + 0x100 * i;
    add_symbol(made.builder().encoder(), {at, 16, functions[i]});
    frames.push_back(at + 4);
  }
  made.alloc({.at_ns = 10, .size = 300, .addr = 1, .frames = frames});
  made.alloc({.at_ns = 20, .size = 20, .addr = 2, .frames = {0x1004, 0x1104}});
  const Trace trace = made.load();
  const auto sites = heap_site_names(trace, heap_report(trace, {}, HeapBy::kSite), nullptr);
  ASSERT_EQ(sites.size(), 2U);
  EXPECT_EQ(sites[0], "... < std::string shop::render<int>(int) < shop::Cart::add(int) < main");
  EXPECT_EQ(sites[1], functions[0] + " < " + functions[1]) << "that is all there is";
}

// By their whole names alone, and past the angle brackets of operators.
TEST(HeapFlame, AFunctionThatOnlyLooksLikeAnAllocatorsIsASite) {
  const std::pair<const char*, bool> cases[] = {
      {"reallocate_rows", true},
      {"malloc_or_die", true},
      {"valloc_pages(int)", true},
      {"realloc", false},
      {"malloc", false},
      {"app::operator>>(std::istream&, std::map<int, std::vector<int> >&)", true},
      {"bool app::operator< <int>(app::Row<int>, std::pair<int, int>)", true},
      {"app::Row::operator std::string() const", true},
      {"std::ostream& std::operator<< <char>(std::ostream&, char const*)", false},
      {"std::vector<int> my_operator<int>(int)", true},
      {"std::enable_if<((4)>(2)), int>::type app::grow<int>(int)", true},
      {"std::vector<int> app::fold<&app::Row::operator> >(int)", true},
      {"std::vector<int> app::fold<&app::Row::operator->, 1>(int)", true},
      {"std::vector<app::run()::{lambda(std::vector<int>)#1}> app::all<int>(int)", true},
      {"app::Row* app::Ptr<(a>b)>::operator->() const", true},
      {"void std::sort<int*, app::Less<(a>b)> >(int*, int*)", false}};
  HeapTrace made;
  std::uint64_t at = 0x1000;
  for (const auto& [name, is_site] : cases) {
    add_symbol(made.builder().encoder(), {at, 16, name});
    made.alloc({.at_ns = at, .size = 0x10000 - at, .addr = at, .frames = {at + 4, 0xB}});
    at += 0x100;
  }
  const Trace trace = made.load();
  const auto sites = heap_site_names(trace, heap_report(trace, {}, HeapBy::kSite), nullptr);
  ASSERT_EQ(sites.size(), std::size(cases));
  const auto hidden = std::count_if(std::begin(cases), std::end(cases),
                                    [](const auto& one) { return !one.second; });
  for (const auto& [name, is_site] : cases) {
    const std::string wanted = is_site ? std::string(name) + " < 0xb" : "... < 0xb";
    EXPECT_EQ(std::count(sites.begin(), sites.end(), wanted), is_site ? 1 : hidden) << name;
  }
}

TEST(HeapFlame, ItsTotalIsTheReports) {
  HeapTrace made;
  made.alloc({.at_ns = 10, .size = 300, .addr = 1, .frames = {0xA, 0xB}});
  made.alloc({.at_ns = 20, .size = 50, .addr = 2, .frames = {0xC, 0xB}});
  made.alloc({.at_ns = 25, .size = 7, .addr = 3, .frames = {}});
  made.free(30, 1, 10);
  const Trace trace = made.load();
  const HeapReport report = heap_report(trace, {}, HeapBy::kSite);
  EXPECT_EQ(heap_flame(trace, report, HeapOrder::kAllocated, false, nullptr).tree.total(), 357U);
  EXPECT_EQ(heap_flame(trace, report, HeapOrder::kAllocated, true, nullptr).tree.total(), 3U);
  const HeapFlame live = heap_flame(trace, report, HeapOrder::kLive, false, nullptr);
  EXPECT_EQ(live.tree.total(), 57U);
  EXPECT_EQ(flame_folded(live.tree), "0xb;0xc 50\n[no stack] 7\n");
  EXPECT_EQ(heap_site_names(trace, report, nullptr).at(0), "0xa < 0xb");
}

}  // namespace
}  // namespace dial9::analysis
