// See elf_symbols.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/elf_symbols.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace dial9::symbolize {
namespace {

// A candidate for the name of a range; several names may have one.
struct Candidate {
  std::uint64_t begin;
  std::uint64_t bytes;
  std::uint32_t name;
  std::uint8_t rank;  // lower is better: what the programmer wrote, not what the library calls it
};

// Most functions that are looked at behind an address before it is given up: functions within
// functions are rare, deep nests of them are made up.
constexpr int kMostLookedAt = 64;

}  // namespace

std::uint8_t name_rank(unsigned char info, const char* name) {
  const unsigned bind = ELF64_ST_BIND(info);
  const std::uint8_t by_bind = bind == STB_GLOBAL ? 0 : bind == STB_WEAK ? 1 : 2;
  const bool is_mangled = name[0] == '_' && name[1] == 'Z';
  const std::uint8_t underscores = is_mangled || name[0] != '_' ? 0 : name[1] != '_' ? 4 : 8;
  return underscores | by_bind;
}

bool is_function(const Elf64_Sym& symbol) {
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF &&
         symbol.st_size != 0 && symbol.st_size <= ~symbol.st_value;
}

const ElfFile::Section* function_table(const ElfFile& file) {
  const ElfFile::Section* table = nullptr;
  for (const ElfFile::Section& section : file.sections()) {
    const bool is_whole = section.header.sh_type == SHT_SYMTAB;
    const bool has_whole = table != nullptr && table->header.sh_type == SHT_SYMTAB;
    if ((is_whole && !has_whole) || (section.header.sh_type == SHT_DYNSYM && table == nullptr)) {
      table = &section;
    }
  }
  return table;
}

void ElfSymbols::add_functions(const std::vector<std::uint8_t>& rows) {
  std::vector<Candidate> candidates;
  for (std::size_t at = 0; rows.size() - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
    Elf64_Sym symbol;
    std::memcpy(&symbol, rows.data() + at, sizeof symbol);
    const bool is_named = symbol.st_name < names_.size() - 1 && names_[symbol.st_name] != 0;
    if (is_named && is_function(symbol)) {
      const char* name = reinterpret_cast<const char*>(names_.data()) + symbol.st_name;
      candidates.push_back(
          {symbol.st_value, symbol.st_size, symbol.st_name, name_rank(symbol.st_info, name)});
    }
  }
  const auto text = [&](const Candidate& candidate) {
    return reinterpret_cast<const char*>(names_.data()) + candidate.name;
  };
  constexpr std::size_t kMostCompared = 256;  // of names that may be of any length
  std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    if (a.rank != b.rank) return a.rank < b.rank;
    const std::size_t a_bytes = ::strnlen(text(a), kMostCompared);
    const std::size_t b_bytes = ::strnlen(text(b), kMostCompared);
    if (a_bytes != b_bytes) return a_bytes < b_bytes;
    const int order = std::memcmp(text(a), text(b), a_bytes);
    return order != 0 ? order < 0 : a.name < b.name;
  });
  std::uint64_t reach = 0;
  functions_.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    if (!functions_.empty() && functions_.back().begin == candidate.begin &&
        functions_.back().bytes == candidate.bytes) {
      continue;  // another name of the same
    }
    reach = std::max(reach, candidate.begin + candidate.bytes);
    functions_.push_back({candidate.begin, candidate.bytes, reach, candidate.name});
  }
  functions_.shrink_to_fit();
}

ElfSymbols ElfSymbols::read(const ElfFile& file) {
  ElfSymbols symbols;
  const ElfFile::Section* const table = function_table(file);
  symbols.is_dynamic_only_ = table != nullptr && table->header.sh_type == SHT_DYNSYM;
  if (table == nullptr || table->header.sh_link >= file.sections().size()) return symbols;
  symbols.names_ = file.bytes(file.sections()[table->header.sh_link]);
  if (symbols.names_.size() >= std::numeric_limits<std::uint32_t>::max()) return {};
  symbols.names_.push_back(0);
  symbols.add_functions(file.bytes(*table));
  return symbols;
}

ElfSymbols::Function ElfSymbols::find(std::uint64_t address) const {
  auto after = std::upper_bound(
      functions_.begin(), functions_.end(), address,
      [](std::uint64_t wanted, const Entry& function) { return wanted < function.begin; });
  for (int i = 0; i < kMostLookedAt && after != functions_.begin(); ++i) {
    --after;
    if (address >= after->reach) return {};  // nothing before it comes so far
    if (address - after->begin < after->bytes) {
      return {after->begin, after->bytes,
              reinterpret_cast<const char*>(names_.data()) + after->name};
    }
  }
  return {};
}

}  // namespace dial9::symbolize
