// See doctor_elf.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_elf.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

namespace dial9::cli {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint64_t kMaxFunctions = 20'000;
constexpr std::uint64_t kLeastFunctionBytes = 32;
constexpr std::size_t kPrologueBytes = 32;

template <class T>
std::optional<T> read_at(Bytes file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

Bytes part(Bytes file, std::uint64_t offset, std::uint64_t size) {
  if (offset > file.size() || file.size() - offset < size) return {};
  return file.subspan(offset, size);
}

// The text at `offset` of a string table, up to its zero.
std::string_view text_at(Bytes table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const auto* text = reinterpret_cast<const char*>(table.data() + offset);
  return {text, ::strnlen(text, table.size() - offset)};
}

struct Section {
  Elf64_Shdr header;
  std::string_view name;
};

Result<std::vector<Section>> read_sections(Bytes file, const Elf64_Ehdr& head) {
  std::vector<Section> sections;
  for (std::uint16_t i = 0; i < head.e_shnum; ++i) {
    const auto header =
        read_at<Elf64_Shdr>(file, head.e_shoff + std::uint64_t{i} * sizeof(Elf64_Shdr));
    if (!header) return make_error(ErrorCode::kCorrupt, "its section table lies outside the file");
    sections.push_back({*header, {}});
  }
  if (head.e_shstrndx < sections.size()) {
    const Elf64_Shdr& names = sections[head.e_shstrndx].header;
    const Bytes table = part(file, names.sh_offset, names.sh_size);
    for (Section& section : sections) section.name = text_at(table, section.header.sh_name);
  }
  return sections;
}

std::string build_id_in(Bytes notes) {
  std::uint64_t at = 0;
  while (const auto note = read_at<Elf64_Nhdr>(notes, at)) {
    const std::uint64_t name = at + sizeof(Elf64_Nhdr);
    const std::uint64_t body = name + ((std::uint64_t{note->n_namesz} + 3) & ~std::uint64_t{3});
    const Bytes id = part(notes, body, note->n_descsz);
    if (note->n_type == NT_GNU_BUILD_ID && text_at(notes, name) == "GNU" && !id.empty()) {
      std::string hex;
      for (const std::uint8_t byte : id) {
        hex += "0123456789abcdef"[byte >> 4];
        hex += "0123456789abcdef"[byte & 15];
      }
      return hex;
    }
    at = body + ((std::uint64_t{note->n_descsz} + 3) & ~std::uint64_t{3});
  }
  return {};
}

// The code that a symbol's address stands for.
Bytes code_of(Bytes file, const std::vector<Section>& sections, const Elf64_Sym& symbol) {
  if (symbol.st_shndx >= sections.size()) return {};
  const Elf64_Shdr& in = sections[symbol.st_shndx].header;
  if (in.sh_type == SHT_NOBITS || (in.sh_flags & SHF_EXECINSTR) == 0 ||
      symbol.st_value < in.sh_addr || symbol.st_value - in.sh_addr >= in.sh_size) {
    return {};
  }
  const Bytes text = part(file, in.sh_offset, in.sh_size);
  const std::uint64_t offset = symbol.st_value - in.sh_addr;
  if (offset >= text.size()) return {};
  return text.subspan(
      offset, std::min<std::uint64_t>({symbol.st_size, kPrologueBytes, text.size() - offset}));
}

void judge_functions(Bytes file, const std::vector<Section>& sections, const Section& table,
                     std::uint16_t machine, ElfFacts& facts) {
  if (table.header.sh_link >= sections.size()) return;
  const Elf64_Shdr& names_header = sections[table.header.sh_link].header;
  const Bytes names = part(file, names_header.sh_offset, names_header.sh_size);
  const std::uint64_t count = table.header.sh_size / sizeof(Elf64_Sym);
  for (std::uint64_t i = 0; i < count && facts.functions < kMaxFunctions; ++i) {
    const auto symbol = read_at<Elf64_Sym>(file, table.header.sh_offset + i * sizeof(Elf64_Sym));
    if (!symbol) return;
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_size < kLeastFunctionBytes) {
      continue;
    }
    // The cold half of a function begins in its middle: it has no prologue of its own.
    if (text_at(names, symbol->st_name).find(".cold") != std::string_view::npos) continue;
    const Bytes code = code_of(file, sections, *symbol);
    if (code.empty()) continue;
    ++facts.functions;
    if (sets_up_frame(code, machine)) ++facts.framed_functions;
  }
}

bool has_bytes(Bytes code, std::size_t at, std::initializer_list<std::uint8_t> wanted) {
  return code.size() >= at + wanted.size() &&
         std::equal(wanted.begin(), wanted.end(), code.begin() + static_cast<std::ptrdiff_t>(at));
}

// push %rbp early, and mov %rsp,%rbp soon after it; the compiler may put others in between.
bool sets_up_x86_frame(Bytes code) {
  constexpr std::size_t kLatestPush = 12;
  for (std::size_t push = 0; push < std::min(code.size(), kLatestPush); ++push) {
    if (code[push] != 0x55) continue;
    for (std::size_t at = push + 1; at + 3 <= code.size(); ++at) {
      if (has_bytes(code, at, {0x48, 0x89, 0xe5}) || has_bytes(code, at, {0x48, 0x8b, 0xec})) {
        return true;
      }
    }
    return false;
  }
  return false;
}

// stp x29, x30, [sp, ...] in one of its forms.
bool sets_up_arm_frame(Bytes code) {
  for (std::size_t at = 0; at + 4 <= code.size(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, code.data() + at, sizeof word);
    const bool is_store_pair = (word & 0xFFC0'0000U) == 0xA980'0000U ||  // pre-indexed
                               (word & 0xFFC0'0000U) == 0xA900'0000U;    // with an offset
    if (is_store_pair && (word & 0x1FU) == 29 && ((word >> 10) & 0x1FU) == 30 &&
        ((word >> 5) & 0x1FU) == 31) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool sets_up_frame(Bytes code, std::uint16_t machine) {
  return machine == EM_X86_64 ? sets_up_x86_frame(code)
                              : machine == EM_AARCH64 && sets_up_arm_frame(code);
}

Result<ElfFacts> read_elf(Bytes file) {
  const auto head = read_at<Elf64_Ehdr>(file, 0);
  if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
      head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_ident[EI_DATA] != ELFDATA2LSB ||
      (head->e_shnum != 0 && head->e_shentsize != sizeof(Elf64_Shdr))) {
    return make_error(ErrorCode::kUnsupported, "it is no 64-bit little-endian ELF program");
  }
  const auto sections = read_sections(file, *head);
  if (!sections) return std::unexpected(sections.error());
  ElfFacts facts;
  facts.can_judge_frames = head->e_machine == EM_X86_64 || head->e_machine == EM_AARCH64;
  const Section* symbols = nullptr;
  for (const Section& section : *sections) {
    const Bytes body = section.header.sh_type == SHT_NOBITS
                           ? Bytes()
                           : part(file, section.header.sh_offset, section.header.sh_size);
    if (section.header.sh_type == SHT_NOTE && facts.build_id.empty()) {
      facts.build_id = build_id_in(body);
    }
    if (section.name == ".debug_info" && !body.empty()) facts.has_debug_info = true;
    if (section.name == ".gnu_debuglink") facts.debug_link = text_at(body, 0);
    if (section.header.sh_type == SHT_SYMTAB) facts.has_symbols = true;
    const bool is_better = section.header.sh_type == SHT_SYMTAB ||
                           (section.header.sh_type == SHT_DYNSYM && symbols == nullptr);
    if (is_better) symbols = &section;
  }
  if (facts.can_judge_frames && symbols != nullptr) {
    judge_functions(file, *sections, *symbols, head->e_machine, facts);
  }
  return facts;
}

}  // namespace dial9::cli
