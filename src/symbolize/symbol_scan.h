// Names some addresses of an ELF file by one pass over its symbol table, a piece at a time, for a
// process that has no room for the whole table. Strongest property: memory goes by the addresses
// that are asked for, not by the file, which is untrusted (elf_file.h); names are the same as
// ElfSymbols'. Spec: docs/spec/modules.md, "Names". Cost: about 30 ns a row of the table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbolize/elf_file.h"

namespace dial9::symbolize {

class SymbolScan {
 public:
  struct Function {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::string name;  // mangled
  };

  // `addresses`: of the file, sorted, each once; each takes up to 4 KiB, that of its name. Errors:
  // as ElfFile::open's. A file without a table is one that names nothing.
  static Result<SymbolScan> open(const FileReader& reader, std::uint64_t file_bytes,
                                 std::span<const std::uint64_t> addresses);

  const std::string& build_id() const { return build_id_; }  // in hexadecimal; empty: none
  bool is_done() const { return next_ >= end_; }
  // Reads about `bytes` more of the table, through a reader of the same file. False: it can't be
  // read; then nothing that was found counts.
  bool step(const FileReader& reader, std::uint64_t bytes);
  // Once it is done: the functions that hold the addresses, by `begin`, each once. A name of more
  // than 4 KiB is none.
  std::vector<Function> take();

 private:
  struct Best {
    std::uint64_t address = 0;
    Function function;  // no bytes: none so far
    std::uint8_t rank = 0;
  };
  void offer(const FileReader& reader, const Elf64_Sym& symbol);
  static bool is_better(const Elf64_Sym& symbol, const std::string& name, const Best& than);
  std::string name_at(const FileReader& reader, std::uint32_t offset) const;

  std::vector<Best> bests_;  // by address
  std::string build_id_;
  std::uint64_t next_ = 0;  // in the file: the first row that isn't read
  std::uint64_t end_ = 0;
  std::uint64_t names_ = 0;
  std::uint64_t names_bytes_ = 0;
};

}  // namespace dial9::symbolize
