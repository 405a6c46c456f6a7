// SPDX-License-Identifier: Apache-2.0
#include "sources/quiet_kernel.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dial9/cpu_samples.h"

namespace dial9::internal {
namespace {

TEST(QuietKernel, IsLinux59OrLaterOnX8664) {
  for (const char* release : {"5.9", "5.9.0-rc1", "5.10.0-28-amd64", "6.1.0", "10.0", "6.18.44+"}) {
    EXPECT_EQ(interruption_risk("x86_64", release), "") << release;
  }
}

TEST(QuietKernel, IsNoOlderOneNoOtherMachineAndNothingThatCantBeRead) {
  for (const char* release : {"5.8.18", "5.4.0-150-generic", "4.18.0-553.el8", "4.4.0", "2.6.60",
                              "", "5", "5.", "six.one", "-6.1", "99999999999999.1"}) {
    EXPECT_NE(interruption_risk("x86_64", release), "") << release;
  }
  for (const char* machine : {"aarch64", "i686", "riscv64", "", "x86_64x"}) {
    EXPECT_NE(interruption_risk(machine, "6.1.0"), "") << machine;
  }
}

TEST(QuietKernel, IsNamedWithTheCureWhereItIsNone) {
  const std::string risk = interruption_risk("x86_64", "5.4.0-150-generic");
  for (const char* part : {"5.4.0-150-generic", "EINTR", "5.9", "allow_interrupted_calls"}) {
    EXPECT_NE(risk.find(part), std::string::npos) << part;
  }
}

// In a process to which uname() says 2.6.x.
int start_on_an_old_kernel() {
  ::signal(SIGPROF, SIG_DFL);
  if (::personality(UNAME26) < 0) return 42;
  const Status status = add_cpu_samples();
  if (status.ok()) return 1;
  if (status.message().find("EINTR") == std::string::npos) return 2;
  if (status.message().find("allow_interrupted_calls") == std::string::npos) return 3;
  CpuSampleOptions options;
  options.allow_interrupted_calls = true;
  return add_cpu_samples(options).ok() ? 42 : 4;
}

TEST(QuietKernel, WithoutItSamplingIsRefusedUnlessCallsMayBeInterrupted) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer wants no work after a fork";
#endif
  const pid_t child = ::fork();
  if (child == 0) ::_exit(start_on_an_old_kernel());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

}  // namespace
}  // namespace dial9::internal
