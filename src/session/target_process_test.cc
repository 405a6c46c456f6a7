// Looks at processes that really hang: two threads that wait for each other's mutex, stopped or
// not, with segments on disk or in memory.
// SPDX-License-Identifier: Apache-2.0
#include "session/target_process.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "analysis/loader.h"
#include "analysis/now.h"
#include "session/testing/hung_child.h"

namespace dial9::internal {
namespace {

using dial9::testing::HangOptions;
using dial9::testing::HungChild;

constexpr std::uint64_t kAllHistory = std::uint64_t{1} << 30;

class TargetProcessTest : public ::testing::Test {
 protected:
  TargetProcessTest() {
    std::string pattern = ::testing::TempDir() + "dial9-target-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~TargetProcessTest() override { std::filesystem::remove_all(directory_); }

  static std::uint32_t id_of(const HungChild& child) {
    return static_cast<std::uint32_t>(child.pid());
  }
  static Result<TargetLook> look_at(const HungChild& child, std::uint64_t history_bytes) {
    Result<TargetProcess> target = TargetProcess::open(id_of(child));
    if (!target) return std::unexpected(target.error());
    return target->look(history_bytes);
  }
  static analysis::Trace load(const TargetLook& look) {
    analysis::Loader loader;
    for (const TargetBytes& part : look.parts) {
      loader.begin_input(part.name);
      EXPECT_TRUE(loader.feed(part.bytes)) << part.name;
      EXPECT_TRUE(part.bytes.empty() || loader.end_input()) << part.name;
    }
    return loader.finish();
  }
  static std::uint64_t count(const analysis::Trace& trace, std::string_view type) {
    for (const analysis::TypeCount& one : trace.by_type) {
      if (trace.names.text(one.name) == type) return one.count;
    }
    return 0;
  }

  std::string directory_;
};

// Of the calling thread.
bool drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2]{};
  return ::syscall(SYS_capset, &header, none) == 0;
}

// What every look at the hung child must show.
void expect_hang(const analysis::Trace& trace, const TargetLook& look) {
  const analysis::NowView view = analysis::look_at_now(trace, {look.now_ns, 0, 10});
  ASSERT_EQ(view.workers.size(), 2U);
  for (const analysis::WorkerNow& worker : view.workers) {
    EXPECT_EQ(worker.doing, analysis::WorkerDoing::kPolling);
  }
  ASSERT_EQ(view.ready.size(), 1U);
  EXPECT_EQ(trace.names.text(trace.tasks.spawn_loc[view.ready[0].task]), "starved.cc:3");
}

TEST_F(TargetProcessTest, AStoppedProcessIsReadFromItsMemoryFile) {
  const HungChild child(HangOptions{});
  ASSERT_TRUE(child.is_ready());
  const auto look = look_at(child, kAllHistory);
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_TRUE(look->is_join_exact);
  EXPECT_FALSE(look->has_segments);
  EXPECT_EQ(look->run_directory, "");
  EXPECT_EQ(look->kernel.threads.front().state, 'T');
  const analysis::Trace trace = load(*look);
  EXPECT_EQ(count(trace, "PollStartEvent"), 12U);
  expect_hang(trace, *look);
}

TEST_F(TargetProcessTest, SegmentsAndThreadBuffersFitTogetherToTheEvent) {
  HangOptions options;
  options.directory = directory_;
  options.early_polls = 20'000;  // many chunks, drained while it records
  const HungChild child(options);
  ASSERT_TRUE(child.is_ready());
  const auto look = look_at(child, kAllHistory);
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_TRUE(look->is_join_exact);
  const analysis::Trace trace = load(*look);
  std::uint64_t lost = trace.lost_events();
  for (const TargetLoss& loss : look->losses) lost += loss.count;
  EXPECT_EQ(lost, 0U);
  EXPECT_EQ(count(trace, "PollStartEvent"), 20'002U);
  EXPECT_EQ(count(trace, "PollEndEvent"), 20'000U);
  EXPECT_EQ(count(trace, "WakeEventEvent"), 20'001U);
  expect_hang(trace, *look);
}

TEST_F(TargetProcessTest, TheThreadsOfADeadlockAreSeenWithoutStoppingThem) {
  HangOptions options;
  options.directory = directory_;
  options.stops = false;
  const HungChild child(options);
  ASSERT_TRUE(child.is_ready());
  const auto look = look_at(child, kAllHistory);
  ASSERT_TRUE(look) << look.error().message;
  expect_hang(load(*look), *look);
  EXPECT_GE(look->kernel.threads.size(), 4U);  // main, two workers, the collector
}

TEST_F(TargetProcessTest, WithoutHistoryTheChunksAreWholeByThemselves) {
  HangOptions options;
  options.directory = directory_;
  const HungChild child(options);
  ASSERT_TRUE(child.is_ready());
  const auto look = look_at(child, 0);
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_FALSE(look->has_segments);
  EXPECT_EQ(look->run_directory, directory_ + "/" + look->boot_id);
  EXPECT_EQ(look->chunks_complete_since_ns, 0U);  // no chunk was used twice
  expect_hang(load(*look), *look);
}

TEST_F(TargetProcessTest, AWaitIsClaimedOnlySinceChunksWereLastReused) {
  HangOptions options;
  options.early_polls = 20'000;
  const HungChild child(options);
  ASSERT_TRUE(child.is_ready());
  const auto look = look_at(child, 0);
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_LE(look->chunks_complete_since_ns, look->now_ns);
  const analysis::Trace trace = load(*look);
  const analysis::NowView view =
      analysis::look_at_now(trace, {look->now_ns, look->chunks_complete_since_ns, 10});
  for (const analysis::TaskWait& wait : view.ready) {
    EXPECT_GE(wait.since_ns, look->chunks_complete_since_ns);
  }
}

TEST_F(TargetProcessTest, AProcessWithoutARecorderIsAnErrorWithTheCure) {
  HangOptions options;
  options.has_recorder = false;
  const HungChild child(options);
  ASSERT_TRUE(child.is_ready());
  const auto target = TargetProcess::open(id_of(child));
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().code, ErrorCode::kNotFound);
  EXPECT_NE(target.error().message.find("no recorder of dial9"), std::string::npos);
}

TEST_F(TargetProcessTest, AProcessThatDoesNotExistIsAnErrorWithTheCure) {
  HungChild child(HangOptions{});
  const std::uint32_t pid = id_of(child);
  child.kill_now();
  const auto target = TargetProcess::open(pid);
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().code, ErrorCode::kNotFound);
}

TEST_F(TargetProcessTest, AProcessThatDiesInTheMiddleIsReadFromWhatItLeft) {
  HungChild child(HangOptions{});
  ASSERT_TRUE(child.is_ready());
  Result<TargetProcess> target = TargetProcess::open(id_of(child));
  ASSERT_TRUE(target) << target.error().message;
  child.kill_now();
  const auto look = target->look(0);
  if (!look) {  // its memory was read, and is gone
    EXPECT_EQ(look.error().code, ErrorCode::kNotFound);
    return;
  }
  EXPECT_FALSE(look->notes.empty());
  EXPECT_EQ(count(load(*look), "PollStartEvent"), 12U);
}

TEST_F(TargetProcessTest, AProcessOfAnotherUserIsAnErrorThatNamesIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const HungChild child(HangOptions{});
  ASSERT_TRUE(child.is_ready());
  ASSERT_EQ(::seteuid(65534), 0);
  const auto target = TargetProcess::open(id_of(child));
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().code, ErrorCode::kPermission);
  EXPECT_NE(target.error().message.find("belongs to user 0"), std::string::npos);
}

TEST_F(TargetProcessTest, AProcessInAPidNamespaceOfItsOwnIsReadByItsOuterId) {
  HangOptions options;
  options.has_own_pids = true;
  const HungChild child(options);
  if (!child.is_ready()) GTEST_SKIP() << "needs the right to make a pid namespace";
  const auto look = look_at(child, 0);
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_EQ(look->kernel.inner_pid, 1U);
  const analysis::Trace trace = load(*look);
  expect_hang(trace, *look);
  for (const analysis::Lane& lane : trace.lanes) {
    const bool is_found =
        std::any_of(look->kernel.threads.begin(), look->kernel.threads.end(),
                    [&](const KernelThread& thread) { return thread.inner_tid == lane.tid; });
    EXPECT_TRUE(is_found) << lane.tid;
  }
}

// Its CPU time and context switches, of all threads, from /proc.
std::string effort_of(std::uint32_t pid) {
  std::string text;
  const auto process = read_kernel_process("/proc", pid);
  if (!process) return "gone";
  for (const KernelThread& thread : process->threads) {
    text += std::to_string(thread.run_ns.value_or(0)) + " " +
            std::to_string(thread.voluntary_switches.value_or(0)) + " " +
            std::to_string(thread.involuntary_switches.value_or(0)) + "\n";
  }
  return text;
}

TEST_F(TargetProcessTest, LookingCostsTheProcessNothing) {
  HangOptions options;
  options.directory = directory_;
  const HungChild child(options);
  ASSERT_TRUE(child.is_ready());
  const std::string before = effort_of(id_of(child));
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(look_at(child, kAllHistory));
  EXPECT_EQ(effort_of(id_of(child)), before);
}

// Its threads hold on to their buffers, so these stay mapped.
TEST_F(TargetProcessTest, ARecorderThatWasStoppedIsCalledThatAndNothingIsClaimedSince) {
  for (const std::string& directory : {std::string(), directory_}) {
    HangOptions options;
    options.directory = directory;
    options.stops = false;
    options.then = HangOptions::Then::kStopsRecorder;
    HungChild child(options);
    ASSERT_TRUE(child.is_ready() && child.go_on());
    const auto look = look_at(child, kAllHistory);
    ASSERT_TRUE(look) << look.error().message;
    EXPECT_NE(look->stopped_ns, 0U);
    EXPECT_EQ(look->run_directory.empty(), directory.empty());
    EXPECT_EQ(look->has_segments, !directory.empty());
    const analysis::Trace trace = load(*look);
    std::uint64_t until_ns = 0;
    for (const TargetLoss& loss : look->losses) until_ns = std::max(until_ns, loss.last_ns);
    EXPECT_EQ(until_ns, look->now_ns) << "nothing is known from the stop on";
    for (const std::string& note : look->notes) ADD_FAILURE() << note;
  }
}

TEST_F(TargetProcessTest, ALookFollowsTheProcessToTheRecorderThatItStartedMeanwhile) {
  HangOptions options;
  options.directory = directory_;
  options.stops = false;
  options.then = HangOptions::Then::kStartsAnother;
  HungChild child(options);
  ASSERT_TRUE(child.is_ready());
  Result<TargetProcess> target = TargetProcess::open(id_of(child));
  ASSERT_TRUE(target) << target.error().message;
  const auto before = target->look(0);
  ASSERT_TRUE(before && child.go_on());
  const auto look = target->look(0);
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_NE(look->boot_id, before->boot_id);
  EXPECT_EQ(look->stopped_ns, 0U);
  EXPECT_EQ(count(load(*look), "PollStartEvent"), 0U) << "those were the first one's";
}

TEST_F(TargetProcessTest, AProcessThatExecutedAnotherProgramHasNoRecorderAnyMore) {
  HangOptions options;
  options.directory = directory_;
  options.stops = false;
  options.then = HangOptions::Then::kExecs;
  HungChild child(options);
  ASSERT_TRUE(child.is_ready());
  Result<TargetProcess> target = TargetProcess::open(id_of(child));
  ASSERT_TRUE(target) << target.error().message;
  ASSERT_TRUE(target->look(0) && child.go_on());
  const auto look = target->look(0);
  ASSERT_FALSE(look) << "what the program before it recorded is nothing of this one's";
  EXPECT_EQ(look.error().code, ErrorCode::kNotFound);
  EXPECT_NE(look.error().message.find("no recorder of dial9"), std::string::npos);
}

// Below its id /proc has no maps and no root then.
TEST_F(TargetProcessTest, AProcessWhoseMainThreadHasEndedIsReadByTheOthers) {
  for (const std::string& directory : {std::string(), directory_}) {
    HangOptions options;
    options.directory = directory;
    options.stops = false;
    options.early_polls = 20'000;  // some of them in segments
    options.then = HangOptions::Then::kEnds;
    HungChild child(options);
    ASSERT_TRUE(child.is_ready() && child.go_on());
    for (char state = '?'; state != 'Z';) {
      const auto process = read_kernel_process("/proc", id_of(child));
      ASSERT_TRUE(process) << process.error().message;
      state = process->threads.front().state;
    }
    const auto look = look_at(child, kAllHistory);
    ASSERT_TRUE(look) << look.error().message;
    EXPECT_EQ(look->has_segments, !directory.empty());
    expect_hang(load(*look), *look);
  }
}

TEST_F(TargetProcessTest, AThreadOfTheKernelIsCalledThatAndNotForbidden) {
  const auto kernel = read_kernel_process("/proc", 2);
  if (!kernel || kernel->name != "kthreadd") GTEST_SKIP() << "no thread of the kernel is seen here";
  const auto target = TargetProcess::open(2);
  ASSERT_FALSE(target);
  if (::geteuid() == 0) {
    EXPECT_EQ(target.error().code, ErrorCode::kNotFound) << target.error().message;
    EXPECT_NE(target.error().message.find("a thread of the kernel"), std::string::npos);
  }
}

// As in a container: the cure isn't to become root.
TEST_F(TargetProcessTest, RootThatMayNotReadIsToldWhatItLacks) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be root with fewer rights";
  const HungChild child(HangOptions{});
  ASSERT_TRUE(child.is_ready());
  Error error;
  std::thread([&] {  // rights are a thread's
    if (!drop_capabilities()) return;
    const auto target = TargetProcess::open(id_of(child));
    if (!target) error = target.error();
  })
      .join();
  if (error.message.empty()) GTEST_SKIP() << "rights can't be dropped, or none is needed here";
  EXPECT_EQ(error.code, ErrorCode::kPermission);
  EXPECT_NE(error.message.find("CAP_SYS_PTRACE"), std::string::npos) << error.message;
  EXPECT_EQ(error.message.find("as root (sudo)"), std::string::npos) << error.message;
}

TEST(RunDirectoryInMaps, IsThatOfTheRunAmongTheMappedFiles) {
  EXPECT_EQ(
      run_directory_in_maps("7f00-7f10 r-xp 00000000 08:01 1 /usr/lib/libc.so\n"
                            "7f20-7f30 rw-s 00000000 08:01 5  /var/d 9/abcd-7/thread-buffers.d9\n"
                            "7f40-7f50 rw-s 00000000 08:01 6  /other/efgh-7/thread-buffers.d9\n",
                            "abcd-7"),
      "/var/d 9/abcd-7");
}

// The file may have been removed alone, or by the end of its recorder.
TEST(RunDirectoryInMaps, IsThereWithoutTheFileToo) {
  const char maps[] = "7f20-7f30 rw-s 00000000 08:01 5 /d/abcd-7/thread-buffers.d9 (deleted)\n";
  EXPECT_EQ(run_directory_in_maps(maps, "abcd-7"), "/d/abcd-7");
}

TEST(RunDirectoryInMaps, IsNoneForAMemoryFile) {
  const char maps[] = "7f20-7f30 rw-s 00000000 00:01 5 /memfd:dial9-thread-buffers (deleted)\n";
  EXPECT_EQ(run_directory_in_maps(maps, "abcd-7"), "");
}

}  // namespace
}  // namespace dial9::internal
