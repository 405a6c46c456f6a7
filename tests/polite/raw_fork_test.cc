// Children that no atfork handler knows of: _Fork, a raw clone and clone3. They are as silent as
// any, touch nothing of their parent's, and may record for themselves.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "dial9/event.h"
#include "dial9/recorder.h"
#include "recorder/fork_child.h"
#include "recorder/recording_state.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_EVENT(OfParent, (std::uint64_t, number));
DIAL9_EVENT(OfChild, (std::uint64_t, number));

constexpr auto kLong = std::chrono::seconds(60);

struct Way {
  const char* name;
  pid_t (*fork)();  // -1: this system has no such call
};

pid_t by_libc() {
  const auto call = reinterpret_cast<pid_t (*)()>(::dlsym(RTLD_DEFAULT, "_Fork"));
  return call == nullptr ? -1 : call();
}
pid_t by_clone() {
  return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}
pid_t by_clone3() {
  clone_args args{};
  args.exit_signal = SIGCHLD;
  return static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
}
constexpr Way kWays[] = {{"_Fork", by_libc}, {"clone", by_clone}, {"clone3", by_clone3}};

int exit_code_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

class RawFork : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(DIAL9_SANITIZED_THREAD)
    GTEST_SKIP() << "TSan doesn't know of such children";
#endif
    watch_forks();
    if (!is_fork_page_wiped()) GTEST_SKIP() << "this kernel clears no page in a child";
  }
  // Runs in a child of each kind; it must return 0.
  static void in_each_child(const std::function<int()>& run) {
    for (const Way& way : kWays) {
      const pid_t child = way.fork();
      if (child == 0) ::_exit(run());
      if (child < 0) continue;
      EXPECT_EQ(exit_code_of(child), 0) << way.name;
    }
  }
};

TEST_F(RawFork, LeavesAChildSilentHoweverBusyTheParentIs) {
  const TempDir dir;
  auto [recorder, status] = Recorder::start(RecorderOptions::disk(dir.path()));
  ASSERT_TRUE(status.ok()) << status.message();
  Recorder& handle = recorder;  // which a lambda may take
  std::atomic<bool> is_done{false};
  std::atomic<std::uint64_t> recorded{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!is_done.load()) {
        record(OfParent{recorded.fetch_add(1)});
        std::this_thread::yield();
      }
    });
  }
  record(OfParent{recorded.fetch_add(1)});  // a chunk for this thread, which the child must not use
  for (int i = 0; i < 10; ++i) {
    in_each_child([&] {
      for (std::uint64_t n = 0; n < 100; ++n) record(OfChild{n});
      if (is_recording() || handle.is_running()) return 1;
      handle.stop();
      return 0;
    });
    record(OfParent{recorded.fetch_add(1)});
  }
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  const std::string run = recorder.status().directory;
  const StopResult result = recorder.stop(kLong);
  EXPECT_TRUE(result.is_complete) << result.unfinished;
  const Trace trace = Trace::of_directory(run);
  EXPECT_EQ(trace.count("OfParent") + result.events_dropped, recorded.load());
  EXPECT_EQ(trace.count("OfChild"), 0U);
}

// Its thread ends in the child too: what it holds is the parent's.
void* fork_and_end(void* state) {
  record(OfParent{1});
  for (const Way& way : kWays) {
    const pid_t child = way.fork();
    if (child == 0) return nullptr;
    EXPECT_EQ(child > 0 ? exit_code_of(child) : 0, 0) << way.name;
    EXPECT_EQ(t_buffer.control->producer.state, kChunkOpen) << way.name;
  }
  record(OfParent{2});
  *static_cast<bool*>(state) = t_buffer.control->producer.committed >> 32 >= 2;
  return nullptr;
}

TEST_F(RawFork, LeavesTheParentsChunkAloneWhereTheChildsThreadEnds) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  pthread_t thread{};
  bool has_both = false;
  ASSERT_EQ(::pthread_create(&thread, nullptr, fork_and_end, &has_both), 0);
  ::pthread_join(thread, nullptr);
  EXPECT_TRUE(has_both);
  EXPECT_EQ(recorder.read().numbers("OfParent", "number"), (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(RawFork, LetsAChildRecordForItself) {
  const TempDir dir;
  const TempDir other;
  SteppedRecorder parent(RecorderOptions::disk(dir.path()), false);
  record(OfParent{1});
  const std::uint32_t epoch = recording_epoch();
  const ChunkControl& chunk = *t_buffer.control;
  in_each_child([&] {
    if (parent->status().reason.find("child of a fork") == std::string::npos) return 1;
    SteppedRecorder own(RecorderOptions::disk(other.path()), false);
    if (recording_epoch() == 0 || recording_epoch() == epoch) return 2;
    for (std::uint64_t i = 0; i < 100; ++i) record(OfChild{i});
    if (t_buffer.tid != static_cast<std::uint32_t>(::getpid())) return 3;
    own.step();
    const std::string run = own->status().directory;
    if (own->stop(kLong).events_written != 100) return 4;
    const Trace trace = Trace::of_directory(run);
    if (trace.count("OfChild") != 100 || trace.count("OfParent") != 0) return 5;
    for (const std::string& name : list_files("/proc/self/fd")) {
      char target[4096] = {};
      const std::string link = "/proc/self/fd/" + name;
      if (::readlink(link.c_str(), target, sizeof target - 1) > 0 &&
          std::string(target).find(dir.path()) == 0) {
        return 6;
      }
    }
    return 0;
  });
  EXPECT_EQ(recording_epoch(), epoch);
  EXPECT_EQ(t_buffer.control, &chunk);
  EXPECT_EQ(chunk.producer.state, kChunkOpen);
  EXPECT_EQ(chunk.producer.committed >> 32, 1U);
  record(OfParent{2});
  const std::string run = parent->status().directory;
  EXPECT_TRUE(parent->stop(kLong).is_complete);
  const Trace trace = Trace::of_directory(run);
  EXPECT_EQ(trace.numbers("OfParent", "number"), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(trace.count("OfChild"), 0U);
}

TEST_F(RawFork, OfAChildThatRecordsIsSilentToo) {
  SteppedRecorder parent(RecorderOptions::memory(kTestBudget), false);
  record(OfParent{1});
  in_each_child([&] {
    SteppedRecorder own(RecorderOptions::memory(kTestBudget), false);
    record(OfChild{1});
    const pid_t child = by_clone();
    if (child == 0) ::_exit(is_recording() ? 1 : 0);
    if (exit_code_of(child) != 0) return 1;
    return own.read().count("OfChild") == 1 ? 0 : 2;
  });
}

TEST_F(RawFork, ThatSharesItsParentsMemoryDisturbsNothing) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  record(OfParent{1});
  const std::uint32_t epoch = recording_epoch();
  const pid_t sharing = ::vfork();
  if (sharing == 0) ::_exit(is_recording() ? 0 : 1);
  EXPECT_EQ(exit_code_of(sharing), 0);
  char name[] = "true";
  char* arguments[] = {name, nullptr};
  pid_t spawned = 0;
  ASSERT_EQ(::posix_spawnp(&spawned, name, nullptr, nullptr, arguments, environ), 0);
  EXPECT_EQ(exit_code_of(spawned), 0);
  EXPECT_EQ(recording_epoch(), epoch);
  record(OfParent{2});
  EXPECT_EQ(recorder.read().numbers("OfParent", "number"), (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(RawFork, IsntNeededWhereTheKernelClearsNothing) {
#ifdef MADV_KEEPONFORK
  SteppedRecorder parent(RecorderOptions::memory(kTestBudget), false);
  record(OfParent{1});
  const pid_t child = ::fork();
  if (child == 0) {
    SteppedRecorder own(RecorderOptions::memory(kTestBudget), false);
    record(OfChild{1});
    // As an old kernel does.
    if (::madvise(&g_fork_page, sizeof g_fork_page, MADV_KEEPONFORK) != 0) ::_exit(1);
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      if (is_recording()) ::_exit(1);
      SteppedRecorder third(RecorderOptions::memory(kTestBudget), false);
      record(OfChild{2});
      ::_exit(third.read().count("OfChild") == 1 ? 0 : 2);
    }
    if (exit_code_of(grandchild) != 0) ::_exit(2);
    ::_exit(own.read().count("OfChild") == 1 ? 0 : 3);
  }
  EXPECT_EQ(exit_code_of(child), 0);
#endif
}

}  // namespace
}  // namespace dial9::internal
