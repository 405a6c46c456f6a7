// Each test in a child of its own: what is shared stays so for a process's life.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/shared_signal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace dial9::internal {
namespace {

constexpr int kSignal = SIGUSR2;
constexpr std::uintptr_t kTick = 4'711;

volatile sig_atomic_t g_ticks = 0;
volatile sig_atomic_t g_host_calls = 0;
volatile sig_atomic_t g_host_blocks_usr1 = 0;
volatile sig_atomic_t g_host_blocks_itself = 0;

void ours(int signal, siginfo_t* info, void* context) {
  if (info->si_code == SI_QUEUE && info->si_value.sival_int == static_cast<int>(kTick)) {
    g_ticks = g_ticks + 1;
  } else {
    pass_on(signal, info, context);
  }
}

void host(int signal) {
  g_host_calls = g_host_calls + 1;
  sigset_t now;
  sigprocmask(SIG_SETMASK, nullptr, &now);
  g_host_blocks_usr1 = sigismember(&now, SIGUSR1);
  g_host_blocks_itself = sigismember(&now, signal);
}

int real(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
  return ::sigaction(signal, action, old);
}

void begin() {
  share_signals(real);
  share_signal(kSignal, ours);
  struct sigaction action{};
  action.sa_sigaction = ours;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  if (kernel_sigaction(kSignal, &action, nullptr) != 0) ::_exit(100);
}

struct sigaction asked(void (*handler)(int), int flags = 0) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  return action;
}

void set(const struct sigaction& action) {
  if (host_sigaction(kSignal, &action, nullptr) != 0) ::_exit(101);
}

struct sigaction seen() {
  struct sigaction old{};
  if (host_sigaction(kSignal, nullptr, &old) != 0) ::_exit(102);
  return old;
}

void tick() {
  sigval value{};
  value.sival_int = static_cast<int>(kTick);
  ::sigqueue(::getpid(), kSignal, value);
}

// The exit status of a child that does it; of one that a signal ended, the signal negated.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    begin();
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

class SharedSignal : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(DIAL9_SANITIZED_THREAD)
    GTEST_SKIP() << "ThreadSanitizer has the handlers, and calls them late";
#endif
  }
};

TEST_F(SharedSignal, AHostThatResetsItIsNotEndedByOneOfOurs) {
  EXPECT_EQ(in_child([] {
              set(asked(SIG_DFL));
              tick();
              return g_ticks == 1 && seen().sa_handler == SIG_DFL ? 0 : 1;
            }),
            0);
}

TEST_F(SharedSignal, TheHostSeesTheDefaultUntilItSetsSomethingAndThenThat) {
  EXPECT_EQ(in_child([] {
              if (seen().sa_handler != SIG_DFL || seen().sa_flags != 0) return 1;
              struct sigaction action = asked(host, SA_NODEFER | SA_ONSTACK);
              sigaddset(&action.sa_mask, SIGUSR1);
              set(action);
              const struct sigaction now = seen();
              if (now.sa_handler != host || now.sa_flags != (SA_NODEFER | SA_ONSTACK)) return 2;
              if (sigismember(&now.sa_mask, SIGUSR1) != 1) return 3;
              return host_handler(kSignal) == reinterpret_cast<void*>(host) ? 0 : 4;
            }),
            0);
}

TEST_F(SharedSignal, TheHostsHandlerGetsItsOwnSignalsUnderItsMaskAndNoneOfOurs) {
  EXPECT_EQ(in_child([] {
              struct sigaction action = asked(host);
              sigaddset(&action.sa_mask, SIGUSR1);
              set(action);
              tick();
              if (g_ticks != 1 || g_host_calls != 0) return 1;
              ::raise(kSignal);
              if (g_host_calls != 1 || g_host_blocks_usr1 != 1 || g_host_blocks_itself != 1) {
                return 2;
              }
              set(asked(host, SA_NODEFER));
              ::raise(kSignal);
              return g_host_calls == 2 && g_host_blocks_usr1 == 0 && g_host_blocks_itself == 0 ? 0
                                                                                               : 3;
            }),
            0);
}

TEST_F(SharedSignal, AHostsOwnSignalEndsTheProcessWhereItAsksForTheDefault) {
  EXPECT_EQ(in_child([] {
              ::raise(kSignal);
              return 1;
            }),
            -kSignal);
  EXPECT_EQ(in_child([] {
              set(asked(host, static_cast<int>(SA_RESETHAND)));
              ::raise(kSignal);
              if (g_host_calls != 1 || seen().sa_handler != SIG_DFL) return 1;
              tick();
              if (g_ticks != 1) return 2;
              ::raise(kSignal);
              return 3;
            }),
            -kSignal);
}

TEST_F(SharedSignal, WhatTheHostIgnoresTheKernelIgnores) {
  EXPECT_EQ(in_child([] {
              set(asked(SIG_IGN));
              tick();
              ::raise(kSignal);
              if (g_ticks != 0 || seen().sa_handler != SIG_IGN) return 1;
              set(asked(host));
              tick();
              ::raise(kSignal);
              return g_ticks == 1 && g_host_calls == 1 ? 0 : 2;
            }),
            0);
}

TEST_F(SharedSignal, AChildOfAForkHasTheKernelsForItselfAndLeavesItsParentsAlone) {
  EXPECT_EQ(in_child([] {
              set(asked(host));
              const pid_t child = ::fork();
              if (child == 0) {
                if (seen().sa_handler != host) ::_exit(1);
                set(asked(SIG_DFL));
                if (seen().sa_handler != SIG_DFL) ::_exit(2);
                ::raise(kSignal);
                ::_exit(3);
              }
              int status = 0;
              ::waitpid(child, &status, 0);
              if (!WIFSIGNALED(status) || WTERMSIG(status) != kSignal) return 1;
              return seen().sa_handler == host ? 0 : 2;
            }),
            0);
}

TEST_F(SharedSignal, OtherSignalsGoStraightToTheKernel) {
  EXPECT_EQ(in_child([] {
              const struct sigaction action = asked(host);
              if (host_sigaction(SIGUSR1, &action, nullptr) != 0) return 1;
              struct sigaction now{};
              ::sigaction(SIGUSR1, nullptr, &now);
              return now.sa_handler == host && host_handler(SIGUSR1) == nullptr ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace dial9::internal
