// Each kind of finding: a trace that shows it, and one that looks like it and is fine.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/findings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analysis/loader.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using testing::TraceBuilder;

constexpr std::uint64_t kUs = 1'000;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;

// The severity of the worst finding of the kind, or "none".
std::string severity(TraceBuilder& builder, FindingKind kind) {
  const std::vector<Finding> findings = diagnose(builder.load());
  for (const Finding& finding : findings) {
    if (finding.kind == kind) {
      return std::string(to_string(finding.severity));
    }
  }
  return "none";
}

// `count` polls of 50 us, one every `every_ns`, over two workers.
void ordinary_polls(TraceBuilder& builder, std::uint64_t count, std::uint64_t every_ns = 100 * kUs,
                    std::uint64_t start_ns = kSecond) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at_ns = start_ns + i * every_ns;
    const std::uint64_t task = 1 + i % 10;
    builder.wake(at_ns - 5 * kUs, task);
    builder.poll(at_ns, at_ns + 50 * kUs, i % 2, task);
  }
}

TEST(LongPoll, IsFoundAgainstTheProgramsOwnDistribution) {
  TraceBuilder builder;
  ordinary_polls(builder, 1'000);
  for (std::uint64_t i = 0; i < 10; ++i) {
    builder.poll(2 * kSecond + i * 100 * kMs, 2 * kSecond + i * 100 * kMs + 20 * kMs, 0, 99,
                 "slow.cc:7");
  }
  const Trace trace = builder.load();
  const std::vector<Finding> findings = diagnose(trace);
  ASSERT_FALSE(findings.empty());
  const Finding& worst = findings[0];
  EXPECT_EQ(worst.kind, FindingKind::kLongPoll);
  EXPECT_EQ(worst.count, 10U);
  EXPECT_EQ(worst.worst_ns, 20 * kMs);
  EXPECT_EQ(worst.where, "slow.cc:7");
  EXPECT_EQ(trace.tasks.id[worst.task], 99U);
  EXPECT_GE(worst.severity, Severity::kWarning);
}

TEST(LongPoll, CountsCallsThatOverlapInsideItOnce) {
  TraceBuilder builder;
  ordinary_polls(builder, 1'000);
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::uint64_t at_ns = 2 * kSecond + i * 100 * kMs;
    builder.poll(at_ns, at_ns + 20 * kMs, 0, 99, "slow.cc:7");
    builder.blocking_call(at_ns + kMs, 10 * kMs, 99, "fsync");
    builder.blocking_call(at_ns + 2 * kMs, 9 * kMs, 99, "write");  // inside it
  }
  const std::vector<Finding> findings = diagnose(builder.load());
  const auto found = std::find_if(findings.begin(), findings.end(), [](const Finding& one) {
    return one.kind == FindingKind::kLongPoll;
  });
  ASSERT_NE(found, findings.end());
  const auto says = [&](const char* text) {
    return std::any_of(
        found->evidence.begin(), found->evidence.end(),
        [&](const std::string& line) { return line.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(says("of the longest poll (20.0 ms), 10.0 ms"))
      << ::testing::PrintToString(found->evidence);
}

bool has_evidence(TraceBuilder& builder, FindingKind kind, std::string_view text) {
  for (const Finding& finding : diagnose(builder.load())) {
    for (const std::string& line : finding.evidence) {
      if (finding.kind == kind && line.find(text) != std::string::npos) return true;
    }
  }
  return false;
}

TEST(LongPoll, OneThatWasOnlyPreemptedIsNotSaidToHaveWaitedInACall) {
  for (const std::uint8_t reason : {std::uint8_t{0}, std::uint8_t{1}}) {
    TraceBuilder builder;
    ordinary_polls(builder, 1'000);
    for (std::uint64_t i = 0; i < 10; ++i) {
      const std::uint64_t at_ns = 2 * kSecond + i * 100 * kMs;
      builder.poll(at_ns, at_ns + 20 * kMs, 0, 99, "slow.cc:7");
      builder.off_cpu({.at_ns = at_ns + kMs,
                       .proven_ns = 10 * kMs,
                       .tid = 9,
                       .task = 99,
                       .reason = reason,
                       .is_exact = true});
    }
    EXPECT_EQ(has_evidence(builder, FindingKind::kLongPoll, "10.0 ms went into recorded calls"),
              reason == 0);
  }
}

TEST(LongPoll, IsNotFoundInAProgramWhosePollsAreAllLong) {
  TraceBuilder builder;
  for (std::uint64_t i = 0; i < 300; ++i) {
    builder.poll(kSecond + i * 30 * kMs, kSecond + i * 30 * kMs + 20 * kMs, 0, 1 + i % 10);
  }
  EXPECT_EQ(severity(builder, FindingKind::kLongPoll), "none");
}

TEST(LongPoll, IsNotFoundWhereTheKernelKeptTheThreadWaiting) {
  TraceBuilder builder;
  ordinary_polls(builder, 1'000);
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::uint64_t at_ns = 2 * kSecond + i * 100 * kMs;
    builder.poll(at_ns, at_ns + 20 * kMs, 0, 99, "slow.cc:7");
    builder.sched(at_ns + 90 * kMs, 0, 5 * kMs, 19 * kMs);
  }
  EXPECT_EQ(severity(builder, FindingKind::kLongPoll), "none");
}

TEST(LongPoll, IsNotFoundForWorkThatIsOpenAtTheCut) {
  TraceBuilder builder;
  ordinary_polls(builder, 1'000);
  builder.poll_start(kSecond + 200 * kMs, 2, 99, "slow.cc:7");
  builder.poll(9 * kSecond, 9 * kSecond + kUs, 1, 3);
  EXPECT_EQ(severity(builder, FindingKind::kLongPoll), "none");
}

void late_polls(TraceBuilder& builder, bool is_busy_before) {
  ordinary_polls(builder, 1'000);
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::uint64_t at_ns = 2 * kSecond + i * 50 * kMs;
    builder.wake(at_ns, 50);
    if (is_busy_before) {
      for (std::uint64_t piece = 0; piece < 10; ++piece) {
        builder.poll(at_ns + piece * 3 * kMs, at_ns + piece * 3 * kMs + 3 * kMs, 0, 51);
      }
    }
    builder.poll(at_ns + 30 * kMs, at_ns + 30 * kMs + kUs, 0, 50);
  }
}

TEST(ReadyDelay, IsFoundWhereAWorkerRanSomethingElse) {
  TraceBuilder builder;
  late_polls(builder, true);
  EXPECT_NE(severity(builder, FindingKind::kReadyDelay), "none");
  late_polls(builder, true);
  EXPECT_NE(severity(builder, FindingKind::kReadyDelay), "info");
}

TEST(ReadyDelay, IsNotFoundWhereTheWorkerRanNothing) {
  TraceBuilder builder;
  late_polls(builder, false);
  EXPECT_EQ(severity(builder, FindingKind::kReadyDelay), "none");
}

void sched_windows(TraceBuilder& builder, std::uint64_t run_ns, std::uint64_t wait_ns) {
  builder.metadata(kSecond, "process.available_parallelism", "2");
  for (std::uint64_t i = 1; i <= 20; ++i) {
    builder.sched(kSecond + i * 100 * kMs, 0, run_ns, wait_ns);
  }
}

TEST(KernelWait, IsAWarningWhereItEatsMuchOfAWorkersTime) {
  TraceBuilder builder;
  sched_windows(builder, 10 * kMs, 60 * kMs);
  EXPECT_EQ(severity(builder, FindingKind::kKernelWait), "critical");
}

TEST(KernelWait, IsAWarningWhereTheProcessBurnsTheCpusItself) {
  TraceBuilder builder;
  sched_windows(builder, 20 * kMs, 15 * kMs);
  builder.resources(kSecond, 0);
  builder.resources(3 * kSecond, 4 * kSecond - 100 * kMs);  // of 2 CPUs in 2 s
  EXPECT_EQ(severity(builder, FindingKind::kKernelWait), "warning");
}

TEST(KernelWait, IsOnlyToldWhereTheMachineIsBusyOtherwise) {
  TraceBuilder builder;
  sched_windows(builder, 20 * kMs, 15 * kMs);
  builder.resources(kSecond, 0);
  builder.resources(3 * kSecond, 400 * kMs);
  EXPECT_EQ(severity(builder, FindingKind::kKernelWait), "info");
}

TEST(KernelWait, IsNotToldWhereThereIsHardlyAny) {
  TraceBuilder builder;
  sched_windows(builder, 50 * kMs, 1 * kMs);
  EXPECT_EQ(severity(builder, FindingKind::kKernelWait), "none");
}

void depths(TraceBuilder& builder, const std::function<std::uint32_t(std::uint32_t)>& depth) {
  for (std::uint32_t i = 0; i < 400; ++i) {
    builder.metrics(kSecond + i * 10 * kMs, "main", depth(i), 5);
  }
}

TEST(QueueGrowth, IsFoundInAQueueThatOnlyRises) {
  TraceBuilder builder;
  depths(builder, [](std::uint32_t i) { return i; });
  EXPECT_EQ(severity(builder, FindingKind::kQueueGrowth), "warning");
}

TEST(QueueGrowth, IsFoundInAQueueThatNeverDrains) {
  TraceBuilder builder;
  depths(builder, [](std::uint32_t i) { return i < 60 ? 0 : 500 + i * 37 % 300; });
  EXPECT_EQ(severity(builder, FindingKind::kQueueGrowth), "warning");
}

TEST(QueueGrowth, IsNotFoundInBurstsThatDrain) {
  TraceBuilder builder;
  depths(builder, [](std::uint32_t i) { return i % 20 < 15 ? 900 : 0; });
  EXPECT_EQ(severity(builder, FindingKind::kQueueGrowth), "none");
}

void two_workers(TraceBuilder& builder, bool is_idle_one_parked) {
  builder.metadata(kSecond, "runtime.core-0", "0");
  builder.metadata(kSecond, "runtime.core-1", "1");
  if (is_idle_one_parked) {
    builder.park(kSecond, 1);
    builder.unpark(5 * kSecond, 1);
  }
  for (std::uint64_t i = 0; i < 800; ++i) {
    const std::uint64_t at_ns = kSecond + i * 5 * kMs;
    builder.wake(at_ns - 3 * kMs, 1 + i % 10);
    builder.poll(at_ns, at_ns + 4 * kMs, 0, 1 + i % 10);
    if (!is_idle_one_parked) {
      builder.poll(at_ns, at_ns + 3 * kMs, 1, 20 + i % 10);
    }
  }
}

TEST(WorkerImbalance, IsFoundWhereWorkWaitsBesideAnIdleWorker) {
  TraceBuilder builder;
  two_workers(builder, true);
  EXPECT_EQ(severity(builder, FindingKind::kWorkerImbalance), "warning");
}

TEST(WorkerImbalance, SaysThatAWorkerWhosePollsMayBeLostOnlyLooksIdle) {
  for (const bool has_loss : {false, true}) {
    TraceBuilder builder;
    two_workers(builder, true);
    if (has_loss) builder.loss(kSecond, "ring full", 9, kSecond, kSecond + kMs);
    EXPECT_EQ(has_evidence(builder, FindingKind::kWorkerImbalance, "looks idle may have worked"),
              has_loss);
  }
}

TEST(WorkerImbalance, SaysThatRecordingWasOffWhereNoEventWasLost) {
  const auto says = [](std::string_view text, bool has_loss) {
    TraceBuilder builder;
    two_workers(builder, true);
    builder.loss(kSecond, "recording_off", 0, kSecond, kSecond + kMs);
    if (has_loss) builder.loss(2 * kSecond, "ring full", 9, 2 * kSecond, 2 * kSecond + kMs);
    return has_evidence(builder, FindingKind::kWorkerImbalance, text);
  };
  EXPECT_TRUE(says("recording was off: times in polls are lower bounds", false));
  EXPECT_FALSE(says("events were lost", false));
  EXPECT_TRUE(says("events were lost", true));
}

TEST(WorkerImbalance, IsNotFoundWhereBothWork) {
  TraceBuilder builder;
  two_workers(builder, false);
  EXPECT_EQ(severity(builder, FindingKind::kWorkerImbalance), "none");
}

enum class Fate { kForgotten, kEnds, kWorks };
void tasks_over_time(TraceBuilder& builder, Fate fate, std::uint64_t apart_ns) {
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::uint64_t at_ns = kSecond + i * apart_ns;
    builder.spawn(at_ns, 1'000 + i, "watch.cc:3");
    builder.poll(at_ns + kUs, at_ns + 2 * kUs, 0, 1'000 + i, "watch.cc:3");
    if (fate == Fate::kEnds) {
      builder.terminate(at_ns + 50 * kMs, 1'000 + i);
    }
  }
  for (std::uint64_t i = 0; i < 200 && fate == Fate::kWorks; ++i) {
    builder.poll(4'900 * kMs + i * kUs, 4'900 * kMs + i * kUs + 500, 1, 1'000 + i, "watch.cc:3");
  }
  builder.poll(5 * kSecond, 5 * kSecond + kUs, 0, 1);
}

TEST(TaskLeak, IsFoundInTasksThatNeverEndAndSleep) {
  TraceBuilder builder;
  tasks_over_time(builder, Fate::kForgotten, 19 * kMs);
  const Trace trace = builder.load();
  const std::vector<Finding> findings = diagnose(trace);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, FindingKind::kTaskLeak);
  EXPECT_EQ(findings[0].count, 200U);
  EXPECT_EQ(findings[0].where, "watch.cc:3");
  EXPECT_EQ(trace.tasks.id[findings[0].task], 1'000U);
}

TEST(TaskLeak, IsNotFoundInTasksThatEnd) {
  TraceBuilder builder;
  tasks_over_time(builder, Fate::kEnds, 19 * kMs);
  EXPECT_EQ(severity(builder, FindingKind::kTaskLeak), "none");
}

TEST(TaskLeak, IsNotFoundInConnectionsOpenedAtTheStart) {
  TraceBuilder builder;
  tasks_over_time(builder, Fate::kForgotten, kMs);
  EXPECT_EQ(severity(builder, FindingKind::kTaskLeak), "none");
}

TEST(TaskLeak, IsNotFoundInLongTasksThatWork) {
  TraceBuilder builder;
  tasks_over_time(builder, Fate::kWorks, 19 * kMs);
  EXPECT_EQ(severity(builder, FindingKind::kTaskLeak), "none");
}

void blocking_polls(TraceBuilder& builder, bool is_in_poll, std::uint64_t length_ns) {
  ordinary_polls(builder, 1'000);
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::uint64_t at_ns = 2 * kSecond + i * 50 * kMs;
    if (is_in_poll) {
      builder.poll(at_ns, at_ns + length_ns + 20 * kUs, 0, 70, "read.cc:1");
    }
    builder.blocking_call(at_ns + 10 * kUs, length_ns, 70, "read");
  }
}

TEST(BlockingCall, IsFoundInsideAPoll) {
  TraceBuilder builder;
  blocking_polls(builder, true, 15 * kMs);
  const std::vector<Finding> findings = diagnose(builder.load());
  const auto found = std::find_if(findings.begin(), findings.end(), [](const Finding& one) {
    return one.kind == FindingKind::kBlockingCall;
  });
  ASSERT_NE(found, findings.end());
  EXPECT_EQ(found->where, "read");
  EXPECT_EQ(found->count, 10U);
  EXPECT_EQ(found->worst_ns, 15 * kMs);
  EXPECT_GE(found->severity, Severity::kWarning);
}

TEST(BlockingCall, IsNotFoundOutsideOfPollsNorBelowTheFloor) {
  TraceBuilder builder;
  blocking_polls(builder, false, 15 * kMs);
  EXPECT_EQ(severity(builder, FindingKind::kBlockingCall), "none");
  blocking_polls(builder, true, 300 * kUs);
  EXPECT_EQ(severity(builder, FindingKind::kBlockingCall), "none");
}

TEST(BlockingCall, NamesTheLockAndItsHolder) {
  TraceBuilder builder;
  ordinary_polls(builder, 1'000);
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::uint64_t at_ns = 2 * kSecond + i * 50 * kMs;
    builder.poll(at_ns, at_ns + 9 * kMs, 0, 70, "lock.cc:1");
    builder.lock_wait(at_ns + 10 * kUs, 8 * kMs, 70, 0xBEEF, {.owner_tid = 4242});
  }
  const std::vector<Finding> findings = diagnose(builder.load());
  const auto found = std::find_if(findings.begin(), findings.end(), [](const Finding& one) {
    return one.kind == FindingKind::kBlockingCall;
  });
  ASSERT_NE(found, findings.end());
  EXPECT_EQ(found->where, "lock 0xbeef");
  EXPECT_TRUE(std::any_of(found->evidence.begin(), found->evidence.end(), [](const auto& line) {
    return line.find("thread 4242") != std::string::npos;
  }));
}

void strand_waits(TraceBuilder& builder, std::uint64_t length_ns,
                  LockKind kind = LockKind::kStrand) {
  ordinary_polls(builder, 1'000);
  for (std::uint64_t i = 0; i < 60; ++i) {
    const std::uint64_t at_ns = 2 * kSecond + i * 20 * kMs;
    builder.lock_wait(at_ns, length_ns, 5, 0x51, {.kind = kind});
    builder.poll(at_ns + length_ns, at_ns + length_ns + kUs, 0, 5);
  }
}

TEST(StrandWait, IsFoundWhereHandlersQueueForOneStrand) {
  TraceBuilder builder;
  strand_waits(builder, 12 * kMs);
  EXPECT_EQ(severity(builder, FindingKind::kStrandWait), "warning");
}

TEST(StrandWait, IsNotFoundWhereOnlyThePollOfAWaitIsMissing) {
  for (const LockKind kind : {LockKind::kMutex, LockKind::kUnknown}) {
    TraceBuilder builder;
    strand_waits(builder, 12 * kMs, kind);
    EXPECT_EQ(severity(builder, FindingKind::kStrandWait), "none");
  }
}

TEST(BlockingCall, IsNoStrandsWaitThatTheTasksOwnPollRanThrough) {
  for (const LockKind kind : {LockKind::kStrand, LockKind::kUnknown}) {
    TraceBuilder builder;
    ordinary_polls(builder, 1'000);
    for (std::uint64_t i = 0; i < 10; ++i) {
      const std::uint64_t at_ns = 2 * kSecond + i * 50 * kMs;
      builder.poll(at_ns, at_ns + 9 * kMs, 0, 70, "post.cc:1");
      builder.lock_wait(at_ns + 10 * kUs, 8 * kMs, 70, 0xBEEF, {.kind = kind});
    }
    EXPECT_EQ(severity(builder, FindingKind::kBlockingCall), "none");
  }
}

TEST(StrandWait, IsNotFoundForShortWaits) {
  TraceBuilder builder;
  strand_waits(builder, 100 * kUs);
  EXPECT_EQ(severity(builder, FindingKind::kStrandWait), "none");
}

void moving_task(TraceBuilder& builder, std::uint64_t workers, bool has_own_runtimes) {
  for (std::uint64_t worker = 0; worker < workers; ++worker) {
    builder.metadata(kSecond,
                     has_own_runtimes ? "runtime.hop-" + std::to_string(worker) : "runtime.pool",
                     has_own_runtimes ? std::to_string(worker) : "0,1,2,3");
  }
  std::uint64_t random = 1;
  for (std::uint64_t i = 0; i < 2'000; ++i) {
    const std::uint64_t at_ns = kSecond + i * 100 * kUs;
    random = random * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t worker = has_own_runtimes ? i % workers : (random >> 33) % workers;
    builder.wake(at_ns - 10 * kUs, 5);
    builder.poll(at_ns, at_ns + 20 * kUs, worker, 5, "hop.cc:1");
  }
}

TEST(Migration, IsFoundInATaskThatChangesTheRuntimeAtEveryPoll) {
  TraceBuilder builder;
  moving_task(builder, 3, true);
  EXPECT_EQ(severity(builder, FindingKind::kMigration), "warning");
}

TEST(Migration, IsNotFoundWhereAPoolSpreadsItsTasksByChance) {
  TraceBuilder builder;
  moving_task(builder, 4, false);
  EXPECT_EQ(severity(builder, FindingKind::kMigration), "none");
}

TEST(LossFinding, SaysHowMuchWasDroppedAndWhy) {
  TraceBuilder builder;
  ordinary_polls(builder, 1'000);
  builder.loss(3 * kSecond, "buffer full", 9'000, 2 * kSecond, 3 * kSecond);
  const std::vector<Finding> findings = diagnose(builder.load());
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, FindingKind::kLoss);
  EXPECT_EQ(findings[0].severity, Severity::kCritical);
  EXPECT_EQ(findings[0].count, 9'000U);
  EXPECT_EQ(findings[0].where, "buffer full");
}

TEST(LossFinding, IsOnlyToldWhereNextToNothingWasDropped) {
  TraceBuilder builder;
  ordinary_polls(builder, 1'000);
  builder.loss(3 * kSecond, "buffer full", 1, 2 * kSecond, 3 * kSecond);
  EXPECT_EQ(severity(builder, FindingKind::kLoss), "info");
}

TEST(LossFinding, IsALowerBoundInATraceThatEndsEarly) {
  TraceBuilder builder;
  ordinary_polls(builder, 1'000);
  builder.loss(3 * kSecond, "buffer full", 9'000, 2 * kSecond, 3 * kSecond);
  builder.wake(4 * kSecond, 7);
  std::vector<std::uint8_t> bytes = builder.take();
  bytes.pop_back();
  Loader loader;
  loader.begin_input("cut.bin");
  EXPECT_TRUE(loader.feed(bytes).has_value());
  EXPECT_FALSE(loader.end_input().has_value());
  const std::vector<Finding> findings = diagnose(loader.finish());
  ASSERT_FALSE(findings.empty());
  EXPECT_TRUE(findings[0].message.starts_with("at least 9,000 events were dropped"))
      << findings[0].message;
  EXPECT_TRUE(findings[0].message.ends_with(" of what was read")) << findings[0].message;
}

TEST(Diagnose, FindsNothingInAnEmptyTraceNorInAnOrdinaryOne) {
  EXPECT_TRUE(diagnose(Trace{}).empty());
  TraceBuilder builder;
  ordinary_polls(builder, 5'000);
  EXPECT_TRUE(diagnose(builder.load()).empty());
}

}  // namespace
}  // namespace dial9::analysis
