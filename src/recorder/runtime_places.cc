// Names that aren't literals, interned: one Place for a text, for ever. Look-ups of known texts are
// lock-free; the table is bounded and never shrinks, since a Place is kept by pointer in events.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "dial9/internal/pool.h"
#include "recorder/runtime_state.h"

namespace dial9::internal {
namespace {

constexpr std::uint32_t kMaxPlaces = 4096;
constexpr std::uint32_t kPlaceSlots = 2 * kMaxPlaces;
constexpr std::size_t kMaxPlaceBytes = 200;
constexpr std::size_t kTextBytes = 256 << 10;

constinit std::atomic<runtime::Place*> g_slots[kPlaceSlots];
constinit runtime::Place g_places[kMaxPlaces] = {};
constinit std::uint32_t g_place_count = 0;
constinit std::size_t g_text_used = 0;
char g_texts[kTextBytes];
constinit runtime::Place g_too_many{"(too many names)"};

bool is_text(const runtime::Place& place, const char* text, std::size_t size) noexcept {
  return std::strncmp(place.text, text, size) == 0 && place.text[size] == 0;
}

// The place, or the free slot where it belongs.
runtime::Place* find(const char* text, std::size_t size, std::uint32_t* slot) noexcept {
  *slot = hash_text(text, size) % kPlaceSlots;
  for (;; *slot = (*slot + 1) % kPlaceSlots) {
    // Acquire: pairs with the release store of a finished Place.
    runtime::Place* place = g_slots[*slot].load(std::memory_order_acquire);
    if (place == nullptr || is_text(*place, text, size)) return place;
  }
}

}  // namespace

runtime::Place* intern_place_locked(const char* text, std::size_t size) noexcept {
  size = std::min(size, kMaxPlaceBytes);
  std::uint32_t slot;
  if (runtime::Place* known = find(text, size, &slot)) return known;
  if (g_place_count == kMaxPlaces || g_text_used + size + 1 > kTextBytes) return &g_too_many;
  char* copy = g_texts + g_text_used;
  std::memcpy(copy, text, size);
  copy[size] = 0;
  g_text_used += size + 1;
  runtime::Place* place = &g_places[g_place_count++];
  place->text = copy;
  g_slots[slot].store(place, std::memory_order_release);
  return place;
}

}  // namespace dial9::internal

namespace dial9::runtime {

Place* intern_place(const char* text, std::size_t size) noexcept {
  size = std::min(size, internal::kMaxPlaceBytes);
  std::uint32_t slot;
  if (Place* known = internal::find(text, size, &slot)) return known;
  const internal::RegistryLock lock;
  return internal::intern_place_locked(text, size);
}

}  // namespace dial9::runtime
