// The ways in which a process ends, and what is kept of its recording.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "dial9/crash.h"
#include "dial9/event.h"
#include "dial9/recorder.h"
#include "dial9/source.h"
#include "recorder/recovery.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_EVENT(Kept, (std::uint64_t, number));

struct Ended {
  int status = 0;
  RunReport recovered;
  Trace trace;
};

// A process with a recorder and its thread; what it left, recovered.
Ended end_by(const std::function<void()>& end) {
  const TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGABRT}) ::signal(signal, SIG_DFL);
    CoreSeams seams;
    seams.boot_id = "ends-1";
    Status status;
    static auto core = RecorderCore::start(RecorderOptions::disk(dir.path()), seams, &status);
    if (!status) ::_exit(100);
    for (std::uint64_t i = 0; i < 5'000; ++i) record(Kept{i});
    end();
    ::_exit(101);
  }
  Ended ended;
  EXPECT_EQ(::waitpid(child, &ended.status, 0), child);
  const std::string run = dir.path() + "/ends-1";
  ended.recovered = recover_run(run, {});
  ended.trace = Trace::of_directory(run);
  return ended;
}

class Endings : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(DIAL9_SANITIZED_THREAD)
    GTEST_SKIP() << "TSan can't start threads after a fork";
#endif
  }
};

std::vector<std::uint64_t> first_numbers(std::uint64_t count) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(i);
  return all;
}

TEST_F(Endings, QuickExitEndsAtOnceAndLosesNothing) {
  const Ended ended = end_by([] { ::quick_exit(7); });
  ASSERT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 7);
  EXPECT_EQ(ended.trace.numbers("Kept", "number"), first_numbers(5'000));
}

TEST_F(Endings, UnderscoreExitLosesNothing) {
  const Ended ended = end_by([] { ::_exit(7); });
  EXPECT_EQ(WEXITSTATUS(ended.status), 7);
  EXPECT_EQ(ended.trace.numbers("Kept", "number"), first_numbers(5'000));
}

TEST_F(Endings, QuickExitFromAnotherThreadWhileOthersRecordLosesNothingOfThis) {
  const Ended ended = end_by([] {
    std::thread([] {
      for (;;) record(Kept{1'000'000});
    }).detach();
    ::quick_exit(7);
  });
  EXPECT_EQ(WEXITSTATUS(ended.status), 7);
  const auto numbers = ended.trace.numbers("Kept", "number");
  EXPECT_EQ(static_cast<std::uint64_t>(
                std::count_if(numbers.begin(), numbers.end(), [](auto n) { return n < 5'000; })),
            5'000U);
}

TEST_F(Endings, AStaticDestructorThatRecordsLosesNothing) {
  const Ended ended = end_by([] {
    struct Late {
      ~Late() { record(Kept{5'000}); }
    };
    static const Late late;
    ::exit(7);
  });
  EXPECT_EQ(WEXITSTATUS(ended.status), 7);
  EXPECT_EQ(ended.trace.numbers("Kept", "number"), first_numbers(5'001));
}

TEST_F(Endings, ACrashUnderARunningCollectorIsReadBackWithAllBefore) {
  const Ended ended = end_by([] {
    if (!install_crash_handler()) ::_exit(102);
    ::raise(SIGSEGV);
  });
  ASSERT_TRUE(WIFSIGNALED(ended.status));
  EXPECT_EQ(WTERMSIG(ended.status), SIGSEGV);
  EXPECT_EQ(ended.trace.numbers("Kept", "number"), first_numbers(5'000));
  EXPECT_EQ(ended.trace.numbers("CrashEvent", "signal"), std::vector<std::uint64_t>{SIGSEGV});
  EXPECT_EQ(ended.recovered.damaged_events, 0U);
}

// A fault in a user's own source, on the collector's thread, is the host's fault like any other.
TEST_F(Endings, ACrashOfTheCollectorsThreadIsReadBackToo) {
  const Ended ended = end_by([] {
    if (!install_crash_handler()) ::_exit(102);
    (void)add_source("faulty", std::chrono::milliseconds(1), [] {
      volatile std::uintptr_t nowhere = 0xDEAD'0000'0000'0000;
      record(Kept{5'000});
      *reinterpret_cast<volatile int*>(nowhere) = 1;
    });
    for (;;) ::pause();
  });
  ASSERT_TRUE(WIFSIGNALED(ended.status));
  EXPECT_EQ(WTERMSIG(ended.status), SIGSEGV);
  EXPECT_EQ(ended.trace.count("Kept"), 5'001U);
  EXPECT_EQ(ended.trace.count("CrashEvent"), 1U);
}

}  // namespace
}  // namespace dial9::internal
