// What a decoder holds is bounded whatever the input: a frame and the definitions over the limits
// are refused with their offset, and what came before is kept.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "format/decoder.h"
#include "format/encoder.h"
#include "format/test_support.h"

namespace dial9::format::test {
namespace {

struct Ended {
  std::vector<std::string> lines;
  DecodeStats stats;
  ErrorCode code{};
  std::uint64_t offset = 0;
  std::string message;  // empty: no error
  bool operator==(const Ended&) const = default;
};

Ended decode_within(const Bytes& bytes, DecodeLimits limits, std::size_t chunk_bytes) {
  Recorder recorder;
  Decoder decoder(recorder, limits);
  for (std::size_t at = 0; at < bytes.size(); at += chunk_bytes) {
    (void)decoder.feed(std::span(bytes).subspan(at, std::min(chunk_bytes, bytes.size() - at)));
  }
  const Result<void> finished = decoder.finish();
  Ended ended{recorder.lines, decoder.stats(), {}, 0, {}};
  if (!finished) {
    ended.code = finished.error().code;
    ended.offset = finished.error().offset;
    ended.message = finished.error().message;
  }
  return ended;
}

// One event, then another whose text has `text_bytes`.
Bytes with_long_event(std::size_t text_bytes) {
  Encoder out;
  out.schema(1, "E", false, {{"text", FieldType::kString}});
  out.begin_untimed(1);
  out.string("short");
  out.begin_untimed(1);
  out.string(std::string(text_bytes, 'x'));
  return out.take();
}

constexpr std::size_t kEventHeadBytes = 1 + 2 + 4;

TEST(DecodeLimits, AFrameOfTheLongestAllowedLengthIsRead) {
  const DecodeLimits limits{.frame_bytes = 100};
  const Bytes bytes = with_long_event(100 - kEventHeadBytes);
  for (const std::size_t chunk_bytes : {std::size_t{1}, std::size_t{64}, bytes.size()}) {
    const Ended ended = decode_within(bytes, limits, chunk_bytes);
    EXPECT_EQ(ended.message, "");
    EXPECT_EQ(ended.stats.events, 2u);
  }
}

TEST(DecodeLimits, AFrameOverTheLimitEndsTheDecodeAtItsStartWhateverTheChunks) {
  const DecodeLimits limits{.frame_bytes = 100};
  const Bytes bytes = join({with_long_event(101 - kEventHeadBytes), with_long_event(1)});
  const Ended whole = decode_within(bytes, limits, bytes.size());
  EXPECT_EQ(static_cast<int>(whole.code), static_cast<int>(ErrorCode::kLimit));
  EXPECT_EQ(whole.stats.events, 1u);
  EXPECT_EQ(whole.offset, whole.stats.bytes_consumed);
  EXPECT_NE(whole.message.find("more than 100 bytes"), std::string::npos) << whole.message;
  for (const std::size_t chunk_bytes : {1u, 7u, 64u, 101u}) {
    EXPECT_EQ(decode_within(bytes, limits, chunk_bytes), whole) << chunk_bytes;
  }
}

TEST(DecodeLimits, ACountThatPromisesMoreThanTheLimitIsNotWaitedFor) {
  const DecodeLimits limits{.frame_bytes = 1000};
  Bytes bytes = hex(std::string(kHeader).append(" 03 ff ff ff ff"));  // 4 Gi strings
  bytes.resize(bytes.size() + 2000);
  const Ended ended = decode_within(bytes, limits, 1);
  EXPECT_EQ(static_cast<int>(ended.code), static_cast<int>(ErrorCode::kLimit)) << ended.message;
  EXPECT_EQ(ended.offset, 5u);
}

TEST(DecodeLimits, PoolsAndSchemasOverTheLimitEndTheDecode) {
  constexpr std::uint64_t kHeld = 100'000;
  Encoder strings;
  for (std::uint32_t i = 0; i < 200; ++i) {
    strings.define_string(i, std::string(1000, 's'));
  }
  Encoder stacks;
  for (std::uint32_t i = 0; i < 200; ++i) {
    stacks.define_stack(i * 1'000'000, std::vector<std::uint64_t>(100, 7));
  }
  Encoder schemas;
  for (std::uint16_t i = 0; i < 2000; ++i) {
    schemas.schema(i, "E" + std::to_string(i), false, {{"f", FieldType::kU8}});
  }
  Encoder annotations;
  annotations.schema(1, "E", false, {{"f", FieldType::kU8}});
  for (std::uint16_t i = 0; i < 2000; ++i) {
    annotations.annotations(1, {{i, "key", "value"}});
  }
  for (Encoder* out : {&strings, &stacks, &schemas, &annotations}) {
    const Bytes bytes = out->take();
    const Ended ended = decode_within(bytes, {.held_bytes = kHeld}, bytes.size());
    EXPECT_EQ(static_cast<int>(ended.code), static_cast<int>(ErrorCode::kLimit)) << ended.message;
    EXPECT_NE(ended.message.find("definitions"), std::string::npos) << ended.message;
    EXPECT_EQ(ended.offset, ended.stats.bytes_consumed);
    EXPECT_EQ(decode_within(bytes, {.held_bytes = kHeld}, 13), ended);
    EXPECT_EQ(decode_within(bytes, {}, 13).message, "");
  }
}

TEST(DecodeLimits, PoolsOfEarlierStreamsDontCount) {
  Encoder out;
  for (int stream = 0; stream < 50; ++stream) {
    out.define_string(0, std::string(40'000, 's'));
    out.new_stream();
  }
  const Bytes bytes = out.take();
  EXPECT_EQ(decode_within(bytes, {.held_bytes = 200'000}, bytes.size()).message, "");
}

}  // namespace
}  // namespace dial9::format::test
