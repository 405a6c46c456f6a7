// One row of an unwind table in 8 bytes: the few shapes that compilers emit for nearly every
// address, and a mark for all the rest, which is evaluated from the table each time.
//
//   kind | fp_rule | cfa_slots | fp_slots | ra_slots      (slots of 8 bytes; 16 bits each)
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "unwind/cfi.h"

namespace dial9::unwind {

struct Row {
  enum class Kind : std::uint8_t {
    kNoTable,       // no entry covers the address
    kFromSp,        // CFA = sp + cfa_slots
    kFromFp,        // CFA = fp + cfa_slots
    kLoadedFromFp,  // CFA = word at fp + cfa_slots (a realigned stack)
    kSignalFrame,   // the interrupted registers are at the sp
    kOutermost,     // nobody called this
    kGeneral,       // anything else: read the table again, with all registers
    kCorrupt,
    kUnsupported,
  };
  enum class FpRule : std::uint8_t { kSame, kAtCfa, kAtFp };

  Kind kind = Kind::kNoTable;
  FpRule fp_rule = FpRule::kSame;
  std::int16_t cfa_slots = 0;
  std::int16_t fp_slots = 0;  // the caller's fp is saved at CFA + fp_slots
  std::int16_t ra_slots = 0;  // the return address likewise; 0: it is still in its register
};
static_assert(sizeof(Row) == 8 && std::bit_cast<std::uint64_t>(Row{}) == 0);

// The row for `rules`; `tables` is where their expressions lie.
Row compact(TableSource& tables, const FrameRules& rules, const RegisterNumbers& numbers);

}  // namespace dial9::unwind
