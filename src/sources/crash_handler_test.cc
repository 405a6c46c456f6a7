// A crash leaves its event and changes nothing else: every signal, real faults, faults inside
// record calls and inside the handler, threads that crash together.
// SPDX-License-Identifier: Apache-2.0
#include "sources/crash_handler.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>

#include "dial9/crash.h"
#include "recorder/recording_state.h"
#include "sources/testing/crashing_child.h"

namespace dial9::internal {
namespace {

using testing::call_touch;
using testing::crash;
using testing::Ended;
using testing::forbidden_page;
using testing::run_child;
using testing::touch;

DIAL9_EVENT(Before, (std::uint64_t, number));
DIAL9_EVENT(Said, (text, words));

constexpr int kAll[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};

class Crash : public ::testing::Test {};

TEST_F(Crash, OfEverySignalLeavesItsEventAndItsExitStatus) {
  for (const int signal : kAll) {
    const Ended ended = crash([signal] {
      record(Before{7});
      ::raise(signal);
    });
    EXPECT_EQ(ended.signal(), signal);
    EXPECT_EQ(ended.number("CrashEvent", "signal"), static_cast<std::uint64_t>(signal));
    EXPECT_EQ(ended.number("CrashEvent", "address"), 0U) << "it was sent: there is no address";
    EXPECT_EQ(static_cast<std::int64_t>(ended.number("CrashEvent", "code")), SI_TKILL);
    EXPECT_GT(ended.number("CrashEvent", "tid"), 0U);
    EXPECT_GT(ended.callchain().size(), 3U);
    EXPECT_EQ(ended.number("Before", "number"), 7U);
  }
}

TEST_F(Crash, OfAbortLeavesItsEvent) {
  const Ended ended = crash([] { std::abort(); });
  EXPECT_EQ(ended.signal(), SIGABRT);
  EXPECT_EQ(ended.number("CrashEvent", "signal"), static_cast<std::uint64_t>(SIGABRT));
}

TEST_F(Crash, ByABadAddressTellsTheAddressAndTheWholeStack) {
  void* page = forbidden_page();
  const Ended ended = crash([page] { call_touch(page); });
  EXPECT_EQ(ended.signal(), SIGSEGV);
  EXPECT_EQ(ended.number("CrashEvent", "address"), reinterpret_cast<std::uintptr_t>(page));
  EXPECT_EQ(ended.number("CrashEvent", "code"), static_cast<std::uint64_t>(SEGV_ACCERR));
  EXPECT_EQ(ended.number("CrashEvent", "truncated"), 0U);
  const auto frames = ended.callchain();
  ASSERT_FALSE(frames.empty());
  EXPECT_TRUE(testing::passes({frames[0]}, touch)) << "the first frame is the instruction itself";
  EXPECT_TRUE(testing::passes(frames, call_touch));
}

TEST_F(Crash, KeepsTheSiginfoForWhoeverLooksAtTheDeadProcess) {
  // A tracer sees the signal with which the process ends: it must be the fault, not a copy of it.
  const Ended ended = run_child({.prepare =
                                     [] {
                                       testing::handle(SIGSEGV, [](int, siginfo_t* info, void*) {
                                         const bool is_same = info->si_addr == forbidden_page() &&
                                                              info->si_code == SEGV_ACCERR;
                                         ::_exit(is_same ? 42 : 43);
                                       });
                                       forbidden_page();
                                     },
                                 .run = [] { touch(forbidden_page()); }});
  EXPECT_EQ(ended.exit_code(), 42);
}

TEST_F(Crash, OfAThreadNamesThatThread) {
  const Ended ended = crash([] {
    std::thread([] {
      record(Before{static_cast<std::uint64_t>(::gettid())});
      touch(forbidden_page());
    }).join();
  });
  EXPECT_EQ(ended.signal(), SIGSEGV);
  EXPECT_EQ(ended.number("CrashEvent", "tid"), ended.number("Before", "number"));
}

TEST_F(Crash, OfAThreadThatNeverRecordedLeavesItsEvent) {
  const Ended ended = crash([] { std::thread([] { touch(forbidden_page()); }).join(); });
  EXPECT_EQ(ended.signal(), SIGSEGV);
  EXPECT_EQ(ended.count("CrashEvent"), 1U);
}

TEST_F(Crash, InsideARecordCallLeavesItsEventAndAllBefore) {
  const Ended ended = crash([] {
    for (std::uint64_t i = 0; i < 100; ++i) record(Before{i});
    record(Said{text(static_cast<const char*>(forbidden_page()), 20)});  // faults as it is copied
  });
  EXPECT_EQ(ended.signal(), SIGSEGV);
  EXPECT_EQ(ended.count("CrashEvent"), 1U);
  EXPECT_EQ(ended.count("Before"), 100U);
  EXPECT_EQ(ended.count("Said"), 0U) << "it was never published";
}

TEST_F(Crash, WithAFullArenaUsesTheChunkSetAside) {
  const Ended ended = run_child({.run =
                                     [] {
                                       for (std::uint64_t i = 0; i < 100'000; ++i)
                                         record(Before{i});
                                       touch(forbidden_page());
                                     },
                                 .arena_bytes = kMinChunks * kChunkBytes});
  EXPECT_EQ(ended.signal(), SIGSEGV);
  EXPECT_EQ(ended.count("CrashEvent"), 1U);
  EXPECT_LT(ended.count("Before"), 100'000U);
}

TEST_F(Crash, OfTheHandlerItselfEndsByTheFirstSignal) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer calls handlers itself: a fault in one ends in its own";
#endif
  const Ended ended = crash([] {
    record(Before{1});
    t_buffer.begin = static_cast<std::uint8_t*>(forbidden_page());  // the handler will write there
    t_buffer.end = t_buffer.begin + 100'000;
    ::raise(SIGABRT);
  });
  EXPECT_EQ(ended.signal(), SIGABRT) << "not the handler's own SIGSEGV";
  EXPECT_EQ(ended.count("CrashEvent"), 0U);
  EXPECT_EQ(ended.count("Before"), 1U);
}

TEST_F(Crash, OfTheHandlerItselfBySameSignalStillGivesTheHostItsTurn) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer calls handlers itself: a fault in one ends in its own";
#endif
  const Ended ended = run_child(
      {.prepare = [] { testing::handle(SIGSEGV, [](int, siginfo_t*, void*) { ::_exit(42); }); },
       .run =
           [] {
             record(Before{1});
             t_buffer.begin = static_cast<std::uint8_t*>(forbidden_page());
             t_buffer.end = t_buffer.begin + 100'000;
             ::raise(SIGSEGV);
           }});
  EXPECT_EQ(ended.exit_code(), 42);
}

std::atomic<int> g_arrived{0};
constexpr int kTogether = 8;

TEST_F(Crash, OfManyThreadsTogetherLeavesAnEventOfEach) {
  const auto meet = [] {
    // The host's handler holds every thread until all have crashed.
    testing::handle(SIGSEGV, [](int, siginfo_t*, void*) {
      if (g_arrived.fetch_add(1) + 1 == kTogether) ::_exit(42);
      for (;;) ::pause();
    });
  };
  const auto all_crash = [] {
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kTogether; ++i) {
      threads.emplace_back([&ready] {
        record(Before{static_cast<std::uint64_t>(::gettid())});
        ready.fetch_add(1);
        while (ready.load() < kTogether) std::this_thread::yield();
        touch(forbidden_page());
      });
    }
    for (std::thread& thread : threads) thread.join();
  };
  const Ended ended = run_child({meet, all_crash});
  EXPECT_EQ(ended.exit_code(), 42);
  const auto crashed = ended.numbers("CrashEvent", "tid");
  const auto recorded = ended.numbers("Before", "number");
  EXPECT_EQ(std::set(crashed.begin(), crashed.end()), std::set(recorded.begin(), recorded.end()));
  EXPECT_EQ(crashed.size(), static_cast<std::size_t>(kTogether));
}

TEST_F(Crash, OfManyThreadsTogetherEndsTheProcessByTheSignal) {
  const Ended ended = crash([] {
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kTogether; ++i) {
      threads.emplace_back([&ready] {
        ready.fetch_add(1);
        while (ready.load() < kTogether) std::this_thread::yield();
        touch(forbidden_page());
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(ended.signal(), SIGSEGV);
  EXPECT_GE(ended.count("CrashEvent"), 1U);
}

TEST_F(Crash, IsNotRecordedWhileRecordingIsOff) {
  const Ended ended = crash([] {
    close_epoch();
    touch(forbidden_page());
  });
  EXPECT_EQ(ended.signal(), SIGSEGV);
  EXPECT_EQ(ended.count("CrashEvent"), 0U);
}

// What a child of the recording process does is none of the recording's business.
template <class Fork>
int end_of_crashing_child(Fork fork_child) {
  const pid_t child = fork_child();
  if (child == 0) {
    touch(forbidden_page());
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_F(Crash, OfAForkedChildIsNotThisProcessesCrash) {
  const Ended ended = crash([] {
    forbidden_page();
    const int forked = end_of_crashing_child([] { return ::fork(); });
    record(Before{static_cast<std::uint64_t>(forked)});
  });
  EXPECT_EQ(ended.exit_code(), 0);
  EXPECT_EQ(ended.number("Before", "number"), static_cast<std::uint64_t>(SIGSEGV));
  EXPECT_EQ(ended.count("CrashEvent"), 0U);
}

TEST_F(Crash, HandlerIsInstalledOnlyWhereItWasAskedFor) {
  const Ended ended = run_child({.run =
                                     [] {
                                       for (const int signal : kAll) {
                                         struct sigaction now{};
                                         ::sigaction(signal, nullptr, &now);
                                         if (now.sa_handler != SIG_DFL) ::_exit(1);
                                       }
                                       stack_t stack{};
                                       ::sigaltstack(nullptr, &stack);
                                       if ((stack.ss_flags & SS_DISABLE) == 0) ::_exit(2);
                                       ::_exit(42);
                                     },
                                 .installs_handler = false});
  EXPECT_EQ(ended.exit_code(), 42);
}

}  // namespace
}  // namespace dial9::internal
