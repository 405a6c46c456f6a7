// A host that is sampled and must not notice: no interrupted call, errno kept, timers given back,
// the signal left to whoever has it, children without timers, limits that hold.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <functional>
#include <thread>

#include "recorder/recording_state.h"
#include "sources/cpu_samples.h"
#include "sources/testing/in_child.h"
#include "sources/testing/sampled.h"
#include "sources/testing/signal_frame.h"

namespace dial9::internal {
namespace {

using namespace testing;

// POSIX timers of this process; -1: the kernel doesn't list them.
int timers() {
  std::ifstream file("/proc/self/timers");
  if (!file) return -1;
  int count = 0;
  for (std::string line; std::getline(file, line);) count += line.starts_with("ID:") ? 1 : 0;
  return count;
}

// Has this process a timer that sends `signal`?
bool is_armed_with(int signal) {
  std::ifstream file("/proc/self/timers");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("signal: " + std::to_string(signal) + "/")) return true;
  }
  return false;
}

class CpuSamplesHost : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(DIAL9_SANITIZED_THREAD)
    GTEST_SKIP() << "ThreadSanitizer holds signals back, and starts no threads after a fork";
#endif
  }
};

// Each call of a kind that a signal's handler makes fail with EINTR, SA_RESTART or not, and of the
// kinds that are restarted. Everything a short time: the thread spends its CPU time on the way into
// the kernel and out of it.
class Calls {
 public:
  Calls() {
    EXPECT_EQ(::pipe(pipe_), 0);
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_), 0);
    const timeval limit{0, 1};
    ::setsockopt(sockets_[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    epoll_ = ::epoll_create1(0);
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, pipe_[0], &wanted);
    ::sem_init(&semaphore_, 0, 0);
  }
  ~Calls() {
    for (const int fd : {pipe_[0], pipe_[1], sockets_[0], sockets_[1], epoll_}) ::close(fd);
    ::sem_destroy(&semaphore_);
  }

  void run_all() {
    const timespec moment{0, 1'000};
    timespec soon{};
    ::clock_gettime(CLOCK_REALTIME, &soon);
    note(::nanosleep(&moment, nullptr));
    errno = ::clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, nullptr);
    note(errno == 0 ? 0 : -1);
    pollfd one{pipe_[0], POLLIN, 0};
    note(::ppoll(&one, 1, &moment, nullptr));
    epoll_event event{};
    note(static_cast<int>(::syscall(SYS_epoll_pwait2, epoll_, &event, 1, &moment, nullptr, 0)));
    note(::epoll_wait(epoll_, &event, 1, 0));
    timeval select_limit{0, 1};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipe_[0], &set);
    note(::select(pipe_[0] + 1, &set, nullptr, nullptr, &select_limit));
    char byte = 0;
    note(static_cast<int>(::recv(sockets_[0], &byte, 1, 0)));
    note(::sem_timedwait(&semaphore_, &soon));
    int word = 0;
    note(static_cast<int>(::syscall(SYS_futex, &word, 0, 0, &moment, nullptr, 0)));
    note(static_cast<int>(::write(pipe_[1], &byte, 1)));
    note(static_cast<int>(::read(pipe_[0], &byte, 1)));
  }
  std::uint64_t made = 0;
  std::uint64_t interrupted = 0;

 private:
  void note(int result) {
    ++made;
    if (result < 0 && errno == EINTR) ++interrupted;
  }
  int pipe_[2] = {};
  int sockets_[2] = {};
  int epoll_ = -1;
  sem_t semaphore_{};
};

TEST_F(CpuSamplesHost, NoCallFailsWithEintrWhileItIsSampled) {
  Sampled sampled({.frequency_hz = 1'000});
  sampled.wait_until_sampled();
  // The kernel's tick has to find the thread running: short sleeps, and two ticks' work between.
  ::prctl(PR_SET_TIMERSLACK, 1);
  const std::uint64_t from = now_ns();
  Calls calls;
  const std::uint64_t end_ns = thread_cpu_ns() + 600 * kTestMs;
  const std::uint64_t enough = cpu_sample_status().samples + 80;
  while (thread_cpu_ns() < end_ns || cpu_sample_status().samples < enough) {
    burn_one(8);
    calls.run_all();
  }
  ::prctl(PR_SET_TIMERSLACK, 0);
  const std::uint64_t to = now_ns();
  const auto rows = sampled.finish();
  const auto in_calls = std::count_if(rows.begin(), rows.end(), [&](const SampleRow& row) {
    return row.tid == this_tid() && row.at_ns >= from && row.at_ns < to;
  });
  EXPECT_GT(in_calls, 50) << "signals came all the time";
  EXPECT_GT(calls.made, 500U);
  EXPECT_EQ(calls.interrupted, 0U)
      << "of " << calls.made << " calls, with " << in_calls << " signals";
}

TEST_F(CpuSamplesHost, TwoThreadsThatPassATokenInBlockingCallsAreNeverInterrupted) {
  Sampled sampled({.frequency_hz = 1'000});
  int there[2];
  int back[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, there), 0);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, back), 0);
  const timeval limit{60, 0};  // a call with a limit isn't restarted
  for (const int fd : {there[0], back[0]}) {
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  std::atomic<std::uint64_t> interrupted{0};
  // One of four calls in turn, then the read.
  const auto wait_and_read = [&](int fd, int epoll, int turn) {
    int result = 0;
    pollfd one{fd, POLLIN, 0};
    epoll_event event{};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    timeval select_limit{60, 0};
    if (turn % 4 == 0) result = ::poll(&one, 1, -1);
    if (turn % 4 == 1) result = ::epoll_wait(epoll, &event, 1, -1);
    if (turn % 4 == 2) result = ::select(fd + 1, &set, nullptr, nullptr, &select_limit);
    if (result < 0 && errno == EINTR) ++interrupted;
    char byte = 1;
    while (::recv(fd, &byte, 1, 0) < 0) {
      if (errno == EINTR) ++interrupted;
    }
    return byte;
  };
  const auto watch = [](int fd) {
    const int epoll = ::epoll_create1(0);
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &wanted);
    return epoll;
  };
  std::thread echo([&] {
    const int epoll = watch(there[0]);
    char byte = 1;
    for (int turn = 0; byte != 0; ++turn) {
      byte = wait_and_read(there[0], epoll, turn);
      (void)!::write(back[1], &byte, 1);
    }
    ::close(epoll);
  });
  sampled.wait_until_sampled();
  const std::uint64_t end_ns = thread_cpu_ns() + 400 * kTestMs;
  const std::uint64_t enough = cpu_sample_status().samples + 40;
  const int epoll = watch(back[0]);
  char byte = 1;
  for (int turn = 0; byte != 0; ++turn) {
    const bool goes_on = thread_cpu_ns() < end_ns || cpu_sample_status().samples < enough;
    byte = goes_on ? 1 : 0;
    (void)!::write(there[1], &byte, 1);
    wait_and_read(back[0], epoll, turn);
  }
  ::close(epoll);
  echo.join();
  EXPECT_EQ(interrupted, 0U);
  EXPECT_GT(sampled.finish().size(), 20U) << "signals came all the time";
  for (const int fd : {there[0], there[1], back[0], back[1]}) ::close(fd);
}

TEST_F(CpuSamplesHost, ErrnoIsKept) {
  Sampled sampled({.frequency_hz = 1'000});
  sampled.wait_until_sampled();
  errno = 77;
  burn_one(200);
  EXPECT_EQ(errno, 77);
}

TEST_F(CpuSamplesHost, CodeThatAllocatesThrowsAndLocksGoesOnWhileItIsSampled) {
  Sampled sampled({.frequency_hz = 1'000});
  std::atomic<std::uint64_t> rounds{0};
  const auto work = [&] {
    const std::uint64_t end_ns = thread_cpu_ns() + 300 * kTestMs;
    while (thread_cpu_ns() < end_ns) {
      for (int i = 0; i < 50; ++i) {
        std::vector<std::string> texts(20, std::string(100, 'x'));
        try {
          if (texts.size() == 20) throw std::string(200, 'y');
        } catch (const std::string& text) {
          rounds += text.size();
        }
      }
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_GT(rounds, 0U);
  EXPECT_GT(periods(sampled.finish(), [](const SampleRow&) { return true; }), 100U);
}

TEST_F(CpuSamplesHost, WhileOffNothingIsSampledAndNoTimerIsArmed) {
  Sampled sampled;
  sampled.wait_until_sampled();
  sampled.recorder().disable();
  const std::uint64_t from = now_ns();
  burn_one(100);
  while (cpu_sample_status().is_sampling) burn_one(5);
  EXPECT_TRUE(timers() <= 0) << timers();
  const std::uint64_t to = now_ns();
  sampled.recorder().enable();
  sampled.wait_until_sampled();
  const auto rows = sampled.finish();
  EXPECT_EQ(
      periods(rows, [&](const SampleRow& row) { return row.at_ns >= from && row.at_ns < to; }), 0U);
  EXPECT_GT(periods(rows, [&](const SampleRow& row) { return row.at_ns >= to; }), 0U);
}

TEST_F(CpuSamplesHost, TimersAreGivenBackAtTheEndHoweverOftenItStarts) {
  for (int i = 0; i < 20; ++i) {
    Sampled sampled;
    burn_one(2);
  }
  EXPECT_TRUE(timers() <= 0) << timers();
  burn_one(100);
  EXPECT_FALSE(cpu_sample_status().is_sampling);
}

TEST_F(CpuSamplesHost, ThreadsThatComeAndGoLeaveNothingBehind) {
  Sampled sampled({.frequency_hz = 1'000});
  sampled.wait_until_sampled();
  for (int i = 0; i < 10'000; ++i) {
    std::thread([] {}).join();
  }
  // Until the next scan has found that they are gone.
  const auto has_only_us = [] { return cpu_sample_status().threads <= 2; };
  while (!has_only_us()) burn_one(5);
  EXPECT_LE(timers(), 2);
  EXPECT_EQ(cpu_sample_status().threads_unsampled, 0U) << cpu_sample_status().message;
}

TEST_F(CpuSamplesHost, AShortThreadIsSampledInProportionOnceItHasATimer) {
  Sampled sampled({.frequency_hz = 1'000});
  sampled.wait_until_sampled();
  std::uint64_t found = 0;
  std::uint64_t coarsest = 1;
  std::uint64_t from = now_ns();
  for (int i = 0; i < 4; ++i) {
    std::thread([&] {
      sampled.wait_until_sampled();
      from = now_ns();
      burn_one(50);
    }).join();
    const auto rows = samples_of(sampled.read());
    coarsest = std::max(coarsest, grain(rows));
    found += periods(rows, [&](const SampleRow& row) {
      return row.at_ns >= from && passes(row.frames, burn_one);
    });
  }
  // What a thread spent after its last signal has none.
  EXPECT_NEAR(static_cast<double>(found), 200, 4.0 * static_cast<double>(coarsest + 2));
}

TEST_F(CpuSamplesHost, AThreadThatBlocksTheSignalIsLeftAloneAndCounted) {
  Sampled sampled;
  std::atomic<bool> is_over{false};
  std::thread blocker([&] {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    while (!is_over) burn_other(5);
  });
  // The blocker may have been seen before it blocked: then its timer goes when it is seen twice.
  while (cpu_sample_status().threads_unsampled == 0) burn_one(5);
  sampled.wait_until_sampled();
  burn_one(1'100);  // until the books say so
  is_over = true;
  blocker.join();
  const std::string notice = sampled.read().metadata("cpu.profile.notice");
  EXPECT_NE(notice.find("1 thread blocks SIGPROF"), std::string::npos) << notice;
}

TEST_F(CpuSamplesHost, ASignalThatTheHostHandlesIsRefusedWithTheHandlersName) {
  struct sigaction before{};
  struct sigaction own{};
  own.sa_handler = [](int) {};
  ::sigaction(SIGPROF, &own, &before);
  const Status status = add_cpu_samples();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("SIGPROF is handled by "), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("sources_test"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("DIAL9_CPU_SIGNAL"), std::string::npos) << status.message();
  struct sigaction now{};
  ::sigaction(SIGPROF, &before, &now);
  EXPECT_EQ(now.sa_handler, own.sa_handler) << "and it stays";
  EXPECT_EQ(cpu_sample_status().message,
            status.message().substr(std::string("CPU samples: ").size()));
}

TEST_F(CpuSamplesHost, ASignalThatIsIgnoredOrSentByAnIntervalTimerIsRefused) {
  EXPECT_EQ(in_child([] {
              ::signal(SIGPROF, SIG_IGN);
              const Status status = add_cpu_samples();
              return status.message().find("SIGPROF is ignored") != std::string::npos ? 42 : 1;
            }),
            42);
  EXPECT_EQ(in_child([] {
              const itimerval hours{{10'000, 0}, {10'000, 0}};
              ::setitimer(ITIMER_PROF, &hours, nullptr);
              const Status status = add_cpu_samples();
              return status.message().find("ITIMER_PROF") != std::string::npos ? 42 : 1;
            }),
            42);
}

TEST_F(CpuSamplesHost, AFreeRealTimeSignalServesAsWell) {
  Sampled sampled({.signal = SIGRTMIN + 7});
  sampled.wait_until_sampled();
  EXPECT_FALSE(add_cpu_samples().ok()) << "once";
  EXPECT_FALSE(sampled.finish().empty());
}

TEST_F(CpuSamplesHost, WhatIsAddedAgainWhileRecordingHasItsOwnSignalRateAndCounts) {
  Sampled sampled({.frequency_hz = 1'000});
  sampled.wait_until_sampled();
  while (cpu_sample_status().samples < 20) burn_one(5);
  ASSERT_TRUE(remove_cpu_samples());
  ASSERT_TRUE(add_cpu_samples({.frequency_hz = 1, .signal = SIGRTMIN + 7}));
  EXPECT_LT(cpu_sample_status().samples, 20U) << "counts begin anew";
  EXPECT_FALSE(is_armed_with(SIGPROF));
  while (cpu_sample_status().threads == 0) burn_one(5);
  EXPECT_FALSE(is_armed_with(SIGPROF));
  if (timers() >= 0) {
    EXPECT_TRUE(is_armed_with(SIGRTMIN + 7));
  }
}

TEST_F(CpuSamplesHost, OptionsOutOfRangeAreRefused) {
  EXPECT_FALSE(add_cpu_samples({.frequency_hz = 0}).ok());
  EXPECT_FALSE(add_cpu_samples({.frequency_hz = 1'001}).ok());
  EXPECT_FALSE(add_cpu_samples({.signal = SIGTERM}).ok());
  EXPECT_FALSE(remove_cpu_samples());
}

TEST_F(CpuSamplesHost, AHandlerThatTakesTheSignalOverEndsTheSamplingAndIsNamed) {
  Sampled sampled;
  sampled.wait_until_sampled();
  struct sigaction before{};
  struct sigaction own{};
  own.sa_handler = [](int) {};
  ::sigaction(SIGPROF, &own, &before);
  while (cpu_sample_status().is_sampling) burn_one(5);
  EXPECT_TRUE(timers() <= 0) << timers();
  EXPECT_NE(cpu_sample_status().message.find("sources_test"), std::string::npos)
      << cpu_sample_status().message;
  const Trace trace = sampled.read();
  EXPECT_EQ(trace.metadata("cpu.profile.enabled"), "false");
  EXPECT_NE(trace.metadata("cpu.profile.notice").find("SIGPROF is handled by "), std::string::npos);
  ::sigaction(SIGPROF, &before, nullptr);
}

// What a plugin's constructor does, inside dlopen: the loader's lock is held meanwhile.
void take_the_signal_and_wait_for_the_end() {
  struct sigaction own{};
  own.sa_handler = [](int) {};
  ::sigaction(SIGPROF, &own, nullptr);
  while (cpu_sample_status().is_sampling) burn_one(5);
}

TEST_F(CpuSamplesHost, AConstructorInDlopenMayAskForTheStatusWhenTheSignalIsLost) {
  EXPECT_EQ(in_child([] {
              ::alarm(60);
              Sampled sampled;
              sampled.wait_until_sampled();
              const auto call =
                  reinterpret_cast<std::uintptr_t>(&take_the_signal_and_wait_for_the_end);
              ::setenv("DIAL9_TEST_CALL", std::to_string(call).c_str(), 1);
              const bool is_loaded = ::dlopen(DIAL9_WAITING_PLUGIN, RTLD_NOW) != nullptr;
              ::unsetenv("DIAL9_TEST_CALL");
              const std::string message = cpu_sample_status().message;
              return is_loaded && message.contains("sources_test (at 0x") ? 42 : 1;
            }),
            42);
}

TEST_F(CpuSamplesHost, SomebodyElsesSignalIsNoSample) {
  Sampled sampled;
  for (int i = 0; i < 1'000; ++i) ::raise(SIGPROF);
  EXPECT_LT(sampled.finish().size(), 100U);
}

TEST_F(CpuSamplesHost, TheChildOfAForkHasNoTimersUntilItRestarts) {
  Sampled sampled;
  sampled.wait_until_sampled();
  EXPECT_EQ(in_child(
                [&] {
                  burn_one(50);
                  if (timers() > 0) return 1;
                  if (!sampled.recorder().restart_in_child()) return 2;
                  sampled.wait_until_sampled();
                  return 42;
                },
                false),
            42)
      << "sampling goes on in a child that records";
}

TEST_F(CpuSamplesHost, WithoutATimerToBeHadTheTraceSaysWhichLimitAndLaterItGoesOn) {
  EXPECT_EQ(in_child([] {
              rlimit before{};
              ::getrlimit(RLIMIT_SIGPENDING, &before);
              rlimit none = before;
              none.rlim_cur = 0;
              ::setrlimit(RLIMIT_SIGPENDING, &none);
              Sampled sampled;
              while (cpu_sample_status().threads_unsampled == 0) burn_one(5);
              burn_one(1'200);
              const std::string notice = sampled.read().metadata("cpu.profile.notice");
              if (notice.find("RLIMIT_SIGPENDING=0") == std::string::npos) return 1;
              if (notice.find("0 of ") == std::string::npos) return 2;
              ::setrlimit(RLIMIT_SIGPENDING, &before);
              sampled.wait_until_sampled();
              return 42;
            }),
            42);
}

TEST_F(CpuSamplesHost, ASmallAlternateStackGetsTheInstructionAlone) {
#if defined(DIAL9_SANITIZED_ADDRESS)
  GTEST_SKIP() << "ASan's frames are far larger than the stack of this test";
#endif
  Sampled sampled({.frequency_hz = 1'000});
  std::uint64_t from = 0;
  std::uint32_t tid = 0;
  std::thread([&] {
    std::vector<char> memory(testing::signal_frame_bytes() + 5'000);
    stack_t small{};
    small.ss_sp = memory.data();
    small.ss_size = memory.size();
    ASSERT_EQ(::sigaltstack(&small, nullptr), 0);
    sampled.wait_until_sampled();
    tid = this_tid();
    from = now_ns();
    burn_one(100);
    small.ss_flags = SS_DISABLE;
    ::sigaltstack(&small, nullptr);
  }).join();
  std::uint64_t count = 0;
  for (const SampleRow& row : sampled.finish()) {
    if (row.tid != tid || row.at_ns < from) continue;
    count += row.weight;
    EXPECT_EQ(row.frames.size(), 1U);
    EXPECT_TRUE(row.is_truncated);
  }
  EXPECT_GT(count, 10U);
}

}  // namespace
}  // namespace dial9::internal
