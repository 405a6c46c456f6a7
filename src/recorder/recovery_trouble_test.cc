// A recovery that meets trouble: names that are taken, a disk that can't be read, a budget without
// room. Nothing is lost: what couldn't be done is left for the next attempt, which has each event
// once.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "dial9/event.h"
#include "recorder/disk_store.h"
#include "recorder/recovery.h"
#include "recorder/sibling_recovery.h"
#include "recorder/test_support.h"

namespace {
bool g_disk_is_broken = false;
}

// Ours before libc's: the disk of the test.
extern "C" ssize_t pread(int fd, void* to, size_t count, off_t at) {
  if (g_disk_is_broken) {
    errno = EIO;
    return -1;
  }
  return ::syscall(SYS_pread64, fd, to, count, at);
}

namespace dial9::internal {
namespace {

namespace fs = std::filesystem;

// The run of a process that died with 700 events in its active segment and 200 in its buffers.
class RecoveryTrouble : public ::testing::Test {
 protected:
  RecoveryTrouble() : run_(dir_.path() + "/dead-999999999") { make_dead_run(run_); }
  ~RecoveryTrouble() override { g_disk_is_broken = false; }

  bool has(const std::string& name) const { return fs::exists(run_ + "/" + name); }
  void make(const std::string& name) const { std::ofstream(run_ + "/" + name) << "taken"; }
  void expect_all_once() const {
    auto numbers = Trace::of_directory(run_).numbers("Kept", "number");
    std::sort(numbers.begin(), numbers.end());
    ASSERT_EQ(numbers.size(), 900U);
    for (std::uint64_t i = 0; i < 900; ++i) EXPECT_EQ(numbers[i], i);
    EXPECT_FALSE(has(kArenaName));
  }

  const TempDir dir_;
  const std::string run_;
};

TEST_F(RecoveryTrouble, LeavesASegmentThatCannotGetItsNameToTheNextRecovery) {
  RunRecovery recovery(run_, {});
  while (!has("trace.1.bin.recovering") && recovery.step()) {
  }
  make("trace.1.bin");
  while (recovery.step()) {
  }
  EXPECT_EQ(recovery.report().state, RunState::kNotFinished) << describe(recovery.report());
  EXPECT_EQ(recovery.report().events, 0U) << "they are in no segment yet";
  EXPECT_TRUE(recovery.report().segment.empty());
  EXPECT_FALSE(recovery.report().problems.empty());
  EXPECT_TRUE(has("trace.1.bin.recovering"));
  EXPECT_TRUE(has(kArenaName));
  fs::remove(run_ + "/trace.1.bin");
  const RunReport again = recover_run(run_, {});
  EXPECT_EQ(again.state, RunState::kRecovered) << describe(again);
  EXPECT_TRUE(again.is_resumed);
  expect_all_once();
}

TEST_F(RecoveryTrouble, KeepsTheBuffersAsLongAsALeftoverCannotBeSealed) {
  make("trace.0.bin");
  const RunReport report = recover_run(run_, {});
  EXPECT_EQ(report.state, RunState::kNotFinished) << describe(report);
  EXPECT_TRUE(report.sealed.empty());
  EXPECT_TRUE(report.segment.empty());
  EXPECT_TRUE(has("trace.0.bin.active"));
  EXPECT_TRUE(has(kArenaName)) << "where to cut the leftover is in its journal";
  fs::remove(run_ + "/trace.0.bin");
  EXPECT_EQ(recover_run(run_, {}).state, RunState::kRecovered);
  expect_all_once();
}

TEST_F(RecoveryTrouble, TakesADiskThatCannotBeReadForNoEnd) {
  const auto bytes = fs::file_size(run_ + "/trace.0.bin.active");
  RunRecovery recovery(run_, {});
  recovery.step();  // the buffers are open, the leftover isn't read yet
  g_disk_is_broken = true;
  while (recovery.step()) {
  }
  g_disk_is_broken = false;
  EXPECT_EQ(recovery.report().state, RunState::kNotFinished);
  ASSERT_FALSE(recovery.report().problems.empty());
  EXPECT_NE(recovery.report().problems[0].message.find("read the segment"), std::string::npos)
      << recovery.report().problems[0].message;
  ASSERT_TRUE(has("trace.0.bin.active"));
  EXPECT_EQ(fs::file_size(run_ + "/trace.0.bin.active"), bytes) << "nothing is cut off";
  EXPECT_TRUE(has(kArenaName));
  EXPECT_EQ(recover_run(run_, {}).state, RunState::kRecovered);
  expect_all_once();
}

TEST_F(RecoveryTrouble, TakesBuffersThatCannotBeReadForNoDamage) {
  for (int steps = 0; steps < 4; ++steps) {
    SCOPED_TRACE(steps);
    const std::string copy = dir_.path() + "/dead-99999999" + std::to_string(steps);
    fs::copy(run_, copy);
    RecoveryOptions options;
    options.verifies_segments = false;
    RunRecovery recovery(copy, options);
    for (int step = 0; step < steps; ++step) recovery.step();
    g_disk_is_broken = true;
    while (recovery.step()) {
    }
    g_disk_is_broken = false;
    EXPECT_EQ(recovery.report().state, RunState::kNotFinished) << describe(recovery.report());
    EXPECT_FALSE(recovery.report().has_unknown_loss);
    EXPECT_TRUE(fs::exists(copy + "/" + kArenaName));
    EXPECT_EQ(recover_run(copy, {}).events, 200U);
  }
}

TEST_F(RecoveryTrouble, MakesNothingBeyondTheBudgetOfTheRecorderThatRecovers) {
  auto own = std::move(*RunDirectory::create(dir_.path(), "live-1"));
  const std::uint64_t used = bytes_under(run_);
  DiskStore store(own, {used + (64 << 10), 0, true});  // less than the new segment may take
  std::vector<std::string> messages;
  SiblingRecovery siblings(store, [&](const std::string& m) { messages.push_back(m); });
  while (siblings.step()) {
  }
  EXPECT_EQ(siblings.runs(), 0U);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_NE(messages[0].find("the budget has no room"), std::string::npos) << messages[0];
  EXPECT_LE(bytes_under(run_), used);
  EXPECT_TRUE(has(kArenaName));
  DiskStore larger(own, {used + (8 << 20), 0, true});
  SiblingRecovery next(larger, [](const std::string&) {});
  while (next.step()) {
  }
  EXPECT_EQ(next.events(), 200U);
  expect_all_once();
}

TEST_F(RecoveryTrouble, OfARunThatIsGoneMeanwhileIsNoneToTellOf) {
  auto own = std::move(*RunDirectory::create(dir_.path(), "live-1"));
  DiskStore store(own, {std::uint64_t{64} << 20, 0, true});
  std::vector<std::string> messages;
  SiblingRecovery siblings(store, [&](const std::string& m) { messages.push_back(m); });
  while (!store.dead_runs()->is_known()) ASSERT_TRUE(siblings.step());
  EXPECT_GT(store.bytes_held(), 0U);
  fs::remove_all(run_);  // somebody recovered it, and threw it away
  while (siblings.step()) {
  }
  EXPECT_TRUE(messages.empty()) << messages[0];
  EXPECT_EQ(store.bytes_held(), 0U);
}

}  // namespace
}  // namespace dial9::internal
