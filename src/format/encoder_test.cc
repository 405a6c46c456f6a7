// Whatever is called in whatever order, the encoder's bytes are a valid stream, and a misuse is
// named. (That the bytes are the right ones: golden_test.cc.)
// SPDX-License-Identifier: Apache-2.0
#include "format/encoder.h"

#include <gtest/gtest.h>

#include <random>

#include "format/materialize.h"
#include "format/test_support.h"

namespace dial9::format::test {
namespace {

Encoder with_schema() {
  Encoder out;
  out.schema(1, "E", true, {{"n", FieldType::kVarint}, {"s", FieldType::kPooledString, true}});
  out.schema(2, "L", false, {{"list", FieldType::kDynamicList}});
  return out;
}

// The misuse that `calls` make, after which one good event still goes through.
template <class Calls>
std::string misuse_of(Calls calls) {
  Encoder out = with_schema();
  calls(out);
  const std::string said(out.misuse());
  out.begin(1, 9);
  out.varint(1);
  out.absent();
  const MaterializedTrace trace = materialize(out.data());
  EXPECT_FALSE(trace.error) << trace.error->message;
  EXPECT_FALSE(trace.events.empty());
  EXPECT_EQ(trace.events.back().timestamp_ns, 9u);
  return said;
}

TEST(Encoder, NamesEveryMisuseAndStaysValid) {
  EXPECT_NE(misuse_of([](Encoder& e) { e.begin(7, 1); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.begin(2, 1); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.begin_untimed(1); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.varint(1); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.begin(1, 1), e.u8(1); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.begin(1, 1), e.absent(); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.begin(1, 1), e.present(); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.begin(1, 1), e.varint(1), e.pool_id(1); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.begin(1, 1), e.varint(1), e.present(), e.absent(); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.begin(1, 1), e.varint(1), e.begin(1, 2); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.begin(1, 1), e.element(FieldType::kU8); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.begin_untimed(2), e.list(1), e.u8(1); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) {
              e.begin_untimed(2), e.list(1), e.element(FieldType::kU8), e.u16(1);
            }),
            "");
  EXPECT_NE(misuse_of([](Encoder& e) {
              e.begin_untimed(2), e.list(1), e.element(FieldType::kPooledStackFrames), e.pool_id(3);
            }),
            "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.begin_untimed(2), e.list(1), e.element(FieldType{77}); }),
            "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.schema(1, "E", true, {}); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.schema(9, "E", true, {{"f", FieldType{}}}); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.schema(9, std::string(65536, 'x'), true, {}); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.annotations(9, {{0, "k", "v"}}); }), "");
  EXPECT_NE(misuse_of([](Encoder& e) { e.define_string(1, "a"), e.define_string(1, "b"); }), "");
}

TEST(Encoder, RefusesContainersNestedTooDeep) {
  const auto nest = [](int levels) {
    Encoder out = with_schema();
    out.begin_untimed(2);
    out.list(levels > 1 ? 1 : 0);
    for (int level = 2; level <= levels; ++level) {
      out.element(FieldType::kDynamicList);
      out.list(level < levels ? 1 : 0);
    }
    const bool is_refused = !out.misuse().empty();
    const MaterializedTrace trace = materialize(out.data());
    EXPECT_FALSE(trace.error);
    EXPECT_EQ(trace.events.size(), is_refused ? 0u : 1u);
    return is_refused;
  };
  EXPECT_FALSE(nest(64));
  EXPECT_TRUE(nest(65));
}

TEST(Encoder, ForgetsTheTimeOfAnEventThatItDropped) {
  Encoder out = with_schema();
  out.begin(1, 5);
  out.varint(1);
  out.absent();
  out.begin(1, 1'000'000'000);
  out.u8(1);  // misuse: drops the event and the reset frame in front of it
  out.begin(1, 6);
  out.varint(2);
  out.absent();
  const MaterializedTrace trace = materialize(out.data());
  ASSERT_EQ(trace.events.size(), 2u);
  EXPECT_EQ(trace.events[0].timestamp_ns, 5u);
  EXPECT_EQ(trace.events[1].timestamp_ns, 6u);
}

TEST(Encoder, ShowsWholeEventsOnly) {
  Encoder out = with_schema();
  const std::size_t before = out.data().size();
  out.begin(1, 5);
  out.varint(1);
  EXPECT_EQ(out.data().size(), before);
  out.absent();
  EXPECT_GT(out.data().size(), before);
  EXPECT_EQ(out.misuse(), "");
}

TEST(Encoder, PutsAPoolEntryInFrontOfTheEventThatNeedsIt) {
  Encoder out = with_schema();
  out.begin(1, 5);
  out.varint(1);
  out.present();
  out.pooled_string("new");
  const Outcome decoded = decode(out.take());
  ASSERT_EQ(decoded.lines.size(), 6u);
  EXPECT_EQ(decoded.lines[3], "string 0 'new'");
  EXPECT_TRUE(decoded.lines[4].starts_with("E t=5"));
}

TEST(Encoder, InternsOnceAStream) {
  Encoder out;
  const std::uint32_t first = out.intern("a");
  out.define_string(first + 1, "taken");
  EXPECT_EQ(out.intern("a"), first);
  const std::uint32_t second = out.intern("b");
  EXPECT_NE(second, first);
  EXPECT_NE(second, first + 1);
  constexpr std::uint64_t stack[] = {1, 2};
  EXPECT_EQ(out.intern_stack(stack), out.intern_stack(stack));
  const std::size_t size = out.data().size();
  out.intern("b");
  EXPECT_EQ(out.data().size(), size);
  out.new_stream();
  out.intern("b");
  EXPECT_EQ(out.misuse(), "");
  EXPECT_EQ(decode(out.take()).message, "");
}

TEST(Encoder, StartsAnewAfterItsBytesAreTaken) {
  Encoder out = with_schema();
  out.u8(1);
  EXPECT_NE(out.misuse(), "");
  EXPECT_FALSE(out.take().empty());
  EXPECT_EQ(out.misuse(), "");
  EXPECT_EQ(out.take(), hex(kHeader));
}

// Thousands of random call sequences; not one of them makes bytes that the decoder refuses.
TEST(Encoder, StaysValidUnderRandomCalls) {
  std::minstd_rand random(7);
  for (int round = 0; round < 300; ++round) {
    Encoder out = with_schema();
    for (int call = 0; call < 60; ++call) {
      const auto small = static_cast<std::uint32_t>(random() % 4);
      switch (random() % 14) {
        case 0:
          out.begin(static_cast<std::uint16_t>(small), random());
          break;
        case 1:
          out.begin_untimed(static_cast<std::uint16_t>(small));
          break;
        case 2:
          out.varint(random());
          break;
        case 3:
          out.present();
          break;
        case 4:
          out.absent();
          break;
        case 5:
          out.pooled_string(std::to_string(small));
          break;
        case 6:
          out.list(small);
          break;
        case 7:
          out.map(small);
          break;
        case 8:
          out.element(static_cast<FieldType>(random() % 17));
          break;
        case 9:
          out.u8(static_cast<std::uint8_t>(small));
          break;
        case 10:
          out.string_map({{"k", "v"}});
          break;
        case 11:
          out.pool_id(small);
          break;
        case 12:
          out.pooled_stack({});
          break;
        default:
          out.string("s");
          break;
      }
    }
    const Outcome decoded = decode(Bytes(out.data().begin(), out.data().end()));
    EXPECT_EQ(decoded.message, "") << "round " << round;
  }
}

}  // namespace
}  // namespace dial9::format::test
