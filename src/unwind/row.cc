// See row.h.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/row.h"

#include <limits>

namespace dial9::unwind {
namespace {

constexpr std::uint8_t kBreg0 = 0x70;
constexpr std::uint8_t kDeref = 0x06;

bool to_slots(std::int64_t bytes, std::int16_t& slots) {
  if (bytes % 8 != 0 || bytes / 8 > std::numeric_limits<std::int16_t>::max() ||
      bytes / 8 < std::numeric_limits<std::int16_t>::min()) {
    return false;
  }
  slots = static_cast<std::int16_t>(bytes / 8);
  return true;
}

// Is the expression "fp + offset", followed by a load if `with_load`, and by nothing else?
bool is_fp_offset(TableSource& tables, const ExpressionSpan& span, const RegisterNumbers& numbers,
                  bool with_load, std::int64_t& offset_bytes) {
  TableReader in(tables, span.address, span.address + span.bytes);
  if (in.u8() != kBreg0 + numbers.fp) {
    return false;
  }
  offset_bytes = in.sleb();
  if (with_load && in.u8() != kDeref) {
    return false;
  }
  return in.ok() && in.position() == span.address + span.bytes;
}

bool compact_cfa(TableSource& tables, const CfaRule& cfa, const RegisterNumbers& numbers,
                 Row& row) {
  std::int64_t offset_bytes = cfa.offset_bytes();
  if (cfa.is_expression()) {
    row.kind = Row::Kind::kLoadedFromFp;
    if (!is_fp_offset(tables, cfa.expression(), numbers, true, offset_bytes)) {
      return false;
    }
  } else if (cfa.reg == numbers.sp || cfa.reg == numbers.fp) {
    row.kind = cfa.reg == numbers.sp ? Row::Kind::kFromSp : Row::Kind::kFromFp;
  } else {
    return false;
  }
  return to_slots(offset_bytes, row.cfa_slots);
}

bool compact_fp(TableSource& tables, const RegisterRule& fp, const RegisterNumbers& numbers,
                Row& row) {
  std::int64_t offset_bytes = 0;
  switch (fp.kind) {
    case RegisterRule::Kind::kSame: return true;
    case RegisterRule::Kind::kAtCfa:
      row.fp_rule = Row::FpRule::kAtCfa;
      return to_slots(fp.offset_bytes(), row.fp_slots);
    case RegisterRule::Kind::kAtExpression:
      row.fp_rule = Row::FpRule::kAtFp;
      return is_fp_offset(tables, fp.expression(), numbers, false, offset_bytes) &&
             offset_bytes == 0;
    default: return false;
  }
}

}  // namespace

Row compact(TableSource& tables, const FrameRules& rules, const RegisterNumbers& numbers) {
  Row row;
  if (rules.is_signal_frame) {
    row.kind = Row::Kind::kSignalFrame;
    return row;
  }
  if (rules.ra.kind == RegisterRule::Kind::kUndefined) {
    row.kind = Row::Kind::kOutermost;
    return row;
  }
  const bool ra_fits =
      rules.ra.kind == RegisterRule::Kind::kSame ||
      (rules.ra.kind == RegisterRule::Kind::kAtCfa && rules.ra.operand != 0 &&
       to_slots(rules.ra.offset_bytes(), row.ra_slots));
  if (!ra_fits || !compact_cfa(tables, rules.cfa, numbers, row) ||
      !compact_fp(tables, rules.fp, numbers, row)) {
    row = {};
    row.kind = Row::Kind::kGeneral;
  }
  return row;
}

}  // namespace dial9::unwind
