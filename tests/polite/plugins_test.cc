// Shared objects: plugins that record and go, and two copies of the library in one process.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/unique_fd.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

using RecordSome = void(std::uint64_t first, std::uint64_t count);

bool is_loaded(const char* path) {
  void* handle = ::dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (handle != nullptr) ::dlclose(handle);
  return handle != nullptr;
}

TEST(Plugins, RecordThroughTheirHostAndCanBeUnloadedAndLoadedAgain) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  std::vector<std::uint64_t> expected;
  for (std::uint64_t round = 0; round < 5; ++round) {
    void* plugin = ::dlopen(DIAL9_POLITE_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(plugin, nullptr) << ::dlerror();
    auto* record_some = reinterpret_cast<RecordSome*>(::dlsym(plugin, "plugin_record"));
    ASSERT_NE(record_some, nullptr);
    record_some(round * 1000, 200);
    for (std::uint64_t i = 0; i < 200; ++i) expected.push_back(round * 1000 + i);
    if (round % 2 == 1) recorder.step();
    ASSERT_EQ(::dlclose(plugin), 0);
    EXPECT_FALSE(is_loaded(DIAL9_POLITE_PLUGIN)) << "nothing of ours keeps a plugin of the user's";
  }
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.numbers("PluginEvent", "number"), expected);
  EXPECT_EQ(trace.texts("PluginEvent", "name"),
            std::vector<std::string>(expected.size(), "from a plugin"));
}

Trace only_run_under(const std::string& root) {
  for (const std::string& name : list_files(root)) return Trace::of_directory(root + "/" + name);
  return {};
}

class TwoCopies : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(DIAL9_SANITIZED)
    GTEST_SKIP() << "sanitizers want their run-time library in the executable first";
#endif
  }

  // Its wait status. One that does not end is killed after a minute: by SIGKILL, since the threads
  // of the recorders, the last ones then, block what else would end it.
  int run(const char* how = nullptr) const {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl(DIAL9_TWO_COPIES, DIAL9_TWO_COPIES, DIAL9_COPY_A, DIAL9_COPY_B, a_.path().c_str(),
              b_.path().c_str(), how, nullptr);
      ::_exit(99);
    }
    const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    pollfd ended{process.get(), POLLIN, 0};
    if (process && ::poll(&ended, 1, 60'000) == 0) ::kill(child, SIGKILL);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }

  TempDir a_;
  TempDir b_;
};

TEST_F(TwoCopies, RecordEachToItsOwnAndMayBeUnloadedUnderLivingThreads) {
  const int status = run();
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  const Trace of_a = only_run_under(a_.path());
  const Trace of_b = only_run_under(b_.path());
  EXPECT_EQ(of_a.count("Shared"), 2000U);
  EXPECT_EQ(of_a.count("OnlyA"), 2000U);
  EXPECT_EQ(of_a.count("OnlyB"), 0U);
  EXPECT_EQ(of_b.count("Shared"), 2000U);
  EXPECT_EQ(of_b.count("OnlyB"), 2000U);
  EXPECT_EQ(of_b.count("OnlyA"), 0U);
  EXPECT_EQ(of_a.texts("OnlyA", "words"), std::vector<std::string>(2000, "words of a"));
}

// Neither takes the other's thread for one of the host's.
TEST_F(TwoCopies, EndWithTheLastThreadOfTheirHostAndWithItsStatus) {
  for (const char* how : {"pthread_exit", "0", "7"}) {
    const int status = run(how);
    ASSERT_TRUE(WIFEXITED(status)) << how << ": signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), how[0] == '7' ? 7 : 0) << how;
  }
  for (const TempDir* root : {&a_, &b_}) {
    for (const std::string& name : list_files(root->path())) {
      const Trace trace = Trace::of_directory(root->path() + "/" + name);
      EXPECT_EQ(trace.count("Shared"), 1000U) << name;
    }
    EXPECT_EQ(list_files(root->path()).size(), 3U);
  }
}

}  // namespace
}  // namespace dial9::internal
