// Missing segments in the middle of a run are a loss of unknown size, for every reader.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/segment_gaps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "analysis/census.h"
#include "analysis/findings.h"
#include "analysis/loader.h"
#include "analysis/report.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using testing::TraceBuilder;

constexpr std::uint64_t kSecond = 1'000'000'000;

// A segment from its index's tenth second on, nine seconds long.
std::vector<std::uint8_t> segment(std::uint64_t index, const std::string& run = "abcd-1") {
  TraceBuilder builder;
  const std::uint64_t begin_ns = (index + 1) * 10 * kSecond;
  for (const std::uint64_t at_ns : {begin_ns, begin_ns + 9 * kSecond}) {
    builder.clock_sync(at_ns, 1'700'000'000 * kSecond + at_ns);
    builder.metadata(at_ns, "boot_id", run);
    builder.metadata(at_ns, "segment.index", std::to_string(index));
  }
  return builder.take();
}

std::vector<std::vector<std::uint8_t>> segments(const std::vector<std::uint64_t>& indices) {
  std::vector<std::vector<std::uint8_t>> out;
  for (const std::uint64_t index : indices) out.push_back(segment(index));
  return out;
}

Trace load_all(const std::vector<std::vector<std::uint8_t>>& files) {
  std::vector<std::span<const std::uint8_t>> views(files.begin(), files.end());
  return load(views);
}

void count(Census& census, const std::vector<std::vector<std::uint8_t>>& files) {
  for (const auto& file : files) {
    format::Decoder decoder(census.visitor());
    census.begin_input(decoder);
    ASSERT_TRUE(decoder.feed(file));
  }
}

TEST(SegmentGaps, AreFoundBetweenSegmentsWhateverTheirOrder) {
  SegmentGaps gaps;
  for (const std::uint64_t index : {6, 0, 5, 4, 1}) {
    gaps.add("run", std::to_string(index), (index + 1) * 10 * kSecond);
  }
  ASSERT_EQ(gaps.gaps().size(), 1U);
  const SegmentGaps::Gap gap = gaps.gaps()[0];
  EXPECT_EQ(gap.first_index, 2U);
  EXPECT_EQ(gap.last_index, 3U);
  EXPECT_EQ(gap.begin_ns, 19 * kSecond) << "a second before the end: records come late";
  EXPECT_EQ(gap.end_ns, 50 * kSecond);
  gaps.add("run", "3", 40 * kSecond);
  gaps.add("run", "2", 30 * kSecond);
  EXPECT_TRUE(gaps.gaps().empty());
}

TEST(SegmentGaps, AreNoneWhereOnlyTheOldestWereEvictedOrARangeIsRead) {
  EXPECT_FALSE(load_all(segments({3, 4, 5})).has_unknown_loss());
  Census census;
  count(census, segments({3, 4, 5}));
  EXPECT_FALSE(census.has_unknown_loss());
  EXPECT_TRUE(census.loss().empty());
}

TEST(SegmentGaps, AreNoneBetweenRunsNorInWhatIsNoNumber) {
  EXPECT_FALSE(load_all({segment(0, "abcd-1"), segment(7, "efgh-2")}).has_unknown_loss());
  SegmentGaps gaps;
  for (const char* text : {"1", "x", "", "-3", "9 ", "18446744073709551615"}) {
    gaps.add("run", text, kSecond);
  }
  EXPECT_TRUE(gaps.gaps().empty());
}

TEST(SegmentGaps, AreALossOfUnknownSizeInTheTraceAndInItsFindings) {
  const Trace trace = load_all(segments({0, 1, 4, 5, 6}));
  EXPECT_TRUE(trace.has_unknown_loss());
  EXPECT_EQ(trace.lost_events(), 0U);
  ASSERT_EQ(trace.loss.size(), 1U);
  EXPECT_EQ(trace.names.text(trace.loss[0].cause), kMissingSegments);
  EXPECT_EQ(trace.loss[0].first_ns, 28 * kSecond);
  EXPECT_EQ(trace.loss[0].last_ns, 50 * kSecond);
  const std::vector<Finding> findings = diagnose(trace);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, FindingKind::kLoss);
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_NE(findings[0].message.find("unknown number"), std::string::npos) << findings[0].message;
  EXPECT_NE(report_json(trace, findings).find(R"("lost_events": null)"), std::string::npos);
}

TEST(SegmentGaps, AreALossOfUnknownSizeInTheCensus) {
  Census census;
  count(census, segments({0, 1, 4, 5, 6}));
  EXPECT_TRUE(census.has_unknown_loss());
  EXPECT_EQ(census.lost_events(), 0U);
  ASSERT_EQ(census.loss().size(), 1U);
  const Census::Loss loss = census.loss().at(std::string(kMissingSegments));
  EXPECT_EQ(loss.count, 0U);
  EXPECT_EQ(loss.unknown, 1U);
  EXPECT_EQ(loss.first_ns, 28 * kSecond);
  EXPECT_EQ(loss.last_ns, 50 * kSecond);
}

// What the rest of it held may have been anything.
TEST(DamagedSegment, IsALossUpToTheNextOfItsRun) {
  auto bytes = segments({0, 1, 2});
  bytes[1].resize(bytes[1].size() - 1);
  const Trace trace = load_all(bytes);
  ASSERT_EQ(trace.loss.size(), 1U);
  EXPECT_EQ(trace.names.text(trace.loss[0].cause), kDamagedSegment);
  EXPECT_TRUE(trace.has_unknown_loss());
  EXPECT_GT(trace.loss[0].last_ns, trace.loss[0].first_ns + kOlderRecordsNs);
  const std::vector<Finding> findings = diagnose(trace);
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [](const auto& one) { return one.where == kDamagedSegment; });
  ASSERT_NE(found, findings.end());
  EXPECT_NE(found->next.find("dial9 info"), std::string::npos) << found->next;
  bytes.pop_back();
  EXPECT_TRUE(load_all(bytes).loss.empty()) << "the trace ends there";
}

TEST(UnknownLoss, IsNeverAddedToWhatWasCounted) {
  TraceBuilder builder;
  builder.loss(4 * kSecond, "damaged", 0, 2 * kSecond, 3 * kSecond);
  builder.loss(5 * kSecond, "damaged", 7, 2 * kSecond, 3 * kSecond);
  const auto bytes = builder.take();
  Census census;
  count(census, {bytes});
  EXPECT_TRUE(census.has_unknown_loss());
  EXPECT_EQ(census.lost_events(), 7U);
  const Trace trace = load_all({bytes});
  EXPECT_TRUE(trace.has_unknown_loss());
  EXPECT_EQ(diagnose(trace).size(), 2U) << "one that is counted, and one that isn't";
}

TEST(RecordingOff, IsToldWithItsLengthAndIsNoLoss) {
  TraceBuilder builder;
  builder.loss(5 * kSecond, "recording_off", 0, 2 * kSecond, 5 * kSecond);
  builder.loss(9 * kSecond, "recording_off", 0, 8 * kSecond, 9 * kSecond);
  const auto bytes = builder.take();
  Census census;
  count(census, {bytes});
  EXPECT_FALSE(census.has_unknown_loss());
  EXPECT_EQ(census.off_ns(), 4 * kSecond);
  const Trace trace = load_all({bytes});
  EXPECT_FALSE(trace.has_unknown_loss());
  const std::vector<Finding> findings = diagnose(trace);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::kInfo);
  EXPECT_EQ(findings[0].message, "recording was off for 4.00 s; nothing is known of that time");
  EXPECT_NE(findings[0].next.find("disable()"), std::string::npos);
}

TEST(RecordingOff, ForMoreStretchesThanAreKeptIsALowerBound) {
  TraceBuilder builder;
  for (std::uint64_t i = 1; i <= 4'097; ++i) {
    builder.loss(2 * i * kSecond, "recording_off", 0, (2 * i - 1) * kSecond, 2 * i * kSecond);
  }
  Census census;
  count(census, {builder.take()});
  EXPECT_EQ(census.off_ns(), 4'096 * kSecond);
  EXPECT_TRUE(census.has_more_off());
}

TEST(RecordingOff, CountsATimeThatIsToldTwiceOnce) {
  TraceBuilder builder;
  for (const std::uint64_t first : {2U, 3U, 9U, 2U}) {
    builder.loss(10 * kSecond, "recording_off", 0, first * kSecond, (first + 3) * kSecond);
  }
  const std::vector<std::uint8_t> bytes = builder.take();
  Census census;
  count(census, {bytes});
  EXPECT_EQ(census.off_ns(), 7 * kSecond) << "from 2 to 6, and from 9 to 12";
  const auto findings = diagnose(load(bytes));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].message,
            "recording was off for 7.00 s; nothing is known of that time");
}

}  // namespace
}  // namespace dial9::analysis
