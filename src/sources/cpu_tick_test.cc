// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "dial9/internal/clock.h"
#include "sources/cpu_samples.h"
#include "sources/testing/sampled.h"
#include "sources/thread_timers.h"

namespace dial9::internal {
namespace {

TEST(CpuTick, NoOtherHandlerRunsOnTopOfOursButThoseOfFaults) {
  struct sigaction before{};
  ::sigaction(SIGRTMIN + 8, nullptr, &before);
  ASSERT_TRUE(install_tick_handler(SIGRTMIN + 8));
  struct sigaction now{};
  ::sigaction(SIGRTMIN + 8, &before, &now);
  for (const int signal : {SIGALRM, SIGUSR1, SIGTERM, SIGCHLD, SIGPROF, SIGRTMIN, SIGRTMAX}) {
    EXPECT_EQ(sigismember(&now.sa_mask, signal), 1) << signal;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) {
    EXPECT_EQ(sigismember(&now.sa_mask, signal), 0) << signal;
  }
}

// As of a library that is preloaded into a program that has it linked in.
TEST(CpuTick, ATimerOfAnotherCopyOfTheLibraryMakesNoSamples) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer holds signals back until the thread calls it";
#endif
  testing::Sampled sampled;
  sampled.wait_until_sampled();
  const auto tid = static_cast<pid_t>(::syscall(SYS_gettid));
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  const std::uint64_t mark = timer_mark() ^ (std::uint64_t{1} << 32);
  event.sigev_value.sival_ptr = reinterpret_cast<void*>(mark | static_cast<std::uint64_t>(tid));
  event._sigev_un._tid = tid;
  int timer = -1;
  ASSERT_EQ(::syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer), 0);
  const itimerspec every_ms{{0, 1'000'000}, {0, 1'000'000}};
  ASSERT_EQ(::syscall(SYS_timer_settime, timer, 0, &every_ms, nullptr), 0);
  const std::uint64_t from = now_ns();
  testing::burn_one(400);
  const std::uint64_t to = now_ns();
  ::syscall(SYS_timer_delete, timer);
  const auto rows = sampled.finish();
  const std::uint64_t count = testing::periods(
      rows, [&](const testing::SampleRow& row) { return row.at_ns >= from && row.at_ns < to; });
  EXPECT_LT(count, 200U) << "40 of our own; the other's would be 400";
}

}  // namespace
}  // namespace dial9::internal
