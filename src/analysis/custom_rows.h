// Rows of an event type that is kept whole (Trace::custom), by the names of its fields. Strongest
// property: a field that a writer left out, or that is no count, is 0 and never another field.
// Spec: docs/spec/events.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "analysis/trace.h"

namespace dial9::analysis {

// Calls use(at_ns, cell) for each row of all tables of that name; cell("lost") is the count in that
// field.
template <class Use>
void for_each_custom(const Trace& trace, std::string_view type, Use use) {
  const NameId wanted = trace.names.find(type);
  for (const EventTable& table : trace.custom) {
    if (table.name != wanted || wanted == kNoName) {
      continue;
    }
    const auto cell = [&](std::size_t row, std::string_view name) -> std::uint64_t {
      for (std::size_t i = 0; i < table.fields.size(); ++i) {
        if (trace.names.text(table.fields[i].name) == name) {
          const Cell found = table.cell(row, i);
          return found.type == CellType::kU64 ? found.bits : 0;
        }
      }
      return 0;
    };
    for (std::size_t row = 0; row < table.size(); ++row) {
      use(table.at_ns[row], [&](std::string_view name) { return cell(row, name); });
    }
  }
}

}  // namespace dial9::analysis
