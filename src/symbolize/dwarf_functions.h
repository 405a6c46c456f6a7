// The functions of a unit by address, what is inlined into each, and the namespaces. Strongest
// property: an address that no function claims has none; of functions within functions the
// innermost has it. What is inlined into a function is listed when it is first asked for.
// Spec: docs/spec/flame.md, "Debug information".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "symbolize/dwarf_entries.h"
#include "symbolize/dwarf_forms.h"

namespace dial9::symbolize {

class UnitFunctions {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // Adds where the code of an entry is; nothing where there is none.
  using RangesOf = std::function<void(const DwarfEntry&, std::vector<AddressRange>&)>;

  UnitFunctions() = default;
  // `unit`: from its header on, up to its end, and outlives this; `first`: where in it the first
  // entry begins. `ranges_of` is called by this and by chain().
  UnitFunctions(std::span<const std::uint8_t> unit, std::size_t first, const DwarfFormat& format,
                DwarfAbbreviations abbreviations, RangesOf ranges_of);

  // The function at an address; kNone.
  std::uint32_t at(std::uint64_t address) const;

  // The function, or one that is inlined: where its entry begins in the unit.
  struct Scope {
    std::size_t at = 0;
    std::uint32_t parent = kNone;  // of chain()'s scopes: what it is inlined into
  };
  // The innermost first, the function itself last.
  std::vector<Scope> chain(std::uint32_t function, std::uint64_t address);
  // How many functions were listed by chain().
  std::size_t listed() const { return scopes_.size(); }

  // A namespace: entries from `begin` up to `end` are in it.
  struct Space {
    std::size_t begin;
    std::size_t end;
    std::uint32_t parent;  // of spaces(); kNone
  };
  const std::vector<Space>& spaces() const { return spaces_; }  // by `begin`
  // The innermost that an entry lies in; kNone.
  std::uint32_t space_at(std::size_t entry) const;

 private:
  struct Function {
    std::size_t at;
    std::size_t end;      // of its entries
    std::uint32_t depth;  // functions that it lies in
  };
  struct FunctionRange {
    AddressRange range;
    std::uint64_t reach;  // the largest end of this and all before it
    std::uint32_t number;
  };
  struct ScopeRange {
    AddressRange range;
    std::uint32_t scope;
    std::uint32_t depth;
  };
  struct Scopes {
    std::vector<Scope> scopes;  // the function is the first
    std::vector<ScopeRange> ranges;
  };
  void list(std::size_t first);
  void order();
  const Scopes& scopes(std::uint32_t function);
  void add_scope(const DwarfEntry& entry, std::uint32_t parent, std::uint32_t depth, Scopes& to);

  std::span<const std::uint8_t> unit_;
  DwarfFormat format_;
  DwarfAbbreviations abbreviations_;
  RangesOf ranges_of_;
  std::vector<Space> spaces_;
  std::vector<Function> functions_;
  std::vector<FunctionRange> ranges_;                 // by `begin`
  std::unordered_map<std::uint32_t, Scopes> scopes_;  // of the functions that were asked for
  std::vector<AddressRange> found_;                   // of an entry
};

}  // namespace dial9::symbolize
