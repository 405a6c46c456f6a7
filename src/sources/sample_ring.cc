// See sample_ring.h. A place's `turn` says whose it is: the position of the writer that may take
// it, one more for the reader, and then that of the next round's writer; each less the place's
// index, so that fresh pages of zeros are an empty ring. A place that was passed over is nobody's
// until its writer gives it back: writers and the reader step over it.
// SPDX-License-Identifier: Apache-2.0
#include "sources/sample_ring.h"

#include <sys/mman.h>

#include <new>

namespace dial9::internal {
namespace {

// Turns of places out of use. No position comes to be so large.
constexpr std::uint64_t kAbandoned = ~std::uint64_t{0};      // its writer may still be at it
constexpr std::uint64_t kGivenBack = ~std::uint64_t{0} - 1;  // the writer is done with it

bool is_out_of_use(std::uint64_t turn) { return turn >= kGivenBack; }

}  // namespace

SampleRing::SampleRing(Sample* samples, std::size_t slots) noexcept
    : samples_(samples), mask_(slots - 1) {}

SampleRing* SampleRing::make(std::size_t slots) noexcept {
  void* memory = ::mmap(nullptr, slots * sizeof(Sample), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  (void)::madvise(memory, slots * sizeof(Sample), MADV_NOHUGEPAGE);  // a page a use, not 2 MiB
  auto* ring = new (std::nothrow) SampleRing(static_cast<Sample*>(memory), slots);
  if (ring == nullptr) ::munmap(memory, slots * sizeof(Sample));
  return ring;
}

void SampleRing::restart() noexcept {
  // Locked memory can't be given back; then it is there anyway.
  if (::madvise(samples_, slots() * sizeof(Sample), MADV_DONTNEED) != 0) {
    for (std::size_t i = 0; i <= mask_; ++i) samples_[i].turn = samples_[i].weight = 0;
  }
  tail_ = head_ = lost_ = lost_weight_ = watched_tail_ = watched_ns_ = 0;
}

Sample* SampleRing::claim(std::uint32_t weight) noexcept {
  std::uint64_t position = __atomic_load_n(&tail_, __ATOMIC_RELAXED);
  for (;;) {
    Sample& sample = samples_[position & mask_];
    // Acquire: the reader is done with it (pairs with the release in pop).
    const std::uint64_t turn = __atomic_load_n(&sample.turn, __ATOMIC_ACQUIRE);
    const bool is_dead = is_out_of_use(turn);
    // Positions behind a dead place are taken no further than a round ahead of the reader.
    const std::uint64_t due =
        is_dead ? __atomic_load_n(&head_, __ATOMIC_RELAXED) + mask_ : turn + (position & mask_);
    if (is_dead ? static_cast<std::int64_t>(due - position) >= 0 : due == position) {
      if (__atomic_compare_exchange_n(&tail_, &position, position + 1, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
        if (!is_dead) {
          __atomic_store_n(&sample.weight, weight, __ATOMIC_RELAXED);
          return &sample;
        }
        ++position;
      }
    } else if (static_cast<std::int64_t>(due - position) < 0) {
      __atomic_fetch_add(&lost_, 1, __ATOMIC_RELAXED);
      __atomic_fetch_add(&lost_weight_, weight, __ATOMIC_RELAXED);
      return nullptr;
    } else {
      position = __atomic_load_n(&tail_, __ATOMIC_RELAXED);
    }
  }
}

void SampleRing::publish(Sample* sample) noexcept {
  // Release pairs with the acquire in front(), and of what the writer left in a place that was
  // passed over.
  std::uint64_t turn = __atomic_load_n(&sample->turn, __ATOMIC_RELAXED);
  if (turn == kAbandoned || !__atomic_compare_exchange_n(&sample->turn, &turn, turn + 1, false,
                                                         __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    __atomic_store_n(&sample->turn, kGivenBack, __ATOMIC_RELEASE);
  }
}

const Sample* SampleRing::front() noexcept {
  for (;;) {
    const Sample& sample = samples_[head_ & mask_];
    const std::uint64_t turn = __atomic_load_n(&sample.turn, __ATOMIC_ACQUIRE);
    if (!is_out_of_use(turn)) return turn + (head_ & mask_) == head_ + 1 ? &sample : nullptr;
    if (head_ == __atomic_load_n(&tail_, __ATOMIC_RELAXED)) return nullptr;
    // Writers have stepped over it as well: this round of it is nobody's.
    if (turn == kGivenBack) {
      pop();
    } else {
      __atomic_store_n(&head_, head_ + 1, __ATOMIC_RELAXED);
    }
  }
}

void SampleRing::pop() noexcept {
  Sample& sample = samples_[head_ & mask_];
  __atomic_store_n(&sample.weight, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&sample.turn, head_ + mask_ + 1 - (head_ & mask_), __ATOMIC_RELEASE);
  __atomic_store_n(&head_, head_ + 1, __ATOMIC_RELAXED);
}

// The oldest, which is claimed and not published.
void SampleRing::pass_over_front() noexcept {
  Sample& sample = samples_[head_ & mask_];
  std::uint64_t turn = head_ - (head_ & mask_);
  // Published at last: it is read as any other.
  if (!__atomic_compare_exchange_n(&sample.turn, &turn, kAbandoned, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED)) {
    return;
  }
  const std::uint32_t weight = __atomic_load_n(&sample.weight, __ATOMIC_RELAXED);
  __atomic_fetch_add(&lost_, 1, __ATOMIC_RELAXED);
  // 0: it stopped before it had a weight, and stands for one period at least.
  __atomic_fetch_add(&lost_weight_, weight == 0 ? 1 : weight, __ATOMIC_RELAXED);
  __atomic_store_n(&head_, head_ + 1, __ATOMIC_RELAXED);
}

bool SampleRing::pass_over_stuck(std::uint64_t now_ns) noexcept {
  const std::uint64_t tail = __atomic_load_n(&tail_, __ATOMIC_RELAXED);
  if (front() != nullptr || head_ == tail) return false;
  if (head_ >= watched_tail_) {
    watched_tail_ = tail;
    watched_ns_ = now_ns;
  }
  if (now_ns < watched_ns_ || now_ns - watched_ns_ <= kStuckNs) return false;
  pass_over_front();
  return true;
}

void SampleRing::drop_all() noexcept {
  const std::uint64_t end = __atomic_load_n(&tail_, __ATOMIC_RELAXED);
  while (head_ < end) {
    if (front() != nullptr) {
      pop();
    } else if (head_ < end) {
      pass_over_front();
    }
  }
}

}  // namespace dial9::internal
