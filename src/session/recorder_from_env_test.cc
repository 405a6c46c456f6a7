// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "dial9/cpu_samples.h"
#include "dial9/recorder.h"
#include "dial9/source.h"

namespace dial9 {
namespace {

class FromEnvironment : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "dial9-session-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    ::setenv("DIAL9_TRACE_DIR", directory_.c_str(), 1);
    ::setenv("DIAL9_QUIET", "1", 1);
  }
  void TearDown() override {
    for (const char* name : {"DIAL9_TRACE_DIR", "DIAL9_ENABLED", "DIAL9_QUIET", "DIAL9_TYPO"}) {
      ::unsetenv(name);
    }
    std::filesystem::remove_all(directory_);
  }
  std::string directory_;
};

TEST_F(FromEnvironment, RecordsNothingUnlessAskedTo) {
  const EnvRecorder env = recorder_from_env();
  EXPECT_TRUE(env.status.ok());
  EXPECT_FALSE(env.recorder.is_running());
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(FromEnvironment, LeavesDescriptorsToAProgramThatMayHaveFew) {
  ::setenv("DIAL9_ENABLED", "true", 1);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{40, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  EnvRecorder env = recorder_from_env();
  EXPECT_TRUE(env.recorder.status().is_recording) << env.status.message();
  EXPECT_NE(env.recorder.status().reason.find("only 40 descriptors"), std::string::npos);
  EXPECT_TRUE(env.messages.empty()) << env.messages[0];
  EXPECT_FALSE(add_resources().ok()) << "nor is it for who asks by name";
  EXPECT_TRUE(env.recorder.stop().is_complete);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(remove_cpu_samples());
  EXPECT_FALSE(remove_source("resources"));
  EXPECT_TRUE(remove_source("process_usage"));
}

TEST_F(FromEnvironment, StartsInTheDirectoryThatItNames) {
  ::setenv("DIAL9_ENABLED", "true", 1);
  ::setenv("DIAL9_TYPO", "1", 1);
  EnvRecorder env = recorder_from_env();
  ASSERT_TRUE(env.status.ok()) << env.status.message();
  EXPECT_TRUE(env.recorder.status().is_recording);
  EXPECT_EQ(env.recorder.status().directory.rfind(directory_, 0), 0U);
  ASSERT_EQ(env.messages.size(), 1U);
  EXPECT_NE(env.messages[0].find("DIAL9_TYPO"), std::string::npos);
  const EnvRecorder second = recorder_from_env();
  EXPECT_FALSE(second.status.ok());
  EXPECT_NE(second.status.message().find(directory_), std::string::npos) << "it names the first";
  EXPECT_TRUE(env.recorder.stop().is_complete);
  remove_source("process_usage");
  remove_source("platform_stalls");
  remove_source("resources");
  EXPECT_TRUE(remove_cpu_samples()) << "on unless told otherwise";
}

// What the recorder says while it runs, too: here that it can't write its segment.
TEST_F(FromEnvironment, SaysNothingWhereItIsToBeQuiet) {
  ::setenv("DIAL9_ENABLED", "true", 1);
  ::setenv("DIAL9_CPU_PROFILE_ENABLED", "false", 1);
  ::setenv("DIAL9_ANONYMOUS_MEMORY", "1", 1);
  for (const bool is_quiet : {false, true}) {
    ::setenv("DIAL9_QUIET", is_quiet ? "1" : "0", 1);
    testing::internal::CaptureStderr();
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit small{64, 64};
      ::setrlimit(RLIMIT_FSIZE, &small);
      EnvRecorder env = recorder_from_env();
      const bool is_started = env.status.ok();
      env.recorder.stop();
      ::_exit(is_started ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(status, 0);
    EXPECT_EQ(said.empty(), is_quiet) << said;
  }
  ::unsetenv("DIAL9_ANONYMOUS_MEMORY");
  ::unsetenv("DIAL9_CPU_PROFILE_ENABLED");
}

TEST_F(FromEnvironment, SamplesAcceptQueuesWhereAskedTo) {
  ::setenv("DIAL9_ENABLED", "true", 1);
  ::setenv("DIAL9_SOCKET_ACCEPT_QUEUES_ENABLED", "true", 1);
  EnvRecorder env = recorder_from_env();
  ::unsetenv("DIAL9_SOCKET_ACCEPT_QUEUES_ENABLED");
  ASSERT_TRUE(env.status.ok()) << env.status.message();
  EXPECT_TRUE(env.messages.empty()) << env.messages[0];
  EXPECT_TRUE(remove_source("accept_queues"));
  EXPECT_TRUE(env.recorder.stop().is_complete);
  remove_source("process_usage");
  remove_source("platform_stalls");
  remove_source("resources");
  EXPECT_TRUE(remove_cpu_samples());
}

TEST_F(FromEnvironment, SaysHowToGetHeapSamplesWhereTheProgramHasNone) {
  ::setenv("DIAL9_ENABLED", "true", 1);
  ::setenv("DIAL9_CPU_PROFILE_ENABLED", "false", 1);
  ::setenv("DIAL9_MEMORY_PROFILE_ENABLED", "true", 1);
  const EnvRecorder env = recorder_from_env();
  ::unsetenv("DIAL9_CPU_PROFILE_ENABLED");
  ::unsetenv("DIAL9_MEMORY_PROFILE_ENABLED");
  remove_source("process_usage");
  ASSERT_TRUE(env.status.ok()) << env.status.message();
  ASSERT_EQ(env.messages.size(), 1U);
  EXPECT_NE(env.messages[0].find("link dial9::heap"), std::string::npos) << env.messages[0];
}

struct SeenInChild {
  std::uint32_t asked_hz = 0;
  std::uint32_t messages = 0;
};

// In a child, since the signal's handler stays.
SeenInChild cpu_samples_with(const std::vector<std::pair<const char*, const char*>>& variables,
                             bool has_handler = false) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGPROF, has_handler ? [](int) {} : SIG_DFL);
    ::setenv("DIAL9_ENABLED", "true", 1);
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
    const EnvRecorder env = recorder_from_env();
    const CpuSampleStatus status = cpu_sample_status();
    const std::uint32_t words[] = {status.asked_hz,
                                   static_cast<std::uint32_t>(env.messages.size())};
    ::_exit(::write(ends[1], words, sizeof words) == sizeof words ? 0 : 1);
  }
  std::uint32_t words[2] = {};
  EXPECT_EQ(::read(ends[0], words, sizeof words), static_cast<ssize_t>(sizeof words));
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  return {words[0], words[1]};
}

TEST_F(FromEnvironment, SamplesTheCpuAtTheRateThatItNames) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "TSan can't start threads after a fork";
#endif
  EXPECT_EQ(cpu_samples_with({}).asked_hz, 99U);
  EXPECT_EQ(cpu_samples_with({{"DIAL9_CPU_SAMPLE_HZ", "250"}}).asked_hz, 250U);
  EXPECT_EQ(cpu_samples_with({{"DIAL9_CPU_PROFILE_ENABLED", "no"}}).asked_hz, 0U);
  EXPECT_EQ(cpu_samples_with({{"DIAL9_FORCE_CTIMER", "1"}}).messages, 0U);
  const SeenInChild odd = cpu_samples_with({{"DIAL9_CPU_SAMPLE_HZ", "nan"}});
  EXPECT_EQ(odd.asked_hz, 99U);
  EXPECT_EQ(odd.messages, 1U);
}

TEST_F(FromEnvironment, TakesNoSignalForARecorderThatDoesNotStart) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "TSan can't start threads after a fork";
#endif
  EXPECT_EQ(cpu_samples_with({{"DIAL9_TRACE_DIR", "/dev/null/none"}}).asked_hz, 0U);
}

TEST_F(FromEnvironment, LeavesASignalThatTheHostHandlesAloneUnlessItNamesAnother) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "TSan can't start threads after a fork";
#endif
  EXPECT_EQ(cpu_samples_with({}, true).messages, 1U);
  EXPECT_EQ(cpu_samples_with({{"DIAL9_CPU_SIGNAL", "45"}}, true).messages, 0U);
}

// In a child: a handler stays installed.
bool is_installed_with(const char* value) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGSEGV, SIG_DFL);
    ::setenv("DIAL9_ENABLED", "true", 1);
    if (value != nullptr) ::setenv("DIAL9_CRASH_HANDLER", value, 1);
    EnvRecorder env = recorder_from_env();
    struct sigaction now{};
    ::sigaction(SIGSEGV, nullptr, &now);
    ::_exit(!env.status ? 2 : now.sa_handler != SIG_DFL ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2) << status;
  return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

TEST_F(FromEnvironment, HandlesCrashesOnlyIfAskedTo) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "TSan can't start threads after a fork";
#endif
  EXPECT_FALSE(is_installed_with(nullptr));
  EXPECT_FALSE(is_installed_with("false"));
  EXPECT_TRUE(is_installed_with("true"));
}

}  // namespace
}  // namespace dial9
