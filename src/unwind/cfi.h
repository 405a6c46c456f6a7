// Call frame information: what a frame description entry says about one address. Reads untrusted
// bytes through TableReader; work is bounded by the entry's length and the source's budget.
// Specs: DWARF 5, 6.4; LSB 5.0, 10.6 (.eh_frame).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "unwind/arch.h"
#include "unwind/registers.h"
#include "unwind/table_reader.h"

namespace dial9::unwind {

// Rules are small, since a program's rows are kept on a signal handler's stack.

// A DWARF expression where it lies.
struct ExpressionSpan {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

// How the canonical frame address (CFA: the caller's sp before the call) is found.
struct CfaRule {
  std::uint32_t reg = kNoRegister;
  std::uint32_t expression_bytes = 0;  // 0: register + offset
  std::uint64_t operand = 0;           // the offset, or the expression's address

  bool is_expression() const { return expression_bytes != 0; }
  std::int64_t offset_bytes() const { return static_cast<std::int64_t>(operand); }
  ExpressionSpan expression() const { return {operand, expression_bytes}; }
};

// How one register of the caller is found.
struct RegisterRule {
  enum class Kind : std::uint8_t {
    kSame,             // still in its register
    kUndefined,        // lost; for the return address: this is the outermost frame
    kAtCfa,            // saved at CFA + offset
    kIsCfa,            // its value is CFA + offset
    kRegister,         // saved in another register
    kAtExpression,     // saved at the expression's value
    kIsExpression,     // the expression's value
  };
  Kind kind = Kind::kSame;
  std::uint32_t expression_bytes = 0;
  std::uint64_t operand = 0;  // the offset, the other register, or the expression's address

  std::int64_t offset_bytes() const { return static_cast<std::int64_t>(operand); }
  ExpressionSpan expression() const { return {operand, expression_bytes}; }
};

// The row of the table that holds at one address, reduced to what a walk needs.
struct FrameRules {
  CfaRule cfa;
  RegisterRule fp;
  RegisterRule ra;
  RegisterRule extra;
  bool is_signal_frame = false;
  std::uint64_t begin = 0;  // of the function, or the part of one, that the entry describes
};

// Where an address's code and its description are.
struct FrameEntry {
  std::uint64_t address = 0;       // of the entry
  std::uint64_t limit = 0;         // no table byte lies at or beyond
  std::uint64_t module_begin = 0;  // nor below
};

// Evaluates the entry for `pc`. `kNone` with `covers` false: the entry describes other addresses.
TableError read_frame_rules(TableSource& source, const FrameEntry& entry, std::uint64_t pc,
                            const RegisterNumbers& numbers, FrameRules& rules, bool& covers);

}  // namespace dial9::unwind
