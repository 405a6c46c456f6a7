// See dwarf_entries.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_entries.h"

#include <algorithm>

#include "symbolize/dwarf_constants.h"

namespace dial9::symbolize {
namespace {

constexpr std::uint64_t kMostCode = 1 << 16;  // compilers number them from 1 on

bool is_scope(std::uint64_t tag) {
  return tag == dwarf::kTagNamespace || tag == dwarf::kTagSubprogram ||
         tag == dwarf::kTagInlinedSubroutine;
}

// Functions may lie in these, too.
bool holds_scopes(std::uint64_t tag) {
  return tag == dwarf::kTagCompileUnit || tag == dwarf::kTagPartialUnit ||
         tag == dwarf::kTagSkeletonUnit || tag == dwarf::kTagLexicalBlock ||
         tag == dwarf::kTagTryBlock || tag == dwarf::kTagCatchBlock;
}

// Within the unit: of a value of this form, or 0.
std::uint64_t reference(DwarfBytes& in, const DwarfAbbreviations::Attribute& attribute,
                        const DwarfFormat& format) {
  switch (attribute.form) {
    case dwarf::kFormRef1:
    case dwarf::kFormRef2:
    case dwarf::kFormRef4:
    case dwarf::kFormRef8:
      return in.number(attribute.bytes);
    case dwarf::kFormRefUdata:
      return in.uleb();
    default:
      skip_value(in, attribute.form, format);
      return 0;
  }
}

std::uint16_t to_u16(std::uint64_t number) {
  return static_cast<std::uint16_t>(std::min<std::uint64_t>(number, 0xffff));
}

bool is_number(std::uint64_t form) {
  return form == dwarf::kFormData1 || form == dwarf::kFormData2 || form == dwarf::kFormData4 ||
         form == dwarf::kFormData8;
}

}  // namespace

DwarfAbbreviations DwarfAbbreviations::read(std::span<const std::uint8_t> bytes,
                                            const DwarfFormat& format) {
  DwarfAbbreviations table;
  DwarfBytes in(bytes);
  for (std::uint64_t code = in.uleb(); code != 0 && code <= kMostCode; code = in.uleb()) {
    Abbreviation one;
    one.tag = to_u16(in.uleb());
    one.has_children = in.u8() != 0;
    one.is_scope = symbolize::is_scope(one.tag);
    one.first = static_cast<std::uint32_t>(table.attributes_.size());
    for (;;) {
      Attribute attribute{to_u16(in.uleb()), 0, 0};
      attribute.form = to_u16(in.uleb());
      if (attribute.form == dwarf::kFormImplicitConst) (void)in.sleb();
      if (!in.is_whole() || (attribute.name == 0 && attribute.form == 0)) break;
      attribute.bytes = fixed_size_of(attribute.form, format);
      const bool is_fixed = attribute.bytes != kVariableSize && one.bytes != kVariableSize;
      one.bytes = is_fixed ? one.bytes + attribute.bytes : kVariableSize;
      one.has_sibling = one.has_sibling || (attribute.name == dwarf::kAtSibling &&
                                            one.has_children && !holds_scopes(one.tag));
      table.attributes_.push_back(attribute);
    }
    if (!in.is_whole()) break;
    one.count = static_cast<std::uint32_t>(table.attributes_.size()) - one.first;
    if (table.known_.size() <= code) table.known_.resize(code + 1);
    table.known_[code] = one;
  }
  return table;
}

void DwarfEntries::read_scope(const DwarfAbbreviations::Abbreviation& of, DwarfEntry& entry) {
  bool has_begin = false;
  bool has_end = false;
  bool is_length = false;
  for (const DwarfAbbreviations::Attribute& attribute : abbreviations_.attributes(of)) {
    const bool is_address = attribute.form == dwarf::kFormAddr && attribute.bytes == 8;
    if (attribute.name == dwarf::kAtLowPc && is_address) {
      entry.range.begin = in_.number(8);
      has_begin = true;
    } else if (attribute.name == dwarf::kAtHighPc && (is_address || is_number(attribute.form))) {
      entry.range.end = in_.number(attribute.bytes);
      is_length = !is_address;
      has_end = true;
    } else {
      entry.has_others = entry.has_others || attribute.name == dwarf::kAtRanges ||
                         attribute.name == dwarf::kAtLowPc || attribute.name == dwarf::kAtHighPc;
      if (attribute.bytes != kVariableSize) {
        in_.skip(attribute.bytes);
      } else {
        skip_value(in_, attribute.form, format_);
      }
    }
  }
  entry.has_range = has_begin && has_end && !entry.has_others;
  entry.has_others = entry.has_others && !entry.has_range;
  if (entry.has_range && is_length) entry.range.end += entry.range.begin;
}

void DwarfEntries::pass(const DwarfAbbreviations::Abbreviation& of) {
  if (of.bytes != kVariableSize && !of.has_sibling) return in_.skip(of.bytes);
  std::uint64_t sibling = 0;
  for (const DwarfAbbreviations::Attribute& attribute : abbreviations_.attributes(of)) {
    if (of.has_sibling && attribute.name == dwarf::kAtSibling) {
      sibling = reference(in_, attribute, format_);
    } else if (attribute.bytes != kVariableSize) {
      in_.skip(attribute.bytes);
    } else {
      skip_value(in_, attribute.form, format_);
    }
  }
  if (sibling != 0) {
    in_.go_to(sibling);
    --depth_;  // its children were passed with it
  }
}

bool DwarfEntries::next(DwarfEntry& entry) {
  while (!in_.is_at_end()) {
    const std::size_t at = in_.at();
    const std::uint64_t code = in_.uleb();
    if (code == 0) {  // the children of the entry around it end here
      if (depth_ == 0) break;
      --depth_;
      if (open_.empty() || open_.back() != depth_) continue;
      open_.pop_back();
      entry = {.is_end = true, .at = in_.at()};
      return true;
    }
    const DwarfAbbreviations::Abbreviation* const of = abbreviations_.find(code);
    if (of == nullptr || depth_ >= kMostNested) break;
    if (!of->is_scope) {
      if (of->has_children) ++depth_;
      pass(*of);
      continue;
    }
    entry = {.tag = of->tag, .at = at, .has_children = of->has_children};
    read_scope(*of, entry);
    if (of->has_children) open_.push_back(depth_++);
    if (!in_.is_whole()) break;
    return true;
  }
  in_.fail();
  return false;
}

}  // namespace dial9::symbolize
