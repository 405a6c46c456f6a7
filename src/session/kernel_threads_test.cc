// The kernel's files about threads, as texts and as a directory of the same shape.
// SPDX-License-Identifier: Apache-2.0
#include "session/kernel_threads.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace dial9::internal {
namespace {

namespace fs = std::filesystem;

TEST(KernelThreads, TheNameMayHoldBracketsAndSpaces) {
  KernelThread thread;
  ASSERT_TRUE(parse_stat("17 (a) S (b) R 1 2 3", thread));
  EXPECT_EQ(thread.name, "a) S (b");
  EXPECT_EQ(thread.state, 'R');
}

TEST(KernelThreads, ACutStatFileIsNotUnderstood) {
  KernelThread thread;
  EXPECT_FALSE(parse_stat("17 (worker", thread));
  EXPECT_FALSE(parse_stat("17 (worker) ", thread));
  EXPECT_FALSE(parse_stat("", thread));
}

TEST(KernelThreads, AWaitThatTheKernelHidesIsAbsent) {
  EXPECT_EQ(parse_wchan("futex_wait_queue"), "futex_wait_queue");
  EXPECT_EQ(parse_wchan("0"), std::nullopt);
  EXPECT_EQ(parse_wchan(""), std::nullopt);
}

TEST(KernelThreads, OnlyAThreadInsideASystemCallHasOne) {
  EXPECT_EQ(parse_syscall("202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x7f\n"), 202);
  EXPECT_EQ(parse_syscall("0 0x3 0x7f 0x1 0x0 0x0 0x0 0x7ffd 0x7f\n"), 0);
  EXPECT_EQ(parse_syscall("running\n"), std::nullopt);
  EXPECT_EQ(parse_syscall("-1 0x7ffd 0x7f\n"), std::nullopt);
}

TEST(KernelThreads, CpuTimeAndSwitchesAreReadByTheirNames) {
  KernelThread thread;
  parse_schedstat("5000 70 3\n", thread);
  EXPECT_EQ(thread.run_ns, 5000U);
  EXPECT_EQ(thread.wait_ns, 70U);
  parse_status("Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n", thread);
  EXPECT_EQ(thread.voluntary_switches, 12U);
  EXPECT_EQ(thread.involuntary_switches, 3U);
}

TEST(KernelThreads, NumbersThatAreNotThereStayAbsent) {
  KernelThread thread;
  parse_schedstat("garbage", thread);
  parse_status("Name:\tx\n", thread);
  EXPECT_EQ(thread.run_ns, std::nullopt);
  EXPECT_EQ(thread.voluntary_switches, std::nullopt);
}

TEST(KernelThreads, SystemCallsHaveNamesOrTheirNumber) {
  EXPECT_EQ(syscall_name(SYS_futex), "futex");
  EXPECT_EQ(syscall_name(99'999), "syscall 99999");
}

class KernelThreadsDirectory : public ::testing::Test {
 protected:
  KernelThreadsDirectory() {
    std::string pattern = ::testing::TempDir() + "dial9-proc-XXXXXX";
    proc_ = ::mkdtemp(pattern.data());
  }
  ~KernelThreadsDirectory() override { fs::remove_all(proc_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(proc_ + "/" + path).parent_path());
    std::ofstream(proc_ + "/" + path) << text;
  }
  std::string proc_;
};

TEST_F(KernelThreadsDirectory, AllThreadsAreReadInOrder) {
  write("42/status", "Name:\tservice\nUid:\t33\t33\t33\t33\nNSpid:\t42\t7\n");
  write("42/task/50/stat", "50 (worker-1) S 1");
  write("42/task/50/wchan", "futex_wait_queue");
  write("42/task/50/syscall", "202 0x1\n");
  write("42/task/42/stat", "42 (service) T 1");
  const auto process = read_kernel_process(proc_, 42);
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_EQ(process->name, "service");
  EXPECT_EQ(process->uid, 33U);
  EXPECT_EQ(process->inner_pid, 7U);
  ASSERT_EQ(process->threads.size(), 2U);
  EXPECT_EQ(process->threads[0].tid, 42U);
  EXPECT_EQ(process->threads[0].state, 'T');
  EXPECT_EQ(process->threads[0].syscall, std::nullopt);
  EXPECT_EQ(process->threads[1].wchan, "futex_wait_queue");
}

TEST_F(KernelThreadsDirectory, AThreadThatEndsWhileBeingReadIsLeftOut) {
  write("42/status", "Name:\tservice\n");
  write("42/task/42/stat", "42 (service) S 1");
  fs::create_directories(proc_ + "/42/task/43");
  const auto process = read_kernel_process(proc_, 42);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->threads.size(), 1U);
}

TEST_F(KernelThreadsDirectory, AThreadWhoseFilesOpenAndCannotBeReadIsLeftOut) {
  write("42/status", "Name:\tservice\n");
  write("42/task/42/stat", "42 (service) S 1");
  fs::create_directories(proc_ + "/42/task/42/syscall");  // opens; reading it fails
  fs::create_directories(proc_ + "/42/task/43/stat");
  const auto process = read_kernel_process(proc_, 42);
  ASSERT_TRUE(process);
  ASSERT_EQ(process->threads.size(), 1U);
  EXPECT_FALSE(process->threads.front().syscall);
}

TEST_F(KernelThreadsDirectory, AProcessThatIsNotThereIsAnErrorWithTheCure) {
  const auto process = read_kernel_process(proc_, 42);
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code, ErrorCode::kNotFound);
  EXPECT_NE(process.error().message.find("no process 42"), std::string::npos);
}

TEST_F(KernelThreadsDirectory, AProcessThatEndsInTheMiddleSaysSo) {
  write("42/status", "Name:\tservice\n");
  const auto process = read_kernel_process(proc_, 42);
  ASSERT_FALSE(process);
  EXPECT_NE(process.error().message.find("ended while"), std::string::npos);
}

TEST(KernelThreads, TheOwnProcessIsRunning) {
  const auto process = read_kernel_process("/proc", static_cast<std::uint32_t>(::getpid()));
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_EQ(process->threads.front().tid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(process->threads.front().state, 'R');
}

}  // namespace
}  // namespace dial9::internal
