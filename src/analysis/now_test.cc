// What a process is in at one moment, from records that end there.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/now.h"

#include <gtest/gtest.h>

#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using testing::TraceBuilder;

constexpr std::uint64_t kMs = 1'000'000;

NowView look(TraceBuilder& builder, std::uint64_t now_ns, std::uint64_t complete_since_ns = 0) {
  const Trace trace = builder.load();
  return look_at_now(trace, {now_ns, complete_since_ns, 10});
}

TEST(Now, AWorkerInsideAPollIsInItSinceThePollsStart) {
  TraceBuilder builder;
  builder.poll(10 * kMs, 12 * kMs, 0, 1);
  builder.poll_start(20 * kMs, 0, 2, "hang.cc:7");
  const Trace trace = builder.load();
  const NowView view = look_at_now(trace, {5'020 * kMs, 0, 10});
  ASSERT_EQ(view.workers.size(), 1U);
  EXPECT_EQ(view.workers[0].doing, WorkerDoing::kPolling);
  EXPECT_EQ(view.workers[0].since_ns, 20 * kMs);
  EXPECT_EQ(trace.names.text(trace.polls.spawn_loc[view.workers[0].poll]), "hang.cc:7");
  EXPECT_EQ(view.workers[0].busy_ns, 5'002 * kMs);
  EXPECT_FALSE(view.workers[0].is_uncertain);
}

TEST(Now, AParkedWorkerWaitsSinceItsPark) {
  TraceBuilder builder;
  builder.poll(10 * kMs, 12 * kMs, 0, 1);
  builder.park(13 * kMs, 0, 77);
  const NowView view = look(builder, 100 * kMs);
  ASSERT_EQ(view.workers.size(), 1U);
  EXPECT_EQ(view.workers[0].doing, WorkerDoing::kParked);
  EXPECT_EQ(view.workers[0].since_ns, 13 * kMs);
  EXPECT_EQ(view.workers[0].parked_ns, 87 * kMs);
}

TEST(Now, AWorkerThatHasEndedItsPollIsBetweenPolls) {
  TraceBuilder builder;
  builder.park(1 * kMs, 0);
  builder.unpark(2 * kMs, 0);
  builder.poll(3 * kMs, 4 * kMs, 0, 1);
  const NowView view = look(builder, 10 * kMs);
  EXPECT_EQ(view.workers[0].doing, WorkerDoing::kBetween);
  EXPECT_EQ(view.workers[0].since_ns, 4 * kMs);
}

TEST(Now, AWorkersStateIsUncertainWhereEventsWereLostSince) {
  TraceBuilder builder;
  builder.poll_start(20 * kMs, 0, 2);
  builder.loss(40 * kMs, "arena_full", 3, 30 * kMs, 31 * kMs);
  EXPECT_TRUE(look(builder, 100 * kMs).workers[0].is_uncertain);
}

TEST(Now, AWokenTaskThatNobodyPollsIsReadySinceItsFirstWake) {
  TraceBuilder builder;
  builder.poll(10 * kMs, 12 * kMs, 0, 5);
  builder.wake(30 * kMs, 5);
  builder.wake(35 * kMs, 5);
  const NowView view = look(builder, 100 * kMs);
  ASSERT_EQ(view.ready.size(), 1U);
  EXPECT_EQ(view.ready[0].since_ns, 30 * kMs);
  EXPECT_FALSE(view.ready[0].is_inferred);
}

TEST(Now, AWakeDuringThePollCountsFromThePollsEnd) {
  TraceBuilder builder;
  builder.poll_start(10 * kMs, 0, 5);
  builder.wake(11 * kMs, 5);
  builder.poll_end(12 * kMs, 0);
  const NowView view = look(builder, 100 * kMs);
  ASSERT_EQ(view.ready.size(), 1U);
  EXPECT_EQ(view.ready[0].since_ns, 12 * kMs);
}

TEST(Now, AWakeThatAPollHasAnsweredIsNoWait) {
  TraceBuilder builder;
  builder.wake(9 * kMs, 5);
  builder.poll(10 * kMs, 12 * kMs, 0, 5);
  const NowView view = look(builder, 100 * kMs);
  EXPECT_EQ(view.ready_count, 0U);
}

TEST(Now, ATaskInsideItsPollWaitsForNothing) {
  TraceBuilder builder;
  builder.spawn(1 * kMs, 5);
  builder.poll_start(10 * kMs, 0, 5);
  builder.wake(11 * kMs, 5);
  const NowView view = look(builder, 100 * kMs);
  EXPECT_EQ(view.ready_count + view.suspended_count + view.uncertain_tasks, 0U);
}

TEST(Now, ASpawnedTaskThatNeverRanIsReadyByInference) {
  TraceBuilder builder;
  builder.spawn(7 * kMs, 5);
  const NowView view = look(builder, 100 * kMs);
  ASSERT_EQ(view.ready.size(), 1U);
  EXPECT_TRUE(view.ready[0].is_inferred);
  EXPECT_EQ(view.ready[0].since_ns, 7 * kMs);
}

TEST(Now, ASuspendedTaskWaitsSinceItsLastPollEnded) {
  TraceBuilder builder;
  builder.spawn(1 * kMs, 5);
  builder.poll(2 * kMs, 3 * kMs, 0, 5);
  builder.spawn(1 * kMs, 6);
  builder.poll(4 * kMs, 5 * kMs, 0, 6);
  builder.terminate(6 * kMs, 6);
  const NowView view = look(builder, 100 * kMs);
  ASSERT_EQ(view.suspended.size(), 1U);
  EXPECT_EQ(view.suspended[0].since_ns, 3 * kMs);
}

TEST(Now, AWaitOlderThanTheWholeHistoryIsNotClaimed) {
  TraceBuilder builder;
  builder.wake(30 * kMs, 5);  // who knows whether a thread whose records are gone has polled it
  const NowView view = look(builder, 100 * kMs, 50 * kMs);
  EXPECT_EQ(view.ready_count, 0U);
  EXPECT_EQ(view.uncertain_tasks, 1U);
}

TEST(Now, AWaitSinceWhichEventsWereLostIsNotClaimed) {
  TraceBuilder builder;
  builder.wake(30 * kMs, 5);
  builder.loss(50 * kMs, "arena_full", 1, 40 * kMs, 40 * kMs);
  const NowView view = look(builder, 100 * kMs);
  EXPECT_EQ(view.ready_count, 0U);
  EXPECT_EQ(view.uncertain_tasks, 1U);
}

TEST(Now, TheLongestWaitsComeFirstAndAllAreCounted) {
  TraceBuilder builder;
  for (std::uint64_t i = 0; i < 30; ++i) builder.wake((100 - i) * kMs, 1 + i);
  const NowView view = look(builder, 200 * kMs);
  ASSERT_EQ(view.ready.size(), 10U);
  EXPECT_EQ(view.ready[0].since_ns, 71 * kMs);
  EXPECT_EQ(view.ready_count, 30U);
}

TEST(Now, AnOpenPollCountsWithItsTimeSoFarAmongTheSlowest) {
  TraceBuilder builder;
  builder.poll(1 * kMs, 51 * kMs, 0, 1, "slow.cc:1");
  builder.poll_start(60 * kMs, 0, 2, "hang.cc:2");
  const Trace trace = builder.load();
  const NowView view = look_at_now(trace, {160 * kMs, 0, 10});
  ASSERT_EQ(view.places.size(), 2U);
  EXPECT_EQ(trace.names.text(view.places[0].place), "hang.cc:2");
  EXPECT_EQ(view.places[0].longest_ns, 100 * kMs);
  EXPECT_TRUE(view.places[0].is_open);
  EXPECT_EQ(view.places[0].polls, 0U);
}

TEST(Now, TheLastSampleOfAQueueIsItsDepth) {
  TraceBuilder builder;
  builder.metrics(1 * kMs, "http", 4, 9);
  builder.metrics(2 * kMs, "http", 6, 8);
  const NowView view = look(builder, 3 * kMs);
  ASSERT_EQ(view.queues.size(), 1U);
  EXPECT_EQ(view.queues[0].depth, 6);
  EXPECT_EQ(view.queues[0].alive_tasks, 8);
  EXPECT_EQ(view.queues[0].at_ns, 2 * kMs);
}

TEST(Now, AnEmptyTraceHasNothingToSay) {
  TraceBuilder builder;
  const NowView view = look(builder, 3 * kMs);
  EXPECT_TRUE(view.workers.empty());
  EXPECT_EQ(view.ready_count, 0U);
}

}  // namespace
}  // namespace dial9::analysis
