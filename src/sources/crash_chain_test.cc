// Who handled a fatal signal before dial9 is called as the kernel would have called him.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>

#include "dial9/crash.h"
#include "sources/crash_handler.h"
#include "sources/testing/crashing_child.h"

namespace dial9::internal {
namespace {

using testing::Ended;
using testing::forbidden_page;
using testing::handle;
using testing::run_child;
using testing::touch;

DIAL9_EVENT(Went, (std::uint64_t, number));
DIAL9_EVENT(Copied, (text, words));

bool is_blocked(int signal) {
  sigset_t now;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

void make_page_usable() { ::mprotect(forbidden_page(), 4096, PROT_READ | PROT_WRITE); }

TEST(CrashChain, CallsASiginfoHandlerWithSignalInfoAndContext) {
  const Ended ended =
      run_child({.prepare =
                     [] {
                       handle(SIGSEGV, [](int signal, siginfo_t* info, void* context) {
                         const auto* machine = static_cast<ucontext_t*>(context);
                         const bool is_right = signal == SIGSEGV && info->si_signo == SIGSEGV &&
                                               info->si_addr == forbidden_page() &&
                                               machine != nullptr &&
                                               sigismember(&machine->uc_sigmask, SIGUSR1) == 1;
                         ::_exit(is_right ? 42 : 43);
                       });
                     },
                 .run =
                     [] {
                       sigset_t blocked;
                       sigemptyset(&blocked);
                       sigaddset(&blocked, SIGUSR1);
                       ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
                       touch(forbidden_page());
                     }});
  EXPECT_EQ(ended.exit_code(), 42);
  EXPECT_EQ(ended.count("CrashEvent"), 1U) << "recorded before the host's handler has its turn";
}

TEST(CrashChain, CallsAPlainHandlerWithTheSignal) {
  const Ended ended =
      run_child({.prepare = [] { ::signal(SIGILL, [](int signal) { ::_exit(signal); }); },
                 .run = [] { ::raise(SIGILL); }});
  EXPECT_EQ(ended.exit_code(), SIGILL);
  EXPECT_EQ(ended.count("CrashEvent"), 1U);
}

TEST(CrashChain, BlocksWhatTheHandlerWantedBlockedAndNothingElse) {
  const auto exit_with_mask = [](int, siginfo_t*, void*) {
    ::_exit((is_blocked(SIGSEGV) ? 1 : 0) + (is_blocked(SIGUSR1) ? 2 : 0) +
            (is_blocked(SIGUSR2) ? 4 : 0));
  };
  const auto fault = [] { touch(forbidden_page()); };
  EXPECT_EQ(run_child({[&] { handle(SIGSEGV, exit_with_mask, 0, {SIGUSR1}); }, fault}).exit_code(),
            1 + 2);
  EXPECT_EQ(
      run_child({[&] { handle(SIGSEGV, exit_with_mask, SA_NODEFER, {}); }, fault}).exit_code(), 0);
  EXPECT_EQ(
      run_child({[&] { handle(SIGSEGV, exit_with_mask, SA_ONSTACK, {}); }, fault}).exit_code(), 1);
}

TEST(CrashChain, RunsAHandlerOnTheStackThatItAskedFor) {
  const auto exit_with_stack = [](int, siginfo_t*, void*) {
    stack_t now{};
    ::sigaltstack(nullptr, &now);
    ::_exit((now.ss_flags & SS_ONSTACK) != 0 ? 1 : 2);
  };
  const auto fault = [] { touch(forbidden_page()); };
  const Ended plain = run_child({[&] { handle(SIGSEGV, exit_with_stack, 0, {}); }, fault});
  EXPECT_EQ(plain.exit_code(), 2) << "it may need more than the 64 KiB of ours";
  EXPECT_EQ(plain.count("CrashEvent"), 1U);
  const Ended alternate =
      run_child({[&] { handle(SIGSEGV, exit_with_stack, SA_ONSTACK, {}); }, fault});
  EXPECT_EQ(alternate.exit_code(), 1);
  EXPECT_EQ(alternate.count("CrashEvent"), 1U);
}

int g_turns = 0;

TEST(CrashChain, GivesAHandlerThatWantedOneTurnOnlyOne) {
  const Ended ended = run_child({.prepare =
                                     [] {
                                       handle(
                                           SIGSEGV, [](int, siginfo_t*, void*) { ++g_turns; },
                                           static_cast<int>(SA_RESETHAND));
                                     },
                                 .run = [] { touch(forbidden_page()); }});
  EXPECT_EQ(ended.signal(), SIGSEGV) << "the fault comes again, and then the default is due";
  const auto turns = run_child({.prepare =
                                    [] {
                                      handle(
                                          SIGABRT, [](int, siginfo_t*, void*) { ++g_turns; },
                                          static_cast<int>(SA_RESETHAND));
                                    },
                                .run =
                                    [] {
                                      ::raise(SIGABRT);
                                      ::_exit(g_turns);
                                    }});
  EXPECT_EQ(turns.exit_code(), 1);
}

TEST(CrashChain, LetsTheProcessGoOnWhereTheHandlerRepairsTheFault) {
  const Ended ended = run_child(
      {.prepare = [] { handle(SIGSEGV, [](int, siginfo_t*, void*) { make_page_usable(); }); },
       .run =
           [] {
             errno = 77;
             touch(forbidden_page());
             if (errno != 77) ::_exit(1);
             record(Went{1});
           }});
  EXPECT_EQ(ended.exit_code(), 0);
  EXPECT_EQ(ended.count("Went"), 1U);
  EXPECT_EQ(ended.number("SignalSurvivedEvent", "signal"), static_cast<std::uint64_t>(SIGSEGV));
  EXPECT_EQ(ended.count("CrashEvent"), 1U);
}

TEST(CrashChain, LetsARecordCallGoOnWhereTheHandlerRepairsTheFaultInIt) {
  const Ended ended = run_child(
      {.prepare = [] { handle(SIGSEGV, [](int, siginfo_t*, void*) { make_page_usable(); }); },
       .run =
           [] {
             record(Went{1});
             record(Copied{text(static_cast<const char*>(forbidden_page()), 20)});
             record(Went{2});
           }});
  EXPECT_EQ(ended.exit_code(), 0);
  EXPECT_EQ(ended.numbers("Went", "number"), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(ended.count("Copied"), 1U);
  EXPECT_EQ(ended.count("CrashEvent"), 1U);
}

sigjmp_buf g_jump;

TEST(CrashChain, MayBeLeftByAJumpAndStillRecordsTheNextCrash) {
  const Ended ended = run_child(
      {.prepare = [] { handle(SIGSEGV, [](int, siginfo_t*, void*) { siglongjmp(g_jump, 1); }); },
       .run =
           [] {
             if (sigsetjmp(g_jump, 1) == 0) touch(forbidden_page());
             record(Went{1});
             ::raise(SIGABRT);
           }});
  EXPECT_EQ(ended.signal(), SIGABRT);
  EXPECT_EQ(ended.count("Went"), 1U);
  EXPECT_EQ(ended.numbers("CrashEvent", "signal"), (std::vector<std::uint64_t>{SIGSEGV, SIGABRT}));
}

TEST(CrashChain, EndsByTheSignalWhereTheHandlerAsksForTheDefault) {
  const Ended ended = run_child({.prepare =
                                     [] {
                                       handle(SIGSEGV, [](int signal, siginfo_t*, void*) {
                                         ::signal(signal, SIG_DFL);  // and returns to the fault
                                       });
                                     },
                                 .run = [] { touch(forbidden_page()); }});
  EXPECT_EQ(ended.signal(), SIGSEGV);
  EXPECT_EQ(ended.count("CrashEvent"), 1U);
  EXPECT_EQ(ended.count("SignalSurvivedEvent"), 0U);
}

TEST(CrashChain, LeavesAnIgnoredSignalIgnored) {
  const Ended ended = run_child({.prepare = [] { ::signal(SIGTRAP, SIG_IGN); },
                                 .run =
                                     [] {
                                       struct sigaction now{};
                                       ::sigaction(SIGTRAP, nullptr, &now);
                                       if (now.sa_handler != SIG_IGN) ::_exit(1);
                                       ::raise(SIGTRAP);
                                       ::_exit(42);
                                     }});
  EXPECT_EQ(ended.exit_code(), 42);
  EXPECT_EQ(ended.count("CrashEvent"), 0U);
}

struct sigaction g_seen_by_later;

TEST(CrashChain, WorksForAHandlerThatIsInstalledLaterAndChainsToIt) {
  const Ended ended = run_child({.run = [] {
    ::sigaction(SIGSEGV, nullptr, &g_seen_by_later);
    handle(
        SIGSEGV,
        [](int signal, siginfo_t* info, void* context) {
          g_seen_by_later.sa_sigaction(signal, info, context);
        },
        SA_ONSTACK);
    touch(forbidden_page());
  }});
  EXPECT_EQ(ended.signal(), SIGSEGV);
  EXPECT_EQ(ended.count("CrashEvent"), 1U);
}

TEST(CrashChain, IsInstalledOnceHoweverOftenItIsAskedFor) {
  const Ended ended = run_child({.run = [] {
    for (int i = 0; i < 3; ++i) {
      if (!install_crash_handler()) ::_exit(1);
    }
    touch(forbidden_page());
  }});
  EXPECT_EQ(ended.signal(), SIGSEGV) << "it never chains to itself";
  EXPECT_EQ(ended.count("CrashEvent"), 1U);
}

TEST(CrashChain, RecordsOnlySomeSignalsOfAHostThatLivesOnThem) {
  const Ended ended =
      run_child({.prepare = [] { handle(SIGTRAP, [](int, siginfo_t*, void*) { ++g_turns; }); },
                 .run =
                     [] {
                       for (int i = 0; i < 2'000; ++i) ::raise(SIGTRAP);
                       ::_exit(g_turns == 2'000 ? 42 : 43);
                     }});
  EXPECT_EQ(ended.exit_code(), 42);
  EXPECT_GE(ended.count("CrashEvent"), kSurvivableAtOnce);
  EXPECT_LT(ended.count("CrashEvent"), kSurvivableAtOnce + 200) << "then one a second";
}

}  // namespace
}  // namespace dial9::internal
