// The functions of an ELF file by address: its symbol table, else the dynamic one. Strongest
// property: an address in no function has no name, for a function ends where its size says, not
// where the next begins; the file is untrusted (elf_file.h).
// Spec: docs/spec/flame.md, "Names". Cost: about 50 ns a look-up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "symbolize/elf_file.h"

namespace dial9::symbolize {

// The whole symbol table, else the dynamic one; nullptr: neither.
const ElfFile::Section* function_table(const ElfFile& file);
// Of code that is in the file. Its name is another question.
bool is_function(const Elf64_Sym& symbol);
// Of several names of one function the one with the lowest rank is shown: what the programmer
// wrote, not what the library calls it.
std::uint8_t name_rank(unsigned char info, const char* name);

class ElfSymbols {
 public:
  // Takes at most kMaxSectionBytes for names and as much for functions.
  static ElfSymbols read(const ElfFile& file);

  struct Function {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::string_view name = {};  // mangled; valid as long as the table
  };
  // The function at an address of the file (one of the process less the load bias): the smallest
  // that holds it. `name` is empty where none does.
  Function find(std::uint64_t address) const;

  std::size_t size() const { return functions_.size(); }
  bool is_dynamic_only() const { return is_dynamic_only_; }
  std::size_t bytes() const { return names_.capacity() + functions_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    std::uint64_t begin;
    std::uint64_t bytes;
    std::uint64_t reach;  // the largest end of this and all entries before it
    std::uint32_t name;   // in names_
  };
  void add_functions(const std::vector<std::uint8_t>& rows);

  std::vector<Entry> functions_;     // by `begin`, then `bytes` descending; one a range
  std::vector<std::uint8_t> names_;  // the string table, with a zero behind it
  bool is_dynamic_only_ = false;
};

}  // namespace dial9::symbolize
