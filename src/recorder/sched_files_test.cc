// SPDX-License-Identifier: Apache-2.0
#include "recorder/sched_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <barrier>
#include <filesystem>
#include <string_view>
#include <thread>

#include "dial9/runtime.h"

namespace dial9::internal {
namespace {

std::uint32_t this_tid() { return static_cast<std::uint32_t>(syscall(SYS_gettid)); }

bool parse(std::string_view text, SchedReading* reading) {
  return sched_parse(text.data(), text.size(), reading);
}

TEST(SchedFiles, ReadsTheKernelsThreeNumbers) {
  SchedReading reading;
  ASSERT_TRUE(parse("123456789 42 7\n", &reading));
  EXPECT_EQ(reading.run_ns, 123456789U);
  EXPECT_EQ(reading.wait_ns, 42U);
  EXPECT_EQ(reading.slices, 7U);
}

TEST(SchedFiles, RefusesWhatIsNoAccount) {
  SchedReading reading;
  for (const char* text : {"", "\n", "1", "1 2", "1 2 x\n", "a b c\n", "0 0 0\n", "-1 2 3\n"}) {
    EXPECT_FALSE(parse(text, &reading)) << text;
  }
}

TEST(SchedFiles, KeepsNoMoreFilesThanItSaysAndClosesThem) {
  constexpr int kThreads = static_cast<int>(runtime::kMaxSchedFiles) + 20;
  ASSERT_EQ(sched_files_open(), 0U);
  std::barrier all_read(kThreads + 1);
  std::barrier may_end(kThreads + 1);
  std::atomic<int> known{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      SchedFileRef file;
      SchedReading reading;
      known += sched_read(file, this_tid(), false, &reading);
      all_read.arrive_and_wait();
      may_end.arrive_and_wait();
      sched_close(file, this_tid());
    });
  }
  all_read.arrive_and_wait();
  EXPECT_EQ(sched_files_open(), runtime::kMaxSchedFiles);
  EXPECT_EQ(known.load(), static_cast<int>(runtime::kMaxSchedFiles));
  may_end.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sched_files_open(), 0U);
}

TEST(SchedFiles, IsClosedInAnExecedChild) {
  SchedFileRef file;
  SchedReading reading;
  ASSERT_TRUE(sched_read(file, this_tid(), false, &reading));
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(entry.path(), error);
    if (target.filename() != "schedstat") continue;
    ++found;
    const int flags = fcntl(std::stoi(entry.path().filename()), F_GETFD);
    EXPECT_NE(flags & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(found, 1U);
  sched_close_all();
  EXPECT_EQ(sched_files_open(), 0U);
}

TEST(SchedFiles, OpensAnewAfterAllWereClosed) {
  SchedFileRef file;
  SchedReading first;
  SchedReading second;
  ASSERT_TRUE(sched_read(file, this_tid(), false, &first));
  sched_close_all();
  const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);  // likely the same number
  ASSERT_TRUE(sched_read(file, this_tid(), false, &second));
  EXPECT_GE(second.run_ns, first.run_ns);
  EXPECT_GE(second.slices, first.slices);
  close(other);
  sched_close(file, this_tid());
}

TEST(SchedFiles, ReadsAnotherThreadForTheMomentOnly) {
  const std::uint32_t main_tid = this_tid();
  SchedReading reading;
  SchedFileRef files[runtime::kMaxSchedFiles];
  for (SchedFileRef& file : files) ASSERT_TRUE(sched_read(file, main_tid, false, &reading));
  SchedFileRef none;
  EXPECT_FALSE(sched_read(none, main_tid, false, &reading));
  EXPECT_TRUE(sched_read(none, main_tid, true, &reading));
  EXPECT_EQ(sched_files_open(), runtime::kMaxSchedFiles);
  sched_close_all();
}

}  // namespace
}  // namespace dial9::internal
