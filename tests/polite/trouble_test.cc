// A disk that fails: one message, the host unharmed, recording goes on by itself when the cause is
// gone, and the gap is shown. On a real file system, on a clock that the test moves.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "dial9/event.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_EVENT(Written, (std::uint64_t, number), (text, padding));

constexpr int kSkipped = 77;

// In a process of its own, which may drop rights and mount. `reason`: why it was left out.
void in_child(const std::function<int(std::string* reason)>& work) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string reason;
    const int code = work(&reason);
    std::fflush(nullptr);
    (void)!::write(ends[1], reason.data(), reason.size());
    ::_exit(::testing::Test::HasFailure() ? 1 : code);
  }
  ::close(ends[1]);
  char reason[256] = {};
  (void)!::read(ends[0], reason, sizeof reason - 1);
  ::close(ends[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "died by signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kSkipped) GTEST_SKIP() << reason;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Records `count` numbered events and lets the collector take them.
void record_some(SteppedRecorder& recorder, std::uint64_t first, std::uint64_t count) {
  static const std::string padding(100, 'p');
  for (std::uint64_t i = 0; i < count; ++i) record(Written{first + i, padding});
  recorder.advance(2 * kTestSecond);
  recorder.step();
}

// What every failure must come to, once it is over.
void expect_told(SteppedRecorder& recorder, std::uint64_t emitted, std::uint64_t first_after) {
  const std::string run = recorder->status().directory;
  EXPECT_TRUE(recorder->rotate(std::chrono::seconds(1)));
  const RecorderStatus status = recorder->status();
  EXPECT_TRUE(status.is_recording) << status.reason;
  EXPECT_EQ(status.events_written + status.events_dropped, emitted);
  EXPECT_GT(status.events_dropped, 0U);
  const Trace trace = Trace::of_directory(run);
  EXPECT_GT(trace.lost("write_failed"), 0U);
  for (const LossRecord& loss : trace.losses()) EXPECT_LT(loss.first_ns, loss.last_ns) << "the gap";
  const auto numbers = trace.numbers("Written", "number");
  for (std::uint64_t number = first_after; number < emitted; ++number) {
    EXPECT_EQ(std::count(numbers.begin(), numbers.end(), number), 1) << number;
  }
}

int fill_and_free_disk(const std::string& root, std::string* reason) {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("dial9-test", root.c_str(), "tmpfs", 0, "size=3m") != 0) {
    *reason = std::string("cannot mount a small disk here: ") + std::strerror(errno);
    return kSkipped;
  }
  RecorderOptions options = RecorderOptions::disk(root + "/traces");
  options.budget_bytes = std::uint64_t{64} << 20;  // far more than the disk has
  options.segment_bytes = 1 << 20;
  options.arena_bytes = 256 << 10;
  SteppedRecorder recorder(options, false);
  record_some(recorder, 0, 100);
  {
    std::ofstream filler(root + "/filler", std::ios::binary);
    const std::string block(4096, 'f');
    while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  std::uint64_t next = 100;
  for (int i = 0; i < 20; ++i, next += 100) record_some(recorder, next, 100);
  EXPECT_EQ(recorder.messages().size(), 1U) << "one message, however long it lasts";
  EXPECT_NE(recorder.messages().front().find("No space left"), std::string::npos)
      << recorder.messages().front();
  std::filesystem::remove(root + "/filler");
  const std::uint64_t first_after = next + 100;  // the first may still be behind a retry
  for (int i = 0; i < 8; ++i, next += 100) record_some(recorder, next, 100);
  EXPECT_EQ(recorder.messages().size(), 2U) << "and one that it works again";
  expect_told(recorder, next, first_after);
  return 0;
}

TEST(Trouble, AFullDiskCostsWhatIsRecordedWhileItIsFull) {
  const TempDir dir;
  in_child([&](std::string* reason) { return fill_and_free_disk(dir.path(), reason); });
}

int lose_and_get_permission(const std::string& root, mode_t mode, std::string* reason) {
  if (::geteuid() == 0 &&
      (::chown(root.c_str(), 65534, 65534) != 0 || ::setresgid(65534, 65534, 65534) != 0 ||
       ::setresuid(65534, 65534, 65534) != 0)) {
    *reason = std::string("cannot drop root's rights: ") + std::strerror(errno);
    return kSkipped;
  }
  RecorderOptions options = RecorderOptions::disk(root + "/traces");
  options.rotation_period = std::chrono::seconds(1);  // a new file at each step
  SteppedRecorder recorder(options, false);
  record_some(recorder, 0, 100);
  const std::string run = recorder->status().directory;
  EXPECT_EQ(::chmod(run.c_str(), mode), 0);
  std::uint64_t next = 100;
  for (int i = 0; i < 20; ++i, next += 100) record_some(recorder, next, 100);
  EXPECT_FALSE(recorder->status().is_recording);
  EXPECT_NE(recorder->status().reason.find("Permission denied"), std::string::npos)
      << recorder->status().reason;
  EXPECT_EQ(recorder.messages().size(), 1U);
  EXPECT_EQ(::chmod(run.c_str(), 0755), 0);
  const std::uint64_t first_after = next;
  for (int i = 0; i < 8; ++i, next += 100) record_some(recorder, next, 100);
  EXPECT_EQ(recorder.messages().size(), 2U);
  expect_told(recorder, next, first_after);
  return 0;
}

TEST(Trouble, ADirectoryThatMayNotBeWrittenAnyMoreCostsWhatIsRecordedMeanwhile) {
  const TempDir dir;
  in_child([&](std::string* reason) { return lose_and_get_permission(dir.path(), 0555, reason); });
}

TEST(Trouble, ADirectoryThatMayNotEvenBeSearchedCostsWhatIsRecordedMeanwhile) {
  const TempDir dir;
  in_child([&](std::string* reason) { return lose_and_get_permission(dir.path(), 0, reason); });
}

// What is open may still be written; nothing new can be made, and nothing be renamed.
int become_and_cease_to_be_read_only(const std::string& root, std::string* reason) {
  const RecorderOptions base = RecorderOptions::disk(root + "/traces");
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    *reason = std::string("no mounts of one's own here: ") + std::strerror(errno);
    return kSkipped;
  }
  RecorderOptions options = base;
  options.rotation_period = std::chrono::seconds(1);  // a new file at each step
  SteppedRecorder recorder(options, false);
  record_some(recorder, 0, 100);
  const std::string run = recorder->status().directory;
  if (::mount(run.c_str(), run.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
      ::mount(nullptr, run.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) {
    *reason = std::string("cannot mount read-only here: ") + std::strerror(errno);
    return kSkipped;
  }
  std::uint64_t next = 100;
  for (int i = 0; i < 20; ++i, next += 100) record_some(recorder, next, 100);
  EXPECT_FALSE(recorder->status().is_recording);
  EXPECT_NE(recorder->status().reason.find("Read-only file system"), std::string::npos)
      << recorder->status().reason;
  EXPECT_EQ(recorder.messages().size(), 1U);
  EXPECT_EQ(::umount2(run.c_str(), MNT_DETACH), 0) << std::strerror(errno);
  const std::uint64_t first_after = next;
  for (int i = 0; i < 8; ++i, next += 100) record_some(recorder, next, 100);
  EXPECT_EQ(recorder.messages().size(), 2U);
  expect_told(recorder, next, first_after);
  return 0;
}

TEST(Trouble, AFileSystemThatIsReadOnlyForAWhileCostsWhatIsRecordedMeanwhile) {
  const TempDir dir;
  in_child(
      [&](std::string* reason) { return become_and_cease_to_be_read_only(dir.path(), reason); });
}

// The kernel raises SIGXFSZ beyond the limit, whose default ends the process.
TEST(Trouble, ALimitOnFileSizesEndsNeitherAStartNorADump) {
  const TempDir dir;
  in_child([&](std::string*) {
    ::signal(SIGXFSZ, SIG_DFL);
    SteppedRecorder ring(RecorderOptions::memory(4 << 20), false);
    record(Written{1, "kept"});
    EXPECT_TRUE(ring->rotate(std::chrono::seconds(1)));
    const struct rlimit small{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &small);
    for (std::uint64_t i = 0; i < 100; ++i) record(Written{i, std::string(100, 'x')});
    EXPECT_TRUE(ring->rotate(std::chrono::seconds(1)));
    EXPECT_FALSE(ring->dump(dir.path() + "/dump.bin").ok());
    ring->stop(std::chrono::seconds(1));
    for (const std::string& directory : {std::string(), dir.path()}) {
      RecorderOptions options = RecorderOptions::disk(directory);
      options.on_message = [](const std::string&) {};
      CoreSeams seams;
      seams.has_thread = false;
      Status status;
      const auto core = RecorderCore::start(options, seams, &status);
      if (core != nullptr) core->stop(std::chrono::seconds(1));
    }
    return 0;
  });
}

}  // namespace
}  // namespace dial9::internal
