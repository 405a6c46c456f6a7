// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>

#include "sources/cpu_samples.h"

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

}  // namespace
}  // namespace dial9::internal
