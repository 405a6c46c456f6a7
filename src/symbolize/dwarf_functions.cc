// See dwarf_functions.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_functions.h"

#include <algorithm>
#include <iterator>

#include "symbolize/dwarf_constants.h"

namespace dial9::symbolize {
namespace {

constexpr int kMostLookedAt = 64;  // functions that claim one address

}  // namespace

UnitFunctions::UnitFunctions(std::span<const std::uint8_t> unit, std::size_t first,
                             const DwarfFormat& format, DwarfAbbreviations abbreviations,
                             RangesOf ranges_of)
    : unit_(unit),
      format_(format),
      abbreviations_(std::move(abbreviations)),
      ranges_of_(std::move(ranges_of)) {
  list(first);
  order();
}

void UnitFunctions::list(std::size_t first) {
  struct Around {
    std::uint32_t space = kNone;
    std::uint32_t depth = 0;
    std::uint32_t ends_space = kNone;
    std::uint32_t ends_function = kNone;
  };
  std::vector<Around> open(1);
  DwarfEntries entries(unit_, first, format_, abbreviations_);
  DwarfEntry entry;
  while (entries.next(entry)) {
    if (entry.is_end) {
      const Around& ended = open.back();
      if (ended.ends_space != kNone) spaces_[ended.ends_space].end = entry.at;
      if (ended.ends_function != kNone) functions_[ended.ends_function].end = entry.at;
      open.pop_back();
      continue;
    }
    Around inner{open.back().space, open.back().depth};
    if (entry.tag == dwarf::kTagNamespace) {
      inner.space = inner.ends_space = static_cast<std::uint32_t>(spaces_.size());
      const std::size_t end = entry.has_children ? unit_.size() : entry.at;
      spaces_.push_back({entry.at, end, open.back().space});
    } else if (entry.tag == dwarf::kTagSubprogram) {
      const auto number = static_cast<std::uint32_t>(functions_.size());
      found_.clear();
      ranges_of_(entry, found_);
      for (const AddressRange& range : found_) ranges_.push_back({range, 0, number});
      // Else a declaration, a function that is only inlined elsewhere, or one that was thrown away.
      if (!found_.empty()) {
        functions_.push_back({entry.at, unit_.size(), inner.depth++});
        inner.ends_function = number;
      }
    }
    if (entry.has_children) open.push_back(inner);
  }
}

void UnitFunctions::order() {
  std::sort(ranges_.begin(), ranges_.end(), [](const FunctionRange& a, const FunctionRange& b) {
    return std::pair(a.range.begin, a.number) < std::pair(b.range.begin, b.number);
  });
  std::uint64_t reach = 0;
  for (FunctionRange& one : ranges_) {
    reach = std::max(reach, one.range.end);
    one.reach = reach;
  }
}

std::uint32_t UnitFunctions::at(std::uint64_t address) const {
  auto after = std::upper_bound(
      ranges_.begin(), ranges_.end(), address,
      [](std::uint64_t wanted, const FunctionRange& one) { return wanted < one.range.begin; });
  std::uint32_t found = kNone;
  for (int i = 0; i < kMostLookedAt && after != ranges_.begin(); ++i) {
    --after;
    if (address >= after->reach) break;
    if (address >= after->range.end) continue;
    if (found == kNone || functions_[after->number].depth > functions_[found].depth) {
      found = after->number;
    }
  }
  return found;
}

void UnitFunctions::add_scope(const DwarfEntry& entry, std::uint32_t parent, std::uint32_t depth,
                              Scopes& to) {
  const auto scope = static_cast<std::uint32_t>(to.scopes.size());
  to.scopes.push_back({entry.at, parent});
  found_.clear();
  ranges_of_(entry, found_);
  for (const AddressRange& range : found_) to.ranges.push_back({range, scope, depth});
}

// What is inlined into functions that lie in it is theirs.
const UnitFunctions::Scopes& UnitFunctions::scopes(std::uint32_t function) {
  const auto [known, is_new] = scopes_.try_emplace(function);
  Scopes& out = known->second;
  if (!is_new) return out;
  struct Around {
    std::uint32_t scope = kNone;
    std::uint32_t depth = 0;
    bool is_other = false;
  };
  std::vector<Around> open;
  const Function& of = functions_[function];
  DwarfEntries entries(unit_.first(of.end), of.at, format_, abbreviations_);
  DwarfEntry entry;
  while (entries.next(entry)) {
    if (entry.is_end) {
      open.pop_back();
    } else {
      const bool is_first = out.scopes.empty();
      Around inner = is_first ? Around{} : open.back();
      if (is_first || (entry.tag == dwarf::kTagInlinedSubroutine && !inner.is_other)) {
        add_scope(entry, inner.scope, inner.depth, out);
        inner.scope = static_cast<std::uint32_t>(out.scopes.size() - 1);
        ++inner.depth;
      } else if (entry.tag == dwarf::kTagSubprogram) {
        inner.is_other = true;
      }
      if (entry.has_children) open.push_back(inner);
    }
    if (open.empty()) break;
  }
  return out;
}

// The deepest at the address; of two as deep, the one that begins later.
std::vector<UnitFunctions::Scope> UnitFunctions::chain(std::uint32_t function,
                                                       std::uint64_t address) {
  const Scopes& of = scopes(function);
  const ScopeRange* found = nullptr;
  for (const ScopeRange& one : of.ranges) {
    if (address < one.range.begin || address >= one.range.end) continue;
    if (found == nullptr ||
        std::pair(one.depth, one.range.begin) >= std::pair(found->depth, found->range.begin)) {
      found = &one;
    }
  }
  std::vector<Scope> chain;
  for (std::uint32_t scope = found == nullptr ? kNone : found->scope; scope != kNone;
       scope = of.scopes[scope].parent) {
    chain.push_back(of.scopes[scope]);
  }
  return chain;
}

std::uint32_t UnitFunctions::space_at(std::size_t entry) const {
  const auto after =
      std::upper_bound(spaces_.begin(), spaces_.end(), entry,
                       [](std::size_t wanted, const Space& one) { return wanted < one.begin; });
  if (after == spaces_.begin()) return kNone;
  auto number = static_cast<std::uint32_t>(std::distance(spaces_.begin(), after)) - 1;
  while (number != kNone && entry >= spaces_[number].end) number = spaces_[number].parent;
  return number;
}

}  // namespace dial9::symbolize
