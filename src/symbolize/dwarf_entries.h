// The entries of a unit's debug information that are of functions, read as bytes one after the
// other: libdw takes some 100 ns for each of millions of entries that are passed on the way to
// these. Strongest property: nothing is read beyond the unit, and each entry ends where its form
// says; behind what isn't understood there are no entries.
// Spec: docs/spec/flame.md, "Debug information".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "symbolize/dwarf_forms.h"

namespace dial9::symbolize {

// What the entries of a unit look like.
class DwarfAbbreviations {
 public:
  // Numbers beyond 16 bits are none that we know: the largest stands for them.
  struct Attribute {
    std::uint16_t name;
    std::uint16_t form;
    std::uint32_t bytes;  // of its values; kVariableSize
  };
  struct Abbreviation {
    std::uint16_t tag = 0;  // 0: there is none of this number
    bool has_children = false;
    bool is_scope = false;     // DwarfEntries tells it
    bool has_sibling = false;  // an entry with children says where the next one is
    std::uint32_t bytes = 0;   // of its values; kVariableSize
    std::uint32_t first = 0;   // of attributes
    std::uint32_t count = 0;
  };

  // `bytes`: from the unit's first one on. What isn't understood has no abbreviation.
  static DwarfAbbreviations read(std::span<const std::uint8_t> bytes, const DwarfFormat& format);

  // Null: there is none.
  const Abbreviation* find(std::uint64_t code) const {
    return code < known_.size() && known_[code].tag != 0 ? &known_[code] : nullptr;
  }
  std::span<const Attribute> attributes(const Abbreviation& of) const {
    return std::span(attributes_).subspan(of.first, of.count);
  }

 private:
  std::vector<Abbreviation> known_;  // by code
  std::vector<Attribute> attributes_;
};

// A namespace, a function, or one that is inlined; or the end of the innermost of these that has
// children and hasn't ended.
struct DwarfEntry {
  bool is_end = false;
  std::uint64_t tag = 0;
  std::size_t at = 0;  // in the unit: where it begins; of an end, where it ends
  bool has_children = false;
  bool has_range = false;   // `range` is where its code is
  bool has_others = false;  // where its code is isn't in the entry itself
  AddressRange range = {};
};

class DwarfEntries {
 public:
  static constexpr std::uint32_t kMostNested = 256;

  // `unit`: from its header on, up to its end; `first`: where the first entry to be read begins.
  // Both outlive this.
  DwarfEntries(std::span<const std::uint8_t> unit, std::size_t first, const DwarfFormat& format,
               const DwarfAbbreviations& abbreviations)
      : in_(unit), format_(format), abbreviations_(abbreviations) {
    in_.go_to(first);
  }

  // The next one; those of other kinds are passed, and what lies in types. False: there is none;
  // what hasn't ended by then has no end.
  bool next(DwarfEntry& entry);

 private:
  void read_scope(const DwarfAbbreviations::Abbreviation& of, DwarfEntry& entry);
  void pass(const DwarfAbbreviations::Abbreviation& of);

  DwarfBytes in_;
  DwarfFormat format_;
  const DwarfAbbreviations& abbreviations_;
  std::uint32_t depth_ = 0;          // entries that the next one lies in
  std::vector<std::uint32_t> open_;  // the depths of those that were told and have children
};

}  // namespace dial9::symbolize
