// The table and JSON of where spans' time went, word for word.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/span_report.h"

#include <gtest/gtest.h>

#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using format::FieldType;

// Two spans "checkout" of a task that computes for 2 ms, waits for 6, and is late for 2.
Trace example() {
  constexpr std::uint64_t kMs = 1'000'000;
  testing::TraceBuilder builder;
  auto& out = builder.encoder();
  out.schema(100, "request", true,
             {{"took", FieldType::kVarint},
              {"name", FieldType::kPooledString},
              {"dial9.tokio.task_id", FieldType::kVarint}});
  out.annotations(100, {{0, "dial9.role", "span.duration"}, {1, "dial9.role", "span.name"}});
  const auto span = [&](std::uint64_t from_ms, std::uint64_t to_ms, const char* name) {
    out.begin(100, to_ms * kMs);
    out.varint((to_ms - from_ms) * kMs);
    out.pooled_string(name);
    out.varint(7);
  };
  builder.park(8 * kMs, 0, 9, kMs);
  builder.unpark(9 * kMs, 0, testing::TraceBuilder::kNoWait, 9, kMs);
  for (std::uint64_t ms = 10; ms <= 30; ms += 10) {
    builder.wake((ms - 2) * kMs, 7);
    builder.poll(ms * kMs, (ms + 2) * kMs, 0, 7);
  }
  builder.park(33 * kMs, 0, 9, 25 * kMs);
  span(10, 20, "checkout");
  span(20, 30, "checkout");
  span(32, 34, "logout");
  return builder.load();
}

TEST(SpanReport, TextReadsAsIsWrittenHere) {
  const Trace trace = example();
  EXPECT_EQ(span_text(trace, group_spans(trace), 1),
            "span                             count       p50       p99       max    on CPU   "
            "blocked   waiting     ready   unknown\n"
            "checkout                             2   10.0 ms   10.0 ms   10.0 ms    20.0 %    "
            "0.00 %    60.0 %    20.0 %    0.00 %\n"
            "and 1 name with less time (--limit)\n");
}

TEST(SpanReport, JsonReadsAsIsWrittenHere) {
  const Trace trace = example();
  std::vector<SpanGroup> groups = group_spans(trace);
  groups.erase(groups.begin());
  EXPECT_EQ(
      span_json(trace, groups),
      "{\"spans\": [\n"
      "{\"name\": \"logout\", \"count\": 1, \"open\": 0, \"p50_ns\": 2000000, \"p99_ns\": "
      "2000000, \"max_ns\": 2000000, \"total_ns\": 2000000, \"on_cpu_ns\": 0, "
      "\"blocked_ns\": 0, \"async_wait_ns\": 0, \"scheduler_delay_ns\": 0, \"unknown_ns\": "
      "2000000, \"unknown\": {\"no poll was recorded on one side\": 2000000}}\n], \"shed\": []}\n");
}

TEST(SpanReport, OfATraceWithoutSpansSaysSo) {
  EXPECT_EQ(span_text(Trace{}, {}, 20),
            "no spans in this trace: record with DIAL9_SPAN and dial9::span (dial9/span.h)\n");
  EXPECT_EQ(span_json(Trace{}, {}), "{\"spans\": [\n], \"shed\": []}\n");
}

}  // namespace
}  // namespace dial9::analysis
