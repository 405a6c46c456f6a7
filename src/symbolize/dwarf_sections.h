// What our own readers of debug information need of a file that libdw has open: bytes of sections,
// which libdw has unpacked where they were compressed, and where code lies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elfutils/libdw.h>
#include <libelf.h>

#include <cstdint>
#include <span>
#include <vector>

#include "symbolize/dwarf_lines.h"

namespace dial9::symbolize {

struct DwarfSections {
  std::span<const std::uint8_t> entries;
  std::span<const std::uint8_t> abbreviations;
  LineSections lines;
  bool is_split = false;  // of a unit in a file of its own (".dwo")
};

struct DwarfSectionsOfFile {
  DwarfSections own;
  DwarfSections split;

  // Those that the entry lies in; null: it lies in none.
  const DwarfSections* with(const void* entry) const;
};

// `elf` may be null. After dwarf_begin_elf().
DwarfSectionsOfFile dwarf_sections_of(Elf* elf);

// Of sections that are in memory when the program runs.
std::vector<AddressRange> code_of(Elf* elf);

// Whether an entry, or another thing, lies in the bytes.
bool is_in(const void* entry, std::span<const std::uint8_t> bytes);

// A unit's bytes, from its header on, and how they are written.
struct UnitBytes {
  std::span<const std::uint8_t> bytes;
  std::span<const std::uint8_t> abbreviations;  // from its own on
  std::size_t first = 0;                        // where in `bytes` its first entry begins
  DwarfFormat format;
};
// Empty `bytes`: it isn't known.
UnitBytes unit_bytes(const DwarfSections& sections, Dwarf_Die& root);

}  // namespace dial9::symbolize
