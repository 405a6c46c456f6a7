// What one ELF file has of a module: its build id, its functions, whether it has debug information.
// Strongest property: a file that was written to while it was read has nothing, and is told apart
// from one that is another module's. Spec: docs/spec/flame.md, "Names".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbolize/elf_file.h"
#include "symbolize/elf_symbols.h"

namespace dial9::symbolize {

struct ModuleFile {
  std::string build_id;  // in hexadecimal; empty: none
  std::string debug_link;
  bool has_dwarf = false;
  bool was_changed = false;  // between the first read and the last
  ElfSymbols symbols;        // empty where the build id isn't the one that is wanted
};

// nullopt: it is no ELF file. The build id is read again behind everything else.
std::optional<ModuleFile> read_module(const FileReader& reader, std::uint64_t bytes,
                                      std::string_view wanted_build_id);
// nullopt: there is no such ELF file, or it can't be opened; `is_short`, where that was for want of
// memory or descriptors, becomes true.
std::optional<ModuleFile> read_module_file(const std::string& path,
                                           std::string_view wanted_build_id, bool& is_short);
// The kernel's own library has no file; this process's is the same where its build id is.
std::optional<ModuleFile> read_own_vdso(std::string_view wanted_build_id, bool& is_short);

// What follows the last '/'.
std::string file_name(std::string_view path);

// Where a module's whole symbol table and its debug information may be, the likeliest first; its
// own file isn't among them. `build_id` has three digits or more; `debug_link` may be empty.
std::vector<std::string> module_files(const std::vector<std::string>& directories,
                                      const std::string& debug_root, const std::string& path,
                                      const std::string& build_id, const std::string& debug_link);

}  // namespace dial9::symbolize
