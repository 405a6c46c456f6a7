// A fork that comes between the opening of a file of the recorder's and the note of its descriptor,
// or between the end of the note and the closing. Strongest property: the schedule is the test's:
// the thread of the recorder goes on once the fork waits for it, or is over.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include "base/unique_fd.h"
#include "dial9/event.h"
#include "recorder/fork_child.h"
#include "recorder/guarded_fd.h"
#include "recorder/open_hook.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_EVENT(Written, (std::uint64_t, number));

// Forks beside one of the calling thread's openings and closings below a directory.
class ForkBesideACall {
 public:
  // `which`: of these calls, from 0 on.
  ForkBesideACall(const std::string& path, int which) : below_(path + "/"), left_(which) {
    g_active = this;
    t_is_opening = true;
    set_fork_wait(wait);
    set_open_hook(opened);
    set_close_hook(closes);
  }
  ~ForkBesideACall() { finish(); }
  ForkBesideACall(const ForkBesideACall&) = delete;
  ForkBesideACall& operator=(const ForkBesideACall&) = delete;

  // After the last call. False: there were fewer.
  bool finish() {
    set_open_hook(nullptr);
    set_close_hook(nullptr);
    if (forker_.joinable()) forker_.join();
    set_fork_wait(nullptr);
    t_is_opening = false;
    return left_ < 0;
  }
  // How many of the descriptors that lead below the path the child had.
  int kept_by_child() const { return kept_; }

 private:
  static void opened(const char* path) {
    if (std::string_view(path).starts_with(g_active->below_)) g_active->count();
  }
  static void closes(int fd) {
    std::error_code error;
    const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error);
    if (!error) opened(path.c_str());
  }
  void count() {
    if (left_-- == 0) fork_now();
  }

  static void wait() noexcept {
    if (t_is_opening) {  // for the fork, at its next call: longer than the library would
      while (!g_active->has_forked_) ::sched_yield();
      return;
    }
    g_active->is_waiting_ = true;
    while (fork_pauses() != 0) ::sched_yield();
  }

  void fork_now() {
    forker_ = std::thread([this] {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(count_descriptors());
      has_forked_ = true;
      int status = 0;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFEXITED(status));
      kept_ = WEXITSTATUS(status);
    });
    while (!is_waiting_ && !has_forked_) ::sched_yield();
  }

  int count_descriptors() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
      if (target.starts_with(below_)) ++count;
    }
    return count;
  }

  static inline ForkBesideACall* g_active = nullptr;
  static inline thread_local bool t_is_opening = false;

  const std::string below_;
  int left_;
  std::thread forker_;
  std::atomic<bool> is_waiting_{false};
  std::atomic<bool> has_forked_{false};
  int kept_ = 0;
};

// A handler of the host's that closes files of the recorder's: registered first, it runs last.
struct ClosingHandler {
  static void prepare() {
    if (!is_on) return;
    set_fork_wait([]() noexcept { ++waits; });
    {
      const ForkPause first;
    }
    waits_of_first = waits;
    {
      const ForkPause second;
    }
    set_fork_wait(nullptr);
  }
  static inline bool is_on = false;
  static inline int waits = 0;
  static inline int waits_of_first = 0;
};
[[maybe_unused]] const int g_is_registered =
    ::pthread_atfork(ClosingHandler::prepare, nullptr, nullptr);

class ForkBesideADescriptor : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(DIAL9_SANITIZED_THREAD)
    GTEST_SKIP() << "TSan lets no child of a fork of many threads go on";
#endif
  }
};

TEST_F(ForkBesideADescriptor, IsWaitedForOnceHoweverManyTheHostClosesWithinIt) {
  {
    const ForkPause begins_to_watch;
  }
  ClosingHandler::is_on = true;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ClosingHandler::is_on = false;
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_GT(ClosingHandler::waits_of_first, 0);
  EXPECT_EQ(ClosingHandler::waits, ClosingHandler::waits_of_first);
}

TEST_F(ForkBesideADescriptor, LeavesNoneThatIsBeingOpenedToTheChild) {
  const TempDir dir;
  const std::string path = dir.path() + "/ours";
  ForkBesideACall fork(dir.path(), 0);
  const GuardedFd ours = GuardedFd::open(path, O_RDWR | O_CREAT, 0600);
  EXPECT_TRUE(fork.finish());
  EXPECT_EQ(fork.kept_by_child(), 0);
  EXPECT_GE(ours.get(), 0);
}

TEST_F(ForkBesideADescriptor, LeavesNoneThatIsBeingClosedToTheChild) {
  const TempDir dir;
  GuardedFd ours = GuardedFd::open(dir.path() + "/ours", O_RDWR | O_CREAT, 0600);
  ForkBesideACall fork(dir.path(), 0);
  ours.reset();
  EXPECT_TRUE(fork.finish());
  EXPECT_EQ(fork.kept_by_child(), 0);
}

// As after a closefrom() of the host's, and a file of its own that has the number.
TEST_F(ForkBesideADescriptor, LeavesNoneThatIsRegainedToTheChild) {
  const TempDir dir;
  const std::string path = dir.path() + "/ours";
  GuardedFd ours = GuardedFd::open(path, O_RDWR | O_CREAT, 0600);
  const int number = ours.get();
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd hosts(::dup2(null.get(), number));
  ForkBesideACall fork(dir.path(), 0);
  EXPECT_TRUE(ours.regain(path, O_RDWR));
  EXPECT_TRUE(fork.finish());
  EXPECT_EQ(fork.kept_by_child(), 0);
}

// Run directory, lock, thread buffers, segments: each call of a run and of a recovery.
TEST_F(ForkBesideADescriptor, LeavesNoneOfARecordersFilesToTheChildWhicheverCallItFallsInto) {
  int which = 0;
  for (bool has_more = true; has_more; ++which) {
    const TempDir dir;
    make_dead_run(dir.path() + "/dead-1");
    ForkBesideACall fork(dir.path(), which);
    {
      SteppedRecorder recorder(RecorderOptions::disk(dir.path()));
      for (std::uint64_t i = 0; i < 100; ++i) record(Written{i});
      recorder.step();
      EXPECT_TRUE(recorder->rotate(std::chrono::seconds(1)));
      for (int i = 0; i < 20; ++i) recorder.step();
    }
    has_more = fork.finish();
    EXPECT_EQ(fork.kept_by_child(), 0) << "call " << which;
  }
  EXPECT_GT(which, 5);
}

}  // namespace
}  // namespace dial9::internal
