// `dial9 doctor`, `snapshot` and `top` as a user runs them, on processes that really hang.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/exit_code.h"
#include "cli/testing/cli_test.h"
#include "session/kernel_threads.h"
#include "session/testing/hung_child.h"

namespace dial9::cli {
namespace {

using dial9::testing::HangOptions;
using dial9::testing::HungChild;
using nlohmann::json;
using testing::Ran;

class Outside : public testing::CliTest {
 protected:
  Outside() { ::unsetenv("DIAL9_TRACE_DIR"); }

  Ran dial9(const std::string& arguments, const std::string& before = "") const {
    return CliTest::dial9(arguments + " < /dev/null", before);
  }
  static json check_named(const json& report, const std::string& name) {
    for (const json& check : report["checks"]) {
      if (check["name"] == name) return check;
    }
    return {};
  }
};

TEST_F(Outside, DoctorRecordsForRealAndLeavesNothing) {
  const std::string traces = path("new/traces");
  const Ran ran = dial9("doctor --json --for 100ms --dir " + traces, "DIAL9_ENABLED=1");
  const json report = json::parse(ran.out);
  EXPECT_EQ(check_named(report, "recording")["verdict"], "ok") << ran.out;
  EXPECT_NE(check_named(report, "recording")["seen"].get<std::string>().find("events 10,000"),
            std::string::npos);
  EXPECT_EQ(check_named(report, "lock")["verdict"], "ok") << ran.out;
  EXPECT_EQ(check_named(report, "directory")["verdict"], "ok") << ran.out;
  EXPECT_EQ(check_named(report, "environment")["verdict"], "ok") << ran.out;
  EXPECT_NE(check_named(report, "source: resources")["seen"], "0 events") << ran.out;
  EXPECT_EQ(check_named(report, "source: accept_queues")["seen"],
            "off (DIAL9_SOCKET_ACCEPT_QUEUES_ENABLED)");
  EXPECT_EQ(ran.exit_code, report["wrong"] == 0 ? kOk : kFindings);
  EXPECT_FALSE(std::filesystem::exists(path("new")));
}

TEST_F(Outside, DoctorTriesWithoutTheBudgetThatWouldShedItsEvents) {
  const Ran ran = dial9("doctor --json --for 1s --dir " + path("t"),
                        "DIAL9_ENABLED=1 DIAL9_MAX_CPU_PERCENT=0.001 DIAL9_MAX_MB_PER_SEC=0.001");
  const json report = json::parse(ran.out);
  EXPECT_EQ(check_named(report, "environment")["verdict"], "ok") << ran.out;
  EXPECT_EQ(check_named(report, "recording")["verdict"], "ok") << ran.out;
}

TEST_F(Outside, DoctorTriesTheMemoryRingToo) {
  const Ran ran = dial9("doctor --json --for 100ms",
                        "DIAL9_ENABLED=1 DIAL9_MEMORY_RING=1 DIAL9_MAX_DISK_USAGE_MB=16");
  const json report = json::parse(ran.out);
  EXPECT_EQ(check_named(report, "recording")["verdict"], "ok") << ran.out;
}

TEST_F(Outside, DoctorExitsWithOneAndTheCureWhereTheDirectoryCannotBeUsed) {
  const Ran ran = dial9("doctor --for 10ms --dir /proc/self/status/traces", "DIAL9_ENABLED=1");
  EXPECT_EQ(ran.exit_code, kFindings);
  EXPECT_NE(ran.out.find("wrong    directory"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("--dir or DIAL9_TRACE_DIR"), std::string::npos);
}

TEST_F(Outside, DoctorSeesALimitThatASegmentDoesNotFitInto) {
  const Ran ran =
      dial9("doctor --json --for 10ms --dir " + path("t"), "ulimit -f 1000; DIAL9_ENABLED=1");
  const json check = check_named(json::parse(ran.out), "limit: file size");
  EXPECT_EQ(check["verdict"], "wrong") << ran.out;
  EXPECT_NE(check["cure"].get<std::string>().find("dropped and counted"), std::string::npos);
  EXPECT_EQ(ran.exit_code, kFindings);
}

TEST_F(Outside, DoctorNamesAVariableThatHasNoEffect) {
  const Ran ran = dial9("doctor --json --for 10ms --dir " + path("t"), "DIAL9_ENABLE=1");
  const json check = check_named(json::parse(ran.out), "environment");
  EXPECT_EQ(check["verdict"], "wrong");
  EXPECT_NE(check["seen"].get<std::string>().find("DIAL9_ENABLE:"), std::string::npos);
}

TEST_F(Outside, SnapshotOfAStoppedProcessIsAPageAndAnOrdinaryTrace) {
  HangOptions options;
  options.directory = path("traces");
  const HungChild child(options);
  ASSERT_TRUE(child.is_ready());
  const Ran ran = dial9("snapshot -o " + path("s.bin") + " " + std::to_string(child.pid()));
  EXPECT_EQ(ran.exit_code, kOk) << ran.err;
  EXPECT_NE(ran.out.find("IN A POLL for "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("hang.cc:7"), std::string::npos);
  EXPECT_NE(ran.out.find("starved.cc:3"), std::string::npos);
  EXPECT_NE(ran.out.find("note      it is stopped (SIGSTOP, Ctrl-Z)"), std::string::npos);
  EXPECT_NE(ran.out.find("`kill -CONT " + std::to_string(child.pid()) + "`"), std::string::npos);
  const json info = json::parse(dial9("info --json " + path("s.bin")).out);
  EXPECT_EQ(info["truncated"], false);
  EXPECT_EQ(info["events"]["by_type"]["PollStartEvent"], 12);
  EXPECT_GE(info["events"]["by_type"]["ThreadStateEvent"], 4);
  EXPECT_EQ(info["metadata"]["snapshot.pid"], std::to_string(child.pid()));
  EXPECT_EQ(dial9("diagnose " + path("s.bin")).exit_code, kOk);
  EXPECT_EQ(dial9("cat " + path("s.bin")).exit_code, kOk);
}

TEST_F(Outside, SnapshotOfADeadlockInMemoryOnlyModeNamesBothPolls) {
  HangOptions options;
  options.stops = false;
  const HungChild child(options);
  ASSERT_TRUE(child.is_ready());
  const Ran ran = dial9("snapshot --json --no-trace " + std::to_string(child.pid()));
  EXPECT_EQ(ran.exit_code, kOk) << ran.err;
  const json page = json::parse(ran.out);
  ASSERT_EQ(page["workers"].size(), 2U);
  EXPECT_EQ(page["workers"][0]["doing"], "polling");
  EXPECT_EQ(page["workers"][1]["doing"], "polling");
  EXPECT_EQ(page["ready"][0]["place"], "starved.cc:3");
  EXPECT_EQ(page["trace"], "");
}

TEST_F(Outside, SnapshotOfAProcessThatRecordsNoMoreSaysSoAndClaimsNothing) {
  HangOptions options;
  options.directory = path("traces");
  options.turns_off = true;
  const HungChild child(options);
  ASSERT_TRUE(child.is_ready());
  const std::string pid = std::to_string(child.pid());
  const Ran ran = dial9("snapshot -o " + path("s.bin") + " " + pid);
  EXPECT_EQ(ran.exit_code, kOk) << ran.err;
  EXPECT_NE(ran.out.find("note      recording is off, for "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("(unless what isn't recorded since then"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("ready, but not run, the longest first: none known"), std::string::npos);
  EXPECT_NE(ran.out.find("lost      0 events\n"), std::string::npos) << "it is no loss";
  EXPECT_NE(dial9("top --once " + pid).out.find("in poll?"), std::string::npos);
  EXPECT_NE(dial9("info " + path("s.bin")).out.find("off       recording was turned off"),
            std::string::npos);
}

TEST_F(Outside, SnapshotWithoutANameIsNamedAfterProcessAndTime) {
  const HungChild child(HangOptions{});
  ASSERT_TRUE(child.is_ready());
  const std::string pid = std::to_string(child.pid());
  const Ran ran = dial9("snapshot --json " + pid);
  EXPECT_EQ(ran.exit_code, kOk) << ran.err;
  const std::string name = json::parse(ran.out)["trace"];
  EXPECT_EQ(name.find("dial9-snapshot-" + pid + "-"), 0U) << name;
  EXPECT_TRUE(std::filesystem::exists(path(name))) << "in the working directory";
}

TEST_F(Outside, SnapshotNeverWritesOverAFile) {
  const HungChild child(HangOptions{});
  ASSERT_TRUE(child.is_ready());
  std::ofstream(path("s.bin")) << "mine";
  const Ran ran = dial9("snapshot -o " + path("s.bin") + " " + std::to_string(child.pid()));
  EXPECT_EQ(ran.exit_code, kOutputLost);
  EXPECT_NE(ran.err.find("-o"), std::string::npos);
  EXPECT_EQ(read("s.bin"), "mine");
  EXPECT_NE(ran.out.find("IN A POLL"), std::string::npos);  // the page comes all the same
}

TEST_F(Outside, SnapshotThatCannotBeWrittenToItsEndLeavesNoFile) {
  const HungChild child(HangOptions{});
  ASSERT_TRUE(child.is_ready());
  const std::string line = "{ ulimit -f 1; '" DIAL9_CLI "' snapshot -o '" + path("s.bin") + "' " +
                           std::to_string(child.pid()) + " 2>&1; echo \"exit $?\"; } | cat > '" +
                           path("out") + "'";
  ASSERT_EQ(std::system(line.c_str()), 0);
  const std::string out = read("out");
  EXPECT_NE(out.find("exit 5\n"), std::string::npos) << out;
  EXPECT_NE(out.find("s.bin"), std::string::npos) << out;
  EXPECT_FALSE(std::filesystem::exists(path("s.bin")));
}

// The process is the shell that asks: this one may have recorded in another test.
TEST_F(Outside, AProcessWithoutARecorderIsAClearError) {
  for (const char* verb : {"snapshot", "top"}) {
    const Ran ran = dial9(std::string(verb) + " $$");
    EXPECT_EQ(ran.exit_code, kUnreadable);
    EXPECT_NE(ran.err.find("no recorder of dial9"), std::string::npos) << ran.err;
  }
}

TEST_F(Outside, TopWithoutATerminalIsOnePage) {
  const HungChild child(HangOptions{});
  ASSERT_TRUE(child.is_ready());
  const Ran ran = dial9("top " + std::to_string(child.pid()));
  EXPECT_EQ(ran.exit_code, kOk) << ran.err;
  EXPECT_NE(ran.out.find("2 in polls"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("hang.cc:9"), std::string::npos);
  EXPECT_EQ(ran.out.find('\033'), std::string::npos);
  EXPECT_EQ(json::parse(dial9("top --json " + std::to_string(child.pid())).out)["pid"],
            child.pid());
}

// Run time, waits and context switches of all its threads.
std::string effort_of(pid_t pid) {
  std::string text;
  const auto process = internal::read_kernel_process("/proc", static_cast<std::uint32_t>(pid));
  if (!process) return "gone";
  for (const internal::KernelThread& thread : process->threads) {
    text += std::to_string(thread.run_ns.value_or(0)) + " " +
            std::to_string(thread.voluntary_switches.value_or(0)) + " " +
            std::to_string(thread.involuntary_switches.value_or(0)) + "\n";
  }
  return text;
}

TEST_F(Outside, TopCostsTheProcessNeitherTimeNorAContextSwitch) {
  HangOptions options;
  options.directory = path("traces");
  const HungChild child(options);
  ASSERT_TRUE(child.is_ready());
  const std::string before = effort_of(child.pid());
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(dial9("top --once " + std::to_string(child.pid())).exit_code, kOk);
  }
  EXPECT_EQ(effort_of(child.pid()), before);
}

}  // namespace
}  // namespace dial9::cli
