// How a field type is written: FieldTraits<T> for each, and the descriptions that schemas are made
// of. Strongest property: the bytes are those of format::Encoder (src/recorder/golden_test.cc).
// Spec: docs/spec/trace_format.md, "Field types".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dial9/internal/fields.h"
#include "dial9/internal/thread_buffer.h"

namespace dial9::internal {

// Wire tags; the same numbers as format/wire.h (held together by golden_test.cc).
enum WireType : std::uint8_t {
  kWireI64 = 1,
  kWireF64 = 2,
  kWireBool = 3,
  kWireString = 4,
  kWireBytes = 5,
  kWirePooledStack = 6,
  kWirePooledString = 7,
  kWireStack = 8,
  kWireVarint = 9,
  kWireU8 = 11,
  kWireU16 = 12,
  kWireU32 = 13,
  kWireOptional = 0x80,
};

struct FieldSpec {
  const char* name = nullptr;
  std::uint8_t wire_type = 0;
  Unit unit = Unit::kNone;
  Kind kind = Kind::kNone;
  Role role = Role::kNone;
};

// An event's tag and its type's wire id, as an event begins with them.
constexpr std::uint32_t event_head(std::uint32_t type_id) { return type_id << 8 | 0x02; }

// One event type of the program, with static storage. `id` is its wire type id, given at first use
// and the same in every chunk; 0 until then. `head` is event_head(id), set before a chunk has the
// type's schema.
struct EventType {
  const char* name;
  const FieldSpec* fields;
  std::uint16_t field_count;
  std::uint32_t id;
  std::uint32_t head;
  std::uint8_t shed_role = 0;  // owned by src/recorder/shedding.cc; 0: not looked up yet
};

template <class T>
inline std::uint8_t* put_raw(std::uint8_t* p, T v) noexcept {
  __builtin_memcpy(p, &v, sizeof v);  // little-endian hosts only: src/recorder/arena.cc asserts it
  return p + sizeof v;
}

// Writes up to ten bytes. Counts, small ids and short times fall through.
inline std::uint8_t* put_varint(std::uint8_t* p, std::uint64_t v) noexcept {
  while (__builtin_expect(v >= 0x80, 0)) {
    *p++ = static_cast<std::uint8_t>(v | 0x80);
    v >>= 7;
  }
  *p = static_cast<std::uint8_t>(v);
  return p + 1;
}

inline std::uint8_t* put_block(std::uint8_t* p, const void* data, std::size_t n) noexcept {
  if (n != 0) __builtin_memcpy(p, data, n);
  return p + n;
}

// Every FieldTraits has: kWire; kMaxBytes, the most that its fixed part takes; kIsPooled, and then
// (see pool.h) how it is looked up; extra(v), the bytes beyond kMaxBytes; put(p, v, pool_id).
template <class T, bool kIsEnum = __is_enum(T)>
struct FieldTraits {
  static_assert(
      kIsEnum,
      "dial9: this type cannot be a field of an event or span. Use an integer, bool, float, "
      "double, enum, dial9::text, interned, bytes, stack_frames, callchain, or "
      "dial9::optional / dial9::annotated of one");
};

template <std::uint8_t Wire, std::size_t Max>
struct FixedField {
  static constexpr std::uint8_t kWire = Wire;
  static constexpr std::size_t kMaxBytes = Max;
  static constexpr bool kIsPooled = false;
  static constexpr Unit kUnit = Unit::kNone;
  static constexpr Kind kKind = Kind::kNone;
  static constexpr Role kRole = Role::kNone;
  template <class T>
  static constexpr std::size_t extra(const T&) noexcept {
    return 0;
  }
};

#define DIAL9_INTEGER_FIELD(type, wire, raw)                                    \
  template <>                                                                   \
  struct FieldTraits<type, false> : FixedField<wire, sizeof(raw)> {             \
    static std::uint8_t* put(std::uint8_t* p, type v, std::uint32_t) noexcept { \
      return put_raw(p, static_cast<raw>(v));                                   \
    }                                                                           \
  };
#define DIAL9_VARINT_FIELD(type)                                                \
  template <>                                                                   \
  struct FieldTraits<type, false> : FixedField<kWireVarint, 10> {               \
    static std::uint8_t* put(std::uint8_t* p, type v, std::uint32_t) noexcept { \
      return put_varint(p, v);                                                  \
    }                                                                           \
  };
DIAL9_INTEGER_FIELD(bool, kWireBool, std::uint8_t)
DIAL9_INTEGER_FIELD(unsigned char, kWireU8, std::uint8_t)
DIAL9_INTEGER_FIELD(unsigned short, kWireU16, std::uint16_t)
DIAL9_INTEGER_FIELD(unsigned int, kWireU32, std::uint32_t)
DIAL9_VARINT_FIELD(unsigned long)
DIAL9_VARINT_FIELD(unsigned long long)
DIAL9_INTEGER_FIELD(char, kWireI64, std::int64_t)
DIAL9_INTEGER_FIELD(signed char, kWireI64, std::int64_t)
DIAL9_INTEGER_FIELD(short, kWireI64, std::int64_t)
DIAL9_INTEGER_FIELD(int, kWireI64, std::int64_t)
DIAL9_INTEGER_FIELD(long, kWireI64, std::int64_t)
DIAL9_INTEGER_FIELD(long long, kWireI64, std::int64_t)
DIAL9_INTEGER_FIELD(float, kWireF64, double)
DIAL9_INTEGER_FIELD(double, kWireF64, double)
#undef DIAL9_INTEGER_FIELD
#undef DIAL9_VARINT_FIELD

template <class T>
struct FieldTraits<T, true> : FieldTraits<__underlying_type(T)> {
  using Base = FieldTraits<__underlying_type(T)>;
  static std::uint8_t* put(std::uint8_t* p, T v, std::uint32_t id) noexcept {
    return Base::put(p, static_cast<__underlying_type(T)>(v), id);
  }
};

template <>
struct FieldTraits<text, false> : FixedField<kWireString, 4> {
  static constexpr std::size_t extra(const text& v) noexcept { return field_bytes(v.size); }
  static std::uint8_t* put(std::uint8_t* p, const text& v, std::uint32_t) noexcept {
    return put_block(put_raw(p, static_cast<std::uint32_t>(v.size)), v.data, v.size);
  }
};

template <>
struct FieldTraits<bytes, false> : FixedField<kWireBytes, 4> {
  static constexpr std::size_t extra(const bytes& v) noexcept { return field_bytes(v.size); }
  static std::uint8_t* put(std::uint8_t* p, const bytes& v, std::uint32_t) noexcept {
    return put_block(put_raw(p, static_cast<std::uint32_t>(v.size)), v.data, v.size);
  }
};

template <>
struct FieldTraits<stack_frames, false> : FixedField<kWireStack, 4> {
  static constexpr std::size_t extra(const stack_frames& v) noexcept {
    return field_bytes(v.count, 8);
  }
  static std::uint8_t* put(std::uint8_t* p, const stack_frames& v, std::uint32_t) noexcept {
    return put_block(put_raw(p, static_cast<std::uint32_t>(v.count)), v.frames, v.count * 8);
  }
};

// Pooled: the id was looked up or defined before the event's frame was begun.
template <std::uint8_t Wire>
struct PooledField : FixedField<Wire, 4> {
  static constexpr bool kIsPooled = true;
  template <class T>
  static std::uint8_t* put(std::uint8_t* p, const T&, std::uint32_t id) noexcept {
    return put_raw(p, id);
  }
};
template <>
struct FieldTraits<interned, false> : PooledField<kWirePooledString> {};
template <>
struct FieldTraits<callchain, false> : PooledField<kWirePooledStack> {};
template <>
struct FieldTraits<SymbolField, false> : PooledField<kWirePooledString> {
  // A symbol keeps its id: read again, it needs no register meanwhile.
  static std::uint8_t* put(std::uint8_t* p, const SymbolField& v, std::uint32_t) noexcept {
    return put_raw(p, __atomic_load_n(&v.symbol->id, __ATOMIC_RELAXED));
  }
};

template <class T>
struct FieldTraits<optional<T>, false> : FieldTraits<T> {
  using Base = FieldTraits<T>;
  static_assert((Base::kWire & kWireOptional) == 0,
                "dial9: an optional of an optional is no field");
  static constexpr std::uint8_t kWire = Base::kWire | kWireOptional;
  static constexpr std::size_t kMaxBytes = Base::kMaxBytes + 1;
  static constexpr std::size_t extra(const optional<T>& v) noexcept {
    return v.has_value ? Base::extra(v.value) : 0;
  }
  static std::uint8_t* put(std::uint8_t* p, const optional<T>& v, std::uint32_t id) noexcept {
    *p++ = v.has_value;
    return v.has_value ? Base::put(p, v.value, id) : p;
  }
};

template <class T, Unit U, Kind K, Role R>
struct FieldTraits<annotated<T, U, K, R>, false> : FieldTraits<T> {
  using Base = FieldTraits<T>;
  static constexpr Unit kUnit = U;
  static constexpr Kind kKind = K;
  static constexpr Role kRole = R;
  static constexpr std::size_t extra(const annotated<T, U, K, R>& v) noexcept {
    return Base::extra(v.value);
  }
  static std::uint8_t* put(std::uint8_t* p, const annotated<T, U, K, R>& v,
                           std::uint32_t id) noexcept {
    return Base::put(p, v.value, id);
  }
};

template <class T>
constexpr FieldSpec describe(const char* name) {
  using Traits = FieldTraits<T>;
  return {name, Traits::kWire, Traits::kUnit, Traits::kKind, Traits::kRole};
}

}  // namespace dial9::internal
