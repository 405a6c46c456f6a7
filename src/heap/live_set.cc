// See live_set.h.
// SPDX-License-Identifier: Apache-2.0
#include "heap/live_set.h"

#include <sched.h>

namespace dial9::heap {
namespace {

void pause_a_little() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void store(std::uint64_t& word, std::uint64_t value) noexcept {
  __atomic_store_n(&word, value, __ATOMIC_RELAXED);
}

std::uint64_t load(const std::uint64_t& word) noexcept {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

void copy(LiveEntry& to, const LiveEntry& from) noexcept {
  store(to.address, load(from.address));
  store(to.size, load(from.size));
  store(to.at_ns, load(from.at_ns));
}

}  // namespace

// A holder is through within tens of ns, unless it lost its CPU. One that never comes back (a
// handler that jumped out of malloc) costs others this long, not their life.
bool LiveSet::lock(Shard& shard) noexcept {
  constexpr int kPauses = 200;
  constexpr int kYields = 50;
  for (int i = 0; i < kPauses + kYields; ++i) {
    if (__atomic_load_n(&shard.lock, __ATOMIC_RELAXED) == 0 &&
        __atomic_exchange_n(&shard.lock, 1, __ATOMIC_ACQUIRE) == 0) {
      return true;
    }
    if (i < kPauses) {
      pause_a_little();
    } else {
      ::sched_yield();
    }
  }
  return false;
}

void LiveSet::unlock(Shard& shard) noexcept { __atomic_store_n(&shard.lock, 0, __ATOMIC_RELEASE); }

std::uint32_t LiveSet::slot_of(std::uint64_t address) noexcept {
  return static_cast<std::uint32_t>(hash(reinterpret_cast<const void*>(address)) >> 32) &
         (kSlots - 1);
}

// Its slot, or kSlots. Ends: a quarter of the slots is free, and where a thread that moves entries
// shows none for a moment, all of them were looked at.
std::uint32_t LiveSet::find(std::uint32_t shard, std::uint64_t address) const noexcept {
  std::uint32_t slot = slot_of(address);
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    const std::uint64_t there = load(entries_[shard][slot].address);
    if (there == address) return slot;
    if (there == 0) return kSlots;
    slot = (slot + 1) & (kSlots - 1);
  }
  return kSlots;
}

// Whoever inserted the address did so before its owner could free it, so only moves of others
// could hide it; those change the version.
bool LiveSet::is_surely_absent(std::uint32_t shard, std::uint64_t address) const noexcept {
  const std::uint32_t* version = &shards_[shard].version;
  const std::uint32_t before = __atomic_load_n(version, __ATOMIC_ACQUIRE);
  if (before % 2 != 0 || find(shard, address) != kSlots) return false;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return __atomic_load_n(version, __ATOMIC_RELAXED) == before;
}

bool LiveSet::insert(const LiveEntry& entry) noexcept {
  const std::uint64_t h = hash(reinterpret_cast<const void*>(entry.address));
  const auto number = static_cast<std::uint32_t>(h >> (64 - kShardBits));
  Shard& shard = shards_[number];
  if (!lock(shard)) return false;
  std::uint32_t slot = slot_of(entry.address);
  while (load(entries_[number][slot].address) != 0 &&
         load(entries_[number][slot].address) != entry.address) {
    slot = (slot + 1) & (kSlots - 1);
  }
  LiveEntry& place = entries_[number][slot];
  // One of this address is there already: its free was missed (kUnknown).
  const bool is_again = load(place.address) != 0;
  const bool has_room = is_again || shard.count < kEntries;
  if (has_room) {
    store(place.size, entry.size);
    store(place.at_ns, entry.at_ns);
    store(place.address, entry.address);
  }
  if (has_room && !is_again) {
    __atomic_store_n(&shard.count, shard.count + 1, __ATOMIC_RELAXED);
    std::uint8_t& byte = filter_[h >> (64 - kFilterBits)];
    const std::uint8_t sharers = __atomic_load_n(&byte, __ATOMIC_RELAXED);
    if (sharers != 0xFF) {
      __atomic_store_n(&byte, static_cast<std::uint8_t>(sharers + 1), __ATOMIC_RELAXED);
    }
  }
  unlock(shard);
  return has_room;
}

// Moves back what would not be found past the hole.
void LiveSet::take_out(std::uint32_t shard, std::uint32_t slot) noexcept {
  LiveEntry* entries = entries_[shard];
  std::uint32_t hole = slot;
  std::uint32_t next = slot;
  for (;;) {
    next = (next + 1) & (kSlots - 1);
    const std::uint64_t address = load(entries[next].address);
    if (address == 0) break;
    const std::uint32_t from_home = (next - slot_of(address)) & (kSlots - 1);
    const std::uint32_t from_hole = (next - hole) & (kSlots - 1);
    if (from_home < from_hole) continue;
    copy(entries[hole], entries[next]);
    hole = next;
  }
  store(entries[hole].address, 0);
}

LiveSet::Removed LiveSet::remove(const void* pointer, LiveEntry* entry) noexcept {
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer));
  if (address == 0) return Removed::kNothing;
  const std::uint64_t h = hash(pointer);
  const auto number = static_cast<std::uint32_t>(h >> (64 - kShardBits));
  if (is_surely_absent(number, address)) return Removed::kNothing;
  Shard& shard = shards_[number];
  if (!lock(shard)) return Removed::kUnknown;
  const std::uint32_t slot = find(number, address);
  if (slot != kSlots) {
    copy(*entry, entries_[number][slot]);
    __atomic_store_n(&shard.version, shard.version + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);  // pairs with the acquires in is_surely_absent()
    take_out(number, slot);
    __atomic_store_n(&shard.version, shard.version + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&shard.count, shard.count - 1, __ATOMIC_RELAXED);
    std::uint8_t& byte = filter_[h >> (64 - kFilterBits)];
    const std::uint8_t sharers = __atomic_load_n(&byte, __ATOMIC_RELAXED);
    if (sharers != 0xFF) {
      __atomic_store_n(&byte, static_cast<std::uint8_t>(sharers - 1), __ATOMIC_RELAXED);
    }
  }
  unlock(shard);
  return slot == kSlots ? Removed::kNothing : Removed::kEntry;
}

std::uint64_t LiveSet::size() const noexcept {
  std::uint64_t all = 0;
  for (const Shard& shard : shards_) all += __atomic_load_n(&shard.count, __ATOMIC_RELAXED);
  return all;
}

void LiveSet::hold_all_locks_for_test() noexcept {
  for (Shard& shard : shards_) __atomic_store_n(&shard.lock, 1, __ATOMIC_RELAXED);
}

void LiveSet::clear() noexcept {
  constexpr std::size_t kFilterOfShard = std::size_t{1} << (kFilterBits - kShardBits);
  for (std::uint32_t number = 0; number < kShards; ++number) {
    Shard& shard = shards_[number];
    if (__atomic_load_n(&shard.count, __ATOMIC_RELAXED) == 0 || !lock(shard)) continue;
    __atomic_store_n(&shard.version, shard.version + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (LiveEntry& entry : entries_[number]) {
      if (load(entry.address) != 0) store(entry.address, 0);
    }
    __atomic_store_n(&shard.version, shard.version + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&shard.count, 0, __ATOMIC_RELAXED);
    for (std::size_t i = 0; i < kFilterOfShard; ++i) {
      __atomic_store_n(&filter_[number * kFilterOfShard + i], 0, __ATOMIC_RELAXED);
    }
    unlock(shard);
  }
}

}  // namespace dial9::heap
