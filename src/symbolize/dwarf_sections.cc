// See dwarf_sections.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_sections.h"

#include <gelf.h>

#include <algorithm>
#include <string_view>

namespace dial9::symbolize {
namespace {

using ByteSpan = std::span<const std::uint8_t>;

bool is_code_section(const GElf_Shdr& header) {
  return (header.sh_flags & SHF_EXECINSTR) != 0 && (header.sh_flags & SHF_ALLOC) != 0 &&
         header.sh_size != 0 && header.sh_addr + header.sh_size > header.sh_addr;
}

void take(std::string_view name, ByteSpan bytes, DwarfSectionsOfFile& file) {
  const bool is_split = name.ends_with(".dwo");
  if (is_split) name.remove_suffix(4);
  DwarfSections& to = is_split ? file.split : file.own;
  if (name == "info") to.entries = bytes;
  if (name == "abbrev") to.abbreviations = bytes;
  if (name == "line") to.lines.lines = bytes;
  if (name == "str") to.lines.texts = bytes;
  if (name == "line_str") to.lines.line_texts = bytes;
}

}  // namespace

DwarfSectionsOfFile dwarf_sections_of(Elf* elf) {
  DwarfSectionsOfFile file;
  file.split.is_split = true;
  std::size_t names = 0;
  if (elf == nullptr || ::elf_getshdrstrndx(elf, &names) != 0) return file;
  for (Elf_Scn* section = ::elf_nextscn(elf, nullptr); section != nullptr;
       section = ::elf_nextscn(elf, section)) {
    GElf_Shdr header;
    const bool is_held = ::gelf_getshdr(section, &header) != nullptr &&
                         header.sh_type != SHT_NOBITS && (header.sh_flags & SHF_COMPRESSED) == 0;
    const char* const text = is_held ? ::elf_strptr(elf, names, header.sh_name) : nullptr;
    std::string_view name = text == nullptr ? "" : text;
    if (name.starts_with(".zdebug_")) {
      name.remove_prefix(std::string_view(".zdebug_").size());
    } else if (name.starts_with(".debug_")) {
      name.remove_prefix(std::string_view(".debug_").size());
    } else {
      continue;
    }
    const Elf_Data* const data = ::elf_getdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) continue;
    take(name, {static_cast<const std::uint8_t*>(data->d_buf), data->d_size}, file);
  }
  return file;
}

std::vector<AddressRange> code_of(Elf* elf) {
  std::vector<AddressRange> code;
  for (Elf_Scn* section = ::elf_nextscn(elf, nullptr); section != nullptr;
       section = ::elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (::gelf_getshdr(section, &header) != nullptr && is_code_section(header)) {
      code.push_back({header.sh_addr, header.sh_addr + header.sh_size});
    }
  }
  return code;
}

bool is_in(const void* entry, ByteSpan bytes) {
  const auto* const at = static_cast<const std::uint8_t*>(entry);
  return at >= bytes.data() && at < bytes.data() + bytes.size();
}

const DwarfSections* DwarfSectionsOfFile::with(const void* entry) const {
  if (is_in(entry, own.entries)) return &own;
  return is_in(entry, split.entries) ? &split : nullptr;
}

UnitBytes unit_bytes(const DwarfSections& sections, Dwarf_Die& root) {
  UnitBytes out;
  const Dwarf_Off first = ::dwarf_cuoffset(&root);
  const auto at = static_cast<std::size_t>(static_cast<const std::uint8_t*>(root.addr) -
                                           sections.entries.data());
  Dwarf_Die same;
  Dwarf_Off abbreviations = 0;
  if (first > at ||
      ::dwarf_cu_die(root.cu, &same, &out.format.version, &abbreviations, &out.format.address_bytes,
                     &out.format.offset_bytes, nullptr, nullptr) == nullptr ||
      abbreviations > sections.abbreviations.size()) {
    return {};
  }
  const ByteSpan rest = sections.entries.subspan(at - first);
  DwarfBytes header(rest);
  std::uint64_t length = header.number(4);
  if (out.format.offset_bytes == 8) length = header.number(8);
  if (!header.is_whole()) return {};
  out.bytes = rest.first(header.at() + std::min<std::uint64_t>(length, header.left()));
  out.abbreviations = sections.abbreviations.subspan(abbreviations);
  out.first = first;
  return out;
}

}  // namespace dial9::symbolize
