// See symbol_scan.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbol_scan.h"

#include <algorithm>
#include <cstring>

#include "symbolize/elf_symbols.h"

namespace dial9::symbolize {
namespace {

constexpr std::uint64_t kRow = sizeof(Elf64_Sym);
constexpr std::uint64_t kFirstNameBytes = 128;  // most names end within
constexpr std::uint64_t kMostNameBytes = 4096;

}  // namespace

Result<SymbolScan> SymbolScan::open(const FileReader& reader, std::uint64_t file_bytes,
                                    std::span<const std::uint64_t> addresses) {
  auto file = ElfFile::open(reader, file_bytes);
  if (!file) return std::unexpected(file.error());
  SymbolScan scan;
  scan.build_id_ = file->build_id();
  scan.bests_.reserve(addresses.size());
  for (const std::uint64_t address : addresses) scan.bests_.push_back({address, {}, 0});
  const ElfFile::Section* const table = function_table(*file);
  if (table == nullptr || table->header.sh_link >= file->sections().size()) return scan;
  const Elf64_Shdr& rows = table->header;
  const Elf64_Shdr& names = file->sections()[rows.sh_link].header;
  if (!file->holds(rows) || !file->holds(names)) return scan;
  scan.next_ = rows.sh_offset;
  scan.end_ = rows.sh_offset + rows.sh_size / kRow * kRow;
  scan.names_ = names.sh_offset;
  scan.names_bytes_ = names.sh_size;
  return scan;
}

// Empty: it has none, or one that is too long.
std::string SymbolScan::name_at(const FileReader& reader, std::uint32_t offset) const {
  if (offset >= names_bytes_) return {};
  std::string name;
  for (const std::uint64_t most : {kFirstNameBytes, kMostNameBytes + 1}) {
    name.resize(std::min(most, names_bytes_ - offset));
    const std::span room(reinterpret_cast<std::uint8_t*>(name.data()), name.size());
    if (!reader(names_ + offset, room)) return {};
    const std::size_t end = name.find('\0');
    if (end != std::string::npos) return name.substr(0, end);
    if (name.size() < most) return name;  // the table ends with it
  }
  return {};
}

// Of functions that hold an address the smallest, as the one that begins last; of its names the one
// that ElfSymbols takes.
bool SymbolScan::is_better(const Elf64_Sym& symbol, const std::string& name, const Best& than) {
  if (than.function.bytes == 0) return true;
  if (symbol.st_value != than.function.begin) return symbol.st_value > than.function.begin;
  if (symbol.st_size != than.function.bytes) return symbol.st_size < than.function.bytes;
  const std::uint8_t rank = name_rank(symbol.st_info, name.c_str());
  if (rank != than.rank) return rank < than.rank;
  const std::string& other = than.function.name;
  return name.size() != other.size() ? name.size() < other.size() : name < other;
}

void SymbolScan::offer(const FileReader& reader, const Elf64_Sym& symbol) {
  const auto at_or_behind = [](const Best& best, std::uint64_t wanted) {
    return best.address < wanted;
  };
  auto at = std::lower_bound(bests_.begin(), bests_.end(), symbol.st_value, at_or_behind);
  std::string name;
  for (; at != bests_.end() && at->address - symbol.st_value < symbol.st_size; ++at) {
    const Function& best = at->function;
    const bool is_worse =
        best.bytes != 0 && (symbol.st_value < best.begin ||
                            (symbol.st_value == best.begin && symbol.st_size > best.bytes));
    if (is_worse) continue;
    if (name.empty()) name = name_at(reader, symbol.st_name);
    if (name.empty()) return;
    if (!is_better(symbol, name, *at)) continue;
    at->function = {symbol.st_value, symbol.st_size, name};
    at->rank = name_rank(symbol.st_info, name.c_str());
  }
}

bool SymbolScan::step(const FileReader& reader, std::uint64_t bytes) {
  std::vector<std::uint8_t> rows(
      std::min(std::max(bytes / kRow, std::uint64_t{1}) * kRow, end_ - std::min(end_, next_)));
  if (rows.empty()) return true;
  if (!reader(next_, rows)) {
    bests_.clear();
    next_ = end_;
    return false;
  }
  for (std::size_t at = 0; at < rows.size(); at += kRow) {
    Elf64_Sym symbol;
    std::memcpy(&symbol, rows.data() + at, sizeof symbol);
    if (is_function(symbol)) offer(reader, symbol);
  }
  next_ += rows.size();
  return true;
}

std::vector<SymbolScan::Function> SymbolScan::take() {
  std::vector<Function> functions;
  for (Best& best : bests_) {
    if (best.function.bytes != 0) functions.push_back(std::move(best.function));
  }
  bests_.clear();
  std::sort(functions.begin(), functions.end(), [](const Function& a, const Function& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.bytes < b.bytes;
  });
  const auto is_same = [](const Function& a, const Function& b) {
    return a.begin == b.begin && a.bytes == b.bytes;
  };
  functions.erase(std::unique(functions.begin(), functions.end(), is_same), functions.end());
  return functions;
}

}  // namespace dial9::symbolize
