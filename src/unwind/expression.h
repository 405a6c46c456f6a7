// Evaluates a DWARF expression of an unwind table: straight-line arithmetic over known registers
// and memory (no branches, no calls: compilers and assemblers emit none here), so work is bounded
// by the expression's length. Async-signal-safe.
// Spec: DWARF 5, 2.5.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "unwind/cfi.h"
#include "unwind/registers.h"
#include "unwind/table_reader.h"

namespace dial9::unwind {

// How an expression reads the stack: false when the word isn't readable.
struct WordSource {
  bool (*load)(void* self, std::uint64_t address, std::uint64_t& word);
  void* self;
};

struct ExpressionResult {
  TableError error = TableError::kNone;
  std::uint64_t value = 0;
  unsigned missing_register = kNoRegister;  // the one whose lack made it kUnsupported
};

// Evaluates `span` with `first` on the stack if `has_first` (the CFA, for register rules).
ExpressionResult evaluate(TableSource& tables, WordSource words, const ExpressionSpan& span,
                          const Registers& registers, bool has_first, std::uint64_t first);

}  // namespace dial9::unwind
