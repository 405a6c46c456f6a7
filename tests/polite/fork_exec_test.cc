// Forks and execs: a child shares nothing with its parent's recording, and may have one of its own.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "dial9/event.h"
#include "dial9/recorder.h"
#include "recorder/shedding.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_EVENT(OfParent, (std::uint64_t, number));
DIAL9_EVENT(OfChild, (std::uint64_t, number));

constexpr auto kLong = std::chrono::seconds(60);

int exit_code_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

// Descriptors of this process that lie under `path`.
std::size_t descriptors_under(const std::string& path) {
  std::size_t count = 0;
  for (const std::string& name : list_files("/proc/self/fd")) {
    char target[4096] = {};
    if (::readlink(("/proc/self/fd/" + name).c_str(), target, sizeof target - 1) > 0 &&
        std::string(target).find(path) != std::string::npos) {
      ++count;
    }
  }
  return count;
}

TEST(Fork, LetsAPreforkServersWorkersRecordToRunsOfTheirOwn) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "TSan can't start threads after a fork";
#endif
  const TempDir dir;
  auto [recorder, status] = Recorder::start(RecorderOptions::disk(dir.path()));
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_FALSE(recorder.restart_in_child().ok()) << "the parent has one";
  record(OfParent{0});
  std::vector<pid_t> workers;
  for (std::uint64_t worker = 1; worker <= 3; ++worker) {
    const pid_t child = ::fork();
    if (child == 0) {
      record(OfChild{1000});  // before it asked: silent
      if (!recorder.restart_in_child()) ::_exit(1);
      if (recorder.restart_in_child()) ::_exit(2);
      for (std::uint64_t i = 0; i < worker * 10; ++i) record(OfChild{worker});
      const std::string run = recorder.status().directory;
      if (!recorder.stop(kLong).is_complete) ::_exit(3);
      const Trace own = Trace::of_directory(run);
      const bool is_right = own.count("OfChild") == worker * 10 && own.count("OfParent") == 0;
      ::_exit(is_right ? 0 : 4);
    }
    workers.push_back(child);
  }
  for (const pid_t worker : workers) EXPECT_EQ(exit_code_of(worker), 0);
  record(OfParent{1});
  const std::string run = recorder.status().directory;
  ASSERT_TRUE(recorder.stop(kLong).is_complete);
  const Trace trace = Trace::of_directory(run);
  EXPECT_EQ(trace.numbers("OfParent", "number"), (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(trace.count("OfChild"), 0U);
  EXPECT_EQ(list_files(dir.path()).size(), 4U) << "a run directory each";
}

TEST(Fork, SharesNothingHoweverBusyTheParentIs) {
  const TempDir dir;
  RecorderOptions options = RecorderOptions::disk(dir.path());
  auto [recorder, status] = Recorder::start(options);
  ASSERT_TRUE(status.ok()) << status.message();
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
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (std::uint64_t n = 0; n < 100; ++n) record(OfChild{n});
      if (is_recording() || recorder.is_running()) ::_exit(1);
      ::_exit(descriptors_under(dir.path()) == 0 ? 0 : 2);
    }
    ASSERT_EQ(exit_code_of(child), 0);
  }
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  const std::string run = recorder.status().directory;
  const StopResult result = recorder.stop(kLong);
  EXPECT_TRUE(result.is_complete);
  const Trace trace = Trace::of_directory(run);
  EXPECT_EQ(trace.count("OfParent") + result.events_dropped, recorded.load());
  EXPECT_EQ(trace.count("OfChild"), 0U);
}

TEST(Fork, ShedsNothingInAChildBecauseItsParentDoes) {
  SteppedRecorder parent(RecorderOptions::memory(kTestBudget), false);
  KeepOneIn rates = kKeepAll;
  rates[0] = 1000;
  publish_shedding(rates, true);
  const pid_t child = ::fork();
  if (child == 0) {
    SteppedRecorder own(RecorderOptions::memory(kTestBudget), false);
    for (std::uint64_t i = 0; i < 100; ++i) record(OfChild{i});
    ::_exit(own.read().count("OfChild") == 100 ? 0 : 1);
  }
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_TRUE(is_shedding());
  publish_shedding(kKeepAll, false);
}

TEST(Fork, SharesNothingOfARunThatIsBeingRecovered) {
  const TempDir dir;
  {
    const TempDir other;
    RecorderOptions options = RecorderOptions::disk(other.path());
    SteppedRecorder dead(options, false);
    record(OfParent{1});
    dead.advance(2 * kTestSecond);
    dead.step();  // a part in a segment
    record(OfParent{2});
    std::filesystem::copy(dead->status().directory, dir.path() + "/dead-999999999");
  }
  SteppedRecorder recorder(RecorderOptions::disk(dir.path()), false);
  int steps = 0;
  for (; recorder->status().runs_recovered == 0 && steps < 20; ++steps) {
    recorder.step();  // and one of the recovery
    const pid_t child = ::fork();
    if (child == 0) ::_exit(static_cast<int>(descriptors_under(dir.path())));
    EXPECT_EQ(exit_code_of(child), 0) << "after step " << steps;
  }
  EXPECT_GT(steps, 3);
  EXPECT_EQ(recorder->status().events_recovered, 1U);
}

// What `sh` sees of the process that it was started by.
constexpr char kLook[] = "ls -l /proc/self/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status";

TEST(Exec, GivesAChildNoDescriptorAndNoSignalMask) {
  const TempDir dir;
  auto [recorder, status] = Recorder::start(RecorderOptions::disk(dir.path()));
  ASSERT_TRUE(status.ok()) << status.message();
  record(OfParent{1});
  ASSERT_TRUE(recorder.rotate(kLong));
  record(OfParent{2});
  EXPECT_GT(descriptors_under(dir.path()), 0U);
  FILE* pipe = ::popen(kLook, "re");
  ASSERT_NE(pipe, nullptr);
  std::string seen;
  for (char line[512]; std::fgets(line, sizeof line, pipe) != nullptr;) seen += line;
  ::pclose(pipe);
  EXPECT_NE(seen.find("SigBlk"), std::string::npos) << seen;
  EXPECT_EQ(seen.find(dir.path()), std::string::npos) << seen;
  EXPECT_EQ(seen.find("dial9-thread-buffers"), std::string::npos) << seen;
  EXPECT_NE(seen.find("SigBlk:\t0000000000000000"), std::string::npos) << seen;
  recorder.stop(kLong);
}

TEST(Exec, OfTheRecordingProcessItselfLeaksNothingAndFreesItsRun) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "TSan can't start threads after a fork";
#endif
  const TempDir dir;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::dup2(ends[1], STDOUT_FILENO);
    static auto started = Recorder::start(RecorderOptions::disk(dir.path()));
    record(OfParent{1});
    if (!started.second || !started.first.rotate(kLong)) ::_exit(1);
    record(OfParent{2});
    ::execl("/bin/sh", "sh", "-c", kLook, nullptr);
    ::_exit(2);
  }
  ::close(ends[1]);
  std::string seen;
  char block[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], block, sizeof block)) > 0;) {
    seen.append(block, static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_NE(seen.find("SigBlk"), std::string::npos) << seen;
  EXPECT_EQ(seen.find(dir.path()), std::string::npos) << seen;
  EXPECT_EQ(seen.find("dial9-thread-buffers"), std::string::npos) << seen;
  // Its lock is free: the run counts as dead, and what it left can be recovered.
  EXPECT_FALSE(find_dead_runs(dir.path(), "none-0").empty());
}

}  // namespace
}  // namespace dial9::internal
