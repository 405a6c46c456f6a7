// See retired_arenas.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/retired_arenas.h"

#include <sys/mman.h>

#include <mutex>
#include <vector>

#include "recorder/recording_state.h"

namespace dial9::internal {
namespace {

struct Retired {
  std::mutex mutex;
  std::vector<std::unique_ptr<Arena>> arenas;  // guarded by mutex
};

// Never destroyed: threads may record after main.
Retired& retired() {
  static Retired* const instance = new Retired;
  return *instance;
}

// Whole pages of chunks that no thread has open; refused by some file systems, which costs memory only.
void give_back_pages(Arena& arena) {
  for (std::uint32_t i = 0; i < arena.chunk_count(); ++i) {
    if (__atomic_load_n(&arena.control(i).producer.state, __ATOMIC_ACQUIRE) == kChunkOpen) continue;
    (void)::madvise(&arena.tables(i), kChunkBytes, MADV_REMOVE);
  }
}

}  // namespace

std::size_t sweep_retired_arenas() {
  Retired& r = retired();
  const std::lock_guard lock(r.mutex);
  if (!arena_is_unreferenced()) return r.arenas.size();
  std::erase_if(r.arenas, [](const auto& arena) { return !arena->has_live_owner(); });
  return r.arenas.size();
}

void retire_arena(std::unique_ptr<Arena> arena) {
  if (arena_is_unreferenced()) {
    if (!arena->has_live_owner()) return;  // unmapped here
    give_back_pages(*arena);
  }
  {
    Retired& r = retired();
    const std::lock_guard lock(r.mutex);
    r.arenas.push_back(std::move(arena));
  }
  sweep_retired_arenas();
}

}  // namespace dial9::internal
