// The engine's small parts: columns, rows, distributions, numbers for people, JSON, census.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "analysis/census.h"
#include "analysis/column.h"
#include "analysis/distribution.h"
#include "analysis/human.h"
#include "analysis/json_text.h"
#include "analysis/names.h"
#include "analysis/packing.h"
#include "analysis/polls.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

TEST(Column, KeepsEveryValueAcrossBlocks) {
  Column<std::uint32_t> column;
  constexpr std::uint32_t kRows = 200'000;
  for (std::uint32_t i = 0; i < kRows; ++i) {
    column.push_back(i * 7);
  }
  ASSERT_EQ(column.size(), kRows);
  for (std::uint32_t i = 0; i < kRows; ++i) {
    ASSERT_EQ(column[i], i * 7);
  }
  const Column<std::uint32_t> moved = std::move(column);
  EXPECT_EQ(moved.back(), (kRows - 1) * 7);
}

TEST(Column, OfFewRowsIsSmall) {
  Column<std::uint64_t> column;
  column.push_back(1);
  EXPECT_LE(column.bytes(), 1'024U);
}

TEST(RowPacker, UsesNoMoreRowsThanOverlapAtOnce) {
  RowPacker packer;
  EXPECT_EQ(packer.place(0, 100), 0U);
  EXPECT_EQ(packer.place(10, 20), 1U);
  EXPECT_EQ(packer.place(20, 30), 1U);
  EXPECT_EQ(packer.place(100, 110), 0U);
  EXPECT_EQ(packer.rows(), 2U);
}

TEST(Distribution, QuantilesAreWithinASixteenthOfTheTrueOnes) {
  std::mt19937_64 random(3);
  Distribution distribution;
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t value = random() >> (random() % 64);
    values.push_back(value);
    distribution.add(value);
  }
  std::sort(values.begin(), values.end());
  for (const double q : {0.01, 0.25, 0.5, 0.9, 0.99, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(q * 20'000)) - 1;
    const auto exact = static_cast<double>(values[rank]);
    const auto got = static_cast<double>(distribution.quantile(q));
    EXPECT_LE(got, exact);
    EXPECT_GE(got, exact * 15 / 16 - 1);
  }
  EXPECT_EQ(distribution.max(), values.back());
  EXPECT_EQ(Distribution{}.quantile(0.5), 0U);
}

TEST(Distribution, OfFewDifferentValuesAnswersAsOneOfMany) {
  for (std::uint64_t different = 1; different <= 40; ++different) {
    Distribution distribution;
    std::vector<std::uint64_t> values;
    for (std::uint64_t i = 0; i < 200; ++i) {
      const std::uint64_t value = std::uint64_t{1} << (7 * i % different);
      values.push_back(value);
      distribution.add(value);
    }
    std::sort(values.begin(), values.end());
    for (const double q : {0.0, 0.25, 0.5, 0.9, 1.0}) {
      const auto rank = static_cast<std::size_t>(std::max(std::ceil(q * 200), 1.0)) - 1;
      EXPECT_EQ(distribution.quantile(q), values[rank]) << different << " values, q " << q;
    }
  }
}

TEST(Human, DurationsHaveThreeDigits) {
  EXPECT_EQ(human_duration(999), "999 ns");
  EXPECT_EQ(human_duration(1'500), "1.50 µs");
  EXPECT_EQ(human_share(0.00001), "under 0.01 %");
  EXPECT_EQ(human_share(0), "0.00 %");
  EXPECT_EQ(human_duration(20'100'000), "20.1 ms");
  EXPECT_EQ(human_duration(123'400'000'000), "123 s");
  EXPECT_EQ(human_duration(~std::uint64_t{0}), "unknown");
}

TEST(Human, CountsSharesBytesAndTimes) {
  EXPECT_EQ(human_count(1'234'567), "1,234,567");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_share(0.125), "12.5 %");
  EXPECT_EQ(human_bytes(3 << 20), "3.00 MiB");
  EXPECT_EQ(iso_time(1'782'146'175'256'522'678), "2026-06-22T16:36:15.256522678Z");
}

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonText, EscapesAndReplacesWhatIsNotUtf8) {
  EXPECT_EQ(quoted("a\"\\\n\x01"), "\"a\\\"\\\\\\n\\u0001\"");
  EXPECT_EQ(quoted("\xC3\xA9"), "\"\xC3\xA9\"");
  EXPECT_EQ(quoted("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(quoted("\xC0\xAF"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");                  // overlong
  EXPECT_EQ(quoted("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");  // surrogate
  EXPECT_EQ(to_utf8("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");                     // cut short
}

TEST(JsonText, PrintableTextHasNoControlCharacters) {
  EXPECT_EQ(to_printable("a\x1b[2J\n\x7f"), "a\xEF\xBF\xBD[2J\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(to_printable("\xC2\x9B"
                         "31m"),
            "\xEF\xBF\xBD"
            "31m");  // CSI in one character
  EXPECT_EQ(to_printable("\xC2\xA0\xC3\xA9\xFF"), "\xC2\xA0\xC3\xA9\xEF\xBF\xBD");
}

TEST(JsonText, NumbersThatJsonHasNotAreNull) {
  std::string out;
  append_json_number(out, std::numeric_limits<double>::quiet_NaN());
  append_json_number(out, ~std::uint64_t{0});
  EXPECT_EQ(out, "null18446744073709551615");
}

TEST(Names, InternTheSameTextOnce) {
  Names names;
  const NameId a = names.intern("a");
  EXPECT_EQ(names.intern("a"), a);
  EXPECT_EQ(names.find("a"), a);
  EXPECT_EQ(names.find("b"), kNoName);
  const NameId late = names.add_undefined();
  EXPECT_EQ(names.text(late), "(undefined string)");
}

TEST(PollSummary, LeavesIncompletePollsOut) {
  testing::TraceBuilder builder;
  builder.poll(100, 200, 0, 1, "a");
  builder.poll(300, 700, 0, 1, "b");
  builder.poll_start(800, 0, 1, "a");
  builder.poll(900, 901, 1, 2, "a");
  const PollSummary summary = summarize_polls(builder.load());
  EXPECT_EQ(summary.complete, 3U);
  EXPECT_EQ(summary.incomplete, 1U);
  EXPECT_EQ(summary.durations.max(), 400U);
  ASSERT_EQ(summary.places.size(), 2U);
  EXPECT_EQ(summary.places[0].total_ns, 400U);
  EXPECT_EQ(summary.places[1].count, 2U);
}

TEST(Census, CountsWithoutKeeping) {
  testing::TraceBuilder builder;
  builder.clock_sync(1'000, 5'000'000);
  builder.metadata(1'000, "service", "old");
  builder.metadata(1'001, "service", "shop");
  builder.poll_start(3'000, 0, 1);
  builder.poll_end(2'000, 0);  // back in time
  builder.loss(4'000, "buffer full", 7, 2'500, 2'600);
  const std::vector<std::uint8_t> bytes = builder.take();
  Census census;
  format::Decoder decoder(census.visitor());
  census.begin_input(decoder);
  ASSERT_TRUE(decoder.feed(bytes));
  ASSERT_TRUE(decoder.finish());
  EXPECT_EQ(census.events(), 6U);
  EXPECT_EQ(census.by_type().at("PollStartEvent"), 1U);
  EXPECT_EQ(census.begin_ns(), 1'000U);
  EXPECT_EQ(census.end_ns(), 4'000U);
  EXPECT_EQ(census.inversions(), 1U);
  EXPECT_EQ(census.metadata().at("service"), "shop");
  EXPECT_EQ(census.loss().at("buffer full").count, 7U);
  EXPECT_EQ(census.lost_events(), 7U);
  EXPECT_EQ(census.realtime_ns(3'000), 5'002'000U);
}

}  // namespace
}  // namespace dial9::analysis
