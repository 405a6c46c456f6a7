// See expression.h.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/expression.h"

#include <array>

namespace dial9::unwind {
namespace {

enum Op : std::uint8_t {
  kAddr = 0x03, kDeref = 0x06, kConst1u = 0x08, kConst1s = 0x09, kConst2u = 0x0a, kConst2s = 0x0b,
  kConst4u = 0x0c, kConst4s = 0x0d, kConst8u = 0x0e, kConst8s = 0x0f, kConstu = 0x10,
  kConsts = 0x11, kDup = 0x12, kDrop = 0x13, kOver = 0x14, kPick = 0x15, kSwap = 0x16, kRot = 0x17,
  kAbs = 0x19, kAnd = 0x1a, kMinus = 0x1c, kMul = 0x1e, kNeg = 0x1f, kNot = 0x20, kOr = 0x21,
  kPlus = 0x22, kPlusUconst = 0x23, kShl = 0x24, kShr = 0x25, kShra = 0x26, kXor = 0x27,
  kEq = 0x29, kGe = 0x2a, kGt = 0x2b, kLe = 0x2c, kLt = 0x2d, kNe = 0x2e, kLit0 = 0x30,
  kLit31 = 0x4f, kBreg0 = 0x70, kBreg31 = 0x8f, kBregx = 0x92, kNop = 0x96,
};

class Evaluator {
 public:
  Evaluator(TableReader& in, WordSource words, const Registers& registers)
      : in_(in), words_(words), registers_(registers) {}

  void push(std::uint64_t value) {
    if (depth_ == stack_.size()) {
      in_.fail(TableError::kUnsupported);
      return;
    }
    stack_[depth_++] = value;
  }
  std::uint64_t pop() {
    if (depth_ == 0) {
      in_.fail(TableError::kCorrupt);
      return 0;
    }
    return stack_[--depth_];
  }

  unsigned missing() const { return missing_; }

  void step(std::uint8_t op) {
    if (op >= kLit0 && op <= kLit31) {
      push(op - kLit0);
    } else if (op >= kBreg0 && op <= kBreg31) {
      push_register(op - kBreg0);
    } else if (op >= kAbs && op <= kNe && op != kPlusUconst) {
      step_arithmetic(op);
    } else {
      step_operand(op);
    }
  }

 private:
  void push_register(std::uint64_t number) {
    const auto offset = static_cast<std::uint64_t>(in_.sleb());
    if (!registers_.knows(number)) {
      missing_ = number < Registers::kCount ? static_cast<unsigned>(number) : kNoRegister;
      in_.fail(TableError::kUnsupported);
      return;
    }
    push(registers_[number] + offset);
  }

  std::uint64_t peek(std::size_t below_top) {
    if (below_top >= depth_) {
      in_.fail(TableError::kCorrupt);
      return 0;
    }
    return stack_[depth_ - 1 - below_top];
  }

  template <class T>
  void push_fixed() {
    push(static_cast<std::uint64_t>(std::int64_t{in_.fixed<T>()}));
  }

  void step_operand(std::uint8_t op) {
    switch (op) {
      case kAddr: case kConst8u: case kConst8s: push(in_.fixed<std::uint64_t>()); break;
      case kConst1u: push_fixed<std::uint8_t>(); break;
      case kConst1s: push_fixed<std::int8_t>(); break;
      case kConst2u: push_fixed<std::uint16_t>(); break;
      case kConst2s: push_fixed<std::int16_t>(); break;
      case kConst4u: push_fixed<std::uint32_t>(); break;
      case kConst4s: push_fixed<std::int32_t>(); break;
      case kConstu: push(in_.uleb()); break;
      case kConsts: push(static_cast<std::uint64_t>(in_.sleb())); break;
      case kPlusUconst: push(pop() + in_.uleb()); break;
      case kBregx: push_register(in_.uleb()); break;
      case kDeref: {
        std::uint64_t word = 0;
        if (!words_.load(words_.self, pop(), word)) {
          in_.fail(TableError::kUnreadable);
        }
        push(word);
        break;
      }
      case kDup: push(peek(0)); break;
      case kDrop: pop(); break;
      case kOver: push(peek(1)); break;
      case kPick: push(peek(in_.u8())); break;
      case kSwap: case kRot: rotate(op == kSwap ? 2 : 3); break;
      case kNop: break;
      default: in_.fail(TableError::kUnsupported);
    }
  }

  // The top entry moves below the `count - 1` entries beneath it.
  void rotate(std::size_t count) {
    if (depth_ < count) {
      in_.fail(TableError::kCorrupt);
      return;
    }
    const std::uint64_t top = stack_[depth_ - 1];
    for (std::size_t i = 1; i < count; ++i) {
      stack_[depth_ - i] = stack_[depth_ - i - 1];
    }
    stack_[depth_ - count] = top;
  }

  static std::uint64_t shifted(std::uint8_t op, std::uint64_t value, std::uint64_t by) {
    if (op == kShra) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(value) >> (by < 63 ? by : 63));
    }
    return by > 63 ? 0 : op == kShl ? value << by : value >> by;
  }

  void step_arithmetic(std::uint8_t op) {
    const std::uint64_t b = pop();
    if (op == kAbs || op == kNeg || op == kNot) {
      push(op == kNot ? ~b : op == kNeg || static_cast<std::int64_t>(b) < 0 ? 0 - b : b);
      return;
    }
    const std::uint64_t a = pop();
    const auto sa = static_cast<std::int64_t>(a);
    const auto sb = static_cast<std::int64_t>(b);
    switch (op) {
      case kAnd: push(a & b); break;
      case kMinus: push(a - b); break;
      case kMul: push(a * b); break;
      case kOr: push(a | b); break;
      case kPlus: push(a + b); break;
      case kShl: case kShr: case kShra: push(shifted(op, a, b)); break;
      case kXor: push(a ^ b); break;
      case kEq: push(a == b); break;
      case kGe: push(sa >= sb); break;
      case kGt: push(sa > sb); break;
      case kLe: push(sa <= sb); break;
      case kLt: push(sa < sb); break;
      case kNe: push(a != b); break;
      default: in_.fail(TableError::kUnsupported);
    }
  }

  TableReader& in_;
  WordSource words_;
  const Registers& registers_;
  std::array<std::uint64_t, 12> stack_;  // unset beyond depth_
  std::size_t depth_ = 0;
  unsigned missing_ = kNoRegister;
};

}  // namespace

ExpressionResult evaluate(TableSource& tables, WordSource words, const ExpressionSpan& span,
                          const Registers& registers, bool has_first, std::uint64_t first) {
  TableReader in(tables, span.address, span.address + span.bytes);
  Evaluator evaluator(in, words, registers);
  if (has_first) {
    evaluator.push(first);
  }
  while (!in.at_end()) {
    evaluator.step(in.u8());
  }
  const std::uint64_t value = evaluator.pop();
  return {in.error(), value, evaluator.missing()};
}

}  // namespace dial9::unwind
