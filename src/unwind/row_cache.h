// Address to row, for the whole process: direct-mapped, 256 KiB, lock-free, async-signal-safe.
//
// An entry is two words, {key ^ mix(row), row}. A reader takes a row only if both words belong to
// the same store, so a torn or racing entry is a miss, never a wrong row; hence relaxed order is
// enough, and losing a race costs one evaluation. Memory is touched (and so spent) only where used.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "unwind/row.h"

namespace dial9::unwind {

class RowCache {
 public:
  static constexpr std::size_t kBits = 14;

  // `key` is not 0.
  bool find(std::uint64_t key, Row& row) const {
    const Entry& entry = entries_[slot(key)];
    const std::uint64_t packed = entry.row.load(std::memory_order_relaxed);
    const std::uint64_t check = entry.check.load(std::memory_order_relaxed);
    if ((check ^ mix(packed)) != key) {
      return false;
    }
    row = std::bit_cast<Row>(packed);
    return true;
  }

  void store(std::uint64_t key, const Row& row) {
    Entry& entry = entries_[slot(key)];
    const auto packed = std::bit_cast<std::uint64_t>(row);
    entry.check.store(key ^ mix(packed), std::memory_order_relaxed);
    entry.row.store(packed, std::memory_order_relaxed);
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> check;
    std::atomic<std::uint64_t> row;
  };
  static std::size_t slot(std::uint64_t key) {
    return (key * 0x9e37'79b9'7f4a'7c15u) >> (64 - kBits);
  }
  // Spreads a row over the word, so that halves of two entries don't fit by their small difference.
  static std::uint64_t mix(std::uint64_t packed) { return packed * 0xd6e8'feb8'6659'fd93u; }

  Entry entries_[std::size_t{1} << kBits];  // zeros: no key
};

}  // namespace dial9::unwind
