// What label a sample or a wait has whose writer couldn't ask for it: what the told changes prove,
// and nothing where one may be missing or came too late for the trace.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/moment_labels.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/cpu_flame.h"
#include "analysis/off_cpu.h"
#include "analysis/testing/cpu_trace.h"

namespace dial9::analysis {
namespace {

using format::FieldType;
using testing::CpuTrace;

constexpr std::uint32_t kTid = 7;
constexpr std::uint32_t kPlainTid = 9;
constexpr std::uint32_t kWorker = 3;
constexpr std::uint64_t kTask = 42;
constexpr std::string_view kUnknown = "?";

struct Told {
  std::uint64_t at_ns = 0;
  std::string_view value = {};  // of "tenant"; empty: none; kUnknown
  std::uint64_t task = 0;
  std::uint32_t tid = kTid;
};

void tell(CpuTrace& trace, const Told& told) {
  format::Encoder& out = trace.builder.encoder();
  out.schema(122, "LabelChangeEvent", true,
             {{"tid", FieldType::kU32},
              {"task_id", FieldType::kVarint},
              {"known", FieldType::kBool},
              {"label_name", FieldType::kPooledString, true},
              {"label_value", FieldType::kPooledString, true}});
  out.begin(122, told.at_ns);
  out.u32(told.tid);
  out.varint(told.task);
  out.boolean(told.value != kUnknown);
  for (const std::string_view text : {std::string_view("tenant"), told.value}) {
    told.value.empty() || told.value == kUnknown ? out.absent()
                                                 : (out.present(), out.pooled_string(text));
  }
}

// The labels of this very moment are all that there are, if they are listed; read by `listed_ns`.
void cover(CpuTrace& trace, std::uint64_t at_ns, std::uint64_t since_ns, std::uint64_t until_ns,
           bool lists, std::uint64_t listed_ns) {
  format::Encoder& out = trace.builder.encoder();
  out.schema(123, "LabelCoverageEvent", true,
             {{"since_ns", FieldType::kVarint},
              {"until_ns", FieldType::kVarint},
              {"lists_tasks", FieldType::kBool},
              {"lists_threads", FieldType::kBool},
              {"listed_ns", FieldType::kVarint}});
  out.begin(123, at_ns);
  out.varint(since_ns);
  out.varint(until_ns);
  out.boolean(lists);
  out.boolean(lists);
  out.varint(listed_ns);
}

// A worker's thread that polls the task from 30 to 600; nothing is covered.
CpuTrace one_poll() {
  CpuTrace trace;
  trace.builder.park(10, kWorker, kTid);
  trace.builder.unpark(20, kWorker, testing::TraceBuilder::kNoWait, kTid);
  trace.builder.poll(30, 600, kWorker, kTask);
  trace.builder.park(610, kWorker, kTid);
  return trace;
}

// A worker's thread that polls the task from 30 to 600 and, after a park, from 700 to 800; all is
// covered from 5, when nobody had a label, to `until_ns`.
CpuTrace two_polls(std::uint64_t until_ns = 900) {
  CpuTrace trace;
  cover(trace, 5, 5, 5, true, 6);
  trace.builder.park(10, kWorker, kTid);
  trace.builder.spawn(15, kTask);
  trace.builder.unpark(20, kWorker, testing::TraceBuilder::kNoWait, kTid);
  trace.builder.poll(30, 600, kWorker, kTask);
  trace.builder.park(610, kWorker, kTid);
  trace.builder.unpark(690, kWorker, testing::TraceBuilder::kNoWait, kTid);
  trace.builder.poll(700, 800, kWorker, kTask);
  trace.builder.park(850, kWorker, kTid);
  cover(trace, 2'000, 5, until_ns, false, 2'000);
  return trace;
}

std::string label_of(const Trace& trace, const CpuSample& sample) {
  if (!sample.is_label_known) {
    EXPECT_EQ(sample.label_name, kNoName);
    return "?";
  }
  if (sample.label_name == kNoName) return "-";
  EXPECT_EQ(trace.names.text(sample.label_name), "tenant");
  return std::string(trace.names.text(sample.label_value));
}

// Of samples as perf takes them, in order of time.
std::string labels_at(CpuTrace& trace, const std::vector<std::uint64_t>& moments,
                      std::uint32_t tid = kTid) {
  for (const std::uint64_t at_ns : moments) {
    trace.add({.at_ns = at_ns, .frames = {0x1}, .tid = tid, .has_context = false});
  }
  const Trace loaded = trace.builder.load();
  std::string all;
  for (std::size_t i = 0; i < loaded.samples.size(); ++i) {
    all += (all.empty() ? "" : " ") + label_of(loaded, loaded.samples[i]);
  }
  return all;
}

TEST(MomentLabels, ATasksLabelIsTheLastOneToldWithinItsCoverage) {
  CpuTrace trace = two_polls();
  tell(trace, {.at_ns = 100, .value = "acme", .task = kTask});
  tell(trace, {.at_ns = 200, .value = "bolt", .task = kTask});  // inside the first
  tell(trace, {.at_ns = 300, .value = "acme", .task = kTask});
  tell(trace, {.at_ns = 400, .task = kTask});
  EXPECT_EQ(labels_at(trace, {50, 100, 150, 250, 350, 450}), "- acme acme bolt acme -");
}

TEST(MomentLabels, ALabelGoesOnWithTheTaskToItsNextPollWhoeverToldItAndWhoeverRunsIt) {
  CpuTrace trace = two_polls();
  tell(trace, {.at_ns = 100, .value = "acme", .task = kTask});
  tell(trace, {.at_ns = 620, .value = "bolt", .task = kTask, .tid = 8});
  EXPECT_EQ(labels_at(trace, {500, 650, 750}), "acme - bolt") << "between polls it is the thread's";
}

TEST(MomentLabels, AThreadsLabelHoldsForItsTasksThatHaveNone) {
  CpuTrace trace = two_polls();
  tell(trace, {.at_ns = 25, .value = "house"});
  tell(trace, {.at_ns = 100, .value = "acme", .task = kTask});
  tell(trace, {.at_ns = 200, .task = kTask});
  EXPECT_EQ(labels_at(trace, {50, 150, 250, 605, 650}), "house acme house house house");
}

TEST(MomentLabels, WithoutCoverageNothingIsKnown) {
  CpuTrace trace = one_poll();
  tell(trace, {.at_ns = 100, .value = "acme", .task = kTask});
  EXPECT_EQ(labels_at(trace, {50, 150}), "? ?");
}

TEST(MomentLabels, WhatCameLaterThanTheTraceReachesIsNotTakenForUnchanged) {
  CpuTrace trace = two_polls(300);
  tell(trace, {.at_ns = 100, .value = "acme", .task = kTask});
  EXPECT_EQ(labels_at(trace, {150, 300, 301, 750}), "acme acme ? ?");
}

TEST(MomentLabels, BeforeTheFirstListAndAfterAnInterruptionTheLastLabelIsNotTaken) {
  CpuTrace trace = one_poll();
  tell(trace, {.at_ns = 40, .value = "acme", .task = kTask});
  cover(trace, 35, 35, 200, false, 35);     // nothing listed
  cover(trace, 250, 240, 600, false, 250);  // watched anew from 240 on
  tell(trace, {.at_ns = 400, .value = "bolt", .task = kTask});
  EXPECT_EQ(labels_at(trace, {38, 150, 300, 450}), "? acme ? bolt");
}

// The oldest segment that is kept begins at 300. One thread told the task's label at 100, and its
// record was late; another told it at 150, into the segment before, which is evicted.
TEST(MomentLabels, WhatWasToldBeforeTheOldestSegmentThatIsKeptMayHaveChangedSince) {
  CpuTrace trace = one_poll();
  cover(trace, 300, 5, 290, true, 310);
  tell(trace, {.at_ns = 300, .value = "bolt", .task = kTask, .tid = 0});
  tell(trace, {.at_ns = 100, .value = "acme", .task = kTask});
  cover(trace, 2'000, 5, 900, false, 2'000);
  EXPECT_EQ(labels_at(trace, {110, 200, 305, 310, 400}), "? ? ? bolt bolt");
  CpuTrace plain = one_poll();
  cover(plain, 300, 5, 290, true, 310);
  tell(plain, {.at_ns = 100, .value = "acme", .tid = kPlainTid});
  tell(plain, {.at_ns = 400, .value = "bolt", .tid = kPlainTid});
  cover(plain, 2'000, 5, 900, false, 2'000);
  EXPECT_EQ(labels_at(plain, {200, 450}, kPlainTid), "? bolt");
}

TEST(MomentLabels, AListTellsWhatHoldsAndThatTheOthersHaveNone) {
  CpuTrace trace = two_polls();
  tell(trace, {.at_ns = 100, .value = "acme", .task = kTask});
  trace.builder.loss(1'000, "ring full", 3, 620, 630);
  cover(trace, 710, 5, 710, true, 720);
  tell(trace, {.at_ns = 710, .value = "bolt", .task = kTask, .tid = 0});
  cover(trace, 760, 5, 760, true, 770);  // has it no more
  EXPECT_EQ(labels_at(trace, {120, 705, 715, 720, 755, 765, 775}), "acme ? ? bolt bolt bolt -")
      << "while a list is read it doesn't count";
}

TEST(MomentLabels, AListedLabelThatMayBeAnotherIsUnknownUntilTheNextChange) {
  CpuTrace trace = two_polls();
  cover(trace, 26, 5, 26, true, 27);
  tell(trace, {.at_ns = 26, .value = kUnknown});
  tell(trace, {.at_ns = 100, .value = "acme", .task = kTask});
  tell(trace, {.at_ns = 200, .task = kTask});
  tell(trace, {.at_ns = 605, .value = "house"});
  EXPECT_EQ(labels_at(trace, {50, 150, 250, 620}), "? acme ? house");
}

TEST(MomentLabels, WhereAChangeMayBeLostOrShedNothingIsKnown) {
  CpuTrace lost = two_polls();
  tell(lost, {.at_ns = 100, .value = "acme", .task = kTask});
  lost.builder.loss(1'000, "recording_off", 0, 650, 660);
  EXPECT_EQ(labels_at(lost, {150, 750}), "acme ?");
  CpuTrace shed = two_polls();
  tell(shed, {.at_ns = 100, .value = "acme", .task = kTask});
  shed.builder.shed(200, "events", 2, 200, 0, 0);
  shed.builder.shed(300, "events", 1, 200, 5, 5);
  tell(shed, {.at_ns = 400, .value = "bolt", .task = kTask});
  EXPECT_EQ(labels_at(shed, {150, 350, 450}), "acme ? bolt");
}

TEST(MomentLabels, InAPollOfWhichTheTaskIsNotKnownNeitherIsTheLabel) {
  CpuTrace trace = two_polls();
  tell(trace, {.at_ns = 25, .value = "house"});
  trace.builder.loss(1'000, "ring full", 3, 590, 610);
  EXPECT_EQ(labels_at(trace, {100, 750}), "? ?");
}

TEST(MomentLabels, InsideAnotherTasksScopeThePollsLabelIsNotTaken) {
  CpuTrace trace = two_polls();
  tell(trace, {.at_ns = 50, .value = "acme", .task = kTask});
  tell(trace, {.at_ns = 100, .value = "other", .task = 43});  // told by the poll's thread
  EXPECT_EQ(labels_at(trace, {80, 150, 750}), "acme ? ?");
  CpuTrace back = two_polls();
  tell(back, {.at_ns = 100, .value = "other", .task = 43});
  tell(back, {.at_ns = 200, .value = "acme", .task = kTask});
  EXPECT_EQ(labels_at(back, {150, 250}), "? acme");
}

TEST(MomentLabels, AThreadThatIsNoWorkerHasTheLabelThatItTold) {
  CpuTrace trace = two_polls();
  tell(trace, {.at_ns = 100, .value = "acme", .tid = kPlainTid});
  tell(trace, {.at_ns = 200, .tid = kPlainTid});
  EXPECT_EQ(labels_at(trace, {50, 150, 250}, kPlainTid), "? acme -")
      << "before it told any, it might have worked for a task";
}

TEST(MomentLabels, AListInBetweenConfirmsWhatAThreadThatIsNoWorkerTold) {
  CpuTrace trace = two_polls();
  tell(trace, {.at_ns = 100, .value = "acme", .tid = kPlainTid});
  cover(trace, 200, 5, 200, true, 210);
  tell(trace, {.at_ns = 200, .value = "acme", .tid = kPlainTid});
  EXPECT_EQ(labels_at(trace, {150, 205, 250}, kPlainTid), "acme acme acme");
  CpuTrace listed = two_polls();
  cover(listed, 200, 5, 200, true, 210);
  tell(listed, {.at_ns = 200, .value = "acme", .tid = kPlainTid});
  EXPECT_EQ(labels_at(listed, {250}, kPlainTid), "?") << "listed alone, it might work for a task";
}

TEST(MomentLabels, AThreadThatMayBeInAPollSinceItToldItsLabelHasNoKnownOne) {
  CpuTrace trace = two_polls();
  trace.builder.poll(300, 400, kWorker + 1, 44);  // nobody parked there: it may be any thread
  tell(trace, {.at_ns = 100, .value = "acme", .tid = kPlainTid});
  EXPECT_EQ(labels_at(trace, {150, 350, 450}, kPlainTid), "acme ? acme");
  CpuTrace in_task = two_polls();
  tell(in_task, {.at_ns = 100, .value = "acme", .tid = kPlainTid});
  tell(in_task, {.at_ns = 200, .value = "bolt", .task = 45, .tid = kPlainTid});
  EXPECT_EQ(labels_at(in_task, {150, 250}, kPlainTid), "acme ?");
}

TEST(MomentLabels, OfSeveralProcessesNothingIsKnown) {
  CpuTrace trace = two_polls();
  tell(trace, {.at_ns = 100, .value = "acme", .task = kTask});
  trace.builder.metadata(1, "boot_id", "abcd-1");
  trace.builder.metadata(2, "boot_id", "efgh-2");
  EXPECT_EQ(labels_at(trace, {150}), "?");
}

TEST(MomentLabels, AWaitHasALabelThatHeldThroughout) {
  CpuTrace trace = two_polls();
  tell(trace, {.at_ns = 100, .value = "acme", .task = kTask});
  tell(trace, {.at_ns = 200, .value = "bolt", .task = kTask});
  trace.builder.off_cpu({.at_ns = 120, .proven_ns = 50, .is_exact = true});
  trace.builder.off_cpu({.at_ns = 180, .proven_ns = 50, .is_exact = true});
  trace.builder.off_cpu({.at_ns = 240, .proven_ns = 50, .is_exact = true});
  const Trace loaded = trace.builder.load();
  ASSERT_EQ(loaded.off_cpu.size(), 3U);
  EXPECT_EQ(loaded.names.text(loaded.off_cpu[0].label_value), "acme");
  EXPECT_FALSE(loaded.off_cpu[1].is_label_known) << "it changed meanwhile, so the clocks say";
  EXPECT_EQ(loaded.names.text(loaded.off_cpu[2].label_value), "bolt");
  const OffCpuReport report = off_cpu_report(loaded, {.filter = {.label = "tenant=acme"}}, nullptr);
  EXPECT_EQ(report.proven_ns, 50U);
}

TEST(MomentLabels, FlamesByLabelTakeWhatPerfSampledUnderItAndCountTheUnknown) {
  CpuTrace trace = two_polls(500);
  tell(trace, {.at_ns = 100, .value = "acme", .task = kTask});
  tell(trace, {.at_ns = 200, .value = "bolt", .task = kTask});
  for (const std::uint64_t at_ns : {50U, 150U, 160U, 250U, 550U}) {
    trace.add({.at_ns = at_ns, .frames = {at_ns}, .tid = kTid, .has_context = false});
  }
  const Trace loaded = trace.builder.load();
  const CpuFlame flame = cpu_flame(loaded, {.label = "tenant=acme"}, nullptr);
  EXPECT_EQ(flame.tree.total(), 2U);
  std::string notes;
  for (const std::string& note : flame.heading.notes) notes += note + "\n";
  EXPECT_NE(notes.find("1 sample doesn't say whose"), std::string::npos) << notes;
}

}  // namespace
}  // namespace dial9::analysis
