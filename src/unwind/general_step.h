// One step to the caller by a table's rules in full generality: any register, any expression. Slow
// (the table is read again) and rare: realigned prologues, hand-written assembly, the dynamic
// linker's trampolines, libgcc's landing. The walk's common shapes are in walker.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/arch.h"
#include "unwind/cfi.h"
#include "unwind/expression.h"
#include "unwind/registers.h"
#include "unwind/unwind.h"

namespace dial9::unwind {

// A frame on the way up: what is known of its registers, and whether it was interrupted or has
// called. A return address lies behind its call, hence the look-up at one less (a call may be a
// function's last instruction); an interrupted address is looked up as it is.
struct Frame {
  Registers registers;
  bool is_interrupted = true;
};

// Does a caller's frame at `cfa` lie above one at `sp`? Where the return address is in a register
// (AArch64's leaves; the last instruction of libgcc's landing) an interrupted frame may be empty.
template <class Arch>
bool is_above(std::uint64_t cfa, std::uint64_t sp, bool is_interrupted) {
  return cfa % Arch::kStackAlign == 0 && cfa >= sp && (cfa > sp || is_interrupted);
}

inline StopReason to_stop_reason(TableError error) {
  switch (error) {
    case TableError::kNone: return StopReason::kNoTable;
    case TableError::kCorrupt: return StopReason::kCorruptTable;
    case TableError::kUnsupported: return StopReason::kUnsupportedRule;
    case TableError::kUnreadable: return StopReason::kUnreadable;
    case TableError::kBudget: return StopReason::kBudget;
  }
  return StopReason::kCorruptTable;
}

template <class Arch, class Stack, class Tables>
class GeneralStep {
 public:
  GeneralStep(Stack& stack, Tables& tables) : stack_(stack), tables_(tables) {}

  // Moves `frame` to its caller, who then knows pc, sp, fp, and the register `extra` if it could be
  // followed. Returns why it can't; missing() is then the register that was needed and not known.
  std::optional<StopReason> to_caller(Frame& frame, unsigned extra) {
    const Registers& registers = frame.registers;
    const std::uint64_t pc = registers[Arch::kPc];
    FrameRules rules;
    if (!tables_.rules(frame.is_interrupted ? pc : pc - 1, extra, rules)) {
      return tables_.failure();
    }
    std::uint64_t cfa = 0;
    std::uint64_t ra = 0;
    std::uint64_t fp = 0;
    if (!find_cfa(rules.cfa, registers, cfa)) {
      return stop_;
    }
    if (!is_above<Arch>(cfa, registers[Arch::kNumbers.sp], frame.is_interrupted)) {
      return StopReason::kImplausibleFrame;
    }
    if (!apply(rules.ra, ra_register(frame), cfa, registers, ra) ||
        !apply(rules.fp, Arch::kNumbers.fp, cfa, registers, fp)) {
      return stop_;
    }
    std::uint64_t followed = 0;
    const bool has_extra =
        extra != kNoRegister && apply(rules.extra, extra, cfa, registers, followed);
    frame.registers.clear();
    frame.registers.set(Arch::kPc, Arch::code_address(ra));
    frame.registers.set(Arch::kNumbers.sp, cfa);
    frame.registers.set(Arch::kNumbers.fp, fp);
    if (has_extra) {
      frame.registers.set(extra, followed);
    }
    frame.is_interrupted = false;
    return std::nullopt;
  }

  unsigned missing() const { return missing_; }

 private:
  bool stop(StopReason why) {
    stop_ = why;
    return false;
  }

  bool lacks(std::uint64_t reg) {
    missing_ = reg < Registers::kCount ? static_cast<unsigned>(reg) : kNoRegister;
    return stop(StopReason::kUnsupportedRule);
  }

  // Where a call leaves the return address in a register, an interrupted frame may still have it.
  static unsigned ra_register(const Frame& frame) {
    return Arch::kCallBytes == 0 && frame.is_interrupted ? Arch::kNumbers.ra : kNoRegister;
  }

  bool find_cfa(const CfaRule& rule, const Registers& registers, std::uint64_t& cfa) {
    if (rule.is_expression()) {
      return value_of(rule.expression(), registers, false, 0, cfa);
    }
    if (!registers.knows(rule.reg)) {
      return lacks(rule.reg);
    }
    cfa = registers[rule.reg] + rule.operand;
    return true;
  }

  // The caller's value of register `own`. A register that the table calls undefined is taken to be
  // unchanged, as libgcc does; for a return address it is the end, and never comes here.
  bool apply(const RegisterRule& rule, unsigned own, std::uint64_t cfa, const Registers& registers,
             std::uint64_t& value) {
    const std::uint64_t at_cfa = cfa + rule.operand;
    switch (rule.kind) {
      case RegisterRule::Kind::kSame:
      case RegisterRule::Kind::kUndefined: return copy(own, registers, value);
      case RegisterRule::Kind::kAtCfa: return load(at_cfa, value);
      case RegisterRule::Kind::kIsCfa: value = at_cfa; return true;
      case RegisterRule::Kind::kRegister: return copy(rule.operand, registers, value);
      case RegisterRule::Kind::kAtExpression:
        return value_of(rule.expression(), registers, true, cfa, value) && load(value, value);
      case RegisterRule::Kind::kIsExpression:
        return value_of(rule.expression(), registers, true, cfa, value);
    }
    return false;
  }

  bool copy(std::uint64_t reg, const Registers& registers, std::uint64_t& value) {
    if (!registers.knows(reg)) {
      return lacks(reg);
    }
    value = registers[reg];
    return true;
  }

  bool load(std::uint64_t address, std::uint64_t& value) {
    if (address % 8 != 0) {
      return stop(StopReason::kImplausibleFrame);
    }
    return stack_.load(address, value) || stop(StopReason::kUnreadable);
  }

  static bool load_for_expression(void* self, std::uint64_t address, std::uint64_t& value) {
    return address % 8 == 0 && static_cast<Stack*>(self)->load(address, value);
  }

  bool value_of(const ExpressionSpan& span, const Registers& registers, bool has_cfa,
                std::uint64_t cfa, std::uint64_t& value) {
    const ExpressionResult result =
        evaluate(tables_.source(), {load_for_expression, &stack_}, span, registers, has_cfa, cfa);
    value = result.value;
    missing_ = result.missing_register;
    return result.error == TableError::kNone || stop(to_stop_reason(result.error));
  }

  Stack& stack_;
  Tables& tables_;
  StopReason stop_ = StopReason::kUnsupportedRule;
  unsigned missing_ = kNoRegister;
};

}  // namespace dial9::unwind
