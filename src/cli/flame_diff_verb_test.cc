// `dial9 flame --diff` as a user runs it, over traces whose samples are known.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "analysis/testing/cpu_trace.h"
#include "cli/exit_code.h"
#include "cli/testing/cli_test.h"

namespace dial9::cli {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMs = 1'000'000;

// `a` samples in 0xA from 10 ms after the start on, then `b` in 0xB from 500 ms on; at 100 Hz.
std::vector<std::uint8_t> samples(std::uint64_t a, std::uint64_t b, bool has_rate = true) {
  analysis::testing::CpuTrace made;
  made.builder.metadata(1'000 * kMs, "service", "checkout");
  if (has_rate) made.books(1'900 * kMs, 100, (a + b) * 10 * kMs, a + b, 0);
  for (std::uint64_t i = 0; i < a + b; ++i) {
    const bool is_a = i < a;
    made.add({.at_ns = (1'000 + (is_a ? 10 : 500) + i) * kMs, .frames = {is_a ? 0xAU : 0xBU, 0x1}});
  }
  return made.builder.take();
}

class FlameDiffVerb : public testing::CliTest {
 protected:
  FlameDiffVerb() {
    write("old.bin", samples(3, 1));
    write("new.bin", samples(2, 6));
    write("rateless.bin", samples(1, 1, false));
  }
  std::string flame(const std::string& arguments, int exit_code = kOk) const {
    return output_of("flame '" + path("new.bin") + "' " + arguments, exit_code);
  }
  std::string old() const { return "--diff '" + path("old.bin") + "' "; }
};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(FlameDiffVerb, ComparesTwoTracesByTheirOwnSums) {
  const std::string text = flame(old());
  EXPECT_TRUE(has(text, "CPU time: 80.0 ms in 8 samples; before, ")) << text;
  EXPECT_TRUE(has(text, "old.bin: 40.0 ms in 4 samples\n")) << text;
  EXPECT_TRUE(has(text, "percents are of each side's own sum")) << text;
  EXPECT_TRUE(has(text,
                  "      +50.0 %       25.0 %       75.0 %      +50.0 %       25.0 %       "
                  "75.0 %  0xb\n"))
      << text;
  EXPECT_TRUE(has(text, "      -50.0 %       75.0 %       25.0 %")) << text;
  EXPECT_EQ(flame(old() + "--format folded"),
            "0x1;0xa 30000000 20000000\n0x1;0xb 10000000 60000000\n");
  EXPECT_TRUE(has(read("err"), "before, ")) << "what it compares goes to stderr";
  EXPECT_TRUE(has(flame(old() + "--format svg"), "red grew, blue shrank"));
  const json found = json::parse(flame(old() + "--json"));
  EXPECT_EQ(found["whole"], json({40 * kMs, 80 * kMs}));
}

TEST_F(FlameDiffVerb, TellsWhichFilesNameNothing) {
  analysis::testing::CpuTrace made;
  made.module("/gone/server", 0x10'0000);
  made.add({.at_ns = 1'010 * kMs, .frames = {0x10'0010}});
  write("nameless.bin", made.builder.take());
  const std::string file = "'" + path("nameless.bin") + "'";
  const json found = json::parse(output_of("flame --json " + file + " --diff " + file, kOk));
  EXPECT_TRUE(has(found["notes"].dump(), "server has no build id")) << found.dump(1);
}

TEST_F(FlameDiffVerb, ComparesTwoRangesOfOneTrace) {
  const json found = json::parse(flame("--json --from 400ms --diff-to 400ms"));
  EXPECT_EQ(found["whole"], json({20 * kMs, 60 * kMs}));
  EXPECT_EQ(found["before"], "to 400ms");
  EXPECT_EQ(flame("--diff-from 400ms --to 400ms --format folded --inverted"),
            "0xa;0x1 0 20000000\n0xb;0x1 60000000 0\n");
}

TEST_F(FlameDiffVerb, LooksForNoTaskOfTheOneTraceInTheOther) {
  const json found = json::parse(flame(old() + "--task 5 --json"));
  EXPECT_EQ(found["whole"], json({40 * kMs, 0}));
  EXPECT_TRUE(has(found["notes_compared"].dump(), "before isn't narrowed to the task"))
      << found["notes_compared"];
  const json within = json::parse(flame("--diff-to 400ms --task 5 --json"));
  EXPECT_EQ(within["whole"], json({0, 0})) << "of one trace";
}

TEST_F(FlameDiffVerb, RefusesWhatCanNotBeCompared) {
  flame("--diff '" + path("missing.bin") + "'", kUnreadable);
  flame("--diff '" + path("rateless.bin") + "'", kUnreadable);
  EXPECT_TRUE(has(read("err"), "can't be compared")) << read("err");
  flame("--diff-to soon", kUsage);
  EXPECT_TRUE(has(flame("--help"), "--diff-from"));
}

}  // namespace
}  // namespace dial9::cli
