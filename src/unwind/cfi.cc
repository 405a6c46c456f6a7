// See cfi.h. An entry is read once, front to back: its CIE's initial instructions make the first
// row, its own instructions change the row until the next one would begin beyond `pc`.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/cfi.h"

#include <array>

namespace dial9::unwind {
namespace {

constexpr std::uint32_t kExtendedLength = 0xffffffff;  // 64-bit DWARF: no linker writes it here
constexpr std::uint64_t kMaxEntryBytes = 1 << 20;

enum Opcode : std::uint8_t {
  kNop = 0x00, kSetLoc = 0x01, kAdvanceLoc1 = 0x02, kAdvanceLoc2 = 0x03, kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05, kRestoreExtended = 0x06, kUndefined = 0x07, kSameValue = 0x08,
  kRegister = 0x09, kRememberState = 0x0a, kRestoreState = 0x0b, kDefCfa = 0x0c,
  kDefCfaRegister = 0x0d, kDefCfaOffset = 0x0e, kDefCfaExpression = 0x0f, kExpression = 0x10,
  kOffsetExtendedSf = 0x11, kDefCfaSf = 0x12, kDefCfaOffsetSf = 0x13, kValOffset = 0x14,
  kValOffsetSf = 0x15, kValExpression = 0x16, kNegateRaState = 0x2d, kGnuArgsSize = 0x2e,
  kGnuNegativeOffset = 0x2f,
};

struct CommonEntry {
  std::uint64_t code_align = 1;
  std::int64_t data_align = 1;
  std::uint8_t pointer_encoding = 0;
  bool has_augmentation = false;
  bool is_signal_frame = false;
  std::uint64_t instructions = 0;
  std::uint64_t end = 0;
};

// Reads the length and sets the reader's end to the entry's; false at a terminator or nonsense.
bool enter_entry(TableReader& in) {
  const std::uint32_t length = in.fixed<std::uint32_t>();
  if (length < 4 || length == kExtendedLength || length > kMaxEntryBytes) {
    in.fail(TableError::kCorrupt);
    return false;
  }
  in.narrow(in.position() + length);
  return in.ok();
}

void read_augmentation(TableReader& in, const std::array<char, 8>& text, CommonEntry& cie) {
  std::uint64_t end = 0;
  for (const char letter : text) {
    switch (letter) {
      case '\0':
        if (end != 0 && in.ok()) {
          in.skip(end - in.position());
        }
        return;
      case 'z': {
        cie.has_augmentation = true;
        const std::uint64_t bytes = in.uleb();
        if (bytes > in.end() - in.position()) {
          in.fail(TableError::kCorrupt);
        }
        end = in.position() + bytes;
        break;
      }
      case 'R': cie.pointer_encoding = in.u8(); break;
      case 'L': in.u8(); break;
      case 'P': {
        const std::uint8_t encoding = in.u8();
        if (encoding != kEncodingOmitted) {
          in.pointer(encoding & 0x0f, 0);  // skipped; where it counts from doesn't matter
        }
        break;
      }
      case 'S': cie.is_signal_frame = true; break;
      case 'B': break;  // AArch64: return addresses are signed with key B
      default: in.fail(TableError::kUnsupported); return;
    }
  }
}

TableError read_common_entry(TableSource& source, std::uint64_t begin, std::uint64_t limit,
                             CommonEntry& cie) {
  TableReader in(source, begin, limit);
  if (!enter_entry(in)) {
    return in.error();
  }
  if (in.fixed<std::uint32_t>() != 0) {  // a CIE's id
    in.fail(TableError::kCorrupt);
  }
  const std::uint8_t version = in.u8();
  if (version != 1 && version != 3 && version != 4) {
    in.fail(TableError::kUnsupported);
  }
  std::array<char, 8> augmentation{};
  for (std::size_t i = 0;; ++i) {
    const char letter = static_cast<char>(in.u8());
    if (letter == '\0' || !in.ok()) {
      break;
    }
    if (i + 1 == augmentation.size()) {
      in.fail(TableError::kUnsupported);
      break;
    }
    augmentation[i] = letter;
  }
  if (version == 4) {
    in.skip(2);  // address size and segment size
  }
  cie.code_align = in.uleb();
  cie.data_align = in.sleb();
  if (version == 1) {
    in.u8();
  } else {
    in.uleb();  // the return address column: the processor's own
  }
  read_augmentation(in, augmentation, cie);
  cie.instructions = in.position();
  cie.end = in.end();
  return in.error();
}

struct Row {
  CfaRule cfa;
  RegisterRule fp;
  RegisterRule ra;
  RegisterRule extra;
};

// Runs call frame instructions. All arithmetic wraps: corrupt input may overflow anything.
class Program {
 public:
  Program(const CommonEntry& cie, const RegisterNumbers& numbers) : cie_(cie), numbers_(numbers) {}

  void run_initial(TableReader& in) {
    run(in, 0, ~std::uint64_t{0});
    initial_ = row_;
  }
  void run(TableReader& in, std::uint64_t location, std::uint64_t pc) {
    location_ = location;
    while (!in.at_end() && location_ <= pc) {
      step(in, in.u8());
    }
  }
  const Row& row() const { return row_; }

 private:
  void step(TableReader& in, std::uint8_t opcode) {
    const std::uint8_t low = opcode & 0x3f;
    switch (opcode >> 6) {
      case 1: advance(low); break;
      case 2: set(low, {RegisterRule::Kind::kAtCfa, 0, factored(in.uleb())}); break;
      case 3: restore(low); break;
      default: step_extended(in, opcode);
    }
  }

  void step_extended(TableReader& in, std::uint8_t opcode) {
    switch (opcode) {
      case kNop: case kNegateRaState: break;
      case kSetLoc: location_ = in.pointer(cie_.pointer_encoding, 0); break;
      case kAdvanceLoc1: advance(in.u8()); break;
      case kAdvanceLoc2: advance(in.fixed<std::uint16_t>()); break;
      case kAdvanceLoc4: advance(in.fixed<std::uint32_t>()); break;
      case kRestoreExtended: restore(in.uleb()); break;
      case kRememberState: remember(in); break;
      case kRestoreState: recall(in); break;
      case kGnuArgsSize: in.uleb(); break;
      case kDefCfa: case kDefCfaRegister: case kDefCfaOffset: case kDefCfaExpression:
      case kDefCfaSf: case kDefCfaOffsetSf: step_cfa(in, opcode); break;
      default: step_register(in, opcode);
    }
  }

  void step_cfa(TableReader& in, std::uint8_t opcode) {
    CfaRule& cfa = row_.cfa;
    if (opcode == kDefCfa || opcode == kDefCfaSf || opcode == kDefCfaRegister) {
      const std::uint64_t reg = in.uleb();
      cfa.reg = reg < kNoRegister ? static_cast<std::uint32_t>(reg) : kNoRegister;
    }
    if (opcode == kDefCfa || opcode == kDefCfaOffset) {
      cfa.operand = in.uleb();
    } else if (opcode == kDefCfaSf || opcode == kDefCfaOffsetSf) {
      cfa.operand = factored(static_cast<std::uint64_t>(in.sleb()));
    }
    cfa.expression_bytes = 0;
    if (opcode == kDefCfaExpression) {
      const ExpressionSpan span = expression(in);
      cfa.operand = span.address;
      cfa.expression_bytes = static_cast<std::uint32_t>(span.bytes);
    }
  }

  void step_register(TableReader& in, std::uint8_t opcode) {
    using Kind = RegisterRule::Kind;
    if (opcode < kOffsetExtended || (opcode > kValExpression && opcode != kGnuNegativeOffset)) {
      in.fail(TableError::kUnsupported);
      return;
    }
    const std::uint64_t reg = in.uleb();
    RegisterRule rule;
    switch (opcode) {
      case kOffsetExtended: rule = {Kind::kAtCfa, 0, factored(in.uleb())}; break;
      case kOffsetExtendedSf:
        rule = {Kind::kAtCfa, 0, factored(static_cast<std::uint64_t>(in.sleb()))};
        break;
      case kGnuNegativeOffset: rule = {Kind::kAtCfa, 0, factored(0 - in.uleb())}; break;
      case kValOffset: rule = {Kind::kIsCfa, 0, factored(in.uleb())}; break;
      case kValOffsetSf:
        rule = {Kind::kIsCfa, 0, factored(static_cast<std::uint64_t>(in.sleb()))};
        break;
      case kUndefined: rule.kind = Kind::kUndefined; break;
      case kSameValue: break;
      case kRegister: rule = {Kind::kRegister, 0, in.uleb()}; break;
      case kExpression: rule = with_expression(in, Kind::kAtExpression); break;
      case kValExpression: rule = with_expression(in, Kind::kIsExpression); break;
      default: in.fail(TableError::kUnsupported); return;
    }
    set(reg, rule);
  }

  // Skips an expression; an entry's length bounds it to 32 bits.
  static ExpressionSpan expression(TableReader& in) {
    ExpressionSpan span;
    span.bytes = in.uleb();
    span.address = in.position();
    in.skip(span.bytes);
    if (span.bytes == 0) {
      in.fail(TableError::kCorrupt);
    }
    return span;
  }

  static RegisterRule with_expression(TableReader& in, RegisterRule::Kind kind) {
    const ExpressionSpan span = expression(in);
    return {kind, static_cast<std::uint32_t>(span.bytes), span.address};
  }

  std::uint64_t factored(std::uint64_t value) const {
    return value * static_cast<std::uint64_t>(cie_.data_align);
  }
  void advance(std::uint64_t delta) { location_ += delta * cie_.code_align; }

  void set(std::uint64_t reg, const RegisterRule& rule) {
    if (reg == numbers_.fp) {
      row_.fp = rule;
    } else if (reg == numbers_.ra) {
      row_.ra = rule;
    } else if (reg == numbers_.extra) {
      row_.extra = rule;
    }
  }
  void restore(std::uint64_t reg) {
    set(reg, reg == numbers_.fp ? initial_.fp : reg == numbers_.ra ? initial_.ra : initial_.extra);
  }
  void remember(TableReader& in) {
    if (depth_ == saved_.size()) {
      in.fail(TableError::kUnsupported);
      return;
    }
    saved_[depth_++] = row_;
  }
  void recall(TableReader& in) {
    if (depth_ == 0) {
      in.fail(TableError::kCorrupt);
      return;
    }
    row_ = saved_[--depth_];
  }

  const CommonEntry& cie_;
  const RegisterNumbers& numbers_;
  std::uint64_t location_ = 0;
  Row row_;
  Row initial_;
  std::array<Row, 3> saved_;  // compilers nest one deep
  std::size_t depth_ = 0;
};

}  // namespace

TableError read_frame_rules(TableSource& source, const FrameEntry& entry, std::uint64_t pc,
                            const RegisterNumbers& numbers, FrameRules& rules, bool& covers) {
  covers = false;
  TableReader in(source, entry.address, entry.limit);
  if (!enter_entry(in)) {
    return in.error();
  }
  const std::uint64_t id_place = in.position();
  const std::uint64_t cie_address = id_place - in.fixed<std::uint32_t>();
  if (cie_address == id_place || cie_address < entry.module_begin) {
    return TableError::kCorrupt;
  }
  CommonEntry cie;
  if (const TableError error = read_common_entry(source, cie_address, entry.limit, cie);
      error != TableError::kNone) {
    return error;
  }
  const std::uint64_t begin = in.pointer(cie.pointer_encoding, 0);
  const std::uint64_t bytes = in.pointer(cie.pointer_encoding & 0x0f, 0);
  if (cie.has_augmentation) {
    in.skip(in.uleb());
  }
  if (!in.ok() || pc - begin >= bytes) {
    return in.error();
  }
  covers = true;
  Program program(cie, numbers);
  TableReader initial(source, cie.instructions, cie.end);
  program.run_initial(initial);
  if (!initial.ok()) {
    return initial.error();
  }
  program.run(in, begin, pc);
  const Row& row = program.row();
  rules = {row.cfa, row.fp, row.ra, row.extra, cie.is_signal_frame, begin};
  return in.error();
}

}  // namespace dial9::unwind
