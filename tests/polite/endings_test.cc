// The ways in which a process ends, and what is kept of its recording.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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

// Not by exit_group(): the recorder's thread is left alone, and would keep the process for ever.
TEST_F(Endings, AMainThreadThatEndsAloneEndsTheProcessWithItsStatusAndLosesNothing) {
  for (const int status : {0, 7}) {
    const Ended ended = end_by([status] { ::syscall(SYS_exit, status); });
    ASSERT_TRUE(WIFEXITED(ended.status)) << ended.status;
    EXPECT_EQ(WEXITSTATUS(ended.status), status);
    EXPECT_EQ(ended.trace.numbers("Kept", "number"), first_numbers(5'000));
  }
}

constexpr int kNoStrictFilter = 103;

TEST_F(Endings, AMainThreadThatAStrictFilterKillsEndsTheProcessByThatSignal) {
  const Ended ended = end_by([] {
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) ::_exit(kNoStrictFilter);
    ::syscall(SYS_getpid);
  });
  if (WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == kNoStrictFilter) {
    GTEST_SKIP() << "the kernel takes no strict filter: it has none, or a container's is there";
  }
  ASSERT_TRUE(WIFSIGNALED(ended.status)) << ended.status;
  EXPECT_EQ(WTERMSIG(ended.status), SIGKILL);
  EXPECT_EQ(ended.trace.numbers("Kept", "number"), first_numbers(5'000));
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

// Returns the exit code of a child that records while its buffers' file is cut.
int record_into_a_cut_file(const std::string& directory) {
  if (!install_crash_handler()) return 1;
  auto [recorder, status] = Recorder::start(RecorderOptions::disk(directory));
  if (!status) return 2;
  for (std::uint64_t i = 0; i < 1'000; ++i) record(Kept{i});
  const std::string run = recorder.status().directory;
  if (!recorder.rotate(std::chrono::seconds(60))) return 3;
  const std::uint64_t published = t_buffer.events();
  if (::truncate((run + "/" + kArenaName).c_str(), 0) != 0) return 4;
  // The first of them is stored into what isn't there, unless the collector was quicker.
  for (std::uint64_t i = 1'000; i < 10'000; ++i) record(Kept{i});
  if (t_buffer.events() > published + 1 || is_recording()) return 5;
  const StopResult result = recorder.stop(std::chrono::seconds(60));
  if (result.is_complete || result.unfinished.find("was cut to") == std::string::npos) return 6;
  const Trace trace = Trace::of_directory(run);
  return trace.numbers("Kept", "number") == first_numbers(1'000) ? 0 : 7;
}

TEST_F(Endings, ABuffersFileThatIsCutEndsTheRecordingAndWithTheCrashHandlerNothingElse) {
#if defined(DIAL9_SANITIZED_ADDRESS)
  GTEST_SKIP() << "ASan handles SIGBUS";
#endif
  const TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGBUS, SIG_DFL);
    ::_exit(record_into_a_cut_file(dir.path()));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

void* record_until_cancelled(void* published) {
  ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  for (std::uint64_t i = 0;; ++i) {
    record(Kept{5'000 + i});
    __atomic_store_n(static_cast<std::uint64_t*>(published), i + 1, __ATOMIC_RELEASE);
  }
}

// It may come at any instruction. Where that is one of a record call, which lets nothing be thrown
// through it, the process ends; what was published is kept either way.
TEST_F(Endings, AnAsynchronousCancellationKeepsWhatWasPublished) {
  constexpr std::size_t kBytes = sizeof(std::uint64_t);
  void* const shared =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const published = static_cast<std::uint64_t*>(shared);
  for (int i = 0; i < 5; ++i) {
    *published = 0;
    const Ended ended = end_by([&] {
      pthread_t thread{};
      if (::pthread_create(&thread, nullptr, record_until_cancelled, shared) != 0) ::_exit(1);
      while (__atomic_load_n(published, __ATOMIC_ACQUIRE) < 500) ::sched_yield();
      ::pthread_cancel(thread);
      ::pthread_join(thread, nullptr);
      ::_exit(7);
    });
    const bool is_cancelled = WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 7;
    const bool is_ended = WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGABRT;
    EXPECT_TRUE(is_cancelled || is_ended) << ended.status;
    std::vector<std::uint64_t> numbers = ended.trace.numbers("Kept", "number");
    std::ranges::sort(numbers);
    EXPECT_EQ(numbers, first_numbers(numbers.size()));
    EXPECT_GE(numbers.size(), 5'000 + *published);
    EXPECT_LE(numbers.size(), 5'000 + *published + 1) << "the one that it was in";
    EXPECT_EQ(ended.recovered.damaged_events, 0U);
  }
  ::munmap(shared, kBytes);
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
