// SPDX-License-Identifier: Apache-2.0
#include "sources/thread_timers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <latch>
#include <string>
#include <thread>
#include <vector>

namespace dial9::internal {
namespace {

constexpr char kStatus[] =
    "Name:\tio worker\nUmask:\t0022\nState:\tS (sleeping)\nSigPnd:\t0000000000000000\n"
    "SigBlk:\t0000000004000001\nSigIgn:\t0000000000001000\n";

TEST(ThreadStatus, HasTheNameAndWhetherASignalIsBlocked) {
  const ThreadFacts facts = parse_thread_status(kStatus, SIGPROF);
  EXPECT_EQ(facts.name, "io worker");
  EXPECT_TRUE(facts.is_blocking) << "bit 26 is signal 27";
  EXPECT_TRUE(parse_thread_status(kStatus, 1).is_blocking);
  EXPECT_FALSE(parse_thread_status(kStatus, SIGSEGV).is_blocking);
  EXPECT_FALSE(parse_thread_status(kStatus, 64).is_blocking);
}

TEST(ThreadStatus, OfSomethingElseSaysNothing) {
  for (const char* text : {"", "Name:", "Name:\t", "garbage\nSigBlk:\tffffffffffffffff\n",
                           "Name:\tx\nSigBlk:\tzz\n"}) {
    EXPECT_FALSE(parse_thread_status(text, SIGPROF).is_blocking) << text;
  }
}

TEST(TimerRoom, IsHalfOfWhatTheUsersOtherProcessesLeave) {
  const auto status = [](const char* sig_q) {
    return std::string("Name:\tx\nThreads:\t9\nSigQ:\t") + sig_q + "\nSigPnd:\t0\n";
  };
  EXPECT_EQ(timer_room(status("0/1000"), 0), 500U);
  EXPECT_EQ(timer_room(status("400/1000"), 0), 300U);
  EXPECT_EQ(timer_room(status("400/1000"), 300), 450U) << "300 of the 400 are ours";
  EXPECT_EQ(timer_room(status("1000/1000"), 0), 0U);
  EXPECT_EQ(timer_room(status("7/0"), 0), 0U) << "lowered since";
  EXPECT_EQ(timer_room(status("3/1000"), 5), 500U) << "read before ours were counted";
  EXPECT_EQ(timer_room(status("0/18446744073709551615"), 0), 0xFFFF'FFFFU) << "unlimited";
  for (const char* text : {"", "5", "/5", "x/5", "5/", "5/x"}) {
    EXPECT_EQ(timer_room(status(text), 0), 0xFFFF'FFFFU) << text;
  }
  EXPECT_EQ(timer_room("", 0), 0xFFFF'FFFFU);
}

TEST(ThreadTimers, StopAtTheRoomThereIsAndCountTheThreadsLeftOut) {
  // Waiting threads: no CPU time, so no timer ever fires.
  std::latch ready(6);
  std::latch is_over(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&] {
      ready.count_down();
      is_over.wait();
    });
  }
  ready.arrive_and_wait();
  {
    const auto own = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    ThreadTimers timers(SIGPROF, 10'000'000'000'000);
    timers.scan(own, 2);
    EXPECT_EQ(timers.counts().armed, 2U);
    EXPECT_GE(timers.counts().refused, 3U);
    EXPECT_EQ(timers.counts().refused_error, EAGAIN);
    timers.scan(own, 3);
    EXPECT_EQ(timers.counts().armed, 3U) << "there is room for one more";
    timers.scan(own, 1);
    EXPECT_EQ(timers.counts().armed, 3U) << "those that are armed stay";
    timers.disarm_all();
    timers.scan(own, 2);
    EXPECT_EQ(timers.counts().armed, 2U) << "what was given back is to be had again";
  }
  is_over.count_down();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace dial9::internal
