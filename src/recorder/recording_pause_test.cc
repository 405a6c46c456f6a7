// What a trace says of the time in which recording was off, and when.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/recording_pause.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "dial9/event.h"
#include "recorder/recording_state.h"
#include "recorder/recovery.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_EVENT(Lit, (std::uint64_t, number));

std::vector<LossRecord> off_records(const Trace& trace) {
  std::vector<LossRecord> out;
  for (const LossRecord& loss : trace.losses()) {
    if (loss.cause == kRecordingOff) out.push_back(loss);
  }
  return out;
}

TEST(RecordingPause, IsInTheArenaFromItsBeginUntilItIsTold) {
  ArenaHeader header{};
  RecordingPause stretch(header);
  stretch.end(5);
  EXPECT_FALSE(stretch.look(6).has_value()) << "it never began";
  stretch.begin(10);
  EXPECT_EQ(header.off_since_ns, 10U);
  EXPECT_TRUE(stretch.look(20)->goes_on);
  stretch.end(30);
  EXPECT_EQ(header.off_until_ns, 30U);
  const auto range = stretch.look(40);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->first_ns, 10U);
  EXPECT_EQ(range->last_ns, 30U);
  stretch.told(*range);
  EXPECT_FALSE(stretch.look(50).has_value());
  EXPECT_EQ(header.off_since_ns, 0U);
}

TEST(RecordingPause, ThatEndsWhileItIsToldIsToldToItsEndNextTime) {
  ArenaHeader header{};
  RecordingPause stretch(header);
  stretch.begin(10);
  const auto range = stretch.look(20);
  stretch.end(25);
  stretch.told(*range);
  const auto rest = stretch.look(40);
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(rest->first_ns, 20U);
  EXPECT_EQ(rest->last_ns, 25U);
}

TEST(RecordingPause, TwoThatNobodyHasToldAreOneThatIsWideEnough) {
  ArenaHeader header{};
  RecordingPause stretch(header);
  stretch.begin(10);
  stretch.end(20);
  stretch.begin(30);
  stretch.end(40);
  const auto range = stretch.look(50);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->first_ns, 10U);
  EXPECT_EQ(range->last_ns, 40U);
}

TEST(RecordingOff, IsToldWithItsTimeAndIsNoLoss) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  record(Lit{1});
  recorder.step();
  const std::uint64_t before_ns = now_ns();
  recorder->disable();
  record(Lit{2});
  recorder.step();
  recorder->enable();
  const std::uint64_t after_ns = now_ns();
  record(Lit{3});
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.numbers("Lit", "number"), (std::vector<std::uint64_t>{1, 3}));
  const auto off = off_records(trace);
  ASSERT_EQ(off.size(), 1U);
  EXPECT_EQ(off[0].count, 0U);
  EXPECT_GE(off[0].first_ns, before_ns);
  EXPECT_LE(off[0].last_ns, after_ns);
  EXPECT_GE(off[0].last_ns, off[0].first_ns);
  EXPECT_EQ(recorder->status().events_written, 2U);
  EXPECT_EQ(recorder->status().events_dropped, 0U);
}

TEST(RecordingOff, IsToldInEachSegmentThatItLiesIn) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  record(Lit{1});
  recorder->disable();
  EXPECT_EQ(off_records(recorder.read()).size(), 1U) << "up to the segment's end";
  recorder->enable();
  recorder.step();
  EXPECT_EQ(off_records(recorder.read()).size(), 1U) << "no segment is made for it";
  record(Lit{2});
  const auto off = off_records(recorder.read());
  ASSERT_EQ(off.size(), 2U);
  EXPECT_EQ(off[1].first_ns, off[0].last_ns) << "without a gap";
}

TEST(RecordingOff, FromTheStartOnIsToldToo) {
  RecorderOptions options = RecorderOptions::memory(kTestBudget);
  options.starts_disabled = true;
  SteppedRecorder recorder(options, false);
  recorder->enable();
  record(Lit{1});
  EXPECT_EQ(off_records(recorder.read()).size(), 1U);
}

TEST(RecordingOff, OfAProcessThatIsKilledIsToldByItsRecovery) {
  const TempDir dir;
  const std::string dead = dir.path() + "/dead-999999999";
  std::uint64_t before_ns = 0;
  {
    const TempDir other;
    SteppedRecorder recorder(RecorderOptions::disk(other.path()), false);
    record(Lit{1});
    before_ns = now_ns();
    recorder->disable();
    std::filesystem::copy(recorder->status().directory, dead);
  }
  const RunReport report = recover_run(dead, {});
  EXPECT_EQ(report.events, 1U);
  EXPECT_FALSE(report.has_unknown_loss);
  const auto off = off_records(Trace::of_directory(dead));
  ASSERT_EQ(off.size(), 1U);
  EXPECT_GE(off[0].first_ns, before_ns);
  EXPECT_GE(off[0].last_ns, off[0].first_ns);
}

}  // namespace
}  // namespace dial9::internal
