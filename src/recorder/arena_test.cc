// The arena's free list and counters.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/arena.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "dial9/runtime.h"
#include "recorder/retired_arenas.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

TEST(Arena, GivesEachChunkToOneTakerAtATime) {
  ArenaOptions options;
  options.bytes = 8 * kChunkBytes;
  options.thread_bytes = 1 << 30;
  const auto arena = std::move(*Arena::create(options));
  std::vector<std::atomic<int>> owners(8);
  std::atomic<std::uint64_t> taken{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20'000; ++i) {
        LossCause cause{};
        const std::uint32_t chunk = arena->take(100 + t, 1, &cause);
        if (chunk == kNoChunk) continue;
        ASSERT_EQ(owners[chunk].fetch_add(1), 0) << "two owners";
        taken.fetch_add(1);
        ASSERT_EQ(arena->marked(0) >> chunk & 1, 1U) << "a pass would miss it";
        ASSERT_EQ(owners[chunk].fetch_sub(1), 1);
        Arena::close(arena->control(chunk));
        arena->free(chunk);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(taken.load(), 0U);
  EXPECT_EQ(arena->free_chunks(), 8U);
}

TEST(Arena, MarksEachChunkFromItsTakingUntilItIsFree) {
  ArenaOptions options;
  options.bytes = 130 * kChunkBytes;
  options.thread_bytes = 1 << 30;
  const auto arena = std::move(*Arena::create(options));
  ASSERT_EQ(arena->mark_groups(), 3U);
  const auto marks = [&] {
    std::vector<std::uint64_t> all;
    for (std::uint32_t i = 0; i < arena->mark_groups(); ++i) all.push_back(arena->marked(i));
    return all;
  };
  using Marks = std::vector<std::uint64_t>;
  EXPECT_EQ(marks(), (Marks{0, 0, 0}));
  LossCause cause{};
  for (std::uint32_t i = 0; i < 130; ++i) ASSERT_EQ(arena->take(1, 0, &cause), i);
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  EXPECT_EQ(marks(), (Marks{kAll, kAll, 3}));
  for (const std::uint32_t chunk : {0U, 65U, 129U}) {
    Arena::close(arena->control(chunk));
    EXPECT_EQ(marks()[chunk / 64] >> chunk % 64 & 1, 1U) << "closed isn't free";
    arena->free(chunk);
  }
  EXPECT_EQ(marks(), (Marks{kAll - 1, kAll - 2, 1}));
  EXPECT_EQ(arena->take(1, 0, &cause), 129U);
  EXPECT_EQ(marks(), (Marks{kAll - 1, kAll - 2, 3}));
}

TEST(Arena, LetsAThreadBeyondItsShareOnlyWhileThereIsRoom) {
  ArenaOptions options;
  options.bytes = 8 * kChunkBytes;
  options.thread_bytes = 2 * kChunkBytes;
  const auto arena = std::move(*Arena::create(options));
  LossCause cause{};
  for (int i = 0; i < 6; ++i) ASSERT_NE(arena->take(1, 0, &cause), kNoChunk);
  EXPECT_EQ(arena->take(1, 0, &cause), kNoChunk);
  EXPECT_EQ(cause, LossCause::kThreadShare);
  ASSERT_NE(arena->take(2, 0, &cause), kNoChunk);
  ASSERT_NE(arena->take(2, 0, &cause), kNoChunk);
  EXPECT_EQ(arena->take(2, 0, &cause), kNoChunk);
  EXPECT_EQ(cause, LossCause::kArenaFull);
}

TEST(Arena, ReservesItsFileWhole) {
  const TempDir dir;
  ArenaOptions options;
  options.path = dir.path() + "/arena";
  options.bytes = std::uint64_t{1} << 20;
  const auto arena = std::move(*Arena::create(options));
  struct stat st{};
  ASSERT_EQ(::stat(options.path.c_str(), &st), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(st.st_size), arena->header().total_bytes);
  EXPECT_GE(static_cast<std::uint64_t>(st.st_blocks) * 512, arena->header().total_bytes)
      << "a hole would be a SIGBUS on a full disk";
  EXPECT_FALSE(Arena::create(options).has_value()) << "never over somebody's file";
}

// By a thread that has a chunk of it open.
void retire_with_something_in(const std::string& path, std::uint8_t byte, bool keeps_pages) {
  ArenaOptions options;
  options.path = path;
  auto arena = std::move(*Arena::create(options));
  LossCause cause{};
  const std::uint32_t closed = arena->take(1, 0, &cause);
  *arena->stream(closed) = byte;
  Arena::close(arena->control(closed));
  ASSERT_NE(arena->take(runtime::current_tid(), 0, &cause), kNoChunk);
  const auto at = arena->stream(closed) - reinterpret_cast<std::uint8_t*>(&arena->header());
  retire_arena(std::move(arena), keeps_pages);
  std::ifstream in(path, std::ios::binary);
  EXPECT_EQ(in.seekg(at).get(), keeps_pages ? byte : 0);
}

// Where its file stays it is the only record of what no segment has.
TEST(Arena, KeepsWhatIsInItsFileThoughAThreadStillHoldsOnToIt) {
  const TempDir dir;
  for (const bool keeps_pages : {true, false}) {
    const std::string path = dir.path() + (keeps_pages ? "/kept" : "/given-back");
    std::thread([&] { retire_with_something_in(path, 'x', keeps_pages); }).join();
  }
  sweep_retired_arenas();
}

TEST(Arena, LivesInAnonymousMemoryWhereTheUserSaysSo) {
  const auto memory_files = [] {
    std::ifstream maps("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);) {
      count += line.find("memfd:dial9-thread-buffers") != std::string::npos ? 1 : 0;
    }
    return count;
  };
  const int before = memory_files();  // of a recorder whose thread lives
  ArenaOptions options;
  options.is_anonymous = true;
  const auto arena = std::move(*Arena::create(options));
  LossCause cause{};
  EXPECT_NE(arena->take(1, 0, &cause), kNoChunk);
  EXPECT_EQ(memory_files(), before);
}

TEST(Arena, SaysWhyItsFileCouldNotBeMade) {
  const TempDir dir;
  ArenaOptions options;
  options.path = dir.path() + "/none/arena";
  const auto arena = Arena::create(options);
  ASSERT_FALSE(arena.has_value());
  EXPECT_NE(arena.error().message.find(options.path), std::string::npos);
}

TEST(Arena, SumsLossesAndTheirTimesOverThreads) {
  const auto arena = std::move(*Arena::create({}));
  for (std::uint32_t tid = 1; tid <= 40; ++tid) {
    arena->count_loss(LossCause::kTooLarge, tid, tid, 1000 + tid, 2000 + tid);
  }
  EXPECT_EQ(arena->loss_total(LossCause::kTooLarge), 40U * 41 / 2);
  EXPECT_EQ(arena->loss_total(LossCause::kNested), 0U);
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  ASSERT_TRUE(arena->take_loss_range(LossCause::kTooLarge, &first, &last));
  EXPECT_EQ(first, 1001U);
  EXPECT_EQ(last, 2040U);
  EXPECT_FALSE(arena->take_loss_range(LossCause::kTooLarge, &first, &last));
}

TEST(Arena, TellsLivingThreadsFromDeadOnes) {
  std::uint32_t dead = 0;
  std::thread([&] {
    dead = static_cast<std::uint32_t>(::gettid());
    EXPECT_TRUE(is_thread_alive(dead));
  }).join();
  // A join returns a moment before the kernel has forgotten the thread; ctest bounds the wait.
  while (is_thread_alive(dead)) std::this_thread::yield();
  EXPECT_FALSE(is_thread_alive(dead));
}

}  // namespace
}  // namespace dial9::internal
