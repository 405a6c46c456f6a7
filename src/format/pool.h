// A pool of one stream: u32 ids to strings or stacks, copied from the input. Entries never move, so
// views stay valid until clear() or a new definition of the id. Memory is a small multiple of the
// bytes given whatever the ids: ids near zero lie in an array, far ones in a tree.
// Internal to format/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace dial9::format {

template <class T>
class Pool {
 public:
  // Room for an entry of `size` units, to be filled by the caller. An earlier definition of `id` is
  // replaced (its bytes stay until clear()).
  std::span<T> define(std::uint32_t id, std::uint32_t size) {
    T* const data = allocate(size);
    ++defined_;
    slot(id) = Entry{data, size};
    return {data, size};
  }

  bool contains(std::uint32_t id) const { return find_entry(id) != nullptr; }

  std::optional<std::span<const T>> find(std::uint32_t id) const {
    const Entry* const entry = find_entry(id);
    if (entry == nullptr) {
      return std::nullopt;
    }
    return std::span<const T>(entry->data, entry->size);
  }

  // What it takes of memory, with overhead.
  std::uint64_t bytes() const {
    constexpr std::uint64_t kFarBytes = sizeof(Entry) + 48;  // of the tree's node
    return block_bytes_ + near_.capacity() * sizeof(Entry) + far_.size() * kFarBytes;
  }

  // Forgets all entries; keeps one block of memory for the next stream.
  void clear() {
    if (near_.capacity() > kNearKept) {
      near_ = {};
    }
    near_.clear();
    far_.clear();
    defined_ = 0;
    blocks_.resize(std::min<std::size_t>(blocks_.size(), 1));
    block_bytes_ = blocks_.empty() ? 0 : blocks_.front().capacity * sizeof(T);
    used_ = 0;
  }

 private:
  struct Entry {
    const T* data = nullptr;  // nullptr: not defined
    std::uint32_t size = 0;
  };
  struct Block {
    std::unique_ptr<T[]> data;
    std::size_t capacity;
  };

  static constexpr std::size_t kFirstBlock = 512;
  static constexpr std::size_t kLargestBlock = 32 * 1024;
  static constexpr std::uint64_t kNearFloor = 256;     // ids below are always in the array
  static constexpr std::size_t kNearKept = 64 * 1024;  // slots over a clear()

  const Entry* find_entry(std::uint32_t id) const {
    if (id < near_.size() && near_[id].data != nullptr) {
      return &near_[id];
    }
    if (!far_.empty()) {
      if (const auto found = far_.find(id); found != far_.end()) {
        return &found->second;
      }
    }
    return nullptr;
  }

  // Where `id` is or will be kept. The array grows to 4 slots an entry at most.
  Entry& slot(std::uint32_t id) {
    if (id < kNearFloor + 4 * defined_) {
      far_.erase(id);
      if (id >= near_.size()) {
        near_.resize(std::size_t{id} + 1);
      }
      return near_[id];
    }
    return far_[id];
  }

  T* allocate(std::size_t size) {
    if (blocks_.empty() || blocks_.back().capacity - used_ < size) {
      const std::size_t grown =
          blocks_.empty() ? kFirstBlock : std::min(kLargestBlock, 2 * blocks_.back().capacity);
      const std::size_t capacity = std::max(grown, size);
      blocks_.push_back(Block{std::make_unique_for_overwrite<T[]>(capacity), capacity});
      block_bytes_ += capacity * sizeof(T);
      used_ = 0;
    }
    T* const data = blocks_.back().data.get() + used_;
    used_ += size;
    return data;
  }

  std::vector<Entry> near_;
  std::map<std::uint32_t, Entry> far_;
  std::uint64_t defined_ = 0;
  std::vector<Block> blocks_;
  std::uint64_t block_bytes_ = 0;
  std::size_t used_ = 0;  // of the last block
};

using StringPool = Pool<char>;
using StackPool = Pool<std::uint64_t>;

}  // namespace dial9::format
