// Accept queues: how they are loaded, and when they are a finding.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analysis/findings.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using testing::TraceBuilder;

constexpr std::uint64_t kMs = 1'000'000;

std::vector<Finding> accept_findings(const Trace& trace) {
  std::vector<Finding> found = diagnose(trace);
  std::erase_if(found, [](const Finding& one) { return one.kind != FindingKind::kAcceptQueue; });
  return found;
}

TEST(AcceptQueue, IsOneSeriesASocketAlsoWhereTwoShareAnAddress) {
  TraceBuilder builder;
  builder.accept_queue(400 * kMs, 1, 8080, 3, 128);
  builder.accept_queue(400 * kMs, 2, 8080, 9, 128);
  builder.accept_queue(800 * kMs, 1, 8080, 5, 128);
  const Trace trace = builder.load();
  ASSERT_EQ(trace.accept_queues.size(), 2U);
  EXPECT_EQ(trace.names.text(trace.accept_queues[0].address), "127.0.0.1:8080");
  EXPECT_EQ(trace.names.text(trace.accept_queues[1].address), "127.0.0.1:8080 (socket 1002)");
  EXPECT_EQ(trace.accept_queues[0].samples.size(), 2U);
  EXPECT_EQ(trace.accept_queues[0].samples[1].pending, 5U);
  EXPECT_EQ(trace.accept_queues[0].samples[1].drops, kUnknownNs);
  ASSERT_EQ(trace.series.size(), 2U);
  EXPECT_EQ(trace.series[0].kind, Series::Kind::kAcceptQueue);
  EXPECT_EQ(trace.names.text(trace.series[0].name), "127.0.0.1:8080: accept queue");
  EXPECT_EQ(trace.series[0].value[1], 5.0);
}

TEST(AcceptQueue, DropsAreAWarningWithTheirNumberEvenWhenNoSampleSawAFullQueue) {
  TraceBuilder builder;
  builder.accept_queue(400 * kMs, 1, 8080, 3, 128, 70);  // of before the trace
  builder.accept_queue(800 * kMs, 1, 8080, 5, 128, 70);
  builder.accept_queue(1'200 * kMs, 1, 8080, 5, 128, 77);
  const auto found = accept_findings(builder.load());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_EQ(found[0].count, 7U);
  EXPECT_EQ(found[0].where, "127.0.0.1:8080");
  EXPECT_EQ(found[0].at_ns, 800 * kMs);
  EXPECT_EQ(found[0].end_ns, 1'200 * kMs);
}

TEST(AcceptQueue, ManyDropsAreCritical) {
  TraceBuilder builder;
  builder.accept_queue(400 * kMs, 1, 8080, 129, 128, 0);
  builder.accept_queue(800 * kMs, 1, 8080, 129, 128, 100);
  const auto found = accept_findings(builder.load());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::kCritical);
  EXPECT_NE(found[0].message.find("was full (129 of 128)"), std::string::npos) << found[0].message;
}

TEST(AcceptQueue, AFullQueueIsOneBeyondItsLimitAndOneOddSampleIsInfo) {
  TraceBuilder builder;
  builder.accept_queue(400 * kMs, 1, 8080, 129, 128, 0);
  builder.accept_queue(800 * kMs, 1, 8080, 0, 128, 0);
  const auto once = accept_findings(builder.load());
  ASSERT_EQ(once.size(), 1U);
  EXPECT_EQ(once[0].severity, Severity::kInfo);
  TraceBuilder twice;
  twice.accept_queue(400 * kMs, 1, 8080, 129, 128, 0);
  twice.accept_queue(800 * kMs, 1, 8080, 129, 128, 0);
  const auto found = accept_findings(twice.load());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_EQ(found[0].worst_ns, 400 * kMs);
}

TEST(AcceptQueue, NearItsLimitForLongIsAWarning) {
  TraceBuilder builder;
  for (std::uint64_t i = 1; i <= 5; ++i) builder.accept_queue(i * 400 * kMs, 1, 8080, 103, 128, 0);
  const auto found = accept_findings(builder.load());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_NE(found[0].message.find("nearly full (103 of 128)"), std::string::npos);
}

TEST(AcceptQueue, ABusyListenerWithRoomAndATinyBacklogAreFine) {
  TraceBuilder builder;
  for (std::uint64_t i = 1; i <= 50; ++i) {
    builder.accept_queue(i * 400 * kMs, 1, 8080, 100, 128, 5);
    builder.accept_queue(i * 400 * kMs, 2, 8081, 1, 1, 0);
  }
  EXPECT_TRUE(accept_findings(builder.load()).empty());
}

TEST(AcceptQueue, SaysWhatTheWholeNamespaceCountedAndThatItIsOfAll) {
  TraceBuilder builder;
  builder.accept_queue(400 * kMs, 1, 8080, 129, 128);
  builder.accept_queue(800 * kMs, 1, 8080, 129, 128);
  const std::vector<format::FieldSpec> fields = {
      {"namespace_listen_overflows", format::FieldType::kVarint}};
  builder.encoder().schema(100, "TcpListenCountersEvent", true, std::span(fields));
  for (const std::uint64_t value : {40, 52}) {
    builder.encoder().begin(100, (400 + value) * kMs);
    builder.encoder().varint(value);
  }
  const auto found = accept_findings(builder.load());
  ASSERT_EQ(found.size(), 1U);
  const auto says = [&](const char* text) {
    return std::any_of(
        found[0].evidence.begin(), found[0].evidence.end(),
        [&](const std::string& line) { return line.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(says("12 overflows of accept queues, of all its processes together"));
  EXPECT_TRUE(says("how many attempts this socket dropped isn't recorded"));
}

}  // namespace
}  // namespace dial9::analysis
