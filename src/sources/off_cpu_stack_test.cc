// Stacks of blocked threads: whole, unmixed, and without leftovers of earlier calls, though of the
// registers only the stack pointer and the place are known.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "sources/testing/blocked_worker.h"

namespace dial9::internal {
namespace {

using namespace testing;

class OffCpuStack : public OffCpuTest {};

TEST_F(OffCpuStack, ADeepStackIsWholeAndOneOfMegabytesIsMarkedTruncated) {
#if defined(DIAL9_SANITIZED_ADDRESS)
  GTEST_SKIP() << "ASan's frames are larger, and a copy of them lacks what it takes to leave them";
#endif
  struct Deep {
    [[gnu::noinline]] static void go(int fd, std::size_t bytes) {
      volatile char room[1024];
      room[0] = static_cast<char>(bytes);
      if (bytes < sizeof room) {
        wait_for_byte(fd);
      } else {
        go(fd, bytes - sizeof room);
      }
      room[1] = room[0];
    }
  };
  for (const std::size_t kib : {100U, 1'000U}) {
    Pipe pipe;
    const Worker worker([&] { Deep::go(pipe.out.get(), kib << 10); });
    const BlockedThread thread = look(worker.tid(), "read");
    pipe.release();
    EXPECT_EQ(thread.is_truncated, kib == 1'000U);
    EXPECT_EQ(worker.is_outermost(thread.frames), kib == 100U);
  }
}

// Threads that block for microseconds at random depths, as often as they can. A stack that was
// taken while its thread moved would show by other outermost frames.
TEST_F(OffCpuStack, NoStackOfAChurningThreadIsMixedOfTwoMoments) {
  struct Churn {
    [[gnu::noinline]] static void go(int depth, std::uint64_t& random) {
      if (depth != 0) {
        go(depth - 1, random);
        asm volatile("");
        return;
      }
      random = random * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
      const timespec time{0, static_cast<long>(20'000 + (random >> 40) % 100'000)};
      ::nanosleep(&time, nullptr);
    }
  };
  std::atomic<bool> stops{false};
  std::uint64_t accepted = 0;
  std::uint64_t wrong = 0;
  {
    std::vector<std::unique_ptr<Worker>> workers;
    for (std::uint64_t i = 0; i < 3; ++i) {
      workers.push_back(std::make_unique<Worker>([&stops, i] {
        std::uint64_t random = i + 1;
        while (!stops) Churn::go(static_cast<int>(random >> 33) % 20, random);
      }));
    }
    BlockedThread thread;
    while (accepted < 5'000) {
      for (const auto& worker : workers) {
        const auto reading = probe->account(worker->tid());
        if (!reading || probe->look(worker->tid(), *reading, &thread) != Look::kBlocked) continue;
        ++accepted;
        wrong += worker->is_outermost(thread.frames) ? 0 : 1;
      }
    }
    stops = true;
  }
  EXPECT_EQ(wrong, 0U);
}

// Calls that return before the wait leave {frame pointer, return address} pairs where the waiting
// function has room that it doesn't fill.
struct Leftovers {
  static void fill(char* room) { asm volatile("" : : "r"(room) : "memory"); }
  [[gnu::noinline]] static void inner(int depth) {
    char room[64];
    fill(room);
    if (depth != 0) inner(depth - 1);
    fill(room);
  }
  [[gnu::noinline]] static void outer(int depth) {
    inner(depth);
    asm volatile("");
  }
  [[gnu::noinline]] static void wait(int fd) {
    char room[4096];  // not filled
    fill(room);
    EXPECT_EQ(::read(fd, room, 1), 1);
    fill(room);
  }
  [[gnu::noinline]] static void run(int fd) {
    outer(20);
    wait(fd);
    asm volatile("");
  }
};

TEST_F(OffCpuStack, ALeftoverOfAnEarlierCallIsNotTakenForACaller) {
#if defined(DIAL9_SANITIZED_ADDRESS)
  GTEST_SKIP() << "ASan's frames are larger, and a copy of them lacks what it takes to leave them";
#endif
  Pipe pipe;
  const Worker worker([&] { Leftovers::run(pipe.out.get()); });
  // With cold caches the tables' budget may end before the stack does; it is truncated then.
  BlockedThread thread = look(worker.tid(), "read");
  for (int i = 0; i < 20 && thread.is_truncated; ++i) thread = look(worker.tid(), "read");
  pipe.release();
  EXPECT_FALSE(thread.is_truncated);
  EXPECT_TRUE(worker.is_outermost(thread.frames));
  const auto is_in = [&](auto function) {
    const auto begin = reinterpret_cast<std::uintptr_t>(function);
    return std::ranges::any_of(thread.frames,
                               [&](auto pc) { return pc > begin && pc < begin + 40; });
  };
  EXPECT_FALSE(is_in(&Leftovers::inner));
  EXPECT_FALSE(is_in(&Leftovers::outer));
}

}  // namespace
}  // namespace dial9::internal
