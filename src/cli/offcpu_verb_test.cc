// `dial9 offcpu` as a user runs it, over a trace whose waits and times are known.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/testing/trace_builder.h"
#include "cli/exit_code.h"
#include "cli/testing/cli_test.h"

namespace dial9::cli {
namespace {

using analysis::testing::TraceBuilder;
using nlohmann::json;

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kBegin = 1'000 * kMs;

// A thread blocked for 700 of 1,000 ms: 400 in a lock, 100 of them estimated, and 200 in a call.
std::vector<std::uint8_t> known_trace() {
  TraceBuilder builder;
  builder.poll(kBegin, kBegin + 1, 0, 1);
  builder.off_cpu({.at_ns = kBegin + 100 * kMs,
                   .proven_ns = 300 * kMs,
                   .share_ns = 100 * kMs,
                   .cause = "lock",
                   .call = "futex",
                   .frames = {0x31, 0x21, 0x11},
                   .label = "acme"});
  builder.off_cpu({.at_ns = kBegin + 600 * kMs,
                   .proven_ns = 200 * kMs,
                   .cause = "socket",
                   .call = "recv",
                   .frames = {0x41, 0x11}});
  builder.thread_times({.at_ns = kBegin + 1'000 * kMs,
                        .running_ns = 250 * kMs,
                        .runnable_ns = 50 * kMs,
                        .blocked_ns = 700 * kMs,
                        .seen_ns = 500 * kMs,
                        .share_ns = 100 * kMs});
  return builder.take();
}

class OffCpuVerb : public testing::CliTest {
 protected:
  OffCpuVerb() { write("trace.bin", known_trace()); }

  // Its output; the exit code is checked.
  std::string offcpu(const std::string& arguments, int exit_code = kOk,
                     const std::string& file = "trace.bin") const {
    return output_of("offcpu '" + path(file) + "' " + arguments, exit_code);
  }
};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(OffCpuVerb, TheTextShowsThreadsReasonsAndFunctions) {
  const std::string text = offcpu("");
  EXPECT_TRUE(has(text, "1.00 s     250 ms    50.0 ms     700 ms     100 ms  7 io\n")) << text;
  EXPECT_TRUE(has(text, "400 ms     66.7 %     300 ms     100 ms          1  lock\n")) << text;
  EXPECT_TRUE(has(text, "200 ms     33.3 %     200 ms       0 ns          1  socket\n")) << text;
  EXPECT_TRUE(has(text, "Off-CPU time (blocked): 600 ms in 2 waits\n")) << text;
  EXPECT_TRUE(has(text, "of it 500 ms proven, 100 ms estimated")) << text;
  EXPECT_TRUE(has(text, "100 ms of blocked time is in waits that nobody saw")) << text;
  EXPECT_TRUE(has(text, "100 %  0x11\n")) << text;
  EXPECT_TRUE(has(offcpu("--by call --limit 1"), "and 1 call with less (--limit)\n"));
}

TEST_F(OffCpuVerb, JsonTellsTheSameNumbers) {
  const json found = json::parse(offcpu("--json --by call"));
  EXPECT_EQ(found["by"], "call");
  EXPECT_EQ(found["proven_ns"], 500 * kMs);
  EXPECT_EQ(found["estimated_ns"], 100 * kMs);
  EXPECT_EQ(found["unseen_ns"], 100 * kMs);
  const json& thread = found["threads"][0];
  EXPECT_EQ(thread["name"], "io");
  EXPECT_EQ(thread["elapsed_ns"], 1'000 * kMs);
  EXPECT_EQ(thread["running_ns"].get<std::uint64_t>() + thread["runnable_ns"].get<std::uint64_t>() +
                thread["blocked_ns"].get<std::uint64_t>(),
            1'000 * kMs);
  EXPECT_EQ(found["groups"][0]["name"], "futex");
  EXPECT_EQ(found["groups"][0]["estimated_ns"], 100 * kMs);
  EXPECT_EQ(found["flame"]["unit"], "ns");
  EXPECT_EQ(found["flame"]["total"], 600 * kMs);
  EXPECT_EQ(found["flame"]["count"], 2);
  EXPECT_EQ(json::parse(offcpu("--format json --by call")), found);
}

TEST_F(OffCpuVerb, JsonTellsWhoseTheConnectionsAre) {
  TraceBuilder builder;
  builder.off_cpu({.at_ns = kBegin, .proven_ns = 500 * kMs, .cause = "socket"});
  builder.socket_wait({.at_ns = kBegin + 100 * kMs,
                       .waited_ns = 100 * kMs,
                       .thread = "io",
                       .task = 0x8000'0000'0000'0005});
  write("sockets.bin", builder.take());
  const json socket = json::parse(offcpu("--json", kOk, "sockets.bin"))["sockets"][0];
  EXPECT_EQ(socket["thread_name"], "io");
  EXPECT_EQ(socket["task_id"], "9223372036854775813") << "as text, for it has 64 bits";
  EXPECT_TRUE(socket["span_id"].is_null()) << socket;
}

TEST_F(OffCpuVerb, FoldedStacksAndAPicture) {
  EXPECT_EQ(offcpu("--format folded"), "0x11;0x21;0x31 400000000\n0x11;0x41 200000000\n");
  EXPECT_TRUE(has(read("err"), "of it 500 ms proven")) << "notes go to stderr";
  EXPECT_EQ(offcpu("--format folded --inverted"),
            "0x31;0x21;0x11 400000000\n0x41;0x11 200000000\n");
  EXPECT_TRUE(has(offcpu("--format svg"), "Off-CPU time (blocked)"));
}

TEST_F(OffCpuVerb, FiltersByTimeThreadAndLabel) {
  EXPECT_EQ(offcpu("--format folded --label tenant=acme"), "0x11;0x21;0x31 400000000\n");
  EXPECT_EQ(offcpu("--format folded --thread io --from 700ms"), "0x11;0x41 100000000\n");
  EXPECT_EQ(offcpu("--format folded --thread db"), "");
  EXPECT_TRUE(has(read("err"), "no wait is taken by the filter"));
  const json of_label = json::parse(offcpu("--json --label tenant --by label"));
  EXPECT_EQ(of_label["groups"][0]["name"], "tenant=acme");
  EXPECT_TRUE(of_label["threads"].is_null()) << "times of threads are of whole threads";
  EXPECT_TRUE(of_label["unseen_ns"].is_null());
  const json by_span = json::parse(offcpu("--json --by span"))["groups"];
  EXPECT_EQ(by_span[0]["name"], "none") << "who had a label would have had a span, too";
  EXPECT_TRUE(by_span[1]["name"].is_null()) << "not known";
}

TEST_F(OffCpuVerb, SaysWhatToDoWhereTheTraceHasNoOffCpuEvents) {
  TraceBuilder builder;
  builder.poll(kBegin, kBegin + 1, 0, 1);
  write("bare.bin", builder.take());
  EXPECT_TRUE(has(offcpu("", kOk, "bare.bin"), "DIAL9_SCHEDULE_PROFILE_ENABLED"));
  const json found = json::parse(offcpu("--json", kOk, "bare.bin"));
  EXPECT_TRUE(found["groups"].empty());
  EXPECT_TRUE(has(found["flame"]["notes"].dump(), "add_off_cpu_samples()"));
}

TEST_F(OffCpuVerb, ExitCodesTellUsageAndUnreadableInputs) {
  offcpu("--by weather", kUsage);
  EXPECT_TRUE(has(read("err"), "reason")) << "names the choices: " << read("err");
  offcpu("--task x", kUsage);
  offcpu("", kUnreadable, "missing.bin");
  std::vector<std::uint8_t> cut = known_trace();
  cut.pop_back();
  write("cut.bin", cut);
  EXPECT_TRUE(has(offcpu("", kPartlyReadable, "cut.bin"), "lock")) << "what was read is shown";
  EXPECT_TRUE(has(offcpu("--help"), "--parked"));
}

}  // namespace
}  // namespace dial9::cli
