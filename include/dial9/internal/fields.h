// The types that an event's field can have, and how each is written on the wire. Strongest
// property: a type that isn't one of these doesn't compile, with a message that lists what does.
// C++17, without <atomic>, <string> or <type_traits>. Spec: docs/spec/trace_format.md, "Field
// types".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dial9/internal/thread_buffer.h"

namespace dial9 {

// A string that is known for the program's whole life, interned once: `static dial9::Symbol
// gold{"gold"};` The text is kept by pointer (a literal). As a field value it costs one table
// look-up.
struct Symbol {
  const char* text;
  std::uint32_t id = 0;  // owned by the recorder: 0 until first recorded
};

namespace internal {
// A field of more doesn't fit into any chunk: whatever size it claims (a failed read's -1, say),
// its event is dropped as too large.
inline constexpr std::size_t kMostFieldBytes = std::size_t{1} << 30;
constexpr std::size_t field_bytes(std::size_t count, std::size_t each = 1) noexcept {
  return count <= kMostFieldBytes / each ? count * each : kMostFieldBytes;
}
}  // namespace internal

// Text, copied into the event at each record call. Views its source: from a literal, or from
// anything with data() and size() (std::string, std::string_view).
struct text {
  const char* data = "";
  std::size_t size = 0;

  constexpr text() = default;
  constexpr text(const char* s) : data(s), size(__builtin_strlen(s)) {}
  constexpr text(const char* s, std::size_t n) : data(s), size(n) {}
  template <class S, class = decltype(static_cast<const S*>(nullptr)->data() +
                                      static_cast<const S*>(nullptr)->size())>
  constexpr text(const S& s) : data(s.data()), size(s.size()) {}
};

// Text that repeats: written once a chunk, then by pool id. From a Symbol (cheapest), or from any
// text (hashed and compared at each call: short strings only).
struct interned {
  const char* data = "";
  std::size_t size = 0;
  Symbol* symbol = nullptr;

  constexpr interned() = default;
  constexpr interned(Symbol& s) : symbol(&s) {}
  constexpr interned(const char* s) : data(s), size(__builtin_strlen(s)) {}
  constexpr interned(const char* s, std::size_t n) : data(s), size(n) {}
  template <class S, class = decltype(static_cast<const S*>(nullptr)->data() +
                                      static_cast<const S*>(nullptr)->size())>
  constexpr interned(const S& s) : data(s.data()), size(s.size()) {}
};

namespace internal {
// An interned string that is a Symbol in every event of its type.
struct SymbolField {
  Symbol* symbol;
};
}  // namespace internal

// Raw bytes, copied.
struct bytes {
  const void* data = nullptr;
  std::size_t size = 0;

  constexpr bytes() = default;
  constexpr bytes(const void* p, std::size_t n) : data(p), size(n) {}
};

// Code addresses, leaf first, copied into the event.
struct stack_frames {
  const std::uint64_t* frames = nullptr;
  std::size_t count = 0;

  constexpr stack_frames() = default;
  constexpr stack_frames(const std::uint64_t* f, std::size_t n) : frames(f), count(n) {}
};

// The same, by way of the chunk's stack pool: the form that the profiling events use.
struct callchain {
  const std::uint64_t* frames = nullptr;
  std::size_t count = 0;

  constexpr callchain() = default;
  constexpr callchain(const std::uint64_t* f, std::size_t n) : frames(f), count(n) {}
};

// A value that may be absent.
template <class T>
struct optional {
  T value{};
  bool has_value = false;

  constexpr optional() = default;
  constexpr optional(const T& v) : value(v), has_value(true) {}
  template <class U, class = decltype(T(static_cast<U (*)()>(nullptr)()))>
  constexpr optional(U v) : value(static_cast<T>(v)), has_value(true) {}
};

enum class Unit : std::uint8_t { kNone, kNs, kUs, kMs, kSeconds, kBytes, kCount };
enum class Kind : std::uint8_t { kNone, kGauge, kCounter, kUpDownCounter };
enum class Role : std::uint8_t { kNone, kSpanStart, kSpanDuration, kSpanName };

// A value with annotations in the schema; the bytes are those of T.
template <class T, Unit U, Kind K = Kind::kNone, Role R = Role::kNone>
struct annotated {
  T value{};

  constexpr annotated() = default;
  constexpr annotated(T v) : value(v) {}
};

using ns_u64 = annotated<std::uint64_t, Unit::kNs>;
using us_u64 = annotated<std::uint64_t, Unit::kUs>;
using ms_u64 = annotated<std::uint64_t, Unit::kMs>;
using bytes_u64 = annotated<std::uint64_t, Unit::kBytes>;
using count_u64 = annotated<std::uint64_t, Unit::kCount>;
using gauge_u64 = annotated<std::uint64_t, Unit::kNone, Kind::kGauge>;
using gauge_u32 = annotated<std::uint32_t, Unit::kNone, Kind::kGauge>;
using counter_u64 = annotated<std::uint64_t, Unit::kNone, Kind::kCounter>;
using bytes_gauge_u64 = annotated<std::uint64_t, Unit::kBytes, Kind::kGauge>;
using ns_counter_u64 = annotated<std::uint64_t, Unit::kNs, Kind::kCounter>;
// The event is a span that ended at its stamp and lasted this long.
using span_duration_ns = annotated<std::uint64_t, Unit::kNs, Kind::kNone, Role::kSpanDuration>;

}  // namespace dial9
