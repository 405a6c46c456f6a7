// Parsing of single values, shared by the decoder and the element cursor: finds where a value ends
// and what is in it. Never reads at or past `end`, never allocates, never recurses; where bytes are
// missing it says how many at least, so that a caller who joins chunks tries again only when it can
// have got further.
// Internal to format/. Spec: docs/spec/trace_format.md, "Field types".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "format/decoder.h"
#include "format/pool.h"
#include "format/wire.h"

namespace dial9::format {

enum class Parse : std::uint8_t {
  kDone,
  kNeedsMore,       // the input ends inside; Input::missing is set
  kBadHeader,       // not the magic at the start of the input
  kBadLaterHeader,  // nor at the start of a further stream
  kBadVersion,
  kUnknownFrame,
  kUnknownType,     // of a field or an element
  kUnknownTypeId,   // an event without a schema
  kTypeIdConflict,  // another schema under the same type id
  kBadFlag,         // a presence or timestamp byte that is neither 0 nor 1
  kBadVarint,       // over 64 bits
  kTooDeep,         // containers nested over kMaxNesting
  kUndefinedStack,  // a reference to a stack that isn't in the pool
  kTimeOverflow,    // a timestamp over 64 bits
  kFrameTooLarge,   // over DecodeLimits::frame_bytes
  kHoldsTooMuch,    // definitions over DecodeLimits::held_bytes
  kCancelled,       // by the visitor
};

// Where a parse stands. All functions below move `p` over what they have taken.
struct Input {
  const std::uint8_t* p;
  const std::uint8_t* end;
  // After kNeedsMore: at least so many bytes behind `end` are needed.
  std::uint64_t missing = 0;
  // After any other failure: the offending byte.
  const std::uint8_t* culprit = nullptr;

  std::uint64_t available() const { return static_cast<std::uint64_t>(end - p); }
  bool has(std::uint64_t bytes) {
    if (available() >= bytes) {
      return true;
    }
    missing = bytes - available();
    return false;
  }
  Parse fail(Parse why, const std::uint8_t* where) {
    culprit = where;
    return why;
  }
};

// Takes one value of `type` (without the optional bit) and describes it in `out`, whose `type` and
// `is_present` are left alone. `depth`: the level that the value would have if it is a container
// (1: a field's own). `stacks`: where pooled stacks must be defined; nullptr: not checked.
Parse parse_value(Input& in, FieldType type, std::uint32_t depth, const StackPool* stacks,
                  Value& out);

constexpr bool is_known_type(std::uint8_t type) { return type >= 1 && type <= kLastFieldType; }

}  // namespace dial9::format
