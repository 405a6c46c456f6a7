// Waits that the recorder's wall sampler saw, as findings show them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/findings.h"
#include "analysis/testing/symbols.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using testing::add_symbol;
using testing::TraceBuilder;

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kReadFunction = 0x5000;  // Session::read, from here on

void add_schemas(format::Encoder& out) {
  using format::FieldType;
  out.schema(200, "OffCpuEvent", true,
             {{"tid", FieldType::kU32},
              {"duration_ns", FieldType::kVarint},
              {"reason", FieldType::kU8},
              {"callchain", FieldType::kPooledStackFrames, true},
              {"parked", FieldType::kBool},
              {"task_id", FieldType::kVarint, true},
              {"call", FieldType::kPooledString, true},
              {"fd", FieldType::kVarint, true},
              {"peer", FieldType::kPooledString, true}});
  const auto symbol = [&](std::uint64_t address, std::string_view name) {
    add_symbol(out, {address, 0x100, name});
  };
  symbol(0x1000, "__libc_recv");
  symbol(0x2000, "recv");
  symbol(kReadFunction, "Session::read");
  symbol(0x9000, "main");
}

void wait(format::Encoder& out, std::uint64_t at_ns, std::uint64_t duration_ns, std::uint64_t task,
          bool is_parked = false) {
  const std::vector<std::uint64_t> frames{0x1010, 0x2010, kReadFunction + 0x20, 0x9010};
  out.begin(200, at_ns);
  out.u32(7);
  out.varint(duration_ns);
  out.u8(0);
  out.present();
  out.pooled_stack(frames);
  out.boolean(is_parked);
  out.present();
  out.varint(task);
  out.present();
  out.pooled_string("recv");
  out.present();
  out.varint(12);
  out.present();
  out.pooled_string("10.0.0.7:6379");
}

// Ten polls of 20 ms; each waits for `wait_ns`.
void long_polls(TraceBuilder& builder, bool has_calls, bool is_parked = false,
                std::uint64_t wait_ns = 15 * kMs) {
  add_schemas(builder.encoder());
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::uint64_t at_ns = kSecond + i * kMs / 2;
    builder.poll(at_ns, at_ns + kMs / 20, 0, 1 + i % 10);
  }
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::uint64_t at_ns = 2 * kSecond + i * 100 * kMs;
    builder.poll(at_ns, at_ns + 20 * kMs, 0, 99, "slow.cc:7");
    if (has_calls) builder.blocking_call(at_ns + kMs, 17 * kMs, 99, "recv", 7);
    wait(builder.encoder(), at_ns + 2 * kMs, wait_ns, 99, is_parked);
  }
}

std::vector<Finding> of_kind(const std::vector<Finding>& findings, FindingKind kind) {
  std::vector<Finding> found;
  std::ranges::copy_if(findings, std::back_inserter(found),
                       [&](const Finding& one) { return one.kind == kind; });
  return found;
}

bool has_evidence(const Finding& finding, std::string_view text) {
  return std::ranges::any_of(finding.evidence, [&](const std::string& line) {
    return line.find(text) != std::string::npos;
  });
}

TEST(OffCpuFinding, NamesCallDescriptorPeerAndCallerOfALongPollsWait) {
  TraceBuilder builder;
  long_polls(builder, false);
  const std::vector<Finding> findings = diagnose(builder.load());
  const auto blocking = of_kind(findings, FindingKind::kBlockingCall);
  ASSERT_EQ(blocking.size(), 1U);
  EXPECT_EQ(blocking[0].where, "recv(fd 12, peer 10.0.0.7:6379)");
  EXPECT_EQ(blocking[0].count, 10U);
  EXPECT_EQ(blocking[0].worst_ns, 15 * kMs);
  EXPECT_TRUE(has_evidence(
      blocking[0], "blocked in recv(fd 12, peer 10.0.0.7:6379) under Session::read for 15"));
  const auto polls = of_kind(findings, FindingKind::kLongPoll);
  ASSERT_EQ(polls.size(), 1U);
  EXPECT_TRUE(has_evidence(polls[0], "most into recv(fd 12, peer 10.0.0.7:6379)"));
}

TEST(OffCpuFinding, AWaitInsideARecordedCallIsThatCallsAndNotCountedTwice) {
  TraceBuilder builder;
  long_polls(builder, true);
  const auto blocking = of_kind(diagnose(builder.load()), FindingKind::kBlockingCall);
  ASSERT_EQ(blocking.size(), 1U);
  EXPECT_EQ(blocking[0].where, "recv");
  EXPECT_EQ(blocking[0].count, 10U);
  EXPECT_EQ(blocking[0].worst_ns, 17 * kMs);
  EXPECT_TRUE(has_evidence(blocking[0],
                           "seen: blocked in recv(fd 12, peer 10.0.0.7:6379) under Session::read"));
}

TEST(OffCpuFinding, AWaitThatOneLookSawIsNotSaidToHaveLasted) {
  TraceBuilder builder;
  long_polls(builder, true, false, 0);
  const auto blocking = of_kind(diagnose(builder.load()), FindingKind::kBlockingCall);
  ASSERT_EQ(blocking.size(), 1U);
  EXPECT_TRUE(has_evidence(blocking[0], "under Session::read, seen once"));
}

TEST(OffCpuFinding, AParkedWorkersWaitBlocksNoPoll) {
  TraceBuilder builder;
  long_polls(builder, false, true);
  EXPECT_TRUE(of_kind(diagnose(builder.load()), FindingKind::kBlockingCall).empty());
}

}  // namespace
}  // namespace dial9::analysis
