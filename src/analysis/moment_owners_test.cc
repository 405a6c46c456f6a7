// Whose work a sample or a wait is of, where its writer couldn't tell: what the trace proves, and
// nothing where a record may be missing.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/moment_owners.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/cpu_flame.h"
#include "analysis/off_cpu.h"
#include "analysis/testing/cpu_trace.h"

namespace dial9::analysis {
namespace {

using format::FieldType;
using testing::CpuTrace;
using testing::TraceBuilder;

constexpr std::uint32_t kTid = 7;
constexpr std::uint32_t kWorker = 3;
constexpr std::uint64_t kRequest = (std::uint64_t{1} << 63) | 1;  // spans' ids
constexpr std::uint64_t kQuery = kRequest + 1;

void span_enter(TraceBuilder& builder, std::uint64_t at_ns, std::uint64_t id,
                std::uint64_t worker = kWorker) {
  format::Encoder& out = builder.encoder();
  out.schema(120, "SpanEnter:a.cc:1:1", true,
             {{"worker_id", FieldType::kVarint},
              {"span_id", FieldType::kVarint},
              {"span_name", FieldType::kPooledString}});
  out.begin(120, at_ns);
  out.varint(worker);
  out.varint(id);
  out.pooled_string("work");
}

void span_exit(TraceBuilder& builder, std::uint64_t at_ns, std::uint64_t id) {
  format::Encoder& out = builder.encoder();
  out.schema(121, "SpanExit:a.cc:1:1", true,
             {{"worker_id", FieldType::kVarint},
              {"span_id", FieldType::kVarint},
              {"active_ns", FieldType::kVarint},
              {"idle_ns", FieldType::kVarint},
              {"completed", FieldType::kBool}});
  out.begin(121, at_ns);
  out.varint(kWorker);
  out.varint(id);
  out.varint(0);
  out.varint(0);
  out.boolean(true);
}

void thin(TraceBuilder& builder, std::string_view kind, std::uint64_t from_ns,
          std::uint64_t to_ns) {
  builder.shed(from_ns, kind, 2, from_ns, 0, 0);
  builder.shed(to_ns, kind, 1, from_ns, 5, 5);
}

// A worker's thread that parks at 10, 20 and 900, and works for task 42 from 30 to 600; spawned at
// 15 where `is_young`.
CpuTrace one_poll(bool is_young = true) {
  CpuTrace trace;
  trace.builder.park(10, kWorker, kTid);
  if (is_young) trace.builder.spawn(15, 42);
  trace.builder.unpark(20, kWorker, TraceBuilder::kNoWait, kTid);
  trace.builder.poll(30, 600, kWorker, 42);
  trace.builder.park(900, kWorker, kTid);
  trace.builder.unpark(950, kWorker, TraceBuilder::kNoWait, kTid);
  return trace;
}

// "task span" of the one sample, as perf takes it, at a moment.
std::string owner_at(CpuTrace& trace, std::uint64_t at_ns, std::uint32_t tid = kTid) {
  trace.add({.at_ns = at_ns, .frames = {0x1}, .tid = tid, .has_context = false});
  const Trace loaded = trace.builder.load();
  if (loaded.samples.size() != 1) return "no sample";
  const CpuSample& sample = loaded.samples[0];
  const auto text = [](std::uint64_t id) {
    return id == kUnknownId ? std::string("?")
           : id == kRequest ? "request"
           : id == kQuery   ? "query"
                            : std::to_string(id);
  };
  EXPECT_EQ(sample.is_owner_joined, sample.task_id != kUnknownId);
  EXPECT_FALSE(sample.is_label_known) << "no record tells a label";
  return text(sample.task_id) + " " + text(sample.span_id);
}

TEST(MomentOwners, ASampleIsOfTheTaskWhosePollItLiesInAndOfNoneBetween) {
  CpuTrace in_poll = one_poll();
  EXPECT_EQ(owner_at(in_poll, 100), "42 0") << "no span is open in the task: it is younger";
  CpuTrace between = one_poll();
  EXPECT_EQ(owner_at(between, 700), "0 ?");
  CpuTrace parked = one_poll();
  EXPECT_EQ(owner_at(parked, 920), "0 ?");
  CpuTrace other_thread = one_poll();
  EXPECT_EQ(owner_at(other_thread, 100, kTid + 1), "? ?") << "it is no worker";
}

// A worker that never parks, by the accounts of it at 20 and 700; it works for task 42 from 30 to
// 600.
CpuTrace one_poll_without_parks(std::uint32_t second_tid = kTid) {
  CpuTrace trace;
  trace.builder.spawn(15, 42);
  trace.builder.sched(20, kWorker, 5, 0, kTid);
  trace.builder.poll(30, 600, kWorker, 42);
  trace.builder.sched(700, kWorker, 500, 0, second_tid);
  return trace;
}

TEST(MomentOwners, AWorkerThatNeverParksIsKnownByItsAccountsWhereTheyLieOnBothSides) {
  CpuTrace in_poll = one_poll_without_parks();
  EXPECT_EQ(owner_at(in_poll, 100), "42 0");
  CpuTrace between = one_poll_without_parks();
  EXPECT_EQ(owner_at(between, 650), "? ?") << "what it did there is in no record";
  CpuTrace before = one_poll_without_parks();
  before.builder.poll(1, 10, kWorker, 42);
  EXPECT_EQ(owner_at(before, 5), "? ?");
  CpuTrace behind = one_poll_without_parks();
  behind.builder.poll(800, 900, kWorker, 42);
  EXPECT_EQ(owner_at(behind, 850), "? ?") << "it may be another thread's by then";
  CpuTrace other_thread = one_poll_without_parks();
  EXPECT_EQ(owner_at(other_thread, 100, kTid + 1), "? ?");
  for (const std::uint32_t tid : {kTid, kTid + 1}) {
    CpuTrace handed_over = one_poll_without_parks(kTid + 1);
    EXPECT_EQ(owner_at(handed_over, 100, tid), "? ?");
  }
}

TEST(MomentOwners, AWorkerOfTwoRuntimesThatNeverParksIsTheOneThatPolls) {
  CpuTrace trace = one_poll_without_parks();
  trace.builder.sched(25, kWorker + 1, 5, 0, kTid);
  trace.builder.poll(610, 620, kWorker + 1, 43);
  trace.builder.sched(690, kWorker + 1, 5, 0, kTid);
  EXPECT_EQ(owner_at(trace, 100), "42 0");
  CpuTrace with_parks = one_poll();
  with_parks.builder.sched(25, kWorker + 1, 5, 0, kTid);
  with_parks.builder.poll(610, 620, kWorker + 1, 43);
  with_parks.builder.sched(890, kWorker + 1, 5, 0, kTid);
  EXPECT_EQ(owner_at(with_parks, 615), "43 ?") << "no spawn tells how old the task is";
}

TEST(MomentOwners, AWorkersParksSayWhoseItIsWhateverItsAccountsSay) {
  CpuTrace trace = one_poll();
  trace.builder.sched(25, kWorker, 5, 0, kTid + 1);
  trace.builder.sched(800, kWorker, 5, 0, kTid + 1);
  EXPECT_EQ(owner_at(trace, 100, kTid + 1), "? ?");
}

TEST(MomentOwners, WhatASamplerCouldReadItselfStaysAsItIs) {
  CpuTrace trace = one_poll();
  trace.add({.at_ns = 100, .frames = {0x1}, .tid = kTid});
  const Trace loaded = trace.builder.load();
  EXPECT_EQ(loaded.samples[0].task_id, 0U) << "it says that there is none";
  EXPECT_FALSE(loaded.samples[0].is_owner_joined);
  EXPECT_TRUE(loaded.samples[0].is_label_known);
}

TEST(MomentOwners, WhereRecordsMayBeMissingNothingIsSaid) {
  CpuTrace before_all = one_poll();
  EXPECT_EQ(owner_at(before_all, 5), "? ?") << "before the lane's first park";
  CpuTrace after_all = one_poll();
  EXPECT_EQ(owner_at(after_all, 1'000), "? ?") << "after the lane's last record";
  for (const std::uint64_t at_ns : {100U, 700U}) {
    CpuTrace lost = one_poll();
    lost.builder.loss(2'000, "ring full", 3, 590, 610);
    EXPECT_EQ(owner_at(lost, at_ns), "? ?") << at_ns;
  }
  CpuTrace thinned = one_poll();
  thin(thinned.builder, "polls", 650, 800);
  EXPECT_EQ(owner_at(thinned, 700), "? ?") << "in a poll that was left out, or in none";
  CpuTrace kept = one_poll();
  thin(kept.builder, "polls", 20, 800);
  EXPECT_EQ(owner_at(kept, 100), "42 ?") << "a poll that was kept is one; spans of others may lack";
}

TEST(MomentOwners, APollWhoseEndIsntRecordedTellsOnlyThatItBegan) {
  CpuTrace trace;
  trace.builder.park(10, kWorker, kTid);
  trace.builder.unpark(20, kWorker, TraceBuilder::kNoWait, kTid);
  trace.builder.poll_start(30, kWorker, 42);
  trace.builder.poll(500, 600, kWorker, 43);
  EXPECT_EQ(owner_at(trace, 100), "? ?");
}

TEST(MomentOwners, BetweenPollsAThreadMayServeAnotherRuntimeUnlessItsWorkersAreOthers) {
  CpuTrace nested = one_poll();
  nested.builder.poll(650, 800, kWorker + 1, 50);
  EXPECT_EQ(owner_at(nested, 700), "? ?") << "nobody says whose thread that worker is";
  CpuTrace others = one_poll();
  others.builder.park(620, kWorker + 1, kTid + 1);
  others.builder.unpark(640, kWorker + 1, TraceBuilder::kNoWait, kTid + 1);
  others.builder.poll(650, 800, kWorker + 1, 50);
  others.builder.park(850, kWorker + 1, kTid + 1);
  EXPECT_EQ(owner_at(others, 700), "0 ?");
}

TEST(MomentOwners, BetweenPollsOfMoreWorkersThanAHostHasNothingIsSaid) {
  for (const std::uint32_t workers : {1'023U, 1'024U}) {  // beside its own
    CpuTrace trace = one_poll();
    for (std::uint32_t i = 0; i < workers; ++i) {
      trace.builder.poll(30, 40, i < kWorker ? i : i < 250 ? i + 1 : i + 10, 50 + i);
    }
    EXPECT_EQ(owner_at(trace, 700), workers == 1'023 ? "0 ?" : "? ?");
  }
}

TEST(MomentOwners, OfTwoProcessesInOneTraceNobodySaysWhoseAWorkerIs) {
  CpuTrace one = one_poll();
  one.builder.metadata(1, "boot_id", "a-1");
  one.builder.metadata(2, "boot_id", "a-1");
  EXPECT_EQ(owner_at(one, 100), "42 0");
  CpuTrace two = one_poll();
  two.builder.metadata(1, "boot_id", "a-1");
  two.builder.metadata(2, "boot_id", "a-2");
  EXPECT_EQ(owner_at(two, 100), "? ?");
}

TEST(MomentOwners, AnIdThatSeveralThreadsShareSaysOfNoneWhatItDid) {
  CpuTrace trace;
  trace.builder.park(10, kUnknownWorker, kTid);
  trace.builder.unpark(20, kUnknownWorker, TraceBuilder::kNoWait, kTid);
  trace.builder.poll(30, 600, kUnknownWorker, 42);
  trace.builder.park(900, kUnknownWorker, kTid);
  EXPECT_EQ(owner_at(trace, 100), "? ?");
}

CpuTrace with_spans(bool is_young = true) {
  CpuTrace trace = one_poll(is_young);
  span_enter(trace.builder, 100, kRequest);
  span_enter(trace.builder, 200, kQuery);
  span_exit(trace.builder, 300, kQuery);
  span_exit(trace.builder, 500, kRequest);
  return trace;
}

TEST(MomentOwners, ItsSpanIsTheInnermostOneThatIsOpenInTheTask) {
  const std::pair<std::uint64_t, const char*> moments[] = {
      {50, "42 0"}, {150, "42 request"}, {250, "42 query"}, {400, "42 request"}, {550, "42 0"}};
  for (const auto& [at_ns, owner] : moments) {
    CpuTrace trace = with_spans();
    EXPECT_EQ(owner_at(trace, at_ns), owner) << at_ns;
  }
}

TEST(MomentOwners, OfATaskThatIsOlderThanTheTraceASpanMayBeOpenThatIsNotInIt) {
  CpuTrace inside = with_spans(false);
  EXPECT_EQ(owner_at(inside, 250), "42 query") << "what began later is further in";
  CpuTrace outside = with_spans(false);
  EXPECT_EQ(owner_at(outside, 550), "42 ?");
}

TEST(MomentOwners, ASpanIsOnlyTheInnermostWhereNoneCanBeMissingSinceItBegan) {
  CpuTrace lost = with_spans();
  lost.builder.loss(2'000, "ring full", 1, 12, 18);
  EXPECT_EQ(owner_at(lost, 150), "42 request") << "lost before it began";
  CpuTrace lost_no_span = with_spans();
  lost_no_span.builder.loss(2'000, "ring full", 1, 16, 18);
  EXPECT_EQ(owner_at(lost_no_span, 50), "42 ?");
  CpuTrace thinned = with_spans();
  thin(thinned.builder, "spans", 310, 390);
  EXPECT_EQ(owner_at(thinned, 400), "42 ?");
  CpuTrace open = one_poll();
  span_enter(open.builder, 100, kRequest);
  EXPECT_EQ(owner_at(open, 250), "42 ?") << "its end isn't there: it may be lost";
}

TEST(MomentOwners, AWaitThatNoLookSawIsOfThePollThatItLiesInWholly) {
  CpuTrace trace = with_spans();
  trace.builder.off_cpu({.at_ns = 210, .proven_ns = 80, .is_exact = true, .runnable_ns = 10});
  trace.builder.off_cpu({.at_ns = 590, .proven_ns = 20, .is_exact = true});
  trace.builder.off_cpu({.at_ns = 290, .proven_ns = 20, .is_exact = true});
  const Trace loaded = trace.builder.load();
  ASSERT_EQ(loaded.off_cpu.size(), 3U);
  EXPECT_EQ(loaded.off_cpu[0].task_id, 42U);
  EXPECT_EQ(loaded.off_cpu[0].span_id, kQuery);
  EXPECT_EQ(loaded.off_cpu[1].task_id, 42U);
  EXPECT_EQ(loaded.off_cpu[1].span_id, kUnknownId) << "a span ended meanwhile, so the clocks say";
  EXPECT_EQ(loaded.off_cpu[2].task_id, kUnknownId) << "beyond the poll's end";
}

TEST(MomentOwners, AWaitThatTellsOneOfTaskSpanAndLabelHasNoneOfTheOthersThatItDoesntTell) {
  CpuTrace trace = with_spans();
  trace.builder.off_cpu({.at_ns = 210, .proven_ns = 5, .label = "acme"});
  trace.builder.off_cpu({.at_ns = 220, .proven_ns = 5, .task = 42});
  const Trace loaded = trace.builder.load();
  EXPECT_EQ(loaded.off_cpu[0].task_id, 0U) << "the poll around it isn't asked";
  EXPECT_EQ(loaded.off_cpu[0].span_id, 0U);
  EXPECT_EQ(loaded.off_cpu[1].span_id, 0U);
  EXPECT_FALSE(loaded.off_cpu[1].is_owner_joined);
}

std::string notes_of(const FlameHeading& heading) {
  std::string text;
  for (const std::string& note : heading.notes) text += note + "\n";
  return text;
}

TEST(MomentOwners, FlamesOfATaskAndASpanTakeWhatPerfSampledInThem) {
  CpuTrace trace = with_spans();
  for (const std::uint64_t at_ns : {150U, 250U, 550U, 700U, 5U}) {
    trace.add({.at_ns = at_ns, .frames = {at_ns}, .tid = kTid, .has_context = false});
  }
  const Trace loaded = trace.builder.load();
  const CpuFlame task = cpu_flame(loaded, {.task = 42}, nullptr);
  EXPECT_EQ(task.tree.total(), 3U);
  EXPECT_NE(notes_of(task.heading).find("1 sample doesn't say whose"), std::string::npos)
      << notes_of(task.heading);
  EXPECT_EQ(cpu_flame(loaded, {.span = kQuery}, nullptr).tree.total(), 1U);
}

TEST(MomentOwners, ASampleOfWhichNoLabelIsKnownIsCountedNotSilentlyLeft) {
  CpuTrace trace = one_poll();
  trace.add({.at_ns = 100, .frames = {0x1}, .tid = kTid, .has_context = false});
  trace.add({.at_ns = 110, .frames = {0x2}, .label = "acme", .tid = kTid});
  trace.add({.at_ns = 120, .frames = {0x3}, .tid = kTid});
  trace.builder.off_cpu({.at_ns = 130, .proven_ns = 5, .tid = 9});
  const Trace loaded = trace.builder.load();
  const CpuFlame flame = cpu_flame(loaded, {.label = "tenant=acme"}, nullptr);
  EXPECT_EQ(flame.tree.total(), 1U);
  EXPECT_NE(notes_of(flame.heading).find("1 sample doesn't say whose"), std::string::npos)
      << notes_of(flame.heading);
  const OffCpuReport waits = off_cpu_report(loaded, {.filter = {.label = "tenant"}}, nullptr);
  EXPECT_NE(notes_of(waits.heading).find("1 wait doesn't say whose"), std::string::npos)
      << notes_of(waits.heading);
}

}  // namespace
}  // namespace dial9::analysis
