// Traces that nobody would write on purpose, unless to break the reader: memory and time stay in
// proportion, and what makes no sense is unknown, never a number.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "analysis/distribution.h"
#include "analysis/findings.h"
#include "analysis/json_text.h"
#include "analysis/loader.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using format::Encoder;
using format::FieldSpec;
using format::FieldType;
using testing::TraceBuilder;

// The names outlive the specs, which are views.
std::vector<FieldSpec> many_fields(const std::vector<std::string>& names, FieldType type) {
  std::vector<FieldSpec> fields;
  for (const std::string& name : names) {
    fields.push_back({name, type});
  }
  return fields;
}

std::vector<std::string> numbered(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back("f" + std::to_string(i));
  }
  return names;
}

TEST(Hostile, ASpanMayHaveMoreFieldsThanASignedShortCounts) {
  const std::vector<std::string> names = numbered(40'000);
  std::vector<FieldSpec> fields = many_fields(names, FieldType::kU16);
  fields.insert(fields.begin(), FieldSpec{"span_id", FieldType::kVarint});
  Encoder out;
  out.schema(1, "SpanEnter:a.cc:1:2", true, fields);
  out.begin(1, 1'000);
  out.varint(5);
  for (std::size_t i = 0; i < names.size(); ++i) {
    out.u16(static_cast<std::uint16_t>(i));
  }
  ASSERT_EQ(out.misuse(), "");
  const Trace trace = load(out.data());
  ASSERT_EQ(trace.spans.size(), 1U);
  ASSERT_EQ(trace.spans.fields[0].size(), names.size());
  EXPECT_EQ(trace.span_fields[names.size() - 1].cell.bits, names.size() - 1);
}

TEST(Hostile, ANegativeDurationIsUnknownAndNotFiveCenturies) {
  Encoder out;
  out.schema(1, "BlockingCallEvent", true,
             {{"task_id", FieldType::kI64}, {"duration_ns", FieldType::kI64}});
  out.begin(1, 1'000);
  out.i64(-7);
  out.i64(-5);
  const Trace trace = load(out.data());
  ASSERT_EQ(trace.blocks.size(), 1U);
  EXPECT_EQ(trace.blocks[0].duration_ns, 0U);
  EXPECT_EQ(trace.end_ns, 1'000U);
}

TEST(Hostile, ACallThatWouldEndAfterTheClockLiesInNoPoll) {
  TraceBuilder builder;
  builder.poll(1'000, 90'000, 0, 7);
  builder.blocking_call(2'000, ~std::uint64_t{0} - 10, 7, "read");
  const Trace trace = builder.load();
  ASSERT_EQ(trace.blocks.size(), 1U);
  EXPECT_EQ(trace.blocks[0].poll, kNoIndex);
  EXPECT_EQ(trace.blocks[0].end_ns(), ~std::uint64_t{0});
}

TEST(Hostile, StringsAloneStayWithinTheMemoryLimit) {
  Encoder out;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    out.define_string(i, std::to_string(i) + std::string(200, 's'));
  }
  LoadOptions options;
  options.max_memory_bytes = 4 << 20;
  const std::vector<std::uint8_t> bytes = out.take();
  const Trace trace = load(bytes, options);
  EXPECT_TRUE(trace.hit_memory_limit);
  EXPECT_TRUE(trace.is_truncated());
  EXPECT_LE(trace.names.bytes(), std::size_t{16} << 20);
}

// These take minutes where each field looks through all annotations, or each annotation makes the
// reader look at all fields.
TEST(Hostile, FieldsAndAnnotationsByTheTenThousandTakeNoSquareOfTime) {
  constexpr std::uint16_t kCount = 60'000;
  const std::vector<std::string> names(kCount, "x");
  Encoder out;
  out.schema(1, "E", false, many_fields(names, FieldType::kBool));
  std::vector<Encoder::AnnotationSpec> entries;
  for (std::uint16_t i = 0; i < kCount; ++i) {
    entries.push_back({i, "note", "n"});
  }
  out.annotations(1, entries);
  out.begin_untimed(1);
  for (std::uint16_t i = 0; i < kCount; ++i) {
    out.boolean(true);
  }
  const std::vector<std::uint8_t> head = out.take();
  Encoder tail;
  tail.schema(1, "E", false, many_fields(names, FieldType::kBool));
  for (std::uint16_t i = 0; i < kCount; ++i) {
    tail.annotations(1, {{i, "unit", "ns"}});
  }
  const std::vector<std::uint8_t> annotated = tail.take();
  const std::span<const std::uint8_t> files[] = {head, annotated};
  const Trace trace = load(files);
  EXPECT_EQ(trace.events, 1U);
  EXPECT_EQ(trace.custom.size(), 1U);
}

TEST(Hostile, TypesAndRuntimesByTheTenThousandTakeNoSquareOfTime) {
  TraceBuilder builder;
  format::Encoder& out = builder.encoder();
  for (std::uint16_t i = 0; i < 40'000; ++i) {
    const auto id = static_cast<std::uint16_t>(100 + i);
    out.schema(id, "E", false, {{"f" + std::to_string(i), FieldType::kU8}});
    out.begin_untimed(id);
    out.u8(1);
    builder.metrics(1'000 + i, "runtime" + std::to_string(i), 3, 4);
  }
  const Trace trace = builder.load();
  EXPECT_EQ(trace.custom.size(), 40'000U);
  EXPECT_EQ(trace.series.size(), 80'000U);
}

TEST(Hostile, DepthsAtTheEndOfTheNumbersAreJudgedLikeOthers) {
  Encoder out;
  out.schema(1, "RuntimeMetricsEvent", true, {{"global_queue_depth", FieldType::kVarint}});
  for (std::uint64_t i = 0; i < 100; ++i) {
    out.begin(1, 1'000 + i * 100'000'000);
    out.varint(std::numeric_limits<std::uint64_t>::max() - 1);
  }
  const std::vector<Finding> findings = diagnose(load(out.data()));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, FindingKind::kQueueGrowth);
}

TEST(Hostile, LocksByTheTenThousandTakeLittleMemoryEach) {
  TraceBuilder builder;
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    builder.lock_wait(1'000 + i, 6'000'000, 7, 0x1000 + i, {.kind = LockKind::kStrand});
  }
  builder.poll(100'000'000, 100'001'000, 0, 7);
  EXPECT_EQ(diagnose(builder.load()).size(), 8U);  // the worst of them
  EXPECT_LE(sizeof(Distribution), 100U);
}

std::string json_of(Encoder& out) {
  struct Writer final : format::Visitor {
    const format::Decoder* decoder = nullptr;
    std::string text;
    bool on_event(const format::Event& event) override {
      append_json_value(text, event.values[0], *decoder);
      return true;
    }
  } writer;
  format::Decoder decoder(writer);
  writer.decoder = &decoder;
  EXPECT_TRUE(decoder.feed(out.data()));
  EXPECT_TRUE(decoder.finish());
  return writer.text;
}

// A map whose key is a map whose key is ...: `levels` of them.
std::string nested_keys(std::uint32_t levels) {
  Encoder out;
  out.schema(1, "E", false, {{"map", FieldType::kDynamicMap}});
  out.begin_untimed(1);
  for (std::uint32_t level = 1; level < levels; ++level) {
    out.map(1);
    out.element(FieldType::kDynamicMap);
  }
  out.map(1);
  out.element(FieldType::kString);
  out.string("\"");
  for (std::uint32_t level = 0; level < levels; ++level) {
    out.element(FieldType::kU8);
    out.u8(1);
  }
  EXPECT_EQ(out.misuse(), "");
  return json_of(out);
}

TEST(Hostile, KeysInKeysDontDoubleTheirEscapesAtEachLevel) {
  EXPECT_EQ(nested_keys(1), R"({"\"":1})");
  EXPECT_EQ(nested_keys(2), R"({"{\"\\\"\":1}":1})");
  EXPECT_EQ(nested_keys(3), R"({"{\"010000000401000000220b01\":1}":1})");
  EXPECT_LE(nested_keys(60).size(), 4'000U);
}

TEST(Hostile, ReferencesToALongStackAreLeftOutWhereTheyAddUp) {
  Encoder out;
  const std::vector<std::uint64_t> stack(10'000, 0xfffffffffffffff0);
  const std::uint32_t id = out.intern_stack(stack);
  out.schema(1, "E", false, {{"list", FieldType::kDynamicList}});
  out.begin_untimed(1);
  constexpr std::uint32_t kCount = 1'000;
  out.list(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    out.element(FieldType::kPooledStackFrames);
    out.pool_id(id);
  }
  const std::string json = json_of(out);
  EXPECT_LE(json.size(), kMaxExpandedBytes + kCount * 25);
  EXPECT_NE(json.find("\"(left out: too long)\""), std::string::npos);
}

}  // namespace
}  // namespace dial9::analysis
