// What the decoder makes of inputs that are empty, foreign, cut or damaged: an error that names the
// byte, and everything before it kept.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "format/decoder.h"
#include "format/encoder.h"
#include "format/test_support.h"

namespace dial9::format::test {
namespace {

// A stream with one good event of 7 bytes (from byte 18 on), then `tail`.
Bytes good_event_then(std::string_view tail) {
  return join({hex(kHeader), hex("01 01 00  01 00 'E'  01  01 00  01 00 'v' 0b"),
               hex("02 01 00 00 00 00 2a"), hex(tail)});
}
constexpr std::uint64_t kTail = 25;

// A stream whose event type 1 ('E', untimed) has one field of `wire_type`, then an event of it.
Bytes one_value(std::uint8_t wire_type, std::string_view value) {
  return join({hex(kHeader),
               hex("01 01 00  01 00 'E'  00  01 00  01 00 'f'"),
               {wire_type},
               hex("02 01 00"),
               hex(value)});
}
constexpr std::uint64_t kValue = 21;

void expect_error(const Bytes& bytes, ErrorCode code, std::uint64_t offset,
                  std::string_view phrase) {
  const Outcome decoded = decode(bytes);
  EXPECT_EQ(static_cast<int>(decoded.code), static_cast<int>(code)) << decoded.message;
  EXPECT_EQ(decoded.offset, offset) << decoded.message;
  EXPECT_NE(decoded.message.find(phrase), std::string::npos) << decoded.message;
  ASSERT_FALSE(decoded.lines.empty());
  EXPECT_EQ(decoded.lines.back(), "end");
}

TEST(DecoderError, SaysThatAnInputIsEmpty) {
  expect_error({}, ErrorCode::kCorrupt, 0, "the input is empty");
}

TEST(DecoderError, SaysThatAnInputIsForeign) {
  expect_error(hex("7f 'ELF' 02 01"), ErrorCode::kCorrupt, 0, "not a trace");
  expect_error(hex("'TRACE'"), ErrorCode::kCorrupt, 2, "not a trace");
  expect_error(hex("02 01 00"), ErrorCode::kCorrupt, 0, "not a trace");
}

TEST(DecoderError, TellsADamagedHeaderInTheMiddleFromAForeignInput) {
  expect_error(good_event_then("54 52 43 01 01"), ErrorCode::kCorrupt, kTail + 3,
               "a damaged stream header");
}

TEST(DecoderError, RefusesAnotherVersionAndNamesIt) {
  expect_error(hex("54 52 43 00 02 00"), ErrorCode::kUnsupported, 4, "version 2");
  expect_error(good_event_then("54 52 43 00 00"), ErrorCode::kUnsupported, kTail + 4, "version 0");
}

TEST(DecoderError, KeepsWhatWasReadableBeforeAnUnknownFrame) {
  const Bytes bytes = good_event_then("07 00");
  expect_error(bytes, ErrorCode::kUnsupported, kTail, "unknown frame 0x07");
  const Outcome decoded = decode(bytes);
  EXPECT_EQ(decoded.stats, (DecodeStats{kTail, 1, 1}));
  EXPECT_NE(decoded.message.find("kept 1 events from the 25 bytes before"), std::string::npos);
  EXPECT_EQ(decoded.lines[2], "E t=0 @18 11:42");
}

TEST(DecoderError, KeepsWhatWasReadableBeforeATruncatedFrame) {
  const Bytes bytes = good_event_then("02 01 00 00");
  expect_error(bytes, ErrorCode::kTruncated, kTail, "ends inside a frame");
  EXPECT_EQ(decode(bytes).stats, (DecodeStats{kTail, 1, 1}));
}

TEST(DecoderError, StopsAtAnEventWithoutASchema) {
  expect_error(good_event_then("02 02 00 00 00 00"), ErrorCode::kCorrupt, kTail + 1,
               "type was not defined");
}

TEST(DecoderError, StopsAtATypeIdThatChangesItsMeaning) {
  expect_error(good_event_then("01 01 00  01 00 'E'  01  00 00"), ErrorCode::kCorrupt, kTail,
               "defined again");
}

TEST(DecoderError, StopsAtAnUnknownFieldType) {
  expect_error(good_event_then("01 02 00 01 00 'F' 01 01 00 01 00 'v' 10"), ErrorCode::kUnsupported,
               kTail + 12, "unknown field type 0x10");
  expect_error(good_event_then("01 02 00 01 00 'F' 01 01 00 01 00 'v' 80"), ErrorCode::kUnsupported,
               kTail + 12, "unknown field type 0x80");
}

TEST(DecoderError, StopsAtAnUnknownTypeInsideAListOrMap) {
  expect_error(one_value(0x0e, "02 00 00 00 0b 01 00"), ErrorCode::kUnsupported, kValue + 6,
               "unknown field type 0x00");
  // Elements carry their own type each, so there is nothing for an optional one to say.
  expect_error(one_value(0x0f, "01 00 00 00 8b 01"), ErrorCode::kUnsupported, kValue + 4,
               "unknown field type 0x8b");
}

TEST(DecoderError, StopsAtAFlagThatIsNeitherZeroNorOne) {
  expect_error(one_value(0x8b, "02 01"), ErrorCode::kCorrupt, kValue, "neither 0 nor 1 but 0x02");
  expect_error(good_event_then("01 02 00 01 00 'F' 02 00 00"), ErrorCode::kCorrupt, kTail + 6,
               "neither 0 nor 1");
}

TEST(DecoderError, StopsAtAVarintOfMoreThanSixtyFourBits) {
  expect_error(one_value(0x09, "ff ff ff ff ff ff ff ff ff 02"), ErrorCode::kCorrupt, kValue,
               "varint");
  // The same where the whole frame isn't known to be there.
  expect_error(one_value(0x0e, "01 00 00 00 09 80 80 80 80 80 80 80 80 80 80"), ErrorCode::kCorrupt,
               kValue + 5, "varint");
  expect_error(good_event_then("06 ff ff ff ff ff ff ff ff ff 7f 00 00"), ErrorCode::kCorrupt,
               kTail + 1, "varint");
}

TEST(DecoderError, StopsAtAStackThatIsNotDefinedSoFar) {
  expect_error(one_value(0x06, "05 00 00 00"), ErrorCode::kCorrupt, kValue, "stack");
  expect_error(one_value(0x0e, "01 00 00 00 06 05 00 00 00"), ErrorCode::kCorrupt, kValue + 5,
               "stack");
  // Defined by an earlier stream only.
  expect_error(join({hex(kHeader), hex("04 01 00 00 00 05 00 00 00 00 00 00 00"),
                     one_value(0x06, "05 00 00 00")}),
               ErrorCode::kCorrupt, 18 + kValue, "stack");
}

TEST(DecoderError, StopsAtATimestampOfMoreThanSixtyFourBits) {
  const Bytes bytes =
      good_event_then("05 fe ff ff ff ff ff ff ff  02 01 00 01 00 00 01  02 01 00 01 00 00 01");
  expect_error(bytes, ErrorCode::kCorrupt, kTail + 9 + 7 + 3, "timestamp");
  EXPECT_EQ(decode(bytes).stats.events, 2u);
}

std::string nested_lists(int levels) {
  std::string value;
  for (int level = 1; level < levels; ++level) {
    value += "01 00 00 00 0e ";
  }
  return value + "00 00 00 00";
}

TEST(DecoderError, BoundsTheNestingOfContainers) {
  EXPECT_EQ(decode(one_value(0x0e, nested_lists(64))).message, "");
  expect_error(one_value(0x0e, nested_lists(65)), ErrorCode::kUnsupported, kValue + 63 * 5 + 4,
               "nested deeper than 64");
  // A StringMap is a level too.
  std::string map_at_65 = nested_lists(64);
  map_at_65.replace(map_at_65.size() - 11, 11, "01 00 00 00 0a 00 00 00 00");
  expect_error(one_value(0x0e, map_at_65), ErrorCode::kUnsupported, kValue + 63 * 5 + 5,
               "nested deeper than 64");
}

// Counts that promise gigabytes which aren't there: an honest "truncated", and no memory for them.
TEST(DecoderError, NeverTrustsACountBeyondTheBytes) {
  const std::string_view frames[] = {
      "03 ff ff ff ff 00 00 00 00 ff ff ff ff 'x'",
      "04 ff ff ff ff 00 00 00 00 ff ff ff ff 01",
      "06 01 ff ff 00 00 ff ff 'k'",
      "01 02 00 ff ff 'x'",
      "01 02 00 00 00 01 ff ff 01 00 'x' 0b",
  };
  for (const std::string_view frame : frames) {
    expect_error(good_event_then(frame), ErrorCode::kTruncated, kTail, "ends inside a frame");
  }
  for (const std::uint8_t type : hex("04 05 08 0a 0e 0f")) {
    expect_error(one_value(type, "ff ff ff ff"), ErrorCode::kTruncated, kValue - 3,
                 "ends inside a frame");
  }
}

TEST(DecoderError, ReturnsTheSameErrorForEver) {
  Recorder recorder;
  Decoder decoder(recorder);
  const Result<void> first = decoder.feed(good_event_then("99"));
  ASSERT_FALSE(first);
  const Result<void> second = decoder.feed(hex(kHeader));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, first.error().message);
  EXPECT_EQ(decoder.finish().error().offset, first.error().offset);
  EXPECT_EQ(std::count(recorder.lines.begin(), recorder.lines.end(), "end"), 1);
}

}  // namespace
}  // namespace dial9::format::test
