// The decoder's result doesn't depend on how the input was cut into chunks, and a trace that ends
// anywhere keeps exactly the frames before the cut.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "format/encoder.h"
#include "format/materialize.h"
#include "format/test_support.h"

namespace dial9::format::test {
namespace {

TEST(Feeding, GivesTheSameResultForChunksOfEverySize) {
  const Bytes bytes = every_kind();
  ASSERT_FALSE(bytes.empty());
  const Outcome whole = decode(bytes);
  EXPECT_EQ(whole.message, "");
  EXPECT_EQ(whole.stats, (DecodeStats{bytes.size(), 16, 2}));
  for (std::size_t chunk_bytes = 1; chunk_bytes <= 130; ++chunk_bytes) {
    EXPECT_EQ(decode(bytes, chunk_bytes), whole) << "chunks of " << chunk_bytes;
  }
}

TEST(Feeding, TakesEmptyChunks) {
  const Bytes bytes = every_kind();
  Recorder recorder;
  Decoder decoder(recorder);
  ASSERT_TRUE(decoder.feed({}));
  for (const std::uint8_t byte : bytes) {
    ASSERT_TRUE(decoder.feed({&byte, 1}));
    ASSERT_TRUE(decoder.feed({}));
  }
  ASSERT_TRUE(decoder.finish());
  EXPECT_EQ(recorder.lines, decode(bytes).lines);
}

// At every byte: either a frame ended there, or it is reported where it starts.
TEST(Feeding, KeepsTheWholeFramesBeforeACutAtEveryByte) {
  const Bytes bytes = every_kind();
  const Outcome whole = decode(bytes);
  std::uint64_t clean_cuts = 0;
  for (std::size_t length = 1; length < bytes.size(); ++length) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    const Outcome kept = decode(cut);
    ASSERT_LE(kept.lines.size(), whole.lines.size());
    for (std::size_t i = 0; i + 1 < kept.lines.size(); ++i) {
      ASSERT_EQ(kept.lines[i], whole.lines[i]);
    }
    if (kept.message.empty()) {
      ++clean_cuts;
      EXPECT_EQ(kept.stats.bytes_consumed, length);
    } else {
      EXPECT_EQ(static_cast<int>(kept.code), static_cast<int>(ErrorCode::kTruncated));
      EXPECT_EQ(kept.offset, kept.stats.bytes_consumed);
      EXPECT_LT(kept.stats.bytes_consumed, length);
    }
    EXPECT_EQ(decode(cut, 1), kept) << "cut at " << length;
  }
  EXPECT_EQ(clean_cuts, 45u);  // between its 46 headers and frames
}

// Whatever one byte is changed to, chunks don't change the outcome, error and offset included.
TEST(Feeding, GivesTheSameErrorForChunksOfEverySize) {
  const Bytes bytes = every_kind();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    Bytes damaged = bytes;
    damaged[at] = static_cast<std::uint8_t>(damaged[at] ^ (at % 2 == 0 ? 0xff : 0x01));
    const Outcome whole = decode(damaged);
    EXPECT_EQ(decode(damaged, 1), whole) << "byte " << at;
    EXPECT_EQ(decode(damaged, 7), whole) << "byte " << at;
  }
}

// A long frame in small chunks is tried a few times only: this takes minutes if it is quadratic.
TEST(Feeding, JoinsALongFrameFromSmallChunksInAboutLinearTime) {
  Encoder out;
  out.schema(1, "E", false, {{"list", FieldType::kDynamicList}});
  out.begin_untimed(1);
  constexpr std::uint32_t count = 100'000;
  out.list(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    out.element(FieldType::kString);
    out.string("eight by");
  }
  const Bytes bytes = out.take();
  struct Counter final : Visitor {
    std::uint64_t events = 0;
    bool on_event(const Event&) override {
      ++events;
      return true;
    }
  } counter;
  Decoder decoder(counter);
  for (const std::uint8_t& byte : bytes) {
    ASSERT_TRUE(decoder.feed({&byte, 1}));
  }
  ASSERT_TRUE(decoder.finish());
  EXPECT_EQ(counter.events, 1u);
}

TEST(Materialize, IsTheSameForChunksOfEverySize) {
  const Bytes bytes = every_kind();
  const MaterializedTrace whole = materialize(bytes);
  EXPECT_FALSE(whole.error);
  EXPECT_EQ(whole.events.size(), 16u);
  EXPECT_EQ(whole.schemas.size(), 3u);
  for (const std::size_t chunk_bytes : {1u, 2u, 64u}) {
    const MaterializedTrace chunked = materialize(bytes, chunk_bytes);
    EXPECT_EQ(chunked.events, whole.events);
    EXPECT_EQ(chunked.stats, whole.stats);
  }
}

TEST(Materialize, OwnsNestedValuesAndResolvedPools) {
  constexpr std::uint64_t stack[] = {5, 6};
  Encoder out;
  out.schema(1, "E", true, {{"map", FieldType::kDynamicMap}});
  out.begin(1, 77);
  out.map(1);
  out.element(FieldType::kPooledString);
  out.pooled_string("where");
  out.element(FieldType::kDynamicList);
  out.list(2);
  out.element(FieldType::kPooledStackFrames);
  out.pooled_stack(stack);
  out.element(FieldType::kI64);
  out.i64(-3);
  ASSERT_EQ(out.misuse(), "");
  const MaterializedTrace trace = materialize(out.data());
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].timestamp_ns, 77u);
  const OwnedValue& map = *trace.field(trace.events[0], "map");
  ASSERT_EQ(map.elements.size(), 2u);
  EXPECT_EQ(map.elements[0].text, "where");
  ASSERT_EQ(map.elements[1].elements.size(), 2u);
  EXPECT_EQ(map.elements[1].elements[0].frames, (std::vector<std::uint64_t>{5, 6}));
  EXPECT_EQ(static_cast<std::int64_t>(map.elements[1].elements[1].bits), -3);
}

TEST(Materialize, KeepsWhatCameBeforeTheError) {
  Bytes bytes = every_kind();
  bytes.push_back(0x7e);
  const MaterializedTrace trace = materialize(bytes);
  ASSERT_TRUE(trace.error);
  EXPECT_EQ(trace.error->offset, bytes.size() - 1);
  EXPECT_EQ(trace.events.size(), 16u);
}

}  // namespace
}  // namespace dial9::format::test
