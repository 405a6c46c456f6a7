// The memory ring: see memory_store.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/memory_store.h"

#include <utility>

namespace dial9::internal {

Result<void> MemoryStore::open(std::uint64_t index, std::uint64_t reserve_bytes) {
  const std::lock_guard lock(mutex_);
  while (!sealed_.empty() && sealed_bytes_ + reserve_bytes > budget_bytes_) {
    sealed_bytes_ -= sealed_.front().bytes.size();
    sealed_.pop_front();
    ++evicted_;
  }
  active_.index = index;
  active_.bytes = {};
  active_.bytes.reserve(reserve_bytes);  // address space; pages come as they are written
  return {};
}

Result<void> MemoryStore::append(std::span<const std::uint8_t> bytes) {
  const std::lock_guard lock(mutex_);
  active_.bytes.insert(active_.bytes.end(), bytes.begin(), bytes.end());
  return {};
}

Result<void> MemoryStore::seal() {
  const std::lock_guard lock(mutex_);
  active_.bytes.shrink_to_fit();
  sealed_bytes_ += active_.bytes.size();
  sealed_.push_back(std::exchange(active_, {}));
  return {};
}

void MemoryStore::abandon() {
  const std::lock_guard lock(mutex_);
  active_ = {};
}

std::uint64_t MemoryStore::bytes_held() const {
  const std::lock_guard lock(mutex_);
  return sealed_bytes_ + active_.bytes.size();
}

std::uint64_t MemoryStore::evicted() const {
  const std::lock_guard lock(mutex_);
  return evicted_;
}

std::vector<SegmentBytes> MemoryStore::sealed_segments() const {
  const std::lock_guard lock(mutex_);
  return {sealed_.begin(), sealed_.end()};
}

}  // namespace dial9::internal
