// Segments under failure: every event handed in is written or counted, and time ranges are told.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/segment_writer.h"

#include <gtest/gtest.h>

#include "format/encoder.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

// Keeps segments in vectors; fails when told to.
class FakeStore : public SegmentStore {
 public:
  bool fails_to_open = false;
  bool fails_to_append = false;
  bool is_gone = false;
  std::vector<std::vector<std::uint8_t>> sealed;
  std::vector<std::uint8_t> active;
  std::size_t largest = 0;

  Result<void> open(std::uint64_t, std::uint64_t) override {
    if (fails_to_open) return make_error(ErrorCode::kPermission, "cannot open");
    active.clear();
    is_gone = false;
    return {};
  }
  Result<void> append(std::span<const std::uint8_t> bytes) override {
    if (fails_to_append) return make_error(ErrorCode::kNoSpace, "disk is full");
    active.insert(active.end(), bytes.begin(), bytes.end());
    largest = std::max(largest, active.size());
    return {};
  }
  Result<void> seal() override {
    sealed.push_back(std::move(active));
    active.clear();
    return {};
  }
  void abandon() override { active.clear(); }
  bool is_active_intact() override { return !is_gone; }
  std::uint64_t bytes_held() const override { return active.size(); }
  std::uint64_t evicted() const override { return 0; }
  std::vector<SegmentBytes> sealed_segments() const override {
    std::vector<SegmentBytes> out;
    for (const auto& bytes : sealed) out.push_back({out.size(), bytes});
    return out;
  }
};

class SegmentWriterTest : public ::testing::Test {
 protected:
  SegmentWriterTest() {
    arena_ = std::move(*Arena::create({}));
    SegmentWriterOptions options;
    options.segment_bytes = 64 << 10;
    options.rotation_ns = 10 * kTestSecond;
    options.metadata = [] { return Metadata{{"service", "test"}}; };
    options.realtime_ns = [] { return std::uint64_t{1'700'000'000'000'000'000}; };
    options.message = [this](const std::string& text) { messages_.push_back(text); };
    writer_ = std::make_unique<SegmentWriter>(store_, *arena_, options);
  }
  // A stream of `events` events of `padding` bytes each.
  void append(std::uint64_t events, std::uint64_t now_ns, std::size_t padding = 10) {
    format::Encoder out;
    out.schema(9, "E", true,
               {{"n", format::FieldType::kVarint}, {"s", format::FieldType::kString}});
    for (std::uint64_t i = 0; i < events; ++i) {
      out.begin(9, now_ns);
      out.varint(i);
      out.string(std::string(padding, 'x'));
    }
    appended_ += events;
    writer_->append({}, out.data(), {events, now_ns, now_ns + 5}, now_ns);
  }
  Trace read() { return Trace::of(store_.sealed_segments()); }
  std::uint64_t lost(LossCause cause) { return arena_->loss_total(cause); }

  FakeStore store_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<SegmentWriter> writer_;
  std::vector<std::string> messages_;
  std::uint64_t appended_ = 0;
};

TEST_F(SegmentWriterTest, OpensASegmentOnlyForSomethingToWrite) {
  writer_->flush(1);
  writer_->report_losses(1);
  writer_->write_metadata(1);
  EXPECT_FALSE(writer_->is_due(100 * kTestSecond));
  EXPECT_TRUE(writer_->seal(2));
  EXPECT_TRUE(store_.sealed.empty());
}

TEST_F(SegmentWriterTest, RotatesByAgeOfTheSegment) {
  append(1, 5 * kTestSecond);
  EXPECT_FALSE(writer_->is_due(15 * kTestSecond - 1));
  EXPECT_TRUE(writer_->is_due(15 * kTestSecond));
}

TEST_F(SegmentWriterTest, RotatesBeforeASegmentGrowsBeyondItsSize) {
  for (std::uint64_t i = 0; i < 40; ++i) append(10, i + 1, 1000);
  EXPECT_TRUE(writer_->seal(100));
  EXPECT_GT(store_.sealed.size(), 5U);
  for (const auto& bytes : store_.sealed) {
    EXPECT_LE(bytes.size(), 64U << 10);
    EXPECT_EQ(Trace::of(bytes).metadata("segment.sealed_clean"), "true");
  }
  EXPECT_EQ(read().count("E"), appended_);
  EXPECT_EQ(writer_->totals().events, appended_);
  EXPECT_EQ(writer_->totals().sealed, store_.sealed.size());
}

TEST_F(SegmentWriterTest, CountsWhatCouldNotBeWrittenAndTellsItAfterwards) {
  append(3, 1 * kTestSecond);
  writer_->flush(1 * kTestSecond);
  append(4, 2 * kTestSecond);
  store_.fails_to_append = true;
  writer_->flush(2 * kTestSecond);
  store_.fails_to_open = true;
  append(5, 2 * kTestSecond + 1);  // too early for another attempt
  append(6, 4 * kTestSecond);      // the attempt fails
  writer_->flush(4 * kTestSecond);
  EXPECT_EQ(lost(LossCause::kWriteFailed), 15U);
  EXPECT_NE(writer_->failure(), "");
  ASSERT_EQ(messages_.size(), 1U) << "one message a failure, not one a pass";
  store_.fails_to_append = store_.fails_to_open = false;
  append(7, 6 * kTestSecond);
  writer_->report_losses(7 * kTestSecond);
  EXPECT_TRUE(writer_->seal(8 * kTestSecond));
  EXPECT_EQ(writer_->failure(), "");
  EXPECT_EQ(messages_.size(), 1U) << "it may fail again at once";
  const Trace trace = read();
  EXPECT_EQ(trace.count("E"), 3U + 7U);
  EXPECT_EQ(writer_->totals().events + lost(LossCause::kWriteFailed), appended_);
  ASSERT_EQ(trace.losses().size(), 1U);
  EXPECT_EQ(trace.losses()[0].cause, "write_failed");
  EXPECT_EQ(trace.losses()[0].count, 15U);
  EXPECT_EQ(trace.losses()[0].first_ns, 2 * kTestSecond);
  EXPECT_EQ(trace.losses()[0].last_ns, 4 * kTestSecond + 5);
  append(1, 17 * kTestSecond);
  writer_->flush(17 * kTestSecond);
  EXPECT_EQ(messages_.size(), 2U) << "one when it works again for good";
}

TEST_F(SegmentWriterTest, TellsALossAgainIfItsReportWasLost) {
  arena_->count_loss(LossCause::kNested, 9, 1, 100, 200);
  append(1, 1 * kTestSecond);
  writer_->report_losses(1 * kTestSecond);
  store_.fails_to_append = true;
  writer_->flush(1 * kTestSecond);
  store_.fails_to_append = false;
  append(1, 3 * kTestSecond);
  writer_->report_losses(3 * kTestSecond);
  writer_->report_losses(3 * kTestSecond);
  EXPECT_TRUE(writer_->seal(4 * kTestSecond));
  const Trace trace = read();
  EXPECT_EQ(trace.lost("nested"), 9U);
  EXPECT_EQ(trace.lost("write_failed"), 1U);
  EXPECT_EQ(trace.losses()[0].first_ns, 100U);
  EXPECT_EQ(trace.losses()[0].last_ns, 200U);
}

TEST_F(SegmentWriterTest, CountsTheEventsOfASegmentThatSomeoneRemoved) {
  arena_->count_loss(LossCause::kNested, 2, 1, 100, 200);
  append(8, 1 * kTestSecond);
  writer_->report_losses(1 * kTestSecond);
  writer_->flush(1 * kTestSecond);
  EXPECT_EQ(writer_->totals().events, 8U);
  store_.is_gone = true;
  writer_->check_intact(2 * kTestSecond);
  EXPECT_EQ(writer_->totals().events, 0U);
  EXPECT_EQ(lost(LossCause::kFileRemoved), 8U);
  append(5, 2 * kTestSecond + 1);  // at once, in a new segment
  writer_->report_losses(3 * kTestSecond);
  EXPECT_TRUE(writer_->seal(4 * kTestSecond));
  const Trace trace = read();
  EXPECT_EQ(trace.count("E"), 5U);
  EXPECT_EQ(trace.lost("file_removed"), 8U);
  EXPECT_EQ(trace.lost("nested"), 2U) << "what only the removed segment told of is told again";
}

}  // namespace
}  // namespace dial9::internal
