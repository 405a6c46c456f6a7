// The hot path's bytes against format::Encoder's: two writers of one format, held together.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "dial9/event.h"
#include "format/encoder.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

enum class Colour : std::uint16_t { kRed = 7 };

DIAL9_EVENT(Everything, (std::uint64_t, big), (std::int64_t, negative), (int, small), (bool, yes),
            (double, ratio), (float, half), (std::uint8_t, u8), (std::uint16_t, u16),
            (std::uint32_t, u32), (Colour, colour), (text, words), (interned, kind), (bytes, raw),
            (stack_frames, stack), (callchain, chain), (optional<std::uint32_t>, here),
            (optional<std::uint32_t>, gone), (optional<interned>, name_here),
            (optional<interned>, name_gone), (bytes_u64, size));
DIAL9_EVENT(Tick);

const std::uint64_t kFrames[] = {0x1000, 0x2000, 0x3000};

Everything sample() {
  return {std::numeric_limits<std::uint64_t>::max(),
          -5,
          -7,
          true,
          0.25,
          0.5F,
          200,
          60000,
          4'000'000'000,
          Colour::kRed,
          "words",
          "kind",
          {"\x00\x01", 2},
          {kFrames, 3},
          {kFrames, 2},
          17U,
          {},
          interned("here"),
          {},
          4096};
}

// The same event through the encoder, with the ids that the thread buffer gives.
std::vector<std::uint8_t> encoded(std::uint16_t type_id, std::uint64_t stamp) {
  using format::FieldType;
  format::Encoder out;
  out.schema(type_id, "Everything", true,
             {{"big", FieldType::kVarint},
              {"negative", FieldType::kI64},
              {"small", FieldType::kI64},
              {"yes", FieldType::kBool},
              {"ratio", FieldType::kF64},
              {"half", FieldType::kF64},
              {"u8", FieldType::kU8},
              {"u16", FieldType::kU16},
              {"u32", FieldType::kU32},
              {"colour", FieldType::kU16},
              {"words", FieldType::kString},
              {"kind", FieldType::kPooledString},
              {"raw", FieldType::kBytes},
              {"stack", FieldType::kStackFrames},
              {"chain", FieldType::kPooledStackFrames},
              {"here", FieldType::kU32, true},
              {"gone", FieldType::kU32, true},
              {"name_here", FieldType::kPooledString, true},
              {"name_gone", FieldType::kPooledString, true},
              {"size", FieldType::kVarint}});
  out.annotations(type_id, {{19, "unit", "bytes"}, {19, "metrique.unit", "bytes"}});
  out.define_string(kChunkTextBit | 1, "kind");
  out.define_stack(1, std::span(kFrames, 2));
  out.define_string(kChunkTextBit | 2, "here");
  out.begin(type_id, stamp);
  out.varint(std::numeric_limits<std::uint64_t>::max());
  out.i64(-5);
  out.i64(-7);
  out.boolean(true);
  out.f64(0.25);
  out.f64(0.5);
  out.u8(200);
  out.u16(60000);
  out.u32(4'000'000'000);
  out.u16(7);
  out.string("words");
  out.pool_id(kChunkTextBit | 1);
  const std::uint8_t raw[] = {0, 1};
  out.bytes(raw);
  out.stack_frames(kFrames);
  out.pool_id(1);
  out.present();
  out.u32(17);
  out.absent();
  out.present();
  out.pool_id(kChunkTextBit | 2);
  out.absent();
  out.varint(4096);
  EXPECT_EQ(out.misuse(), "");
  return out.take();
}

TEST(HotPath, WritesTheBytesThatTheEncoderWrites) {
  SteppedRecorder recorder;
  constexpr std::uint64_t kStamp = 123'456'789'000;
  record_at(sample(), kStamp);
  Arena& arena = recorder->arena();
  const std::uint32_t chunk = arena.index_of(*t_buffer.control);
  const auto committed = static_cast<std::uint32_t>(arena.control(chunk).producer.committed);
  const std::vector<std::uint8_t> written(arena.stream(chunk), arena.stream(chunk) + committed);
  const auto type_id = static_cast<std::uint16_t>(EventTypeOf<Everything>::type.id);
  EXPECT_EQ(written, encoded(type_id, kStamp));
}

TEST(HotPath, WritesAResetFrameOnlyWhereTheDeltaDoesNotFit) {
  SteppedRecorder recorder;
  format::Encoder out;
  record_at(Tick{}, 1000);
  const auto type_id = static_cast<std::uint16_t>(EventTypeOf<Tick>::type.id);
  out.schema(type_id, "Tick", true, std::span<const format::FieldSpec>{});
  for (const std::uint64_t stamp : {1000ULL, 1000ULL, 16'778'215ULL, 33'555'431ULL, 5ULL, 6ULL}) {
    out.begin(type_id, stamp);
  }
  for (const std::uint64_t stamp : {1000ULL, 16'778'215ULL, 33'555'431ULL, 5ULL, 6ULL}) {
    record_at(Tick{}, stamp);
  }
  const auto committed = static_cast<std::uint32_t>(t_buffer.control->producer.committed);
  const std::vector<std::uint8_t> written(t_buffer.begin, t_buffer.begin + committed);
  const auto expected = out.take();
  EXPECT_EQ(std::vector<std::uint8_t>(expected.begin(), expected.end()), written);
}

TEST(HotPath, KeepsEveryFieldThroughTheDecoder) {
  SteppedRecorder recorder;
  record(sample());
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.numbers("Everything", "big"),
            std::vector{std::numeric_limits<std::uint64_t>::max()});
  EXPECT_EQ(trace.numbers("Everything", "negative"), std::vector{static_cast<std::uint64_t>(-5)});
  EXPECT_EQ(trace.texts("Everything", "words"), std::vector<std::string>{"words"});
  EXPECT_EQ(trace.texts("Everything", "kind"), std::vector<std::string>{"kind"});
  EXPECT_EQ(trace.texts("Everything", "name_here"), std::vector<std::string>{"here"});
  const auto& event = trace.raw().events.back().values.size() == 20 ? trace.raw().events.back()
                                                                    : trace.raw().events[2];
  EXPECT_FALSE(trace.raw().field(event, "gone")->is_present);
  EXPECT_EQ(trace.raw().field(event, "chain")->frames,
            (std::vector<std::uint64_t>{0x1000, 0x2000}));
}

TEST(HotPath, WireTagsAreTheFormats) {
  EXPECT_EQ(kWireI64, static_cast<int>(format::FieldType::kI64));
  EXPECT_EQ(kWireF64, static_cast<int>(format::FieldType::kF64));
  EXPECT_EQ(kWireBool, static_cast<int>(format::FieldType::kBool));
  EXPECT_EQ(kWireString, static_cast<int>(format::FieldType::kString));
  EXPECT_EQ(kWireBytes, static_cast<int>(format::FieldType::kBytes));
  EXPECT_EQ(kWirePooledStack, static_cast<int>(format::FieldType::kPooledStackFrames));
  EXPECT_EQ(kWirePooledString, static_cast<int>(format::FieldType::kPooledString));
  EXPECT_EQ(kWireStack, static_cast<int>(format::FieldType::kStackFrames));
  EXPECT_EQ(kWireVarint, static_cast<int>(format::FieldType::kVarint));
  EXPECT_EQ(kWireU8, static_cast<int>(format::FieldType::kU8));
  EXPECT_EQ(kWireU16, static_cast<int>(format::FieldType::kU16));
  EXPECT_EQ(kWireU32, static_cast<int>(format::FieldType::kU32));
  EXPECT_EQ(kWireOptional, format::kOptionalBit);
  EXPECT_EQ(kMaxDeltaNs, format::kMaxDeltaNs);
}

}  // namespace
}  // namespace dial9::internal
