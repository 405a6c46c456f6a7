// Files, locks and the budget, on a real directory.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/disk_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/unique_fd.h"
#include "dial9/event.h"
#include "recorder/memory_store.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

namespace fs = std::filesystem;

DIAL9_EVENT(Kept, (std::uint64_t, number));

std::vector<std::uint8_t> block(std::size_t bytes) { return std::vector<std::uint8_t>(bytes, 7); }

// What a dead process leaves: a run directory whose lock is free. Older with larger `age`.
std::string make_dead_run(const std::string& root, const std::string& boot_id, std::size_t files,
                          std::size_t bytes, int age) {
  const std::string path = root + "/" + boot_id;
  fs::create_directories(path);
  std::ofstream(path + "/.lock") << boot_id.substr(boot_id.find('-') + 1) << "\n";
  for (std::size_t i = 0; i < files; ++i) {
    const std::string file = path + "/trace." + std::to_string(i) + ".bin";
    std::ofstream(file) << "TRC" << std::string(bytes - 3, '\0');
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(age));
  }
  return path;
}

TEST(RunDirectory, NamesRunsByFourLettersAndTheProcess) {
  const std::string id = make_boot_id();
  EXPECT_TRUE(is_boot_id(id)) << id;
  EXPECT_EQ(id.substr(5), std::to_string(::getpid()));
  EXPECT_FALSE(is_boot_id("abc-1"));
  EXPECT_FALSE(is_boot_id("abcD-1"));
  EXPECT_FALSE(is_boot_id("abcd-"));
  EXPECT_FALSE(is_boot_id("abcd-12x"));
}

TEST(RunDirectory, KnowsTheNamesOfSegments) {
  std::uint64_t index = 0;
  bool is_active = false;
  EXPECT_TRUE(parse_segment_name("trace.12.bin", &index, &is_active));
  EXPECT_EQ(index, 12U);
  EXPECT_FALSE(is_active);
  EXPECT_TRUE(parse_segment_name("trace.0.bin", &index, &is_active));
  EXPECT_TRUE(parse_segment_name("trace.3.bin.active", &index, &is_active));
  EXPECT_TRUE(is_active);
  EXPECT_TRUE(parse_segment_name("trace.3.bin.gz", &index, &is_active));
  EXPECT_TRUE(parse_segment_name("trace.3.bin.gz.partial", &index, &is_active));
  for (const char* name :
       {"trace.bin", "trace.x.bin", "trace.3", "trace.3.bin.bak", "other.3.bin", "", "trace..bin",
        "trace.99999999999999999999.bin", "trace.07.bin", "trace.00.bin"}) {
    EXPECT_FALSE(parse_segment_name(name, &index, &is_active)) << name;
  }
}

TEST(RunDirectory, RefusesASecondWriterAndSaysWhoHoldsIt) {
  const TempDir dir;
  auto first = RunDirectory::create(dir.path(), "abcd-1");
  ASSERT_TRUE(first.has_value());
  const auto second = RunDirectory::create(dir.path(), "abcd-1");
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kAlreadyExists);
  EXPECT_NE(second.error().message.find("process " + std::to_string(::getpid())), std::string::npos)
      << second.error().message;
}

TEST(RunDirectory, LeavesRunsOfLivingProcessesAndForeignThingsAlone) {
  const TempDir dir;
  make_dead_run(dir.path(), "dead-999999999", 2, 10, 5);
  const std::string living = make_dead_run(dir.path(), "live-2", 2, 10, 5);
  const UniqueFd lock(::open((living + "/.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  make_dead_run(dir.path(), "not-a-run", 2, 10, 5);
  fs::create_directory_symlink(living, dir.path() + "/link-3");
  std::ofstream(dir.path() + "/dead-999999999/notes.txt") << "mine";
  const auto left = find_dead_runs(dir.path(), "mine-4");
  ASSERT_EQ(left.size(), 2U);
  for (const LeftFile& file : left) {
    EXPECT_NE(file.path.find("dead-999999999/trace."), std::string::npos);
    remove_left_file(file);
  }
  EXPECT_EQ(list_files(dir.path() + "/dead-999999999"),
            (std::vector<std::string>{".lock", "notes.txt"}))
      << "a directory with a foreign file stays";
  EXPECT_EQ(list_files(living).size(), 3U);
}

TEST(RunDirectory, RemovesDeadRunsWithNothingInThem) {
  const TempDir dir;
  make_dead_run(dir.path(), "dead-999999999", 0, 0, 0);
  EXPECT_TRUE(find_dead_runs(dir.path(), "mine-1").empty());
  EXPECT_TRUE(list_files(dir.path()).empty());
}

TEST(DiskStore, RenamesASegmentWhenItIsSealed) {
  const TempDir dir;
  auto run = RunDirectory::create(dir.path(), "abcd-1");
  DiskStore store(*run, {1 << 20, 0, true});
  ASSERT_TRUE(store.open(4, 1000));
  ASSERT_TRUE(store.append(block(10)));
  EXPECT_EQ(list_files(run->path()), (std::vector<std::string>{".lock", "trace.4.bin.active"}));
  ASSERT_TRUE(store.seal());
  EXPECT_EQ(list_files(run->path()), (std::vector<std::string>{".lock", "trace.4.bin"}));
  EXPECT_EQ(store.bytes_held(), 10U);
}

TEST(DiskStore, EvictsDeadRunsFirstThenItsOwnOldest) {
  const TempDir dir;
  make_dead_run(dir.path(), "olda-999999998", 1, 400, 9);
  make_dead_run(dir.path(), "newa-999999999", 1, 400, 1);
  auto run = RunDirectory::create(dir.path(), "abcd-1");
  DiskStore store(*run, {2000, 100, true});
  while (store.look_for_dead_runs()) {
  }
  EXPECT_EQ(store.bytes_held(), 900U);
  ASSERT_TRUE(store.open(0, 500));  // 1,400 fit
  EXPECT_EQ(store.evicted(), 0U);
  ASSERT_TRUE(store.append(block(500)));
  ASSERT_TRUE(store.seal());
  ASSERT_TRUE(store.open(1, 700));  // 2,100 don't: the oldest dead run goes, its directory too
  EXPECT_FALSE(fs::exists(dir.path() + "/olda-999999998"));
  EXPECT_TRUE(fs::exists(dir.path() + "/newa-999999999"));
  ASSERT_TRUE(store.append(block(700)));
  ASSERT_TRUE(store.seal());
  ASSERT_TRUE(store.open(2, 900));
  EXPECT_FALSE(fs::exists(dir.path() + "/newa-999999999"));
  EXPECT_EQ(list_files(run->path()),
            (std::vector<std::string>{".lock", "trace.1.bin", "trace.2.bin.active"}));
  EXPECT_LE(store.bytes_held() + 900, 2000U);
}

TEST(DiskStore, BeginsItsFirstSegmentBeforeItKnowsTheDeadAndTakesLittleUntilThen) {
  const TempDir dir;
  make_dead_run(dir.path(), "dead-999999999", 1, 400, 9);
  auto run = RunDirectory::create(dir.path(), "abcd-1");
  DiskStore store(*run, {1 << 30, 0, true});
  ASSERT_TRUE(store.open(0, 1 << 20));
  ASSERT_TRUE(store.append(block(128 << 10)));
  EXPECT_FALSE(store.dead_runs()->is_known());
  EXPECT_EQ(store.bytes_held(), 128U << 10);
  ASSERT_TRUE(store.append(block(1)));
  EXPECT_TRUE(store.dead_runs()->is_known()) << "an 8,192nd of the budget is used up";
  EXPECT_EQ(store.bytes_held(), 401U + (128U << 10));
  DiskStore next(*run, {1 << 30, 0, true});
  ASSERT_TRUE(next.open(1, 1 << 20));
  ASSERT_TRUE(next.append(block(10)));
  ASSERT_TRUE(next.seal());
  ASSERT_TRUE(next.open(2, 1 << 20));
  EXPECT_TRUE(next.dead_runs()->is_known()) << "a second segment waits for it";
}

TEST(DiskStore, KeepsTheBudgetThoughOtherRunsWereOnlyFoundLater) {
  const TempDir dir;
  make_dead_run(dir.path(), "olda-999999998", 1, 800, 9);
  make_dead_run(dir.path(), "newa-999999999", 1, 800, 1);
  auto run = RunDirectory::create(dir.path(), "abcd-1");
  DiskStore store(*run, {2000, 0, true});
  ASSERT_TRUE(store.open(0, 1000));
  EXPECT_TRUE(fs::exists(dir.path() + "/olda-999999998")) << "nobody has looked yet";
  ASSERT_TRUE(store.append(block(100)));
  EXPECT_FALSE(fs::exists(dir.path() + "/olda-999999998"));
  EXPECT_TRUE(fs::exists(dir.path() + "/newa-999999999"));
  EXPECT_EQ(store.bytes_held(), 900U);
}

TEST(DiskStore, NeitherCountsNorRemovesDeadRunsIfToldSo) {
  const TempDir dir;
  const std::string dead = make_dead_run(dir.path(), "dead-999999999", 3, 400, 1);
  auto run = RunDirectory::create(dir.path(), "abcd-1");
  DiskStore store(*run, {1000, 0, false});
  ASSERT_TRUE(store.open(0, 1000));
  EXPECT_EQ(list_files(dead).size(), 4U);
  EXPECT_EQ(store.bytes_held(), 0U);
}

TEST(DiskStore, SeesWhatOthersDidToSealedSegments) {
  const TempDir dir;
  auto run = RunDirectory::create(dir.path(), "abcd-1");
  DiskStore store(*run, {1 << 20, 0, true});
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(store.open(i, 1000));
    ASSERT_TRUE(store.append(block(1000)));
    ASSERT_TRUE(store.seal());
  }
  fs::remove(run->path() + "/trace.0.bin");
  fs::rename(run->path() + "/trace.1.bin", run->path() + "/trace.1.bin.gz");
  fs::resize_file(run->path() + "/trace.1.bin.gz", 100);
  ASSERT_TRUE(store.open(3, 1000));
  EXPECT_EQ(store.bytes_held(), 1100U);
}

TEST(DiskStore, NoticesThatItsSegmentIsGoneAndMakesTheDirectoryAgain) {
  const TempDir dir;
  auto run = RunDirectory::create(dir.path(), "abcd-1");
  DiskStore store(*run, {1 << 20, 0, true});
  ASSERT_TRUE(store.open(0, 1000));
  EXPECT_TRUE(store.is_active_intact());
  fs::remove_all(run->path());
  EXPECT_FALSE(store.is_active_intact());
  store.abandon();
  ASSERT_TRUE(store.open(1, 1000));
  EXPECT_EQ(list_files(run->path()), (std::vector<std::string>{".lock", "trace.1.bin.active"}));
  EXPECT_FALSE(RunDirectory::create(dir.path(), "abcd-1").has_value()) << "the new lock holds";
}

TEST(DiskStore, LeavesNoHalfStreamBehindAFailedWrite) {
  const TempDir dir;
  auto run = RunDirectory::create(dir.path(), "abcd-1");
  DiskStore store(*run, {1 << 20, 0, true});
  ASSERT_TRUE(store.open(0, 1000));
  ASSERT_TRUE(store.append(block(1000)));
  // The kernel's limit on file size stands in for a full disk: it cuts a write in the middle.
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit limit = before;
  limit.rlim_cur = 1500;
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto failed = store.append(block(1000));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(failed.has_value());
  EXPECT_EQ(fs::file_size(run->path() + "/trace.0.bin.active"), 1000U);
  ASSERT_TRUE(store.append(block(10)));
  EXPECT_EQ(fs::file_size(run->path() + "/trace.0.bin.active"), 1010U);
}

TEST(MemoryStore, KeepsTheNewestWithinItsBudget) {
  MemoryStore store(3000);
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(store.open(i, 1000));
    ASSERT_TRUE(store.append(block(900)));
    EXPECT_LE(store.bytes_held(), 3000U);
    ASSERT_TRUE(store.seal());
  }
  const auto segments = store.sealed_segments();
  ASSERT_EQ(segments.size(), 3U);
  EXPECT_EQ(segments.front().index, 7U);
  EXPECT_EQ(store.evicted(), 7U);
  store.abandon();
  EXPECT_EQ(store.sealed_segments().size(), 3U);
}

TEST(Recorder, GoesOnWhenItsDirectoryIsRemovedAndTellsWhatWasLost) {
  const TempDir dir;
  SteppedRecorder recorder(RecorderOptions::disk(dir.path() + "/traces"));
  record(Kept{1});
  recorder.advance(3 * kTestSecond);
  recorder.step();
  fs::remove_all(dir.path() + "/traces");
  recorder.advance(2 * kTestSecond);
  recorder.step();
  EXPECT_EQ(recorder.messages().size(), 2U) << "of the segment, and of the buffers' file";
  record(Kept{2});
  recorder.advance(2 * kTestSecond);
  recorder.step();
  EXPECT_TRUE(recorder->status().is_recording);
  const std::string run = recorder->status().directory;
  ASSERT_TRUE(recorder->rotate(std::chrono::seconds(1)));
  const Trace trace = Trace::of_directory(run);
  EXPECT_EQ(trace.numbers("Kept", "number"), std::vector<std::uint64_t>{2});
  EXPECT_EQ(trace.lost("file_removed"), 1U);
}

}  // namespace
}  // namespace dial9::internal
