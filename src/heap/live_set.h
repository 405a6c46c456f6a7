// Which sampled allocations are alive, by address. Strongest property: a free of anything else
// looks at one byte, and rarely, without a lock, at a few more; no call waits for long, whatever
// became of a thread that was inside. Zeroed memory is an empty set: it needs no constructor, and
// a child of a fork that finds it wiped finds it empty and unlocked.
//
//   address ─hash─► byte of the filter: how many live samples share it (255: that many or more)
//              └──► shard (its lock, its count) ─► entries, open addressing, no tombstones
//
// Spec: docs/spec/heap_samples.md, "Live set".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace dial9::heap {

// A sampled allocation.
struct LiveEntry {
  std::uint64_t address;  // 0: none
  std::uint64_t size;     // as asked for
  std::uint64_t at_ns;
};

class LiveSet {
 public:
  static constexpr std::uint32_t kFilterBits = 17;
  static constexpr std::uint32_t kShardBits = 6;
  static constexpr std::uint32_t kShards = 1U << kShardBits;
  static constexpr std::uint32_t kEntries = 3072;  // that a shard may hold
  static constexpr std::uint32_t kSlots = 4096;
  static constexpr std::uint32_t kMost = kShards * kEntries;

  // False: none of it is in here. True: it may be.
  bool may_hold(const void* pointer) const noexcept {
    return __atomic_load_n(&filter_[hash(pointer) >> (64 - kFilterBits)], __ATOMIC_RELAXED) != 0;
  }

  // False: there is no room, or its lock can't be had.
  bool insert(const LiveEntry& entry) noexcept;

  enum class Removed : std::uint8_t {
    kNothing,  // it wasn't in
    kEntry,    // it was, and is in *entry
    kUnknown,  // its lock can't be had: it is in still, if it was
  };
  Removed remove(const void* pointer, LiveEntry* entry) noexcept;

  std::uint64_t size() const noexcept;
  // Forgets all of it. Others may be inserting and removing.
  void clear() noexcept;
  // Tests only: as if threads were inside that never come back.
  void hold_all_locks_for_test() noexcept;

 private:
  struct alignas(64) Shard {
    std::uint32_t lock;
    std::uint32_t version;  // odd while entries are being moved
    std::uint32_t count;
  };
  static std::uint64_t hash(const void* pointer) noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer) * 0x9E37'79B9'7F4A'7C15;
  }
  static bool lock(Shard& shard) noexcept;
  static void unlock(Shard& shard) noexcept;
  static std::uint32_t slot_of(std::uint64_t address) noexcept;
  std::uint32_t find(std::uint32_t shard, std::uint64_t address) const noexcept;
  bool is_surely_absent(std::uint32_t shard, std::uint64_t address) const noexcept;
  void take_out(std::uint32_t shard, std::uint32_t slot) noexcept;

  std::uint8_t
      filter_[1U << kFilterBits];  // a byte belongs to one shard, and is written under its lock
  Shard shards_[kShards];
  LiveEntry entries_[kShards][kSlots];
};

}  // namespace dial9::heap
