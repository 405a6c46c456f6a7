// `dial9 recover` as a user runs it: output, errors and exit codes.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "life.h"

namespace dial9::testing {
namespace {

using nlohmann::json;

class RecoverVerb : public ::testing::Test {
 protected:
  Finished dial9(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), DIAL9_CLI);
    return run_program(std::move(arguments), life_.log());
  }
  // A run that was killed.
  std::string dead_run() {
    life_.start("wait", 0, 1);
    EXPECT_TRUE(life_.await_recording());
    wait_us(50'000);
    life_.child().send_signal(SIGKILL);
    EXPECT_EQ(life_.child().wait().signal, SIGKILL);
    return life_.runs().at(0);
  }
  Life life_;
};

TEST_F(RecoverVerb, SaysWhatItRecoveredAndThenThatThereIsNothing) {
  const std::string run = dead_run();
  const Finished first = dial9({"recover", life_.root(), "--json"});
  ASSERT_EQ(first.status.code, 0) << first.output;
  const json report = json::parse(first.output);
  ASSERT_EQ(report["runs"].size(), 1U);
  EXPECT_EQ(report["runs"][0]["state"], "recovered");
  EXPECT_EQ(report["runs"][0]["path"], run);
  EXPECT_GT(report["runs"][0]["events"], 0);
  EXPECT_TRUE(report["runs"][0]["problems"].empty());
  life_.check(run);
  const Finished info = dial9({"info", run, "--json"});
  EXPECT_EQ(info.status.code, 0);
  const json metadata = json::parse(info.output)["metadata"];
  EXPECT_EQ(metadata["segment.sealed_clean"], "false");
  EXPECT_TRUE(metadata.contains("dial9.recovered"));

  const Finished second = dial9({"recover", run});
  EXPECT_EQ(second.status.code, 0);
  EXPECT_NE(second.output.find("nothing to recover"), std::string::npos) << second.output;
}

TEST_F(RecoverVerb, LeavesALivingProcessAlone) {
  life_.start("wait", 0, 1);
  ASSERT_TRUE(life_.await_recording());
  const Finished told = dial9({"recover", life_.root()});
  EXPECT_EQ(told.status.code, 0);
  EXPECT_NE(told.output.find("its process lives"), std::string::npos) << told.output;
  EXPECT_TRUE(std::filesystem::exists(life_.runs().at(0) + "/thread-buffers.d9"));
}

TEST_F(RecoverVerb, SaysWhereWhatItCantReadIsWrong) {
  const std::string run = dead_run();
  const int fd = ::open((run + "/thread-buffers.d9").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::pwrite(fd, "\x63", 1, 8), 1);
  ::close(fd);
  const Finished told = dial9({"recover", run, "--json"});
  EXPECT_EQ(told.status.code, 4) << told.output;
  const json report = json::parse(told.output)["runs"][0];
  EXPECT_EQ(report["state"], "not_finished");
  EXPECT_EQ(report["problems"][0]["offset"], 8);
  EXPECT_TRUE(std::filesystem::exists(run + "/thread-buffers.d9"));
}

TEST_F(RecoverVerb, SaysThatMoreIsLostThanCanBeCountedAndSoDoesTheTrace) {
  const std::string run = dead_run();
  const int fd = ::open((run + "/thread-buffers.d9").c_str(), O_WRONLY | O_CLOEXEC);
  const std::vector<char> zeros(4096);
  ASSERT_EQ(::pwrite(fd, zeros.data(), zeros.size(), 0), 4096);
  ::close(fd);
  const Finished told = dial9({"recover", run, "--json"});
  EXPECT_EQ(told.status.code, 4) << told.output;
  EXPECT_EQ(json::parse(told.output)["runs"][0]["has_unknown_loss"], true);
  EXPECT_TRUE(std::filesystem::exists(run + "/thread-buffers.d9.damaged"));
  const json loss = json::parse(dial9({"info", run, "--json"}).output)["loss"];
  EXPECT_TRUE(loss["total"].is_null()) << loss;
  EXPECT_TRUE(loss["by_cause"]["damaged"].is_null()) << loss;
  const Finished info = dial9({"info", run});
  EXPECT_NE(info.output.find("an unknown number of events"), std::string::npos) << info.output;
  const Finished findings = dial9({"diagnose", run});
  EXPECT_NE(findings.output.find("unknown number"), std::string::npos) << findings.output;
}

TEST_F(RecoverVerb, TakesNobodysDirectoryForARun) {
  const std::string foreign = life_.root() + "/data-2024";
  std::filesystem::create_directories(foreign);
  std::ofstream(foreign + "/trace.0.bin.active") << "text";
  EXPECT_EQ(dial9({"recover", life_.root()}).status.code, 3);
  EXPECT_EQ(dial9({"recover", foreign}).status.code, 3);
  EXPECT_EQ(std::filesystem::file_size(foreign + "/trace.0.bin.active"), 4U);
  EXPECT_FALSE(std::filesystem::exists(foreign + "/.lock"));
}

TEST_F(RecoverVerb, LetsNoNameDriveTheTerminal) {
  const std::string run = dead_run();
  const std::string named = life_.root() + "/\033[31mred";
  std::filesystem::rename(run, named);
  const Finished told = dial9({"recover", named});
  EXPECT_EQ(told.status.code, 0) << told.output;
  EXPECT_NE(told.output.find("[31mred: recovered"), std::string::npos) << told.output;
  EXPECT_EQ(told.output.find('\033'), std::string::npos);
}

TEST_F(RecoverVerb, FailsWhereThereIsNoRun) {
  EXPECT_EQ(dial9({"recover", life_.root()}).status.code, 3);
  EXPECT_EQ(dial9({"recover", life_.root() + "/none"}).status.code, 3);
  EXPECT_EQ(dial9({"recover"}).status.code, 2);
}

}  // namespace
}  // namespace dial9::testing
