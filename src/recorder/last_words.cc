// See last_words.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/last_words.h"

#include <unistd.h>

#include "recorder/arena.h"

namespace dial9::internal {
namespace {

// serial of the arena << 32 | chunk + 1. 0: none. Whoever exchanges it for 0 has the chunk.
constinit std::uint64_t g_reserve = 0;

}  // namespace

void keep_chunk_in_reserve() noexcept {
  const ArenaHold hold(this_tid());
  Arena* arena = hold.get();
  if (arena == nullptr) return;
  // Of an arena that is gone: worth nothing.
  const std::uint64_t word = __atomic_load_n(&g_reserve, __ATOMIC_RELAXED);
  if (word != 0 && word >> 32 == arena->serial()) return;
  LossCause cause{};
  const std::uint32_t chunk = arena->take(this_tid(), now_ns(), &cause);
  if (chunk == kNoChunk) return;  // the next pass tries again
  // Release: the chunk's header goes before it (pairs with the exchange in take_chunk).
  __atomic_store_n(&g_reserve, std::uint64_t{arena->serial()} << 32 | (chunk + 1),
                   __ATOMIC_RELEASE);
}

bool LastWords::take_chunk(Arena& arena) noexcept {
  const ThreadBuffer before = t_buffer;
  const bool is_idle = before.ready_epoch != kBusyEpoch;
  bool is_reserve = false;
  LossCause cause = LossCause::kArenaFull;
  std::uint32_t chunk = arena.take(this_tid(), now_ns(), &cause);
  if (chunk == kNoChunk) {
    const std::uint64_t word = __atomic_exchange_n(&g_reserve, 0, __ATOMIC_ACQUIRE);
    if (word == 0 || word >> 32 != arena.serial()) {
      count_loss(cause);
      return false;
    }
    chunk = static_cast<std::uint32_t>(word) - 1;
    is_reserve = true;  // its owner is the collector
  }
  ThreadBuffer fresh{};
  fresh.ready_epoch = kBusyEpoch;
  fresh.tid = this_tid();
  fresh.process = before.process;
  fresh.is_exiting = before.is_exiting;
  fresh.clock = before.clock;
  adopt_chunk(fresh, arena, chunk);
  t_buffer.ready_epoch = kBusyEpoch;  // for another signal's handler, which may come here
  signal_fence();
  if (is_idle && !is_reserve) {
    if (before.control != nullptr) Arena::close(*before.control);
  } else {
    saved_ = before;
    is_swapped_ = true;
  }
  signal_fence();
  t_buffer = fresh;
  signal_fence();
  t_buffer.ready_epoch = 0;
  return true;
}

bool LastWords::open(std::size_t bytes) noexcept {
  if (recording_epoch() == 0) return false;
  hold_.emplace(this_tid());
  Arena* arena = hold_->get();
  // A child of vfork runs in its parent's memory.
  if (arena == nullptr || arena->header().pid != static_cast<std::uint32_t>(::getpid())) {
    return false;
  }
  const ThreadBuffer& own = t_buffer;
  if (own.ready_epoch != kBusyEpoch && own.control != nullptr &&
      own.arena_serial == arena->serial() &&
      static_cast<std::size_t>(own.end - own.cursor()) >= bytes) {
    return true;
  }
  return take_chunk(*arena);
}

void LastWords::close() noexcept {
  if (is_swapped_) {
    ChunkControl* control = t_buffer.control;
    signal_fence();
    t_buffer = saved_;
    signal_fence();
    is_swapped_ = false;
    if (control != nullptr && control != saved_.control) Arena::close(*control);
  }
  hold_.reset();
}

}  // namespace dial9::internal
