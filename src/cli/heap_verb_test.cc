// `dial9 heap`, run as a user runs it, on a trace that the sampler's own encoder would write.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "analysis/testing/heap_trace.h"
#include "cli/exit_code.h"
#include "cli/testing/cli_test.h"

namespace dial9::cli {
namespace {

using analysis::testing::HeapTrace;
using nlohmann::json;
using testing::Ran;

constexpr std::uint64_t kSecond = 1'000'000'000;

class HeapVerb : public testing::CliTest {
 protected:
  Ran heap(const std::string& arguments) const { return dial9("heap " + arguments); }

  // From 1 s on: 10 leaks of 100 bytes at 0x1EAC a second apart, each beside one of 1,000 bytes at
  // 0x7E39 that is freed at once.
  std::string write_trace(bool tracks_live = true) {
    HeapTrace trace;
    for (std::uint64_t i = 1; i <= 10; ++i) {
      trace.alloc({.at_ns = i * kSecond, .addr = i * 16, .frames = {0x1EAC, 0x4001}, .tid = 7});
      trace.alloc({.at_ns = i * kSecond,
                   .size = 1'000,
                   .addr = 0x9000,
                   .frames = {0x7E39, 0x4001},
                   .tid = 7});
      if (tracks_live) trace.free(i * kSecond + 1'000, 0x9000, i * kSecond);
    }
    return "'" + write("trace.bin", trace.builder().take()) + "'";
  }
};

TEST_F(HeapVerb, ShowsWhatWasAllocatedAndWhatLivesBySite) {
  const Ran ran = heap(write_trace());
  EXPECT_EQ(ran.exit_code, kOk) << ran.err;
  EXPECT_NE(ran.out.find("allocated: 10.7 KiB in 20 allocations (20 samples)"), std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("live at the end: 1000 B in 10 allocations"), std::string::npos)
      << ran.out;
  EXPECT_LT(ran.out.find("0x7e39"), ran.out.find("0x1eac"));
  const Ran live = heap("--live " + write_trace());
  EXPECT_LT(live.out.find("0x1eac"), live.out.find("0x7e39"));
}

TEST_F(HeapVerb, SaysHowFarSamplesWereThinnedAsInfoDoes) {
  HeapTrace trace;
  trace.builder().metadata(kSecond, "memory.sample_rate_bytes", std::to_string(HeapTrace::kRate));
  trace.alloc({.at_ns = kSecond, .addr = 16, .rate = 8 * HeapTrace::kRate});
  trace.profile(kSecond, 0, 0, 1, 8 * HeapTrace::kRate);
  const std::string file = "'" + write("thinned.bin", trace.builder().take()) + "'";
  const std::string shown = heap(file).out;
  EXPECT_NE(shown.find("one sample in 8 was taken"), std::string::npos) << shown;
  const std::string info = dial9("info " + file).out;
  EXPECT_NE(
      info.find("left out  heap samples to keep within the budget, at times all but one in 8"),
      std::string::npos)
      << info;
  const json shed = json::parse(dial9("info --json " + file).out)["shed"];
  EXPECT_TRUE(shed["heap_samples"]["count"].is_null());
  EXPECT_EQ(shed["heap_samples"]["most_keep_one_in"], 8);
  EXPECT_TRUE(json::parse(dial9("info --json " + write_trace()).out)["shed"].empty());
}

TEST_F(HeapVerb, MarksWhatGrewBetweenTwoMomentsAndStays) {
  const Ran ran = heap("--growth 0.5s 8.5s " + write_trace());
  EXPECT_EQ(ran.exit_code, kOk) << ran.err;
  EXPECT_NE(ran.out.find("growth: 800 B"), std::string::npos) << ran.out;
  const std::size_t leak = ran.out.find("0x1eac < 0x4001  <- leak candidate");
  EXPECT_NE(leak, std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("leak candidate", leak + 30), std::string::npos) << ran.out;
}

TEST_F(HeapVerb, WritesFoldedStacksAPictureAndJson) {
  const std::string trace = write_trace();
  EXPECT_EQ(heap("--format folded " + trace).out, "0x4001;0x7e39 10000\n0x4001;0x1eac 1000\n");
  EXPECT_EQ(heap("--live --count --format folded " + trace).out, "0x4001;0x1eac 10\n");
  EXPECT_NE(heap("--format svg " + trace).out.find("<svg"), std::string::npos);
  const json tree = json::parse(heap("--live --format json " + trace).out);
  EXPECT_EQ(tree["unit"], "bytes");
  EXPECT_EQ(tree["total"], 1'000);
  const json table = json::parse(heap("--json --by thread " + trace).out);
  EXPECT_EQ(table["by"], "thread");
  EXPECT_EQ(table["groups"].size(), 1U);
  EXPECT_EQ(table["groups"][0]["name"], "thread 7");
  EXPECT_EQ(table["total"]["allocated"]["bytes"], 11'000);
  EXPECT_EQ(table["total"]["live"]["count"], 10);
  EXPECT_EQ(table["total"]["median_age_ns"], 1'000);
}

TEST_F(HeapVerb, SaysThatItDoesNotKnowWhatLivesWithoutFrees) {
  const std::string trace = write_trace(false);
  for (const std::string order : {"--live ", "--growth 1s 2s "}) {
    const Ran unknown = heap(order + trace);
    EXPECT_EQ(unknown.exit_code, kOk) << unknown.err;
    EXPECT_NE(unknown.out.find("DIAL9_MEMORY_TRACK_LIVESET=1"), std::string::npos) << unknown.out;
    EXPECT_EQ(unknown.out.find("0x1eac"), std::string::npos) << "no table of zeros";
    EXPECT_EQ(heap(order + "--format folded " + trace).out, "");
  }
  EXPECT_NE(heap(trace).out.find("live: unknown"), std::string::npos);
  EXPECT_TRUE(json::parse(heap("--json " + trace).out)["total"]["growth_error"].is_null());
}

TEST_F(HeapVerb, RefusesWhatMakesNoSense) {
  const std::string trace = write_trace();
  EXPECT_EQ(heap("--live --allocated " + trace).exit_code, kUsage);
  EXPECT_EQ(heap("--growth 5s 2s " + trace).exit_code, kUsage);
  EXPECT_EQ(heap("--growth 5s soon " + trace).exit_code, kUsage);
  EXPECT_EQ(heap("--live --growth 1s 2s " + trace).exit_code, kUsage);
  EXPECT_EQ(heap("--task seven " + trace).exit_code, kUsage);
  EXPECT_EQ(heap("--help").exit_code, kOk);
}

}  // namespace
}  // namespace dial9::cli
