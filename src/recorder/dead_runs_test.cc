// A directory with many dead runs: what a start asks of it, how many stay, which go, and that a
// process of a moment does its share.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/dead_runs.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/unique_fd.h"
#include "dial9/event.h"
#include "recorder/open_hook.h"
#include "recorder/test_support.h"

namespace {
thread_local std::uint64_t t_calls = 0;
}

// Ours before libc's: what is asked of the file system, by this thread, besides its openings.
extern "C" int flock(int fd, int operation) noexcept {
  ++t_calls;
  return static_cast<int>(::syscall(SYS_flock, fd, operation));
}
extern "C" ssize_t getdents64(int fd, void* to, size_t bytes) noexcept {
  ++t_calls;
  return ::syscall(SYS_getdents64, fd, to, bytes);
}

namespace dial9::internal {
namespace {

namespace fs = std::filesystem;

std::uint64_t calls() { return t_calls + openings(); }

DIAL9_EVENT(Kept, (std::uint64_t, number));

constexpr std::size_t kTooMany = kMostDeadRuns + 30;

// No process has such a number.
std::string name_of(std::size_t run) { return "dead-" + std::to_string(900'000'000 + run); }

// Run 0 is the oldest.
void make_dead_runs(const std::string& root, std::size_t count) {
  const auto now = fs::file_time_type::clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string path = root + "/" + name_of(i);
    fs::create_directories(path);
    std::ofstream(path + "/.lock") << 900'000'000 + i << "\n";
    std::ofstream(path + "/trace.0.bin") << std::string("TRC\0and more", 12);
    fs::last_write_time(path, now - std::chrono::hours(count - i));
  }
}

std::size_t runs_in(const std::string& root) {
  const auto names = list_files(root);
  return static_cast<std::size_t>(std::count_if(names.begin(), names.end(), is_boot_id));
}

RecorderOptions on_disk(const TempDir& dir) {
  RecorderOptions options = RecorderOptions::disk(dir.path());
  options.arena_bytes = std::uint64_t{256} << 10;
  return options;
}

std::uint64_t calls_of_a_start(std::size_t dead_runs) {
  const TempDir dir;
  make_dead_runs(dir.path(), dead_runs);
  const std::uint64_t before = calls();
  const SteppedRecorder recorder(on_disk(dir), false);
  return calls() - before;
}

TEST(DeadRuns, CostAStartNothingHoweverManyThereAre) {
  (void)calls_of_a_start(0);  // what is read once a process
  const std::uint64_t few = calls_of_a_start(3);
  EXPECT_GT(few, 0U);
  EXPECT_EQ(calls_of_a_start(1'000), few);
}

TEST(DeadRuns, AreLookedAtInPiecesAndAllFound) {
  const TempDir dir;
  make_dead_runs(dir.path(), 200);
  std::uint64_t now = 0;
  DeadRuns dead(dir.path(), "mine-1", [](const std::string&) {}, [&] { return now += 100'000; });
  std::uint64_t most = 0;
  int pieces = 1;
  std::uint64_t before = calls();
  for (; dead.step(); ++pieces) {
    most = std::max(most, calls() - before);
    before = calls();
  }
  EXPECT_EQ(pieces, 20) << "of a millisecond each";
  EXPECT_LE(most, 10U * 8U + 4U);
  EXPECT_EQ(dead.files().size(), 200U);
  EXPECT_EQ(dead.bytes(), 200U * 12U);
  EXPECT_TRUE(dead.take_leftovers().empty());
  EXPECT_EQ(dead.runs_removed(), 0U);
}

TEST(DeadRuns, BeyondTheMostGoTheOldestFirstAndItIsSaid) {
  const TempDir dir;
  make_dead_runs(dir.path(), kTooMany);
  const UniqueFd living(
      ::open((dir.path() + "/" + name_of(1) + "/.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(living.get(), LOCK_EX), 0);
  const std::string foreign = dir.path() + "/data-800000000";
  fs::create_directories(foreign);
  std::ofstream(foreign + "/trace.0.bin") << "somebody's";
  fs::last_write_time(foreign, fs::file_time_type::clock::now() - std::chrono::hours(100'000));
  std::vector<std::string> messages;
  DeadRuns dead(dir.path(), "mine-1", [&](const std::string& m) { messages.push_back(m); });
  while (dead.step()) {
  }
  EXPECT_TRUE(fs::exists(foreign + "/trace.0.bin"));
  EXPECT_TRUE(fs::exists(dir.path() + "/" + name_of(1))) << "its process lives";
  EXPECT_FALSE(fs::exists(dir.path() + "/" + name_of(0)));
  const std::size_t excess = kTooMany + 1 - kDeadRunsKept;  // with the one that may be a run
  EXPECT_EQ(dead.runs_removed(), excess - 2) << "all but the living and the foreign one";
  EXPECT_FALSE(fs::exists(dir.path() + "/" + name_of(excess - 2)));
  EXPECT_TRUE(fs::exists(dir.path() + "/" + name_of(excess - 1)));
  EXPECT_EQ(dead.files().size(), kTooMany - excess + 1);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_NE(messages[0].find("the " + std::to_string(excess - 2) + " oldest"), std::string::npos)
      << messages[0];
}

TEST(DeadRuns, AreBoundedByRecordersThatEndAtOnceInTheTimeThatTheyHave) {
  const TempDir dir;
  make_dead_runs(dir.path(), kTooMany);
  std::uint64_t now = 0;
  const auto end_at_once = [&](std::uint64_t clock_step_ns) {
    DeadRuns dead(
        dir.path(), "mine-1", [](const std::string&) {}, [&] { return now += clock_step_ns; });
    dead.bound_count();
    return dead.runs_removed();
  };
  EXPECT_EQ(end_at_once(5'000'000), 1U) << "however slow the disk is";
  EXPECT_EQ(end_at_once(1'000'000), 5U);
  EXPECT_EQ(end_at_once(1), kTooMany - 6 - kDeadRunsKept);
  EXPECT_EQ(end_at_once(1), 0U);
  EXPECT_EQ(runs_in(dir.path()), kDeadRunsKept);
  EXPECT_TRUE(fs::exists(dir.path() + "/" + name_of(kTooMany - 1)));
}

TEST(DeadRuns, AreFewerAfterEachRecorderThatEndsAtOnce) {
  const TempDir dir;
  make_dead_runs(dir.path(), kTooMany);
  {
    SteppedRecorder recorder(on_disk(dir), false);
    record(Kept{1});
    EXPECT_TRUE(recorder->stop(std::chrono::seconds(10)).is_complete);
  }
  EXPECT_LE(runs_in(dir.path()), kTooMany) << "with its own";
  EXPECT_FALSE(fs::exists(dir.path() + "/" + name_of(0)));
}

TEST(DeadRuns, AreKnownAtOnceWithoutRemovingAnyToWhoeverCannotWait) {
  const TempDir dir;
  make_dead_runs(dir.path(), kTooMany);
  DeadRuns dead(dir.path(), "mine-1", [](const std::string&) {});
  dead.step();
  dead.know();
  EXPECT_TRUE(dead.is_known());
  EXPECT_EQ(dead.files().size() + dead.runs_removed(), kTooMany);
}

TEST(DeadRuns, AreToldOfInTheStatus) {
  const TempDir dir;
  make_dead_runs(dir.path(), kTooMany);
  SteppedRecorder recorder(on_disk(dir), false);
  while (recorder.messages().empty()) recorder.step();
  recorder.step();
  EXPECT_EQ(recorder->status().runs_removed, kTooMany - kDeadRunsKept);
  EXPECT_EQ(recorder.messages().size(), 1U);
  EXPECT_EQ(runs_in(dir.path()), kDeadRunsKept + 1);
}

TEST(DeadRuns, AreCountedAgainAfterSomebodyChangedThem) {
  const TempDir dir;
  make_dead_runs(dir.path(), 2);
  DeadRuns dead(dir.path(), "mine-1", [](const std::string&) {});
  while (dead.step()) {
  }
  const std::string run = dir.path() + "/" + name_of(0);
  std::ofstream(run + "/trace.1.bin") << std::string("TRC\0", 4);
  fs::last_write_time(run + "/trace.1.bin",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  dead.look_again(run);
  EXPECT_EQ(dead.bytes(), 2U * 12U + 4U);
  EXPECT_EQ(dead.files().back().path, run + "/trace.1.bin") << "the newest";
  fs::remove_all(run);
  dead.look_again(run);
  EXPECT_EQ(dead.bytes(), 12U);
  EXPECT_TRUE(dead.remove_oldest(""));
  EXPECT_FALSE(dead.remove_oldest(""));
  EXPECT_EQ(dead.bytes(), 0U);
}

}  // namespace
}  // namespace dial9::internal
