// What the decoder makes of well-formed traces: streams, schemas, pools, time, annotations.
// SPDX-License-Identifier: Apache-2.0
#include "format/decoder.h"

#include <gtest/gtest.h>

#include "format/encoder.h"
#include "format/materialize.h"
#include "format/test_support.h"

namespace dial9::format::test {
namespace {

using Lines = std::vector<std::string>;

const std::string_view kSchemaE = "01 01 00  01 00 'E'  01  01 00  01 00 'v' 0b";

TEST(Decoder, TakesAStreamOfNothingButItsHeader) {
  const Outcome decoded = decode(hex(kHeader));
  EXPECT_EQ(decoded.message, "");
  EXPECT_EQ(decoded.stats, (DecodeStats{5, 0, 1}));
}

TEST(Decoder, AdvancesTheTimeBaseWithEveryTimedEvent) {
  const Outcome decoded = decode(
      join({hex(kHeader), hex(kSchemaE), hex("02 01 00 0a 00 00 01"), hex("02 01 00 05 00 00 02"),
            hex("05 e8 03 00 00 00 00 00 00"), hex("02 01 00 01 00 00 03")}));
  EXPECT_EQ(decoded.lines, (Lines{"stream @0", "schema 0 E timed v:11", "E t=10 @18 11:1",
                                  "E t=15 @25 11:2", "E t=1001 @41 11:3", "end"}));
}

TEST(Decoder, LeavesTheTimeBaseAloneAtUntimedEvents) {
  Encoder out;
  out.schema(1, "Timed", true, {});
  out.schema(2, "Untimed", false, {});
  out.begin(1, 100);
  out.begin_untimed(2);
  out.begin(1, 101);
  const Outcome decoded = decode(out.take());
  EXPECT_EQ(decoded.lines[3], "Timed t=100 @33");
  EXPECT_EQ(decoded.lines[4], "Untimed t=0 @39");
  EXPECT_EQ(decoded.lines[5], "Timed t=101 @42");
}

TEST(Decoder, StartsEverythingAnewAtAHeaderInTheMiddle) {
  const Bytes first = join({hex(kHeader), hex(kSchemaE), hex("05 00 01 00 00 00 00 00 00"),
                            hex("03 01 00 00 00 09 00 00 00 01 00 00 00 's'")});
  Recorder recorder;
  Decoder decoder(recorder);
  ASSERT_TRUE(decoder.feed(first));
  EXPECT_EQ(decoder.string(9), "s");
  ASSERT_TRUE(decoder.feed(
      join({hex(kHeader), hex("01 01 00 01 00 'F' 01 00 00"), hex("02 01 00 07 00 00")})));
  EXPECT_EQ(decoder.string(9), std::nullopt);
  ASSERT_TRUE(decoder.finish());
  EXPECT_EQ(recorder.lines[5], "F t=7 @55");  // base 0 again, another type under the same id
  EXPECT_EQ(decoder.stats().streams, 2u);
}

TEST(Decoder, NeedsTheSchemaAgainAfterAHeader) {
  const Outcome decoded =
      decode(join({hex(kHeader), hex(kSchemaE), hex(kHeader), hex("02 01 00 00 00 00 01")}));
  EXPECT_EQ(decoded.code, ErrorCode::kCorrupt);
  EXPECT_EQ(decoded.offset, 24u);
}

TEST(Decoder, AnswersForTheOldPoolsWhileANewStreamStarts) {
  struct LateResolver final : Visitor {
    Decoder* decoder = nullptr;
    std::vector<std::string> seen;
    void look() { seen.emplace_back(decoder->string(1).value_or("none")); }
    void on_stream_start(std::uint64_t) override { look(); }
    void on_end() override { look(); }
    bool on_event(const Event&) override { return true; }
  } visitor;
  Decoder decoder(visitor);
  visitor.decoder = &decoder;
  Encoder out;
  out.define_string(1, "first");
  out.new_stream();
  out.define_string(1, "second");
  ASSERT_TRUE(decoder.feed(out.data()));
  ASSERT_TRUE(decoder.finish());
  EXPECT_EQ(visitor.seen, (Lines{"none", "first", "second"}));
}

TEST(Decoder, GivesTheSameSchemaObjectToTheSameContentInEveryStream) {
  struct Keeper final : Visitor {
    std::vector<const Schema*> of_events;
    std::size_t schemas = 0;
    void on_schema(const Schema&) override { ++schemas; }
    bool on_event(const Event& event) override {
      of_events.push_back(&event.schema);
      return true;
    }
  } keeper;
  Encoder out;
  out.schema(1, "A", true, {{"x", FieldType::kU8}});
  out.begin(1, 1);
  out.u8(1);
  out.new_stream();
  out.schema(500, "A", true, {{"x", FieldType::kU8}});
  out.schema(1, "A", true, {{"x", FieldType::kU16}});
  out.begin(500, 1);
  out.u8(1);
  out.begin(1, 1);
  out.u16(1);
  Decoder decoder(keeper);
  ASSERT_TRUE(decoder.feed(out.data()));
  ASSERT_TRUE(decoder.finish());
  EXPECT_EQ(keeper.schemas, 2u);
  ASSERT_EQ(keeper.of_events.size(), 3u);
  EXPECT_EQ(keeper.of_events[0], keeper.of_events[1]);
  EXPECT_NE(keeper.of_events[0], keeper.of_events[2]);
  EXPECT_EQ(keeper.of_events[2]->index, 1u);
}

TEST(Decoder, TakesTheSameSchemaTwiceInAStream) {
  const Outcome decoded =
      decode(join({hex(kHeader), hex(kSchemaE), hex(kSchemaE), hex("02 01 00 00 00 00 01")}));
  EXPECT_EQ(decoded.message, "");
  EXPECT_EQ(decoded.stats.events, 1u);
}

TEST(Decoder, AddsUpAnnotationsAndSaysOnlyWhatChanged) {
  Encoder out;
  out.schema(1, "E", true, {{"v", FieldType::kVarint}});
  out.annotations(1, {{0, "unit", "ns"}});
  out.annotations(1, {{0, "kind", "gauge"}, {0, "unit", "ns"}});
  out.annotations(1, {{0, "unit", "ns"}});  // nothing new
  out.new_stream();
  out.schema(1, "E", true, {{"v", FieldType::kVarint}});
  out.annotations(1, {{0, "unit", "us"}});  // replaces
  const Outcome decoded = decode(out.take());
  EXPECT_EQ(decoded.lines,
            (Lines{"stream @0", "schema 0 E timed v:9", "schema 0 E timed v:9 #0.unit=ns",
                   "schema 0 E timed v:9 #0.unit=ns #0.kind=gauge", "stream @89",
                   "schema 0 E timed v:9 #0.unit=us #0.kind=gauge", "end"}));
}

TEST(Decoder, KeepsAnnotationsOfFieldsThatTheSchemaDoesNotHave) {
  Encoder out;
  out.schema(1, "E", true, {});
  out.annotations(1, {{65535, "k", "v"}});
  const MaterializedTrace trace = materialize(out.data());
  ASSERT_EQ(trace.schemas.size(), 1u);
  EXPECT_EQ(trace.schemas[0].annotation(65535, "k"), "v");
  EXPECT_EQ(trace.schemas[0].annotation(0, "k"), std::nullopt);
}

TEST(Decoder, SkipsAnnotationsOfTypesItDoesNotKnow) {
  const std::string_view entries = "01 00  00 00 01 00 'k' 01 00 00 00 'v'";
  const Outcome decoded = decode(join({hex(kHeader), hex("06 07"), hex(entries),
                                       hex("06 80 80 80 80 80 10"), hex(entries), hex(kSchemaE)}));
  EXPECT_EQ(decoded.message, "");
  EXPECT_EQ(decoded.lines, (Lines{"stream @0", "schema 0 E timed v:11", "end"}));
}

TEST(Decoder, FindsFieldsByName) {
  Schema schema{0, "E", true, {}, {}};
  schema.fields = {
      {"a", FieldType::kU8, false}, {"b", FieldType::kU8, false}, {"a", FieldType::kU16, false}};
  EXPECT_EQ(schema.find("b"), 1);
  EXPECT_EQ(schema.find("a"), 0);
  EXPECT_EQ(schema.find("c"), -1);
}

TEST(Decoder, ResolvesAStringThatIsDefinedAfterItsUse) {
  Encoder out;
  out.schema(1, "E", true, {{"name", FieldType::kPooledString}});
  out.begin(1, 1);
  out.pool_id(5);
  out.begin(1, 2);
  out.pool_id(6);
  out.define_string(5, "late");
  const MaterializedTrace trace = materialize(out.data());
  ASSERT_FALSE(trace.error);
  EXPECT_EQ(trace.field(trace.events[0], "name")->text, "late");
  EXPECT_FALSE(trace.field(trace.events[0], "name")->is_unresolved);
  EXPECT_TRUE(trace.field(trace.events[1], "name")->is_unresolved);
  EXPECT_EQ(trace.field(trace.events[1], "other"), nullptr);
}

TEST(Decoder, LetsALaterPoolEntryReplaceAnEarlierOne) {
  Recorder recorder;
  Decoder decoder(recorder);
  ASSERT_TRUE(decoder.feed(join({hex(kHeader), hex("03 02 00 00 00  01 00 00 00 01 00 00 00 'a'"),
                                 hex("01 00 00 00 01 00 00 00 'b'")})));
  EXPECT_EQ(decoder.string(1), "b");
}

TEST(Decoder, KeepsInvalidUtf8AsItIs) {
  const Outcome decoded = decode(join({hex(kHeader), hex("01 01 00 02 00 ff fe 01 00 00"),
                                       hex("03 01 00 00 00 00 00 00 00 02 00 00 00 c3 28")}));
  EXPECT_EQ(decoded.message, "");
  EXPECT_EQ(decoded.lines[1], "schema 0 \xff\xfe timed");
  EXPECT_EQ(decoded.lines[2], "string 0 '\\195('");
}

TEST(Decoder, ReadsAnyNonzeroByteAsTrue) {
  const Outcome decoded =
      decode(join({hex(kHeader), hex("01 01 00 01 00 'E' 00 01 00 01 00 'b' 03"),
                   hex("02 01 00 ff"), hex("02 01 00 00")}));
  EXPECT_TRUE(decoded.lines[2].ends_with(" 3:1"));
  EXPECT_TRUE(decoded.lines[3].ends_with(" 3:0"));
}

TEST(Decoder, StopsWhenTheVisitorSaysSo) {
  Recorder recorder;
  recorder.max_events = 2;
  Decoder decoder(recorder);
  Encoder out;
  out.schema(1, "E", true, {});
  for (std::uint64_t time = 1; time <= 5; ++time) {
    out.begin(1, time);
  }
  const Result<void> fed = decoder.feed(out.data());
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(decoder.stats().events, 2u);
  EXPECT_EQ(decoder.finish().error().code, ErrorCode::kCancelled);
  EXPECT_EQ(recorder.lines.back(), "end");
}

}  // namespace
}  // namespace dial9::format::test
