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

bool is_open(const Arena& arena, std::uint32_t chunk) {
  return __atomic_load_n(&arena.control(chunk).producer.state, __ATOMIC_ACQUIRE) == kChunkOpen;
}

// The pages of chunks that no thread has open, one call a run of neighbours (it is slow on a disk).
// Some file systems refuse, which costs memory only.
void give_back_pages(const Arena& arena) {
  std::uint32_t at = 0;
  while (at < arena.chunk_count()) {
    std::uint32_t end = at;
    while (end < arena.chunk_count() && !is_open(arena, end)) ++end;
    if (end > at) {
      const std::size_t bytes = std::size_t{kChunkBytes} * (end - at);
      (void)::madvise(&arena.tables(at), bytes, MADV_REMOVE);
    }
    at = end + 1;
  }
}

}  // namespace

std::size_t sweep_retired_arenas() {
  Retired& r = retired();
  // Held by a thread of the parent at the time of a fork, the lock is never free in the child.
  const std::unique_lock lock(r.mutex, std::try_to_lock);
  if (!lock || !arena_is_unreferenced()) return 0;
  std::erase_if(r.arenas, [](const auto& arena) { return !arena->has_live_owner(); });
  return r.arenas.size();
}

void retire_arena(std::unique_ptr<Arena> arena, bool keeps_pages) {
  if (arena_is_unreferenced()) {
    if (!arena->has_live_owner()) return;  // unmapped here
    if (!keeps_pages) give_back_pages(*arena);
  }
  Retired& r = retired();
  const std::unique_lock lock(r.mutex, std::try_to_lock);
  if (lock) {
    r.arenas.push_back(std::move(arena));
  } else {
    static_cast<void>(arena.release());  // stays mapped: the safe side
  }
}

}  // namespace dial9::internal
