// SPDX-License-Identifier: Apache-2.0
#include "base/fork_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <thread>
#include <vector>

namespace dial9 {
namespace {

TEST(ForkLock, LetsOneThreadInAtATime) {
  ForkLock lock;
  std::uint64_t count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5'000; ++i) {
        EXPECT_FALSE(lock.lock());
        ++count;
        lock.unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 20'000U);
}

TEST(ForkLock, IsFreeInAChildWhoseParentWasInsideAndSaysSo) {
  ForkLock lock;
  EXPECT_FALSE(lock.lock());
  const pid_t child = ::fork();
  if (child == 0) {
    const bool was_inside = lock.lock();
    lock.unlock();
    const bool again = lock.lock();
    ::_exit(was_inside && !again ? 42 : 1);
  }
  lock.unlock();
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

}  // namespace
}  // namespace dial9
