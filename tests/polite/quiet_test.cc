// A recorder that works as hard as it can, and a host that must not notice: no interrupted call, no
// signal, two descriptors, a few wake-ups a second, memory inside the budget.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "dial9/cpu_samples.h"
#include "dial9/crash.h"
#include "dial9/event.h"
#include "dial9/off_cpu.h"
#include "dial9/recorder.h"
#include "dial9/source.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_EVENT(Busy, (std::uint64_t, number), (interned, name));

constexpr auto kLong = std::chrono::seconds(60);

// Everything that a recorder does in its life, some of it many times.
void live_a_life(const std::string& directory) {
  RecorderOptions options = RecorderOptions::disk(directory);
  options.budget_bytes = 4 << 20;
  options.arena_bytes = 512 << 10;
  options.rotation_period = std::chrono::milliseconds(10);
  auto [recorder, status] = Recorder::start(options);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(add_process_usage(std::chrono::milliseconds(1)).ok());
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (std::uint64_t i = 0; i < 3'000; ++i) record(Busy{i, "work"});
        if (t == 0) t_buffer = ThreadBuffer{};  // dies without giving its chunk back
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(recorder.rotate(kLong));
    recorder.set_metadata("round", std::to_string(round));
    if (round % 5 == 4) {
      recorder.disable();
      recorder.enable();
    }
  }
  EXPECT_TRUE(remove_source("process_usage"));
  EXPECT_TRUE(recorder.stop(kLong).is_complete);
}

// Threads that each wait in the kernel until they are let go, and what they were woken by.
class Waiters {
 public:
  Waiters() {
    EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wanted{};
    wanted.events = EPOLLIN;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, ends_[0], &wanted);
    wait_in([this] {
      struct pollfd one{ends_[0], POLLIN, 0};
      return ::poll(&one, 1, -1);
    });
    wait_in([this] {
      struct epoll_event event{};
      return ::epoll_wait(epoll_, &event, 1, -1);
    });
    wait_in([this] {
      fd_set set;
      FD_ZERO(&set);
      FD_SET(ends_[0], &set);
      return ::select(ends_[0] + 1, &set, nullptr, nullptr, nullptr);
    });
    wait_in([this] {
      return static_cast<int>(::syscall(SYS_futex, &futex_, 0 /* FUTEX_WAIT */, 0, nullptr));
    });
  }
  ~Waiters() {
    ::close(epoll_);
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Waiters(const Waiters&) = delete;
  Waiters& operator=(const Waiters&) = delete;

  // How often a wait was interrupted.
  int let_go() {
    futex_.store(1);
    EXPECT_EQ(::write(ends_[1], "x", 1), 1);
    ::syscall(SYS_futex, &futex_, 1 /* FUTEX_WAKE */, 100);
    for (std::thread& thread : threads_) thread.join();
    return interrupted_.load();
  }

 private:
  void wait_in(std::function<int()> wait) {
    threads_.emplace_back([this, wait] {
      if (wait() < 0 && errno == EINTR) interrupted_.fetch_add(1);
    });
  }

  int ends_[2] = {-1, -1};
  int epoll_ = -1;
  std::atomic<std::uint32_t> futex_{0};
  std::atomic<int> interrupted_{0};
  std::vector<std::thread> threads_;
};

TEST(Quiet, NeverInterruptsACallThatWaits) {
  const TempDir dir;
  Waiters waiters;
  live_a_life(dir.path());
  EXPECT_EQ(waiters.let_go(), 0);
}

std::atomic<int> g_signal{0};

TEST(Quiet, SendsTheHostNoSignal) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "TSan can't start threads after a fork";
#endif
  const TempDir dir;  // goes with the parent: the child ends without destructors
  const pid_t child = ::fork();
  if (child == 0) {
    for (int signal = 1; signal < NSIG; ++signal) {
      struct sigaction action{};
      action.sa_handler = [](int received) { g_signal = received; };
      ::sigaction(signal, &action, nullptr);  // refused for two of them, and for glibc's own
    }
    live_a_life(dir.path());
    ::_exit(::testing::Test::HasFailure() ? 100 : g_signal.load());
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "exit code " << WEXITSTATUS(status) << ": the signal; 100: see above";
}

std::set<int> open_descriptors() {
  std::set<int> found;
  for (const std::string& name : list_files("/proc/self/fd")) {
    const int fd = std::stoi(name);
    if (::fcntl(fd, F_GETFD) >= 0) found.insert(fd);  // but not that of the listing itself
  }
  return found;
}

TEST(Quiet, KeepsTwoDescriptorsOpenAndBothCloseOnExec) {
  const TempDir dir;
  const std::set<int> before = open_descriptors();
  auto [recorder, status] = Recorder::start(RecorderOptions::disk(dir.path()));
  ASSERT_TRUE(status.ok()) << status.message();
  for (int i = 0; i < 3; ++i) {
    record(Busy{1, "one"});
    ASSERT_TRUE(recorder.rotate(kLong));
  }
  std::set<int> ours;
  for (const int fd : open_descriptors()) {
    if (before.count(fd) != 0) continue;
    ours.insert(fd);
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << fd;
  }
  EXPECT_LE(ours.size(), 2U) << "the run's lock, and the active segment";
  recorder.stop(kLong);
  EXPECT_EQ(open_descriptors(), before);
}

std::string collector_status_path() {
  for (const std::string& tid : list_files("/proc/self/task")) {
    std::ifstream comm("/proc/self/task/" + tid + "/comm");
    std::string name;
    if (std::getline(comm, name) && name == "dial9-collect") {
      return "/proc/self/task/" + tid + "/status";
    }
  }
  return {};
}

// How often the thread went to wait, which is how often it was woken.
long wake_ups(const std::string& path) {
  std::ifstream status(path);
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("voluntary_ctxt_switches:", 0) == 0) return std::stol(line.substr(24));
  }
  return -1;
}

void wait_ms(int ms) { ASSERT_EQ(::poll(nullptr, 0, ms), 0); }

// Of the collector in three seconds, `settle_ms` after it has recorded something.
long wake_ups_in_three_seconds(Recorder& recorder, int settle_ms) {
  record(Busy{1, "one"});
  EXPECT_TRUE(recorder.rotate(kLong));
  std::string path;
  while (path.empty()) path = collector_status_path();  // it names itself
  wait_ms(settle_ms);                                   // until it has calmed down
  const long before = wake_ups(path);
  EXPECT_GE(before, 0);
  wait_ms(3'000);
  return wake_ups(path) - before;
}

TEST(Quiet, WakesAFewTimesASecondWhenNothingHappens) {
#if defined(DIAL9_SANITIZED)
  GTEST_SKIP() << "sanitizers' run-time libraries wake threads, too";
#endif
  const TempDir dir;
  auto [recorder, status] = Recorder::start(RecorderOptions::disk(dir.path()));
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(add_process_usage().ok());
  // One every 250 ms. More only if the kernel interrupts its sleep, so the bound holds under load.
  EXPECT_LE(wake_ups_in_three_seconds(recorder, 1'500), 3 * 5);
  EXPECT_TRUE(remove_source("process_usage"));
}

TEST(Quiet, WakesAFewTimesASecondWithTheSourcesOfTheEnvironmentToo) {
#if defined(DIAL9_SANITIZED)
  GTEST_SKIP() << "sanitizers' run-time libraries wake threads, too";
#endif
  const TempDir dir;
  auto [recorder, status] = Recorder::start(RecorderOptions::disk(dir.path()));
  ASSERT_TRUE(status.ok()) << status.message();
  // Some are refused here and there: what is left must be quiet.
  (void)add_process_usage();
  (void)add_platform_stalls();
  (void)add_resources();
  (void)add_cpu_samples();
  (void)add_off_cpu_samples();
  // One every 250 ms, and one a second for the resources.
  EXPECT_LE(wake_ups_in_three_seconds(recorder, 2'500), 3 * 8);
  remove_cpu_samples();
  remove_off_cpu_samples();
  for (const char* name : {"process_usage", "platform_stalls", "resources"}) remove_source(name);
}

// What the process has in memory for itself: without files that the kernel can drop.
std::uint64_t private_bytes() {
  std::ifstream status("/proc/self/status");
  std::uint64_t kib = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssAnon:", 0) == 0 || line.rfind("RssShmem:", 0) == 0) {
      kib += std::stoull(line.substr(line.find(':') + 1));
    }
  }
  return kib * 1024;
}

TEST(Quiet, StaysInsideItsMemoryBudgetWithTenThousandThreads) {
#if defined(DIAL9_SANITIZED)
  GTEST_SKIP() << "sanitizers keep the memory of threads that ended";
#endif
  constexpr std::uint64_t kBudget = std::uint64_t{4} << 20;
  const auto come_and_go = [](int total) {
    std::vector<std::thread> threads;
    for (int i = 0; i < total; ++i) {
      threads.emplace_back([] {
        for (std::uint64_t n = 0; n < 20; ++n) record(Busy{n, "short-lived"});
      });
      if (threads.size() < 50 && i + 1 < total) continue;
      for (std::thread& thread : threads) thread.join();
      threads.clear();
    }
  };
  come_and_go(100);  // what the system keeps for threads, recorder or not
  const std::uint64_t before = private_bytes();
  RecorderOptions options = RecorderOptions::memory(kBudget);
  options.arena_bytes = 2 << 20;
  auto [recorder, status] = Recorder::start(options);
  ASSERT_TRUE(status.ok()) << status.message();
  come_and_go(10'000);
  ASSERT_TRUE(recorder.rotate(kLong));
  const RecorderStatus now = recorder.status();
  EXPECT_EQ(now.events_written + now.events_dropped, 200'000U);
  EXPECT_EQ(now.chunks_total, 128U);
  EXPECT_LE(now.chunks_in_use, 1U) << "those of dead threads are free again";
  // The ring, the arena, and 2 MiB for everything else (the staged segment, what glibc keeps).
  EXPECT_LE(private_bytes(), before + kBudget + (2 << 20) + (2 << 20));
}

}  // namespace
}  // namespace dial9::internal
