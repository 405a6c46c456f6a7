// See elf_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/elf_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace dial9::symbolize {
namespace {

constexpr std::uint64_t kMaxNoteBytes = 1 << 16;
constexpr std::size_t kMaxNameBytes = 256;

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::uint64_t padded(std::uint64_t size) { return (size + 3) & ~std::uint64_t{3}; }

std::string build_id_in(std::span<const std::uint8_t> notes) {
  std::uint64_t at = 0;
  while (notes.size() - at >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    const std::uint64_t name = at + sizeof note;
    const std::uint64_t body = name + padded(note.n_namesz);
    if (body > notes.size() || note.n_descsz > notes.size() - body) return {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes.data() + name, "GNU", 4) == 0) {
      return hex(notes.subspan(body, note.n_descsz));
    }
    at = std::min<std::uint64_t>(notes.size(), body + padded(note.n_descsz));
  }
  return {};
}

// Up to its zero; empty beyond the table.
std::string text_at(std::span<const std::uint8_t> table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const auto* begin = reinterpret_cast<const char*>(table.data()) + offset;
  return std::string(begin, ::strnlen(begin, std::min(kMaxNameBytes, table.size() - offset)));
}

}  // namespace

FileReader reader_of(int fd) {
  return [fd](std::uint64_t offset, std::span<std::uint8_t> to) {
    std::size_t done = 0;
    while (done < to.size()) {
      const ssize_t n =
          ::pread(fd, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
      if (n <= 0) return false;
      done += static_cast<std::size_t>(n);
    }
    return true;
  };
}

std::optional<FileStamp> stamp_of(int fd) {
  struct stat facts{};
  if (::fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  return FileStamp{static_cast<std::uint64_t>(facts.st_size), facts.st_mtim.tv_sec,
                   facts.st_mtim.tv_nsec};
}

std::optional<std::uint64_t> regular_file_bytes(int fd) {
  const auto stamp = stamp_of(fd);
  if (!stamp) return std::nullopt;
  return stamp->bytes;
}

bool ElfFile::read(std::uint64_t offset, std::span<std::uint8_t> to) const {
  if (offset > file_bytes_ || to.size() > file_bytes_ - offset) return false;
  return to.empty() || (*reader_)(offset, to);
}

bool ElfFile::holds(const Elf64_Shdr& header) const {
  return header.sh_type != SHT_NOBITS && (header.sh_flags & SHF_COMPRESSED) == 0 &&
         header.sh_size <= kMaxSectionBytes && header.sh_offset <= file_bytes_ &&
         header.sh_size <= file_bytes_ - header.sh_offset;
}

std::vector<std::uint8_t> ElfFile::bytes(const Section& section) const {
  if (!holds(section.header)) return {};
  std::vector<std::uint8_t> bytes(section.header.sh_size);
  if (!read(section.header.sh_offset, bytes)) return {};
  return bytes;
}

Result<ElfFile> ElfFile::open(const FileReader& reader, std::uint64_t file_bytes) {
  ElfFile file(reader, file_bytes);
  Elf64_Ehdr head;
  std::uint8_t raw[sizeof head];
  if (!file.read(0, raw)) return make_error(ErrorCode::kUnsupported, "no ELF file");
  std::memcpy(&head, raw, sizeof head);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
      head.e_ident[EI_DATA] != ELFDATA2LSB ||
      (head.e_shnum != 0 && head.e_shentsize != sizeof(Elf64_Shdr))) {
    return make_error(ErrorCode::kUnsupported, "no 64-bit little-endian ELF file");
  }
  std::vector<std::uint8_t> table(std::size_t{head.e_shnum} * sizeof(Elf64_Shdr));
  if (!file.read(head.e_shoff, table)) {
    return make_error(ErrorCode::kCorrupt, "a section table outside the file");
  }
  for (std::size_t at = 0; at < table.size(); at += sizeof(Elf64_Shdr)) {
    Section& section = file.sections_.emplace_back();
    std::memcpy(&section.header, table.data() + at, sizeof section.header);
  }
  std::vector<std::uint8_t> names;
  if (head.e_shstrndx < file.sections_.size()) {
    names = file.bytes(file.sections_[head.e_shstrndx]);
  }
  for (Section& section : file.sections_) {
    section.name = text_at(names, section.header.sh_name);
    const bool is_small = section.header.sh_size <= kMaxNoteBytes;
    if (section.header.sh_type == SHT_NOTE && file.build_id_.empty() && is_small) {
      file.build_id_ = build_id_in(file.bytes(section));
    }
    if (section.name == ".gnu_debuglink" && is_small) {
      file.debug_link_ = text_at(file.bytes(section), 0);
    }
  }
  return file;
}

}  // namespace dial9::symbolize
