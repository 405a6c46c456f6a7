// The walk over the loaded modules, under the loader's lock: it allocates nothing there.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/module_scan.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t t_allocations = 0;

}  // namespace

// All of this program's, counted. Not inlined, lest the compiler take them for a mismatch.
// ThreadSanitizer links its own, and bears no others.
#if !defined(DIAL9_SANITIZED_THREAD)
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++t_allocations;
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace dial9::unwind {
namespace {

struct Watched {
  ModuleWalk walk;
  std::size_t allocations_inside = 0;
};

int note_watched(dl_phdr_info* info, std::size_t, void* data) {
  auto& watched = *static_cast<Watched*>(data);
  const std::size_t before = t_allocations;
  watched.walk.note(*info);
  watched.allocations_inside += t_allocations - before;
  return 0;
}

Watched walk_with(const WalkRoom& room) {
  Watched watched{ModuleWalk(room)};
  dl_iterate_phdr(note_watched, &watched);
  return watched;
}

TEST(ModuleScan, AllocatesNothingWhileTheLoadersLockIsHeld) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "allocations aren't counted under ThreadSanitizer";
#endif
  const std::size_t before = t_allocations;
  const Watched whole = walk_with({});
  EXPECT_GT(t_allocations, before) << "all that it needs, it has made before";
  EXPECT_TRUE(whole.walk.is_whole());
  EXPECT_EQ(whole.allocations_inside, 0U);
  EXPECT_EQ(walk_with({.modules = 1, .letters = 8, .needed = 1, .index = 4}).allocations_inside,
            0U);
}

TEST(ModuleScan, WithTooLittleRoomTellsHowMuchIsNeeded) {
  const WalkRoom used = walk_with({}).walk.used();
  EXPECT_GT(used.modules, 2U);
  EXPECT_GT(used.letters, 8U);
  EXPECT_GT(used.index, 4U);
  const Watched small = walk_with({.modules = 1, .letters = 8, .needed = 1, .index = 4});
  EXPECT_FALSE(small.walk.is_whole());
  EXPECT_EQ(small.walk.used().modules, used.modules);
  EXPECT_EQ(small.walk.used().letters, used.letters);
  EXPECT_EQ(small.walk.used().needed, used.needed);
  EXPECT_EQ(small.walk.used().index, used.index);
  EXPECT_TRUE(walk_with(used).walk.is_whole());
}

TEST(ModuleScan, FindsTheProgramAndWhatItNeedsAsNeverUnloaded) {
  const ModuleTable table = scan_modules();
  const auto here = reinterpret_cast<std::uint64_t>(&walk_with);
  bool is_found = false;
  for (std::size_t i = 0; i < table.modules.size(); ++i) {
    const Module& module = table.modules[i];
    EXPECT_LE(table.modules[i == 0 ? 0 : i - 1].begin, module.begin);
    EXPECT_LE(module.index_begin + module.index_size, table.index.size());
    if (!module.holds(here)) continue;
    is_found = true;
    EXPECT_EQ(module.stamp, 0U);
    EXPECT_EQ(module.index_size, (module.entry_count + kIndexStride - 1) / kIndexStride);
  }
  EXPECT_TRUE(is_found);
}

}  // namespace
}  // namespace dial9::unwind
