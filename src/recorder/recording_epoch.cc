// The epoch and the clock line that all threads share: see recording_state.h. Each is one word, or
// read under a sequence lock; nobody waits.
// Spec: docs/spec/recorder.md, "Time".
// SPDX-License-Identifier: Apache-2.0
#include "recorder/recording_state.h"
#include "recorder/shedding.h"

namespace dial9::internal {

namespace {

// Not on the fork's page: an epoch of a child's own recording is none of its parent's.
constinit std::uint32_t g_last_epoch = 0;

// A sequence lock over the clock line: odd while it is being written.
constinit std::uint32_t g_clock_version = 0;
constinit ClockLine g_clock{0, 0, 0};

std::uint32_t next_epoch() noexcept {
  std::uint32_t epoch = 0;
  do {
    epoch = __atomic_add_fetch(&g_last_epoch, 1, __ATOMIC_RELAXED) & ~kSheddingBit;
  } while (epoch == 0);
  return epoch | __atomic_load_n(&g_fork_page.epoch_bits, __ATOMIC_RELAXED);
}

// Gives the epoch the bits that it should have. Whoever changed one of the two calls it afterwards:
// sequentially consistent, so that of two who do so at once one sees both.
void settle_bits() noexcept {
  for (;;) {
    std::uint32_t epoch = __atomic_load_n(&g_fork_page.epoch, __ATOMIC_SEQ_CST);
    const std::uint32_t bits = __atomic_load_n(&g_fork_page.epoch_bits, __ATOMIC_SEQ_CST);
    if (epoch == 0 || (epoch & kSheddingBit) == bits) return;
    // Also release, which pairs with the acquire load in thread_enter(): who sees the bit sees the
    // rates.
    __atomic_compare_exchange_n(&g_fork_page.epoch, &epoch, (epoch & ~kSheddingBit) | bits, false,
                                __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
  }
}

}  // namespace

void open_epoch() noexcept {
  __atomic_store_n(&g_fork_page.epoch, next_epoch(), __ATOMIC_SEQ_CST);
  settle_bits();
}

void close_epoch() noexcept { __atomic_store_n(&g_fork_page.epoch, 0, __ATOMIC_SEQ_CST); }

void renew_epoch() noexcept {
  std::uint32_t epoch = __atomic_load_n(&g_fork_page.epoch, __ATOMIC_RELAXED);
  // Again where someone enabled, disabled or marked it meanwhile: he may have done so before the
  // new line was published.
  while (epoch != 0 && !__atomic_compare_exchange_n(&g_fork_page.epoch, &epoch, next_epoch(), false,
                                                    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
}

void mark_epoch(std::uint32_t bits) noexcept {
  __atomic_store_n(&g_fork_page.epoch_bits, bits, __ATOMIC_SEQ_CST);
  settle_bits();
}

void publish_clock(const ClockLine& line) noexcept {
  const std::uint32_t version = __atomic_load_n(&g_clock_version, __ATOMIC_RELAXED);
  __atomic_store_n(&g_clock_version, version + 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  __atomic_store_n(&g_clock.tsc_base, line.tsc_base, __ATOMIC_RELAXED);
  __atomic_store_n(&g_clock.ns_base, line.ns_base, __ATOMIC_RELAXED);
  __atomic_store_n(&g_clock.mult, line.mult, __ATOMIC_RELAXED);
  __atomic_store_n(&g_clock_version, version + 2, __ATOMIC_RELEASE);
}

ClockLine current_clock() noexcept {
  // A reader that keeps meeting a writer (it would have to be interrupted each time) reads the
  // kernel's clock rather than wait: it may be a signal handler on the writer's own thread.
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::uint32_t before = __atomic_load_n(&g_clock_version, __ATOMIC_ACQUIRE);
    ClockLine line{};
    line.tsc_base = __atomic_load_n(&g_clock.tsc_base, __ATOMIC_RELAXED);
    line.ns_base = __atomic_load_n(&g_clock.ns_base, __ATOMIC_RELAXED);
    line.mult = __atomic_load_n(&g_clock.mult, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if ((before & 1) == 0 && __atomic_load_n(&g_clock_version, __ATOMIC_RELAXED) == before) {
      return line;
    }
  }
  return ClockLine{0, 0, 0};
}

}  // namespace dial9::internal
