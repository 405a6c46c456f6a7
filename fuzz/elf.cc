// Any bytes as an ELF file: sections, symbols and names are read within their bounds; a function
// that is found holds the address, and its name lies in the table.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "check.h"
#include "symbolize/demangle.h"
#include "symbolize/elf_file.h"
#include "symbolize/elf_symbols.h"
#include "symbolize/symbol_scan.h"

namespace dial9::fuzz {
namespace {

using namespace dial9::symbolize;

void look_up(const ElfSymbols& symbols, std::uint64_t address) {
  const ElfSymbols::Function function = symbols.find(address);
  if (function.name.empty()) return;
  check(address >= function.begin, "a function begins behind the address that it was found for");
  check(function.bytes == 0 || address - function.begin < function.bytes,
        "a function ends before the address that it was found for");
  check(function.name.find('\0') == std::string_view::npos, "a name holds a zero");
  (void)demangle(function.name);
}

// In pieces: what is found holds an address that was asked for, and memory goes by those.
void scan(const FileReader& reader, std::uint64_t bytes) {
  std::vector<std::uint64_t> addresses;
  for (std::uint64_t address = 0; address < 0x3000; address += 0x11) addresses.push_back(address);
  auto scan = SymbolScan::open(reader, bytes, addresses);
  if (!scan) return;
  while (!scan->is_done() && scan->step(reader, 240)) {
  }
  std::uint64_t before = 0;
  for (const SymbolScan::Function& function : scan->take()) {
    const auto at = std::lower_bound(addresses.begin(), addresses.end(), function.begin);
    check(at != addresses.end() && *at - function.begin < function.bytes,
          "a function holds no address that was asked for");
    check(function.begin >= before, "functions aren't in order");
    check(!function.name.empty() && function.name.find('\0') == std::string::npos, "a bad name");
    before = function.begin;
  }
}

}  // namespace
}  // namespace dial9::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dial9::fuzz;
  const FileReader reader = [&](std::uint64_t offset, std::span<std::uint8_t> to) {
    if (offset > size || to.size() > size - offset) return false;
    if (!to.empty()) std::memcpy(to.data(), data + offset, to.size());
    return true;
  };
  const auto file = ElfFile::open(reader, size);
  if (!file) return 0;
  for (const ElfFile::Section& section : file->sections()) {
    check(file->bytes(section).size() <= size, "a section is larger than the file");
  }
  scan(reader, size);
  const ElfSymbols symbols = ElfSymbols::read(*file);
  check(symbols.size() <= size / sizeof(Elf64_Sym), "more functions than rows");
  for (std::uint64_t address = 0; address < 0x3000; address += 0x11) look_up(symbols, address);
  for (std::size_t at = 0; at + 8 <= size && at < 4096; at += 8) {
    std::uint64_t address = 0;
    std::memcpy(&address, data + at, sizeof address);
    look_up(symbols, address);
  }
  return 0;
}
