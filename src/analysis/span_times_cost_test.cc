// What a question about a span costs: traces on which each of the questions would take minutes if
// it looked at what lies outside its span, and none do.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/span_times.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using format::FieldType;
using testing::TraceBuilder;

constexpr std::uint16_t kSpan = 100;
constexpr std::uint64_t kMany = 150'000;

// Adds spans of task 7 that are one event each.
class SpanWriter {
 public:
  explicit SpanWriter(TraceBuilder& builder) : out_(builder.encoder()) {
    out_.schema(kSpan, "Request", true,
                {{"took", FieldType::kVarint}, {"dial9.tokio.task_id", FieldType::kVarint}});
    out_.annotations(kSpan, {{0, "dial9.role", "span.duration"}});
  }
  void add(std::uint64_t from_ns, std::uint64_t to_ns) {
    out_.begin(kSpan, to_ns);
    out_.varint(to_ns - from_ns);
    out_.varint(7);
  }

 private:
  format::Encoder& out_;
};

SpanTime sum_of_all(const Trace& trace) {
  const SpanTimes times(trace);
  SpanTime sum;
  for (std::uint32_t span = 0; span < trace.spans.size(); ++span) sum.add(times.of(span));
  return sum;
}

TEST(SpanTimesCost, DoesNotGrowWithTheWorkers) {
  TraceBuilder builder;
  constexpr std::uint64_t kWorkers = 60'000;
  for (std::uint64_t worker = 1'000; worker < 1'000 + kWorkers; ++worker) {
    builder.poll(1'000, 100'000'000, worker, 7);  // all of the same task, at the same time
  }
  SpanWriter spans(builder);
  for (std::uint64_t i = 0; i < kMany; ++i) spans.add(2'000 + i * 100, 2'000 + i * 100 + 10);
  const Trace trace = builder.load();
  ASSERT_EQ(trace.lanes.size(), kWorkers);
  const SpanTime sum = sum_of_all(trace);
  EXPECT_EQ(sum.unknown_by[static_cast<std::size_t>(UnknownTime::kConcurrent)], kMany * 10);
  EXPECT_EQ(sum.sum_ns(), kMany * 10);
}

TEST(SpanTimesCost, DoesNotGrowWithTheBlocksOfThePollAround) {
  TraceBuilder builder;
  builder.park(1'000, 0, 9, 1'000);
  builder.unpark(2'000, 0, TraceBuilder::kNoWait, 9, 1'000);
  builder.poll_start(3'000, 0, 7);
  for (std::uint64_t i = 0; i < kMany; ++i) builder.blocking_call(3'000 + i * 100, 40, 7, "read");
  const std::uint64_t end_ns = 3'000 + kMany * 100;
  builder.poll_end(end_ns, 0);
  builder.park(end_ns + 1'000, 0, 9, 1'000 + 2'000 + kMany * 60);
  builder.unpark(end_ns + 2'000, 0, TraceBuilder::kNoWait, 9, 1'000 + 2'000 + kMany * 60);
  SpanWriter spans(builder);
  for (std::uint64_t i = 0; i < kMany; ++i) spans.add(3'020 + i * 100, 3'020 + i * 100 + 50);
  const SpanTime sum = sum_of_all(builder.load());
  EXPECT_EQ(sum.blocked_ns, kMany * 20);
  EXPECT_EQ(sum.on_cpu_ns, kMany * 30);
  EXPECT_EQ(sum.sum_ns(), kMany * 50);
}

TEST(SpanTimesCost, DoesNotGrowWithTheStrandWaitsOfOtherGaps) {
  TraceBuilder builder;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    const std::uint64_t at_ns = 1'000 + i * 100;
    builder.poll(at_ns, at_ns + 10, 0, 7);
    builder.wake(at_ns + 20, 7);
    builder.lock_wait(at_ns + 30, 40, 7, 0xabc, {.kind = LockKind::kStrand});
  }
  const std::uint64_t end_ns = 1'000 + kMany * 100;
  builder.poll(end_ns, end_ns + 10, 0, 7);
  SpanWriter(builder).add(1'010, end_ns);
  const SpanTime sum = sum_of_all(builder.load());
  EXPECT_EQ(sum.blocked_ns, kMany * 40);
  EXPECT_EQ(sum.async_wait_ns, kMany * 10);
  EXPECT_EQ(sum.scheduler_delay_ns, kMany * 40);
}

}  // namespace
}  // namespace dial9::analysis
