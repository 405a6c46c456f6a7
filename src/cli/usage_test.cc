// What every verb takes and refuses alike: numbers, ranges, forms that exclude each other, a trace
// without what was asked for, help that can't be written.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "analysis/testing/trace_builder.h"
#include "cli/exit_code.h"
#include "cli/testing/cli_test.h"

namespace dial9::cli {
namespace {

using nlohmann::json;
using testing::Ran;

// More than 30 MB of address space hold beside the program.
std::vector<std::uint8_t> many_polls() {
  analysis::testing::TraceBuilder builder;
  for (std::uint64_t i = 0; i < 400'000; ++i) {
    builder.poll(1'000'000 + i * 1'000, 1'000'500 + i * 1'000, 0, i + 1, "app.cc:3");
  }
  return builder.take();
}

class Usage : public testing::CliTest {
 protected:
  // Polls alone.
  Usage() {
    analysis::testing::TraceBuilder builder;
    builder.poll(1'000'000'000, 1'500'000'000, 0, 7, "app.cc:3");
    trace_ = " '" + write("trace.bin", builder.take()) + "'";
  }
  // The verb says on stderr what is wrong, with this in it.
  void expect_refused(const std::string& arguments, const std::string& part) const {
    const Ran ran = dial9(arguments + trace_);
    EXPECT_EQ(ran.exit_code, kUsage) << arguments;
    EXPECT_EQ(ran.out, "") << arguments;
    EXPECT_NE(ran.err.find(part), std::string::npos) << arguments << ": " << ran.err;
  }

  std::string trace_;
};

TEST_F(Usage, ANumberIsTakenAsItIsWrittenOrRefused) {
  for (const std::string verb : {"flame", "offcpu", "heap", "spans", "cat"}) {
    for (const std::string number :
         {"-1", "18446744073709551615", "99999999999999999999", "010", "0x10", "1.5", "ten"}) {
      expect_refused(verb + " --limit=" + number, "--limit: ");
    }
    EXPECT_EQ(dial9(verb + " --limit 0" + trace_).exit_code, kOk) << verb;
    EXPECT_EQ(dial9(verb + " --limit 1000000000" + trace_).exit_code, kOk) << verb;
  }
  expect_refused("serve --port=-1", "--port: ");
  expect_refused("serve --port=65536", "at most 65535");
  expect_refused("diagnose --queue-depth=-1", "--queue-depth: ");
  expect_refused("diagnose --memory=-1", "--memory: ");
}

TEST_F(Usage, ARangeThatCanHoldNothingIsRefused) {
  for (const std::string verb : {"flame", "offcpu", "heap", "cat"}) {
    expect_refused(verb + " --from 2s --to 1s", "--from 2s must be before --to 1s");
    expect_refused(verb + " --from 1s --to 1000ms", "must be before");
    expect_refused(verb + " --to 0", "nothing lies before the trace's start");
    EXPECT_EQ(dial9(verb + " --from 1ms --to 1s" + trace_).exit_code, kOk) << verb;
  }
  expect_refused("flame --diff-from 2s --diff-to 1s", "--diff-from 2s must be before --diff-to 1s");
}

TEST_F(Usage, FormsThatExcludeEachOtherAreRefused) {
  for (const std::string verb : {"flame", "offcpu"}) {
    for (const std::string format : {"svg", "folded", "text"}) {
      expect_refused(verb + " --json --format " + format, "--json and --format " + format);
    }
    EXPECT_EQ(dial9(verb + " --json --format json" + trace_).exit_code, kOk);
  }
  for (const std::string format : {"svg", "folded", "text", "json"}) {
    expect_refused("heap --json --format " + format, "exclude each other");
  }
  const Ran snapshot = dial9("snapshot 1 --no-trace -o '" + path("out.bin") + "'");
  EXPECT_EQ(snapshot.exit_code, kUsage);
  EXPECT_NE(snapshot.err.find("exclude each other"), std::string::npos) << snapshot.err;
}

// The trace could be read: that is what an exit code tells. What it lacks is in the output.
TEST_F(Usage, ATraceWithoutWhatWasAskedForIsFineAndSaysSo) {
  for (const std::string arguments :
       {"flame", "offcpu", "heap", "heap --live", "heap --growth 1ms 2ms", "flame --format json",
        "heap --format json", "heap --json", "offcpu --json"}) {
    const Ran ran = dial9(arguments + trace_);
    EXPECT_EQ(ran.exit_code, kOk) << arguments << ": " << ran.err;
    EXPECT_NE(ran.out.find(" samples in this trace: "), std::string::npos)
        << arguments << ": " << ran.out;
  }
  for (const std::string verb : {"flame", "offcpu", "heap"}) {
    const Ran folded = dial9(verb + " --format folded" + trace_);
    EXPECT_EQ(folded.exit_code, kOk) << verb;
    EXPECT_EQ(folded.out, "") << verb;
    EXPECT_NE(folded.err.find(" samples in this trace: "), std::string::npos) << folded.err;
  }
  EXPECT_EQ(dial9("spans" + trace_).exit_code, kOk);
  EXPECT_NE(dial9("heap --help").out.find("a note"), std::string::npos);
}

TEST_F(Usage, ABaseThatHoldsNoTraceIsNamed) {
  std::filesystem::create_directory(path("empty"));
  for (const auto& [base, part] :
       {std::pair{"gone", "gone"}, std::pair{"empty", "no trace to compare with in 'empty'"}}) {
    const Ran ran = dial9("serve --port 0 --base '" + path(base) + "'" + trace_);
    EXPECT_EQ(ran.exit_code, kUnreadable) << base;
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
  }
}

TEST_F(Usage, NothingIsKnownOfAHeapWithoutSamples) {
  const json table = json::parse(output_of("heap --json" + trace_));
  EXPECT_TRUE(table["total"]["allocated"].is_null()) << "not zero";
  EXPECT_TRUE(table["total"]["live"].is_null());
  EXPECT_TRUE(table["total"]["leak_candidate"].is_null());
  EXPECT_EQ(output_of("heap" + trace_).find("0 B"), std::string::npos);
}

TEST_F(Usage, TimeOfWhichNothingWasRecordedIsUnknownAndNotZero) {
  for (const std::string form : {"text", "svg"}) {
    for (const auto& [verb, title] :
         {std::pair{"flame", "CPU time"}, std::pair{"offcpu", "Off-CPU time (blocked)"}}) {
      const std::string out = output_of(std::string(verb) + " --format " + form + trace_);
      EXPECT_NE(out.find(std::string(title) + ": unknown"), std::string::npos) << out;
      EXPECT_EQ(out.find(std::string(title) + ": 0"), std::string::npos) << out;
    }
  }
  const json flame = json::parse(output_of("flame --json" + trace_));
  const json off_cpu = json::parse(output_of("offcpu --json" + trace_));
  const json heap = json::parse(output_of("heap --format json" + trace_));
  for (const json& unknown :
       {flame["total"], flame["whole"], heap["total"], off_cpu["proven_ns"],
        off_cpu["estimated_ns"], off_cpu["throttled_ns"], off_cpu["flame"]["total"]}) {
    EXPECT_EQ(unknown, nullptr) << flame << off_cpu;
  }
  const std::string diff = "flame --diff" + trace_ + trace_;
  EXPECT_NE(output_of(diff).find("CPU time: unknown; before, "), std::string::npos);
  EXPECT_EQ(json::parse(output_of(diff + " --json"))["whole"], json({nullptr, nullptr}));
}

TEST_F(Usage, ACureIsThatOfTheWriter) {
  analysis::testing::TraceBuilder builder;
  builder.metadata(1, "dial9.writer", "dial9-cpp");
  builder.poll(1'000'000'000, 1'500'000'000, 0, 7, "app.cc:3");
  const std::string own = " '" + write("own.bin", builder.take()) + "'";
  for (const std::string verb : {"flame", "offcpu", "heap", "spans"}) {
    EXPECT_NE(output_of(verb + own).find(" in this trace: record with "), std::string::npos);
    const std::string of_another = output_of(verb + trace_);
    EXPECT_NE(of_another.find(": dial9 for C++ records them with "), std::string::npos)
        << of_another;
  }
}

// What lies behind its end isn't known, so nothing is said to be nowhere in it.
TEST_F(Usage, OfATraceThatEndsEarlyNumbersAreLowerBounds) {
  analysis::testing::TraceBuilder builder;
  builder.poll(1'000'000'000, 1'500'000'000, 0, 7, "app.cc:3");
  builder.wake(1'600'000'000, 7);
  std::vector<std::uint8_t> bytes = builder.take();
  bytes.pop_back();
  const std::string cut = " '" + write("cut.bin", bytes) + "'";
  for (const std::string verb : {"flame", "offcpu", "heap", "spans"}) {
    const std::string out = output_of(verb + cut, kPartlyReadable);
    EXPECT_NE(out.find("in what was read of this trace"), std::string::npos) << out;
  }
  const std::string report = output_of("diagnose" + cut, kPartlyReadable);
  EXPECT_TRUE(report.starts_with("at least ")) << report;
  EXPECT_NE(report.find("over at least 500 ms"), std::string::npos) << report;
  EXPECT_NE(report.find("\nat least 1 worker, 1 task, 1 poll, 0 spans\n"), std::string::npos)
      << report;
}

TEST_F(Usage, WhatIsNeitherDirectoryNorFileIsNoInput) {
  for (const std::string verb : {"info", "cat", "diagnose", "spans", "flame", "serve --port 0"}) {
    const Ran ran = dial9(verb + " /dev/null");
    EXPECT_EQ(ran.exit_code, kUnreadable) << verb;
    EXPECT_NE(ran.err.find("; give "), std::string::npos) << ran.err;
  }
}

TEST_F(Usage, HelpThatCannotBeWrittenIsAnErrorOfItsOwn) {
  for (const std::string arguments : {"--help", "--version", "cat --help", "serve --help"}) {
    const Ran ran = shell("'" DIAL9_CLI "' " + arguments + " > /dev/full");
    EXPECT_EQ(ran.exit_code, kOutputLost) << arguments;
    EXPECT_NE(ran.err.find("can't write the output"), std::string::npos) << arguments;
    EXPECT_EQ(dial9(arguments).exit_code, kOk) << arguments;
  }
}

// With address space for the program alone, and for little more.
TEST_F(Usage, WithoutMemoryAVerbSaysSoAndEndsByItself) {
#if defined(DIAL9_SANITIZED)
  GTEST_SKIP() << "a sanitizer needs its address space";
#endif
  const std::string large = " '" + write("large.bin", many_polls()) + "'";
  for (const std::string verb : {"diagnose", "spans", "flame", "heap", "offcpu"}) {
    ASSERT_EQ(dial9(verb + large).exit_code, kOk) << verb;
    const Ran ran = dial9(verb + large, "ulimit -v 30000;");
    EXPECT_EQ(ran.exit_code, kInternal) << verb << ": " << ran.err;
    EXPECT_EQ(ran.err.find("dial9: out of memory: "), 0U) << verb << ": " << ran.err;
  }
}

}  // namespace
}  // namespace dial9::cli
