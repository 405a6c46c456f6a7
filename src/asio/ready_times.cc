// SPDX-License-Identifier: Apache-2.0
#include "asio/ready_times.h"

#include <atomic>

namespace dial9::asio::hooks {

constinit ObjectNotes g_cancels{};
constinit ObjectNotes g_strands{};

namespace {

// A registration and its descriptor in one word, so that no reader sees half a change: the address
// (47 bits, 8-aligned at least) above, the descriptor (20 bits) below.
constexpr std::uint32_t kSets = 4096;
constexpr std::uint32_t kWays = 4;
constexpr std::uint64_t kFdBits = 20;
constexpr std::uint64_t kFdMask = (std::uint64_t{1} << kFdBits) - 1;

constinit std::atomic<std::uint64_t> g_registrations[kSets][kWays];
constinit std::atomic<std::uint64_t> g_readable_ns[kMaxFd];
constinit std::atomic<std::uint64_t> g_writable_ns[kMaxFd];

std::uint64_t key_of(std::uintptr_t registration) noexcept {
  return static_cast<std::uint64_t>(registration >> 3) << kFdBits;
}

std::atomic<std::uint64_t>* set_of(std::uintptr_t registration) noexcept {
  return g_registrations[((registration >> 4) * 0x9E37'79B9'7F4A'7C15) >> 52];
}

}  // namespace

void map_registration(std::uintptr_t registration, std::uint32_t fd) noexcept {
  std::atomic<std::uint64_t>* ways = set_of(registration);
  const std::uint64_t key = key_of(registration);
  std::uint32_t way =
      static_cast<std::uint32_t>(registration >> 8) % kWays;  // given up if none is free
  for (std::uint32_t i = 0; i < kWays; ++i) {
    const std::uint64_t word = ways[i].load(std::memory_order_relaxed);
    if ((word & ~kFdMask) == key) {
      way = i;
      break;
    }
    if (word == 0) way = i;
  }
  ways[way].store(fd < kMaxFd ? (key | fd) : 0, std::memory_order_relaxed);
  if (fd < kMaxFd) {
    g_readable_ns[fd].store(0, std::memory_order_relaxed);
    g_writable_ns[fd].store(0, std::memory_order_relaxed);
  }
}

void unmap_registration(std::uintptr_t registration) noexcept {
  std::atomic<std::uint64_t>* ways = set_of(registration);
  for (std::uint32_t i = 0; i < kWays; ++i) {
    std::uint64_t word = ways[i].load(std::memory_order_relaxed);
    if ((word & ~kFdMask) != key_of(registration)) continue;
    ways[i].compare_exchange_strong(word, 0, std::memory_order_relaxed);
  }
}

std::uint32_t fd_of_registration(std::uintptr_t registration) noexcept {
  const std::atomic<std::uint64_t>* ways = set_of(registration);
  for (std::uint32_t i = 0; i < kWays; ++i) {
    const std::uint64_t word = ways[i].load(std::memory_order_relaxed);
    if ((word & ~kFdMask) == key_of(registration))
      return static_cast<std::uint32_t>(word & kFdMask);
  }
  return kNoFd;
}

void set_ready(std::uint32_t fd, bool is_read, bool is_write, std::uint64_t when_ns) noexcept {
  if (fd >= kMaxFd) return;
  if (is_read) g_readable_ns[fd].store(when_ns, std::memory_order_relaxed);
  if (is_write) g_writable_ns[fd].store(when_ns, std::memory_order_relaxed);
}

std::uint64_t last_readable_ns(std::uint32_t fd) noexcept {
  return fd < kMaxFd ? g_readable_ns[fd].load(std::memory_order_relaxed) : 0;
}

std::uint64_t last_writable_ns(std::uint32_t fd) noexcept {
  return fd < kMaxFd ? g_writable_ns[fd].load(std::memory_order_relaxed) : 0;
}

namespace {

std::uint32_t note_slot(const void* object, std::uint32_t slots) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(object);
  return static_cast<std::uint32_t>(((address >> 4) * 0x9E37'79B9'7F4A'7C15) >> 40) % slots;
}

template <class T>
T load(const T& from, std::memory_order order = std::memory_order_relaxed) noexcept {
  return std::atomic_ref(const_cast<T&>(from)).load(order);
}

}  // namespace

void ObjectNotes::set(const void* object, const ObjectNote& note) noexcept {
  Slot& slot = slots_[note_slot(object, kSlots)];
  // Two writers of one slot: the second gives up, and the first one's object stays right.
  const std::uintptr_t before = load(slot.object);
  std::uintptr_t expected = before;
  constexpr std::uintptr_t kBusy = 1;
  if (before == kBusy ||
      !std::atomic_ref(slot.object)
           .compare_exchange_strong(expected, kBusy, std::memory_order_acquire)) {
    return;
  }
  std::atomic_ref(slot.when_ns).store(note.when_ns, std::memory_order_release);
  std::atomic_ref(slot.who).store(note.who, std::memory_order_release);
  std::atomic_ref(slot.tid).store(note.tid, std::memory_order_release);
  std::atomic_ref(slot.object)
      .store(reinterpret_cast<std::uintptr_t>(object), std::memory_order_release);
}

bool ObjectNotes::get(const void* object, ObjectNote* note) const noexcept {
  const Slot& slot = slots_[note_slot(object, kSlots)];
  const auto address = reinterpret_cast<std::uintptr_t>(object);
  if (load(slot.object, std::memory_order_acquire) != address) return false;
  note->when_ns = load(slot.when_ns, std::memory_order_acquire);
  note->who = load(slot.who, std::memory_order_acquire);
  note->tid = static_cast<std::uint32_t>(load(slot.tid, std::memory_order_acquire));
  return load(slot.object) == address;
}

}  // namespace dial9::asio::hooks
