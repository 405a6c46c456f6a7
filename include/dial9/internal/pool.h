// String and stack pools of the open chunk: finding what it has defined, and what a definition
// takes. Strongest property: an id never stands for another text than the one recorded, since a
// text is compared with the chunk's own bytes, not only hashed. Spec: docs/spec/recorder.md,
// "Pools".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dial9/internal/fields.h"
#include "dial9/internal/thread_buffer.h"

namespace dial9::internal {

inline constexpr std::size_t kStringFrameBytes = 13;  // tag, count, id, length
inline constexpr std::size_t kStackFrameBytes = 13;

inline std::uint32_t hash_text(const char* data, std::size_t size) noexcept {
  std::uint64_t h = size * 0x9E37'79B9'7F4A'7C15;
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, data + i, 8);
    h = (h ^ word) * 0xFF51'AFD7'ED55'8CCD;
    h ^= h >> 32;
  }
  std::uint64_t tail = 0;
  for (std::size_t shift = 0; i < size; ++i, shift += 8) {
    tail |= std::uint64_t{static_cast<std::uint8_t>(data[i])} << shift;
  }
  h = (h ^ tail) * 0xFF51'AFD7'ED55'8CCD;
  return static_cast<std::uint32_t>(h >> 32);
}

// Whether the open chunk has the value, and by which id. An absent optional counts as known.
inline bool pool_find(const ThreadBuffer& buffer, const SymbolField& v,
                      std::uint32_t& id) noexcept {
  id = __atomic_load_n(&v.symbol->id, __ATOMIC_RELAXED);
  return buffer.tables->symbols[id % kSymbolSlots] == id;
}
inline bool pool_find(const ThreadBuffer& buffer, const interned& v, std::uint32_t& id) noexcept {
  if (v.symbol != nullptr) return pool_find(buffer, SymbolField{v.symbol}, id);
  id = 0;
  if (__builtin_expect(v.size >= kMostFieldBytes, 0)) return false;
  const std::uint32_t hash = hash_text(v.data, v.size);
  const ChunkTables::Text& slot = buffer.tables->texts[hash % kTextSlots];
  id = slot.id;
  return id != 0 && slot.hash == hash && slot.size == v.size &&
         __builtin_memcmp(buffer.begin + slot.offset, v.data, v.size) == 0;
}
// Stacks are long and rarely repeat within a chunk: defined anew each time.
inline bool pool_find(const ThreadBuffer&, const callchain&, std::uint32_t& id) noexcept {
  id = 0;
  return false;
}
template <class T>
inline bool pool_find(const ThreadBuffer& buffer, const optional<T>& v,
                      std::uint32_t& id) noexcept {
  id = 0;
  return !v.has_value || pool_find(buffer, v.value, id);
}
template <class T, Unit U, Kind K, Role R>
inline bool pool_find(const ThreadBuffer& b, const annotated<T, U, K, R>& v,
                      std::uint32_t& id) noexcept {
  return pool_find(b, v.value, id);
}

inline std::size_t pool_definition_bytes(const interned& v) noexcept {
  return kStringFrameBytes +
         (v.symbol != nullptr ? __builtin_strlen(v.symbol->text) : field_bytes(v.size));
}
inline std::size_t pool_definition_bytes(const SymbolField& v) noexcept {
  return pool_definition_bytes(interned(*v.symbol));
}
inline std::size_t pool_definition_bytes(const callchain& v) noexcept {
  return kStackFrameBytes + field_bytes(v.count, 8);
}
template <class T>
inline std::size_t pool_definition_bytes(const optional<T>& v) noexcept {
  return v.has_value ? pool_definition_bytes(v.value) : 0;
}
template <class T, Unit U, Kind K, Role R>
inline std::size_t pool_definition_bytes(const annotated<T, U, K, R>& v) noexcept {
  return pool_definition_bytes(v.value);
}

// Finds the value or writes its pool frame at the cursor; thread_reserve() made the room.
std::uint32_t pool_define(ThreadBuffer& buffer, const interned& v) noexcept;
std::uint32_t pool_define(ThreadBuffer& buffer, const callchain& v) noexcept;
inline std::uint32_t pool_define(ThreadBuffer& buffer, const SymbolField& v) noexcept {
  return pool_define(buffer, interned(*v.symbol));
}
template <class T>
inline std::uint32_t pool_define(ThreadBuffer& buffer, const optional<T>& v) noexcept {
  return v.has_value ? pool_define(buffer, v.value) : 0;
}
template <class T, Unit U, Kind K, Role R>
inline std::uint32_t pool_define(ThreadBuffer& b, const annotated<T, U, K, R>& v) noexcept {
  return pool_define(b, v.value);
}

}  // namespace dial9::internal
