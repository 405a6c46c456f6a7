// Any bytes as a unit's entries with their abbreviations, and as a line table: what is read lies in
// them; a function that is found claims the address, and what is inlined into it comes to an end.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "check.h"
#include "symbolize/dwarf_entries.h"
#include "symbolize/dwarf_functions.h"
#include "symbolize/dwarf_lines.h"

namespace dial9::fuzz {
namespace {

using namespace dial9::symbolize;
using ByteSpan = std::span<const std::uint8_t>;

constexpr std::uint64_t kBegin = 0x1000;
constexpr std::uint64_t kEnd = 0x1200;

bool is_code(const AddressRange& range) {
  return range.begin < range.end && range.begin >= kBegin && range.end <= kEnd;
}

void read_functions(ByteSpan abbreviations, ByteSpan unit, const DwarfFormat& format) {
  UnitFunctions functions(unit, 0, format, DwarfAbbreviations::read(abbreviations, format),
                          [&](const DwarfEntry& entry, std::vector<AddressRange>& to) {
                            check(entry.at < unit.size(), "an entry outside the unit");
                            if (entry.has_range && is_code(entry.range)) to.push_back(entry.range);
                            if (entry.has_others) to.push_back({kBegin + entry.at, kEnd});
                          });
  for (std::uint64_t address = kBegin - 1; address <= kEnd; ++address) {
    const std::uint32_t function = functions.at(address);
    if (function == UnitFunctions::kNone) continue;
    check(address >= kBegin && address < kEnd, "a function where no code is");
    const auto chain = functions.chain(function, address);
    check(chain.size() <= DwarfEntries::kMostNested, "functions without an end");
    for (const UnitFunctions::Scope& scope : chain) {
      check(scope.at < unit.size(), "a function outside the unit");
    }
  }
  for (std::size_t at = 0; at < unit.size(); at += 7) {
    const std::uint32_t space = functions.space_at(at);
    if (space == UnitFunctions::kNone) continue;
    check(at >= functions.spaces()[space].begin && at < functions.spaces()[space].end,
          "a namespace that the entry isn't in");
  }
}

void read_lines(ByteSpan section, ByteSpan texts) {
  constexpr AddressRange kCode[] = {{kBegin, kEnd}};
  const auto table = LineTable::read({section, texts, texts}, 0, "/comp", kCode);
  if (!table) return;
  for (std::uint64_t address = kBegin - 1; address <= kEnd; ++address) {
    const LineTable::Line line = table->find(address);
    check(line.line == 0 || (address >= kBegin && address < kEnd), "a line where no code is");
    check(table->file(line.file).size() <= section.size() + texts.size() + 16, "a path of nothing");
  }
}

}  // namespace
}  // namespace dial9::fuzz

// Bytes: version, bytes of an offset, how many are abbreviations; these; the unit.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dial9::fuzz;
  constexpr std::size_t kHead = 3;
  read_lines({data, size}, {data, size});
  if (size < kHead) return 0;
  const DwarfFormat format{static_cast<std::uint16_t>(2 + data[0] % 4), 8,
                           static_cast<std::uint8_t>(data[1] % 2 == 0 ? 4 : 8)};
  const ByteSpan rest(data + kHead, size - kHead);
  const std::size_t count = std::min<std::size_t>(data[2], rest.size());
  read_functions(rest.first(count), rest.subspan(count), format);
  return 0;
}
