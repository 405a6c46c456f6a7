// SPDX-License-Identifier: Apache-2.0
#include "analysis/profile.h"

#include <algorithm>
#include <tuple>

#include "base/stable_sort.h"

namespace dial9::analysis {

// A later entry of the same address and depth replaces an earlier one: a process that loads and
// unloads code may name an address twice.
void Symbols::sort() {
  dial9::stable_sort(rows_.begin(), rows_.end(), [](const Symbol& a, const Symbol& b) {
    return std::tie(a.run, a.addr, a.inline_depth) < std::tie(b.run, b.addr, b.inline_depth);
  });
  std::size_t kept = 0;
  for (const Symbol& symbol : rows_) {
    const bool is_again = kept != 0 && rows_[kept - 1].run == symbol.run &&
                          rows_[kept - 1].addr == symbol.addr &&
                          rows_[kept - 1].inline_depth == symbol.inline_depth;
    kept += is_again ? 0 : 1;
    rows_[kept - 1] = symbol;
  }
  rows_.resize(kept);
  rows_.shrink_to_fit();
}

std::vector<Symbol> Symbols::at(NameId run, std::uint64_t address, std::size_t most) const {
  std::vector<Symbol> found = in_run(run, address, most);
  return found.empty() && run != kNoName ? in_run(kNoName, address, most) : found;
}

std::vector<Symbol> Symbols::in_run(NameId run, std::uint64_t address, std::size_t most) const {
  const auto after = std::upper_bound(rows_.begin(), rows_.end(), std::pair(run, address),
                                      [](const auto& wanted, const Symbol& symbol) {
                                        return wanted < std::pair(symbol.run, symbol.addr);
                                      });
  std::vector<Symbol> out;
  if (after == rows_.begin() || std::prev(after)->run != run) {
    return out;
  }
  const std::uint64_t addr = std::prev(after)->addr;
  const auto is_of_it = [&](const Symbol& symbol) {
    return symbol.run == run && symbol.addr == addr;
  };
  std::size_t looked_at = 0;
  for (auto at = after; at != rows_.begin() && is_of_it(*std::prev(at)) && looked_at < most;
       --at, ++looked_at) {
    const Symbol& symbol = *std::prev(at);
    if (address == addr || address - addr < symbol.size) {
      out.push_back(symbol);
    }
  }
  return out;
}

}  // namespace dial9::analysis
