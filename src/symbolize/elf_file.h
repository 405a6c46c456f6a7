// An ELF file's sections, read through a callback. Strongest property: the file is untrusted: every
// offset and size in it is checked against the file and against a bound before memory is taken.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dial9::symbolize {

// Reads `to.size()` bytes at `offset` of the file; false where it doesn't have them.
using FileReader = std::function<bool(std::uint64_t offset, std::span<std::uint8_t> to)>;

// Of a descriptor that outlives it, by pread().
FileReader reader_of(int fd);
// nullopt: it is no regular file.
std::optional<std::uint64_t> regular_file_bytes(int fd);

// What a write to a file changes.
struct FileStamp {
  std::uint64_t bytes = 0;
  std::int64_t written_s = 0;
  std::int64_t written_ns = 0;
  bool operator==(const FileStamp&) const = default;
};
// nullopt: it is no regular file.
std::optional<FileStamp> stamp_of(int fd);

// What a file may make us hold of one section.
inline constexpr std::uint64_t kMaxSectionBytes = std::uint64_t{256} << 20;

class ElfFile {
 public:
  struct Section {
    std::string name;
    Elf64_Shdr header;
  };

  // `reader` outlives it. Errors: kUnsupported (no 64-bit little-endian ELF file), kCorrupt.
  static Result<ElfFile> open(const FileReader& reader, std::uint64_t file_bytes);

  const std::vector<Section>& sections() const { return sections_; }
  const std::string& build_id() const { return build_id_; }  // in hexadecimal; empty: none
  // The name of the file with the symbols, as .gnu_debuglink has it; empty: none.
  const std::string& debug_link() const { return debug_link_; }
  // The file has its bytes, uncompressed and within the bound.
  bool holds(const Elf64_Shdr& header) const;
  // Its bytes; empty where the file doesn't have them, they are compressed, or beyond the bound.
  std::vector<std::uint8_t> bytes(const Section& section) const;

 private:
  ElfFile(const FileReader& reader, std::uint64_t file_bytes)
      : reader_(&reader), file_bytes_(file_bytes) {}
  bool read(std::uint64_t offset, std::span<std::uint8_t> to) const;

  const FileReader* reader_;
  std::uint64_t file_bytes_;
  std::vector<Section> sections_;
  std::string build_id_;
  std::string debug_link_;
};

}  // namespace dial9::symbolize
