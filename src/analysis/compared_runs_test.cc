// What of a question holds in another run, and what is said of two runs beside each other.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/compared_runs.h"

#include <gtest/gtest.h>

#include "analysis/testing/cpu_trace.h"

namespace dial9::analysis {
namespace {

struct MadeRun {
  std::string boot_id = "abcd-1";
  std::string service = "checkout";
  std::string build_id = "01";
};

Trace made(const MadeRun& run) {
  testing::CpuTrace trace;
  trace.builder.metadata(1, "kernel.boot_id", "here");
  trace.builder.metadata(1, "boot_id", run.boot_id);
  trace.builder.metadata(1, "service", run.service);
  trace.module("/srv/bin/server", 0x1000, 1, 0, 1, run.build_id);
  trace.module("/lib/libc.so.6", 0x9000, 1, 0, 1, "77");
  return trace.builder.load();
}

SampleFilter by_ids() {
  SampleFilter filter;
  filter.from_ns = 5;
  filter.worker = 2;
  filter.thread = "17";
  filter.task = 3;
  filter.span = 4;
  filter.label = "tenant=acme";
  return filter;
}

TEST(ComparedRuns, AreOneRunByTheNamesOfTheProcessAndOfTheKernelsBoot) {
  const Trace run = made({});
  EXPECT_TRUE(is_same_run(run, run));
  EXPECT_TRUE(is_same_run(run, made({})));
  EXPECT_FALSE(is_same_run(run, made({.boot_id = "abcd-2"})));
  testing::CpuTrace elsewhere;
  elsewhere.builder.metadata(1, "kernel.boot_id", "there");
  elsewhere.builder.metadata(1, "boot_id", "abcd-1");
  EXPECT_FALSE(is_same_run(run, elsewhere.builder.load()));
  const Trace nameless = testing::CpuTrace().builder.load();
  EXPECT_FALSE(is_same_run(nameless, testing::CpuTrace().builder.load())) << "nobody knows";
}

TEST(ComparedRuns, KeepAFilterWholeWithinOneRun) {
  const OtherFilter kept = filter_for(by_ids(), made({}), made({}));
  EXPECT_EQ(kept.filter, by_ids());
  EXPECT_TRUE(kept.notes.empty());
}

TEST(ComparedRuns, LeaveTheIdsOfTasksSpansAndThreadsOutOfAnotherRunsFilter) {
  const Trace other = made({.boot_id = "abcd-2"});
  const OtherFilter found = filter_for(by_ids(), made({}), other);
  SampleFilter expected;
  expected.from_ns = 5;
  expected.worker = 2;
  expected.label = "tenant=acme";
  EXPECT_EQ(found.filter, expected);
  ASSERT_EQ(found.notes.size(), 3U);
  EXPECT_EQ(found.notes[0],
            "before isn't narrowed to the task: its id says nothing in another run");
  SampleFilter named;
  named.thread = "io";
  EXPECT_EQ(filter_for(named, made({}), other).filter, named) << "a name is one in each run";
}

TEST(ComparedRuns, TellOfAnotherServiceAndOfOtherBuilds) {
  const Trace run = made({});
  EXPECT_TRUE(compared_notes(run, run).empty());
  EXPECT_TRUE(compared_notes(made({.boot_id = "abcd-2"}), run).empty());
  const std::vector<std::string> notes =
      compared_notes(made({.boot_id = "abcd-2", .service = "cart", .build_id = "02"}), run);
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_EQ(notes[0], "before is of another service: cart, not checkout");
  EXPECT_EQ(notes[1],
            "before is of another build of server: functions are matched by name and module");
}

TEST(ComparedRuns, MatchFunctionsOfTwoRunsWithoutTheirPlaces) {
  EXPECT_EQ(match_of(made({}), made({})), FlameMatch::kPlace);
  EXPECT_EQ(match_of(made({}), made({.boot_id = "abcd-2"})), FlameMatch::kName);
  EXPECT_EQ(match_of(made({}), made({.boot_id = "abcd-2"}), FrameBy::kLine), FlameMatch::kPlace);
}

}  // namespace
}  // namespace dial9::analysis
