// Recovery of files that were damaged after the process's death: nothing that may be read is cut or
// removed, and where nobody knows how much is lost, the trace and the report say just that.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "dial9/event.h"
#include "recorder/arena.h"
#include "recorder/recovery.h"
#include "recorder/run_directory.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

namespace fs = std::filesystem;

// The run of a process that died with 700 events in its active segment and 200 in its buffers.
class RecoveryDamage : public ::testing::Test {
 protected:
  RecoveryDamage() : run_(dir_.path() + "/dead-999999999") { make_dead_run(run_); }

  std::string file(const std::string& name) const { return run_ + "/" + name; }
  bool has(const std::string& name) const { return fs::exists(file(name)); }
  void overwrite(const std::string& name, std::size_t at, std::size_t count, char with) const {
    std::fstream out(file(name), std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(at));
    out << std::string(count, with);
  }
  ArenaHeader header() const {
    ArenaHeader header{};
    const auto bytes = read_file(file(kArenaName));
    std::memcpy(&header, bytes.data(), sizeof header);
    return header;
  }
  // One loss of unknown size is told of, in the segment that recovery made.
  static void expect_unknown_loss(const RunReport& report) {
    EXPECT_TRUE(report.has_unknown_loss);
    EXPECT_FALSE(report.problems.empty()) << "the exit code is 4";
    EXPECT_NE(describe(report).find("unknown number"), std::string::npos) << describe(report);
    ASSERT_FALSE(report.segment.empty()) << describe(report);
    const auto losses = Trace::of(read_file(report.segment)).losses();
    ASSERT_EQ(losses.size(), 1U);
    EXPECT_EQ(losses[0].cause, "damaged");
    EXPECT_EQ(losses[0].count, 0U) << "0: nobody knows how many";
    EXPECT_NE(losses[0].first_ns, 0U);
    EXPECT_GE(losses[0].last_ns, losses[0].first_ns);
  }

  const TempDir dir_;
  const std::string run_;
};

TEST_F(RecoveryDamage, CutsNothingOfASegmentThatCannotBeReadAndTellsOfTheLoss) {
  const auto size = fs::file_size(file("trace.0.bin.active"));
  overwrite("trace.0.bin.active", size / 3, 64, '\xFF');
  const RunReport report = recover_run(run_, {});
  EXPECT_EQ(report.state, RunState::kRecovered) << describe(report);
  ASSERT_EQ(report.sealed.size(), 1U);
  EXPECT_EQ(report.sealed[0].bytes, size);
  EXPECT_EQ(report.sealed[0].cut_bytes, 0U);
  ASSERT_TRUE(report.sealed[0].damaged_at.has_value());
  EXPECT_LE(*report.sealed[0].damaged_at, size / 3 + 64);
  EXPECT_EQ(fs::file_size(file("trace.0.bin")), size);
  EXPECT_EQ(report.events, 200U);
  expect_unknown_loss(report);
}

TEST_F(RecoveryDamage, OfASegmentIsSeenWithoutAJournalToo) {
  fs::remove(file(kArenaName));
  const auto size = fs::file_size(file("trace.0.bin.active"));
  overwrite("trace.0.bin.active", size / 3, 64, '\xFF');
  const RunReport report = recover_run(run_, {});
  EXPECT_EQ(fs::file_size(file("trace.0.bin")), size);
  expect_unknown_loss(report);
}

TEST_F(RecoveryDamage, OfASegmentThatIsShorterThanItsJournalSaysIsTold) {
  const auto size = fs::file_size(file("trace.0.bin.active"));
  for (const bool verifies : {true, false}) {
    SCOPED_TRACE(verifies);
    const std::string copy = dir_.path() + (verifies ? "/copy-999999999" : "/next-999999999");
    fs::copy(run_, copy);
    fs::resize_file(copy + "/trace.0.bin.active", size / 2);
    RecoveryOptions options;
    options.verifies_segments = verifies;
    const RunReport report = recover_run(copy, options);
    EXPECT_EQ(fs::file_size(copy + "/trace.0.bin"), size / 2);
    EXPECT_EQ(report.events, 200U);
    expect_unknown_loss(report);
  }
}

TEST_F(RecoveryDamage, OfASegmentThatIsGoneIsTold) {
  fs::remove(file("trace.0.bin.active"));
  const RunReport report = recover_run(run_, {});
  EXPECT_TRUE(report.sealed.empty());
  EXPECT_EQ(report.segment, file("trace.1.bin")) << "0 is missing, and its number tells";
  expect_unknown_loss(report);
}

TEST_F(RecoveryDamage, OfASegmentThatIsEmptyIsToldAndItIsNotCalledSealed) {
  fs::resize_file(file("trace.0.bin.active"), 0);
  const RunReport report = recover_run(run_, {});
  EXPECT_TRUE(report.sealed.empty()) << describe(report);
  EXPECT_EQ(report.segment, file("trace.1.bin"));
  expect_unknown_loss(report);
}

TEST_F(RecoveryDamage, OfTheBuffersHeaderKeepsThemAsideAndTells) {
  overwrite(kArenaName, 0, 4096, '\0');
  const auto size = fs::file_size(file(kArenaName));
  const RunReport report = recover_run(run_, {});
  EXPECT_EQ(report.sealed.size(), 1U);
  EXPECT_FALSE(has(kArenaName));
  ASSERT_TRUE(has(kDamagedArenaName));
  EXPECT_EQ(fs::file_size(file(kDamagedArenaName)), size);
  expect_unknown_loss(report);
  EXPECT_EQ(Trace::of(read_file(report.segment)).metadata("dial9.writer"), "dial9-cpp")
      << "the run's metadata, from its segments";
  EXPECT_EQ(recover_run(run_, {}).state, RunState::kNothing) << "told once";
}

TEST_F(RecoveryDamage, OfBuffersThatWereCutToNothingIsTold) {
  fs::resize_file(file(kArenaName), 0);
  const RunReport report = recover_run(run_, {});
  EXPECT_TRUE(has(kDamagedArenaName));
  expect_unknown_loss(report);
}

TEST_F(RecoveryDamage, OfTheJournalNeverMakesEventsOfASegmentNewOnes) {
  overwrite(kArenaName, header().journal_offset, 4096, '\0');
  const RunReport report = recover_run(run_, {});
  EXPECT_EQ(Trace::of_directory(run_).count("Kept"), 700U);
  EXPECT_TRUE(has(kDamagedArenaName));
  expect_unknown_loss(report);
}

TEST_F(RecoveryDamage, OfTheStatesOfChunksIsTold) {
  const ArenaHeader before = header();
  overwrite(kArenaName, before.control_offset, sizeof(ChunkControl) * before.chunk_count, '\0');
  const RunReport report = recover_run(run_, {});
  EXPECT_EQ(report.events, 0U);
  expect_unknown_loss(report);
}

TEST_F(RecoveryDamage, IsNotFoundInBuffersWhoseProcessDiedWhileItMadeThem) {
  const std::string early = dir_.path() + "/born-999999999";
  fs::create_directories(early);
  fs::copy_file(file(kArenaName), early + "/" + kArenaName);
  std::ofstream(early + "/" + kLockName) << "999999999\n";
  fs::resize_file(early + "/" + kArenaName, 4096);  // the header, and nothing behind it
  fs::resize_file(early + "/" + kArenaName, header().total_bytes);
  std::fstream(early + "/" + kArenaName, std::ios::binary | std::ios::in | std::ios::out)
      << std::string(sizeof kArenaMagic, '\0');
  const RunReport report = recover_run(early, {});
  EXPECT_EQ(report.state, RunState::kNothing) << describe(report);
  EXPECT_FALSE(report.has_unknown_loss);
  EXPECT_FALSE(fs::exists(early + "/" + kArenaName));
}

TEST_F(RecoveryDamage, NeverTouchesAFileThatOnlyHasTheNameOfASegment) {
  std::ofstream(file("trace.7.bin.active")) << "somebody's text";
  const RunReport report = recover_run(run_, {});
  EXPECT_EQ(report.state, RunState::kRecovered) << describe(report);
  EXPECT_EQ(report.problems.size(), 1U);
  ASSERT_TRUE(has("trace.7.bin.active"));
  EXPECT_EQ(fs::file_size(file("trace.7.bin.active")), 15U);
  EXPECT_EQ(report.events, 200U) << "what is ours is recovered";
  EXPECT_EQ(report.sealed.size(), 1U);
}

TEST(ForeignDirectory, IsNeverTakenForARunByItsName) {
  const TempDir dir;
  const std::string full = dir.path() + "/data-2024";
  const std::string locked = dir.path() + "/back-202311";
  const std::string empty = dir.path() + "/logs-7";
  for (const std::string& path : {full, locked, empty}) fs::create_directories(path);
  std::ofstream(full + "/trace.0.bin.active") << "somebody's text";
  std::ofstream(full + "/thread-buffers.d9") << "somebody's, too";
  std::ofstream(locked + "/.lock").flush();
  EXPECT_TRUE(find_dead_runs(dir.path(), "mine-1").empty());
  EXPECT_TRUE(find_runs(dir.path())->empty());
  EXPECT_TRUE(find_runs(full)->empty());
  const RunReport report = recover_run(full, {});
  EXPECT_EQ(report.state, RunState::kNotFinished);
  EXPECT_NE(describe(report).find("not touched"), std::string::npos) << describe(report);
  EXPECT_EQ(list_files(full), (std::vector<std::string>{"thread-buffers.d9", "trace.0.bin.active"}))
      << "no lock is made either";
  EXPECT_EQ(list_files(locked), std::vector<std::string>{".lock"});
  EXPECT_TRUE(fs::exists(empty));
}

TEST(ForeignDirectory, OfADeadRunIsRemovedOnlyWithItsOwnLock) {
  const TempDir dir;
  const std::string ours = dir.path() + "/dead-999999999";
  fs::create_directories(ours);
  std::ofstream(ours + "/.lock") << "999999999\n";
  EXPECT_TRUE(is_run(ours));
  EXPECT_EQ(recover_run(ours, {}).state, RunState::kNothing);
  EXPECT_TRUE(find_dead_runs(dir.path(), "mine-1").empty());
  EXPECT_FALSE(fs::exists(ours));
}

TEST_F(RecoveryDamage, IsNoGapWhereASegmentWasBegunAndNothingWasWritten) {
  fs::rename(file("trace.0.bin.active"), file("trace.0.bin"));
  std::ofstream(file("trace.1.bin.active")).flush();
  const RunReport report = recover_run(run_, {});
  EXPECT_FALSE(report.has_unknown_loss) << describe(report);
  EXPECT_TRUE(report.sealed.empty());
  EXPECT_EQ(report.segment, file("trace.1.bin"));
  EXPECT_EQ(report.events, 200U);
}

}  // namespace
}  // namespace dial9::internal
