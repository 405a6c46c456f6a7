// See sample_ring.h. A place's `sequence` says whose turn it is: the position of the writer that
// may take it, one more for the reader, and then that of the next round's writer.
// SPDX-License-Identifier: Apache-2.0
#include "sources/sample_ring.h"

#include <sys/mman.h>

#include <new>

namespace dial9::internal {

SampleRing::SampleRing(Sample* samples, std::size_t slots) noexcept
    : samples_(samples), mask_(slots - 1) {
  restart();
}

SampleRing* SampleRing::make(std::size_t slots) noexcept {
  void* memory = ::mmap(nullptr, slots * sizeof(Sample), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* ring = new (std::nothrow) SampleRing(static_cast<Sample*>(memory), slots);
  if (ring == nullptr) ::munmap(memory, slots * sizeof(Sample));
  return ring;
}

void SampleRing::restart() noexcept {
  for (std::size_t i = 0; i <= mask_; ++i) samples_[i].sequence = i;
  tail_ = head_ = lost_ = lost_weight_ = 0;
}

Sample* SampleRing::claim(std::uint32_t weight) noexcept {
  std::uint64_t position = __atomic_load_n(&tail_, __ATOMIC_RELAXED);
  for (;;) {
    Sample& sample = samples_[position & mask_];
    // Acquire: the reader is done with it (pairs with the release in pop).
    const std::uint64_t turn = __atomic_load_n(&sample.sequence, __ATOMIC_ACQUIRE);
    if (turn == position) {
      if (__atomic_compare_exchange_n(&tail_, &position, position + 1, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
        return &sample;
      }
    } else if (static_cast<std::int64_t>(turn - position) < 0) {
      __atomic_fetch_add(&lost_, 1, __ATOMIC_RELAXED);
      __atomic_fetch_add(&lost_weight_, weight, __ATOMIC_RELAXED);
      return nullptr;
    } else {
      position = __atomic_load_n(&tail_, __ATOMIC_RELAXED);
    }
  }
}

void SampleRing::publish(Sample* sample) noexcept {
  // Release pairs with the acquire in front().
  __atomic_store_n(&sample->sequence, sample->sequence + 1, __ATOMIC_RELEASE);
}

const Sample* SampleRing::front() const noexcept {
  const Sample& sample = samples_[head_ & mask_];
  return __atomic_load_n(&sample.sequence, __ATOMIC_ACQUIRE) == head_ + 1 ? &sample : nullptr;
}

void SampleRing::pop() noexcept {
  __atomic_store_n(&samples_[head_ & mask_].sequence, head_ + mask_ + 1, __ATOMIC_RELEASE);
  ++head_;
}

}  // namespace dial9::internal
