// What the platform did: how it is loaded, told, and taken off what other findings claim.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/platform_stalls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "analysis/findings.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using testing::TraceBuilder;

constexpr std::uint64_t kUs = 1'000;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;

std::optional<Finding> find(const Trace& trace, FindingKind kind, std::string_view where = "") {
  for (const Finding& finding : diagnose(trace)) {
    if (finding.kind == kind && (where.empty() || finding.where == where)) return finding;
  }
  return std::nullopt;
}

bool says(const Finding& finding, std::string_view text) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(),
                     [&](const std::string& line) { return line.find(text) != line.npos; });
}

// A second of ordinary polls, then ten of 20 ms in the second after.
void slow_polls(TraceBuilder& builder) {
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    const std::uint64_t at_ns = kSecond + i * kMs;
    builder.poll(at_ns, at_ns + 50 * kUs, 0, 1);
  }
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::uint64_t at_ns = 2 * kSecond + i * 100 * kMs;
    builder.poll(at_ns, at_ns + 20 * kMs, 0, 99, "slow.cc:7");
  }
}

TEST(PlatformStalls, AreLoadedByTimeWithWhatTheySay) {
  TraceBuilder builder;
  builder.platform_stall(3 * kSecond, 4 * kSecond, "steal", 70 * kMs);
  builder.platform_stall(kSecond, 2 * kSecond, "clock_step", 0, -5);
  builder.platform_stall(2 * kSecond, 3 * kSecond, "of_a_later_version", 1);
  const Trace trace = builder.load();
  ASSERT_EQ(trace.platform_stalls.size(), 3U);
  EXPECT_EQ(trace.platform_stalls[0].cause, StallCause::kClockStep);
  EXPECT_EQ(trace.platform_stalls[0].step_ns, -5);
  EXPECT_EQ(trace.platform_stalls[1].cause, StallCause::kOther);
  EXPECT_EQ(trace.platform_stalls[2].cause, StallCause::kSteal);
  EXPECT_EQ(trace.platform_stalls[2].stalled_ns, 70 * kMs);
  EXPECT_EQ(trace.platform_stalls[2].begin_ns, 3 * kSecond);
  EXPECT_EQ(trace.platform_stalls[2].end_ns, 4 * kSecond);
  EXPECT_EQ(trace.begin_ns, kSecond);
}

TEST(PlatformStalls, ExplainAtMostTheirOverlapAndNeverMoreThanTheTimeAskedFor) {
  TraceBuilder builder;
  builder.platform_stall(kSecond, 2 * kSecond, "cpu_throttled", 300 * kMs);
  builder.platform_stall(kSecond, 2 * kSecond, "steal", 5 * kSecond);  // of many CPUs
  builder.platform_stall(kSecond, 2 * kSecond, "pressure_io", kSecond);
  builder.platform_stall(6 * kSecond, 7 * kSecond, "late_wakeup", 400 * kMs);
  const Trace trace = builder.load();
  const PlatformStallIndex index(trace);
  EXPECT_EQ(index.most_ns(0, kSecond), 0U);
  EXPECT_EQ(index.most_ns(2 * kSecond, 6 * kSecond), 0U);
  EXPECT_EQ(index.most_ns(kSecond, 2 * kSecond), kSecond);
  EXPECT_EQ(index.most_ns(kSecond + 990 * kMs, 3 * kSecond), 20 * kMs) << "10 ms of each";
  EXPECT_EQ(index.most_ns(5 * kSecond, 9 * kSecond), 400 * kMs);
  EXPECT_EQ(index.most_ns(7 * kSecond, 7 * kSecond), 0U);
}

TEST(PlatformStalls, EqualASlowReferenceWhateverOverlaps) {
  TraceBuilder builder;
  std::vector<std::array<std::uint64_t, 3>> stalls;
  std::uint64_t seed = 7;
  const auto next = [&](std::uint64_t below) {
    seed = seed * 6'364'136'223'846'793'005ULL + 1;
    return (seed >> 33) % below;
  };
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t begin = 1 + next(10'000);
    const std::uint64_t end = begin + 1 + next(i % 10 == 0 ? 5'000 : 100);
    stalls.push_back({begin, end, next(200)});
    builder.platform_stall(begin, end, "late_wakeup", stalls.back()[2]);
  }
  const Trace trace = builder.load();
  const PlatformStallIndex index(trace);
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t from = next(12'000);
    const std::uint64_t to = from + next(3'000);
    std::uint64_t sum = 0;
    for (const auto& [begin, end, stalled] : stalls) {
      const std::uint64_t left = std::max(begin, from);
      const std::uint64_t right = std::min(end, to);
      if (left < right) sum += std::min({stalled, end - begin, right - left});
    }
    EXPECT_EQ(index.most_ns(from, to), std::min(sum, to - from)) << from << " " << to;
  }
}

TEST(PlatformStalls, MajorFaultsComeFromTheCountersOfTheProcess) {
  TraceBuilder builder;
  const std::vector<format::FieldSpec> fields = {{"major_faults", format::FieldType::kVarint}};
  builder.encoder().schema(100, "ProcessResourceUsageEvent", true, std::span(fields));
  std::uint64_t at_ns = kSecond;
  for (const std::uint64_t faults : {5, 5, 1'005, 2'005, 2'005, 2'006}) {
    builder.encoder().begin(100, at_ns);
    builder.encoder().varint(faults);
    at_ns += 100 * kMs;
  }
  const Trace trace = builder.load();
  ASSERT_EQ(trace.platform_stalls.size(), 2U);
  EXPECT_EQ(trace.platform_stalls[0].cause, StallCause::kMajorFaults);
  EXPECT_EQ(trace.platform_stalls[0].begin_ns, kSecond + 100 * kMs);
  EXPECT_EQ(trace.platform_stalls[0].end_ns, kSecond + 300 * kMs);
  EXPECT_EQ(trace.platform_stalls[0].count, 2'000U);
  EXPECT_EQ(trace.platform_stalls[1].count, 1U);
  const auto finding = find(trace, FindingKind::kPlatformStall, "major_faults");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->severity, Severity::kInfo);
}

TEST(PlatformStalls, LongPollsThatTheyExplainAreNotClaimed) {
  TraceBuilder builder;
  slow_polls(builder);
  ASSERT_TRUE(find(builder.load(), FindingKind::kLongPoll));
  TraceBuilder stalled;
  slow_polls(stalled);
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::uint64_t at_ns = 2 * kSecond + i * 100 * kMs;
    stalled.platform_stall(at_ns + kMs, at_ns + 19 * kMs, "late_wakeup", 17 * kMs);
  }
  EXPECT_FALSE(find(stalled.load(), FindingKind::kLongPoll));
}

TEST(PlatformStalls, AreTakenOffThePollsThatStayLong) {
  TraceBuilder builder;
  slow_polls(builder);
  builder.platform_stall(2 * kSecond, 2 * kSecond + 20 * kMs, "cpu_throttled", 8 * kMs);
  for (std::uint64_t i = 1; i < 4; ++i) {
    const std::uint64_t at_ns = 2 * kSecond + i * 100 * kMs;
    builder.platform_stall(at_ns, at_ns + 20 * kMs, "steal", 20 * kMs);
  }
  const auto finding = find(builder.load(), FindingKind::kLongPoll);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->count, 7U);
  EXPECT_NE(finding->message.find("(132 ms in all"), std::string::npos) << finding->message;
  EXPECT_EQ(finding->worst_ns, 20 * kMs);
  EXPECT_TRUE(says(*finding, "up to 8.00 ms of these polls, are taken off"));
  EXPECT_TRUE(says(*finding, "3 more are left out: the platform stalled meanwhile"));
}

TEST(PlatformStalls, PressureOfDisksIsToldAndExcusesNothing) {
  TraceBuilder builder;
  slow_polls(builder);
  builder.platform_stall(2 * kSecond, 3 * kSecond, "pressure_io", 900 * kMs);
  const Trace trace = builder.load();
  const auto finding = find(trace, FindingKind::kLongPoll);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->count, 10U);
  EXPECT_TRUE(says(*finding, "meanwhile: tasks waited for disks"));
  const auto pressure = find(trace, FindingKind::kPlatformStall);
  ASSERT_TRUE(pressure);
  EXPECT_EQ(pressure->severity, Severity::kInfo);
  EXPECT_NE(pressure->message.find(" in 1 stretch, up to 900 ms"), std::string::npos)
      << pressure->message;
}

TEST(PlatformStalls, ABlockingCallThatTheyExplainIsNotClaimed) {
  const auto blocked = [](bool has_stalls) {
    TraceBuilder builder;
    for (std::uint64_t i = 0; i < 10; ++i) {
      const std::uint64_t at_ns = kSecond + i * 100 * kMs;
      builder.poll(at_ns, at_ns + 12 * kMs, 0, 1);
      builder.blocking_call(at_ns + kMs, 10 * kMs, 1, "read");
      if (has_stalls) {
        builder.platform_stall(at_ns + kMs, at_ns + 11 * kMs, "late_wakeup", 9 * kMs);
      }
    }
    return find(builder.load(), FindingKind::kBlockingCall);
  };
  ASSERT_TRUE(blocked(false));
  EXPECT_EQ(blocked(false)->count, 10U);
  EXPECT_FALSE(blocked(true));
}

// One poll that a stopped process was in, and polls that are the worker's own.
TEST(PlatformStalls, AWorkerThatWasOnlyStalledInItsPollsIsNotTheBusyOne) {
  const auto busy = [](std::uint64_t own_ns, bool is_stalled) {
    TraceBuilder builder;
    builder.poll(kSecond, 3 * kSecond, 0, 1);
    builder.poll(3 * kSecond, 3 * kSecond + own_ns, 0, 1);
    builder.poll(kSecond, kSecond + kMs, 1, 2);
    builder.poll(6 * kSecond, 6 * kSecond + kMs, 1, 2);
    if (is_stalled) builder.platform_stall(kSecond + kMs, 3 * kSecond, "late_wakeup", 1'990 * kMs);
    return find(builder.load(), FindingKind::kWorkerImbalance);
  };
  ASSERT_TRUE(busy(kMs, false));
  EXPECT_FALSE(busy(kMs, true));
  const auto apart = busy(2 * kSecond, true);
  ASSERT_TRUE(apart);
  EXPECT_TRUE(says(*apart, "stalls of the platform, up to 1.99 s of its polls, are taken off"));
}

TEST(PlatformStalls, KernelWaitThatThrottlingExplainsIsNotTheMachines) {
  const auto waits = [](bool is_throttled) {
    TraceBuilder builder;
    for (std::uint64_t i = 1; i <= 20; ++i) {
      builder.poll(i * 100 * kMs - 90 * kMs, i * 100 * kMs - 10 * kMs, 0, 1);
      builder.sched(i * 100 * kMs, 0, 30 * kMs, 60 * kMs, 7);
      if (is_throttled) {
        builder.platform_stall((i - 1) * 100 * kMs + 1, i * 100 * kMs, "cpu_throttled", 60 * kMs);
      }
    }
    return builder.load();
  };
  const auto plain = find(waits(false), FindingKind::kKernelWait);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->severity, Severity::kCritical);
  const Trace trace = waits(true);
  EXPECT_FALSE(find(trace, FindingKind::kKernelWait));
  const auto throttled = find(trace, FindingKind::kPlatformStall, "cpu_throttled");
  ASSERT_TRUE(throttled);
  EXPECT_EQ(throttled->severity, Severity::kCritical);
  EXPECT_NE(throttled->message.find(" in 20 stretches, up to 1.20 s in all"), std::string::npos)
      << throttled->message;
}

TEST(PlatformStalls, AStepOfTheClockIsAWarningASuspendAndALittleStealAreFacts) {
  TraceBuilder builder;
  slow_polls(builder);
  builder.platform_stall(kSecond, kSecond + 100 * kMs, "clock_step", 0,
                         -static_cast<std::int64_t>(3 * kSecond));
  builder.platform_stall(kSecond, kSecond + 100 * kMs, "suspend", 3'600 * kSecond);
  builder.platform_stall(kSecond, 2 * kSecond, "steal", 10 * kMs);
  const Trace trace = builder.load();
  const auto step = find(trace, FindingKind::kPlatformStall, "clock_step");
  ASSERT_TRUE(step);
  EXPECT_EQ(step->severity, Severity::kWarning);
  EXPECT_NE(step->message.find("by 3.00 s back"), std::string::npos) << step->message;
  EXPECT_EQ(find(trace, FindingKind::kPlatformStall, "suspend")->severity, Severity::kInfo);
  EXPECT_EQ(find(trace, FindingKind::kPlatformStall, "steal")->severity, Severity::kInfo);
}

}  // namespace
}  // namespace dial9::analysis
