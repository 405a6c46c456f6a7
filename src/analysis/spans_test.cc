// All dialects of spans become the same rows.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/loader.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using format::Encoder;
using format::FieldType;

constexpr std::uint64_t kId = (std::uint64_t{1} << 63) | 5;

void our_schemas(Encoder& out) {
  out.schema(1, "SpanEnter:a.cc:1:2", true,
             {{"worker_id", FieldType::kVarint},
              {"span_id", FieldType::kVarint},
              {"parent_span_id", FieldType::kVarint, true},
              {"span_name", FieldType::kPooledString},
              {"order", FieldType::kVarint}});
  out.schema(2, "SpanExit:a.cc:1:2", true,
             {{"worker_id", FieldType::kVarint},
              {"span_id", FieldType::kVarint},
              {"active_ns", FieldType::kVarint},
              {"idle_ns", FieldType::kVarint},
              {"poll_count", FieldType::kVarint},
              {"completed", FieldType::kBool},
              {"status", FieldType::kU16}});
}

void enter(Encoder& out, std::uint64_t at_ns, std::uint64_t id, std::uint64_t parent) {
  out.begin(1, at_ns);
  out.varint(0);
  out.varint(id);
  if (parent == 0) {
    out.absent();
  } else {
    out.present();
    out.varint(parent);
  }
  out.pooled_string("checkout");
  out.varint(42);
}

void exit(Encoder& out, std::uint64_t at_ns, std::uint64_t id, std::uint64_t active_ns,
          std::uint64_t idle_ns, bool is_completed = true) {
  out.begin(2, at_ns);
  out.varint(0);
  out.varint(id);
  out.varint(active_ns);
  out.varint(idle_ns);
  out.varint(3);
  out.boolean(is_completed);
  out.u16(200);
}

TEST(Spans, OurPairBecomesOneSpanWithItsEarlyAndLateFields) {
  Encoder out;
  our_schemas(out);
  enter(out, 1'000, kId, 0);
  enter(out, 1'200, kId + 1, kId);
  exit(out, 1'500, kId + 1, 300, 0);
  exit(out, 3'000, kId, 700, 1'300, false);
  const Trace trace = load(out.data());
  ASSERT_EQ(trace.spans.size(), 2U);
  EXPECT_EQ(trace.spans.start_ns[0], 1'000U);
  EXPECT_EQ(trace.spans.end_ns[0], 3'000U);
  EXPECT_EQ(trace.spans.active_ns[0], 700U);
  EXPECT_EQ(trace.spans.poll_count[0], 3U);
  EXPECT_EQ(trace.spans.flags[0], kSpanCancelled);
  EXPECT_EQ(trace.spans.parent[1], 0U);
  EXPECT_EQ(trace.names.text(trace.spans.name[0]), "checkout");
  const Range fields = trace.spans.fields[0];
  ASSERT_EQ(fields.size(), 2U);
  EXPECT_EQ(trace.names.text(trace.span_fields[fields.first].name), "order");
  EXPECT_EQ(trace.span_fields[fields.first].cell.number(), 42);
  EXPECT_EQ(trace.names.text(trace.span_fields[fields.first + 1].name), "status");
  EXPECT_NE(trace.spans.row[0], trace.spans.row[1]);  // they overlap
}

TEST(Spans, AnOpenSpanEndsWithTheTraceAndSaysSo) {
  Encoder out;
  our_schemas(out);
  enter(out, 1'000, kId, 0);
  enter(out, 9'000, kId + 1, 0);
  const Trace trace = load(out.data());
  EXPECT_EQ(trace.spans.flags[0], kSpanOpen);
  EXPECT_EQ(trace.spans.end_ns[0], 9'000U);
}

TEST(Spans, AnExitWhoseEnterWasLostStillHasItsLength) {
  Encoder out;
  our_schemas(out);
  exit(out, 10'000, kId, 700, 1'300);
  const Trace trace = load(out.data());
  ASSERT_EQ(trace.spans.size(), 1U);
  EXPECT_EQ(trace.spans.start_ns[0], 8'000U);
  EXPECT_EQ(trace.spans.flags[0], kSpanStartLost);
}

TEST(Spans, TheOlderDialectsPairsOfOneSpanAddUp) {
  Encoder out;
  out.schema(1, "SpanEnter:app::work:src/a.rs:5", true,
             {{"worker_id", FieldType::kVarint},
              {"span_id", FieldType::kVarint},
              {"span_name", FieldType::kPooledString},
              {"key", FieldType::kPooledString, true}});
  out.schema(2, "SpanExit:app::work:src/a.rs:5", true,
             {{"worker_id", FieldType::kVarint}, {"span_id", FieldType::kVarint}});
  out.schema(3, "SpanCloseEvent", true, {{"span_id", FieldType::kVarint}});
  for (const std::uint64_t at_ns : {1'000U, 2'000U}) {
    out.begin(1, at_ns);
    out.varint(1);
    out.varint(9);
    out.pooled_string("work");
    out.present();
    out.pooled_string("cpu");
    out.begin(2, at_ns + 100);
    out.varint(1);
    out.varint(9);
  }
  out.begin(3, 2'500);
  out.varint(9);
  out.begin(1, 4'000);  // the id is used again, for another span
  out.varint(1);
  out.varint(9);
  out.pooled_string("work");
  out.absent();
  const Trace trace = load(out.data());
  ASSERT_EQ(trace.spans.size(), 2U);
  EXPECT_EQ(trace.spans.start_ns[0], 1'000U);
  EXPECT_EQ(trace.spans.end_ns[0], 2'500U);
  EXPECT_EQ(trace.spans.active_ns[0], 200U);
  EXPECT_EQ(trace.spans.poll_count[0], 2U);
  EXPECT_EQ(trace.spans.fields[0].size(), 1U);
  EXPECT_EQ(trace.spans.flags[0], 0);
}

TEST(Spans, TheNewestDialectTellsItsStartInTheClose) {
  Encoder out;
  out.schema(1, "SpanClose__Request", true,
             {{"span_instance_id", FieldType::kVarint},
              {"start_timestamp_ns", FieldType::kVarint},
              {"first_enter_timestamp_ns", FieldType::kVarint},
              {"active_ns", FieldType::kVarint},
              {"attributes", FieldType::kStringMap}});
  out.begin(1, 5'000);
  out.varint(3);
  out.varint(2'000);
  out.varint(2'100);
  out.varint(800);
  out.string_map({{"route", "/cart"}});
  const Trace trace = load(out.data());
  ASSERT_EQ(trace.spans.size(), 1U);
  EXPECT_EQ(trace.spans.start_ns[0], 2'000U);
  EXPECT_EQ(trace.spans.active_ns[0], 800U);
  EXPECT_EQ(trace.names.text(trace.spans.name[0]), "Request");
  EXPECT_EQ(trace.names.text(trace.span_fields[0].name), "route");
}

TEST(Spans, AnEventWithADurationRoleIsASpanInItself) {
  Encoder out;
  out.schema(1, "metrique:Checkout", true,
             {{"took", FieldType::kVarint}, {"items", FieldType::kU8}});
  out.annotations(1, {{0, "dial9.role", "span.duration"}, {0, "unit", "us"}});
  out.begin(1, 9'000'000);
  out.varint(2'000);
  out.u8(3);
  const Trace trace = load(out.data());
  ASSERT_EQ(trace.spans.size(), 1U);
  EXPECT_EQ(trace.spans.start_ns[0], 7'000'000U);
  EXPECT_EQ(trace.spans.end_ns[0], 9'000'000U);
  EXPECT_EQ(trace.names.text(trace.spans.name[0]), "Checkout");
}

TEST(Spans, TakeTheTaskOfThePollThatTheyBeginIn) {
  testing::TraceBuilder builder;
  builder.poll_start(900, 0, 77);
  builder.poll_end(5'000, 0);
  std::vector<std::uint8_t> bytes = builder.take();
  Encoder out;
  our_schemas(out);
  enter(out, 1'000, kId, 0);
  exit(out, 2'000, kId, 1'000, 0);
  const std::vector<std::uint8_t> more = out.take();
  bytes.insert(bytes.end(), more.begin(), more.end());
  const Trace trace = load(bytes);
  ASSERT_EQ(trace.spans.size(), 1U);
  ASSERT_NE(trace.spans.task[0], kNoIndex);
  EXPECT_EQ(trace.tasks.id[trace.spans.task[0]], 77U);
}

}  // namespace
}  // namespace dial9::analysis
