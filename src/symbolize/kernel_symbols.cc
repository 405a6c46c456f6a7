// See kernel_symbols.h. A line: address, kind, name, and for what isn't the kernel's own [module].
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/kernel_symbols.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

#include "base/whole_file.h"

namespace dial9::symbolize {
namespace {

constexpr std::size_t kMostListBytes = 64 << 20;

struct Row {
  std::uint64_t address = 0;
  char kind = 0;
  std::string_view name;
  bool is_own = true;
};

std::optional<Row> row_of(std::string_view line) {
  Row row;
  const auto [end, error] =
      std::from_chars(line.data(), line.data() + line.size(), row.address, 16);
  const auto at = static_cast<std::size_t>(end - line.data());
  if (error != std::errc{} || line.size() < at + 4 || line[at] != ' ' || line[at + 2] != ' ') {
    return std::nullopt;
  }
  row.kind = line[at + 1];
  row.name = line.substr(at + 3);
  const std::size_t name_end = row.name.find_first_of("\t ");
  row.is_own = name_end == std::string_view::npos;
  row.name = row.name.substr(0, name_end);
  return row;
}

bool is_function(const Row& row) {
  return row.kind == 't' || row.kind == 'T' || row.kind == 'w' || row.kind == 'W';
}

// Of several at one address: what people call it, before marks of the linker's.
int rank_of(std::string_view name) {
  if (name == "_text" || name == "_stext") return 2;
  return name.starts_with("__") ? 1 : 0;
}

}  // namespace

Result<KernelSymbols> KernelSymbols::read(const std::string& path) {
  const Result<std::string> text = read_whole_file(path, kMostListBytes);
  if (!text) {
    const ErrorCode code = text.error().code;  // kLimit: of descriptors
    const bool is_passing = code == ErrorCode::kLimit || code == ErrorCode::kIo;
    return make_error(is_passing ? ErrorCode::kIo : ErrorCode::kUnsupported, text.error().message);
  }
  return parse(*text);
}

Result<KernelSymbols> KernelSymbols::parse(std::string_view text) {
  std::vector<Row> rows;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool is_hidden = true;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::optional<Row> row = row_of(line);
    if (!row || !row->is_own) continue;
    is_hidden = is_hidden && row->address == 0;
    if (row->name == "_stext") begin = row->address;
    if (row->name == "_etext") end = row->address;
    rows.push_back(*row);
  }
  if (is_hidden && !rows.empty()) {
    return make_error(ErrorCode::kPermission, "the list of its symbols hides their addresses");
  }
  if (begin == 0 || end <= begin) {
    return make_error(ErrorCode::kUnsupported, "no list of its symbols that says where they end");
  }
  std::erase_if(rows, [&](const Row& row) { return row.address < begin || row.address >= end; });
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::tuple(a.address, !is_function(a), rank_of(a.name), a.name) <
           std::tuple(b.address, !is_function(b), rank_of(b.name), b.name);
  });
  KernelSymbols symbols;
  for (const Row& row : rows) {
    if (!symbols.functions_.empty() && symbols.functions_.back().begin == row.address) continue;
    symbols.functions_.push_back({row.address, is_function(row) ? std::string(row.name) : ""});
  }
  symbols.functions_.push_back({end, ""});
  return symbols;
}

std::string_view KernelSymbols::name(std::uint64_t address) const {
  const auto after = std::upper_bound(
      functions_.begin(), functions_.end(), address,
      [](std::uint64_t wanted, const Function& function) { return wanted < function.begin; });
  if (after == functions_.begin()) return {};
  return std::prev(after)->name;
}

std::string own_boot_id() {
  const Result<std::string> text = read_whole_file("/proc/sys/kernel/random/boot_id", 64);
  return text ? text->substr(0, text->find('\n')) : "";
}

}  // namespace dial9::symbolize
