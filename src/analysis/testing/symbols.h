// Names of functions in a trace, as its writer tells them, for tests of what readers do with them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "format/encoder.h"

namespace dial9::analysis::testing {

struct Symbol {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::string_view name;
  std::uint64_t inline_depth = 0;
  std::string_view file = {};  // with a line: of a writer that knows lines
  std::uint64_t line = 0;
};

// Appends the event. Its type id is 999: no test has another of that.
inline void add_symbol(format::Encoder& out, const Symbol& symbol) {
  using format::FieldType;
  constexpr std::uint16_t kSymbol = 999;
  out.schema(kSymbol, "SymbolTableEntry", false,
             {{"addr", FieldType::kVarint},
              {"size", FieldType::kVarint},
              {"symbol_name", FieldType::kPooledString},
              {"inline_depth", FieldType::kVarint},
              {"source_file", FieldType::kPooledString},
              {"source_line", FieldType::kVarint}});
  out.begin_untimed(kSymbol);
  out.varint(symbol.begin);
  out.varint(symbol.bytes);
  out.pooled_string(symbol.name);
  out.varint(symbol.inline_depth);
  out.pooled_string(symbol.file);
  out.varint(symbol.line);
}

}  // namespace dial9::analysis::testing
