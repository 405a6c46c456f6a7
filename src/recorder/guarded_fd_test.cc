// Descriptors of ours among those of a host that closes, opens and forks as it likes.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/guarded_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>

#include "base/unique_fd.h"
#include "dial9/event.h"
#include "dial9/recorder.h"
#include "recorder/disk_store.h"
#include "recorder/fork_child.h"
#include "recorder/sched_files.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

namespace fs = std::filesystem;

DIAL9_EVENT(Told, (std::uint64_t, number));

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

int open_file(const std::string& path) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
}

// Our descriptors that lead below `path`.
std::vector<int> descriptors_under(const std::string& path) {
  std::vector<int> found;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = fs::read_symlink(entry.path(), error).string();
    if (target.starts_with(path + "/")) found.push_back(std::stoi(entry.path().filename()));
  }
  return found;
}

// True in the child of a fork?
bool holds_in_child(const std::function<bool()>& check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check() ? 0 : 1);
  int exit_status = -1;
  return ::waitpid(child, &exit_status, 0) == child && exit_status == 0;
}

// What closefrom() and a host's own open() do to descriptors that aren't the host's.
class HostFiles {
 public:
  HostFiles(const std::string& path, const std::vector<int>& numbers) : numbers_(numbers) {
    for (const int number : numbers_) {
      const std::string name = path + "/host" + std::to_string(number);
      std::ofstream(name) << kText;
      const UniqueFd fd(open_file(name));
      EXPECT_EQ(::dup2(fd.get(), number), number);
      names_.push_back(name);
    }
  }
  ~HostFiles() {
    for (const int number : numbers_) ::close(number);
  }
  HostFiles(const HostFiles&) = delete;
  HostFiles& operator=(const HostFiles&) = delete;

  bool are_open() const {
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      if (!leads_to(numbers_[i], identity_of(UniqueFd(open_file(names_[i])).get()))) return false;
    }
    return true;
  }
  bool are_unchanged() const {
    const std::string text(kText);
    for (const std::string& name : names_) {
      if (read_file(name) != std::vector<std::uint8_t>(text.begin(), text.end())) return false;
    }
    return true;
  }

 private:
  static constexpr char kText[] = "123456 78 9\n";  // as a schedstat file, too
  const std::vector<int> numbers_;
  std::vector<std::string> names_;
};

TEST(GuardedFd, KeepsItsNumberFromTheHostsFileThatTookIt) {
  const TempDir dir;
  GuardedFd ours(open_file(dir.path() + "/ours"));
  const int number = ours.get();
  ASSERT_GE(number, 0);
  const HostFiles host(dir.path(), {number});
  EXPECT_EQ(ours.get(), -1);
  ours.reset();
  EXPECT_TRUE(host.are_open());
}

TEST(GuardedFd, RegainsTheSameFileAndNoOther) {
  const TempDir dir;
  const std::string path = dir.path() + "/ours";
  GuardedFd ours(open_file(path));
  const FileIdentity file = identity_of(ours.get());
  ::close(ours.get());
  ASSERT_TRUE(ours.regain(path, O_RDWR));
  EXPECT_EQ(identity_of(ours.get()), file);
  ::close(ours.get());
  std::ofstream(dir.path() + "/other") << "other";
  fs::rename(dir.path() + "/other", path);
  EXPECT_FALSE(ours.regain(path, O_RDWR));
  EXPECT_EQ(ours.get(), -1);
}

TEST(GuardedFd, IsClosedInAForksChildUntilItIsClosedHere) {
  const TempDir dir;
  auto older = std::make_unique<GuardedFd>(open_file(dir.path() + "/older"));
  const GuardedFd newer(open_file(dir.path() + "/newer"));
  older.reset();
  const UniqueFd host(open_file(dir.path() + "/host"));
  EXPECT_TRUE(holds_in_child([&] {
    close_fork_fds();
    return !is_open(newer.get()) && is_open(host.get());
  }));
}

// It waits for the note of a descriptor that another thread makes, but not for ever.
TEST(GuardedFd, IsMadeInAPauseOfForksThatAForkItselfSurvives) {
  const std::uint32_t before = fork_pauses();
  {
    const ForkPause pause;
    EXPECT_EQ(fork_pauses(), before + 1);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(fork_pauses() == 0 ? 0 : 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "none of its parent's threads is in the child";
    EXPECT_EQ(fork_pauses(), before + 1);
  }
  EXPECT_EQ(fork_pauses(), before);
}

TEST(GuardedFd, LeavesTheHostsFileToAForksChild) {
  const TempDir dir;
  const GuardedFd ours(open_file(dir.path() + "/ours"));
  const HostFiles host(dir.path(), {ours.get()});
  EXPECT_TRUE(holds_in_child([&] {
    close_fork_fds();
    return host.are_open();
  }));
}

TEST(DiskStore, ThatGoesLateLeavesAnothersSegmentToBeClosedInAForksChild) {
  const TempDir dir;
  auto stuck_run = RunDirectory::create(dir.path(), "abcd-1");
  auto run = RunDirectory::create(dir.path(), "abcd-2");
  auto stuck = std::make_unique<DiskStore>(*stuck_run, DiskStoreOptions{1 << 20, 0, false});
  DiskStore store(*run, {1 << 20, 0, false});
  ASSERT_TRUE(stuck->open(0, 1000));
  ASSERT_TRUE(store.open(0, 1000));
  stuck.reset();
  EXPECT_TRUE(holds_in_child([&] {
    close_fork_fds();
    return descriptors_under(run->path()).empty();
  }));
}

TEST(Recorder, ThatCouldntStartLeavesNothingForAForksChildToClose) {
  const TempDir dir;
  RecorderOptions options = RecorderOptions::disk(dir.path() + "/traces");
  options.on_message = [](const std::string&) {};
  CoreSeams seams;
  seams.has_thread = false;
  // In the middle of the start: lock and thread buffers are there.
  seams.clock.now_ns = []() -> std::uint64_t { throw std::bad_alloc(); };
  Status status;
  EXPECT_EQ(RecorderCore::start(options, seams, &status), nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(descriptors_under(dir.path()).empty());
  EXPECT_TRUE(list_files(dir.path() + "/traces").empty());
  std::vector<int> host;
  for (int i = 0; i < 8; ++i) host.push_back(open_file(dir.path() + "/host"));
  EXPECT_TRUE(holds_in_child([&] { return std::all_of(host.begin(), host.end(), is_open); }));
  for (const int fd : host) ::close(fd);
}

TEST(Recorder, GoesOnInItsFilesWhenTheHostClosesAllDescriptors) {
  const TempDir dir;
  const TempDir host_dir;
  RecorderOptions options = RecorderOptions::disk(dir.path());
  options.rotation_period = std::chrono::seconds(10);
  SteppedRecorder recorder(options);
  record(Told{1});
  recorder.advance(3 * kTestSecond);
  recorder.step();
  const std::string run = recorder->status().directory;
  const std::vector<int> numbers = descriptors_under(run);
  ASSERT_EQ(numbers.size(), 2U) << "the lock and the segment";
  {
    const HostFiles host(host_dir.path(), numbers);
    record(Told{2});
    recorder.advance(3 * kTestSecond);
    recorder.step();
    EXPECT_FALSE(RunDirectory::create(dir.path(), fs::path(run).filename()).has_value())
        << "the lock is held again";
    record(Told{3});
    recorder.advance(20 * kTestSecond);
    recorder.step();
    record(Told{4});
    EXPECT_TRUE(recorder->stop(std::chrono::seconds(1)).is_complete);
    EXPECT_TRUE(host.are_open());
    EXPECT_TRUE(host.are_unchanged());
  }
  EXPECT_TRUE(descriptors_under(run).empty());
  const Trace trace = Trace::of_directory(run);
  EXPECT_EQ(trace.numbers("Told", "number"), (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_TRUE(trace.losses().empty());
  EXPECT_TRUE(recorder.messages().empty());
}

TEST(SchedFiles, NeitherReadNorCloseAFileOfTheHostsUnderTheirNumber) {
  const TempDir dir;
  const auto tid = static_cast<std::uint32_t>(::gettid());
  SchedFileRef file;
  SchedReading before;
  ASSERT_TRUE(sched_read(file, tid, false, &before));
  std::vector<int> numbers;
  for (const int fd : descriptors_under("/proc")) {
    std::error_code error;
    const auto target = fs::read_symlink("/proc/self/fd/" + std::to_string(fd), error);
    if (target.filename() == "schedstat") numbers.push_back(fd);
  }
  ASSERT_EQ(numbers.size(), 1U);
  const HostFiles host(dir.path(), numbers);
  SchedReading after;
  ASSERT_TRUE(sched_read(file, tid, false, &after));
  EXPECT_GE(after.run_ns, before.run_ns);
  EXPECT_NE(after.wait_ns, 78U);
  sched_close_all();
  EXPECT_TRUE(host.are_open());
}

}  // namespace
}  // namespace dial9::internal
