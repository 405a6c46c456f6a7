// See function_stream.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/function_stream.h"

#include "format/encoder.h"

namespace dial9::internal {

SourceStream encode_functions(std::span<const FunctionRecord> functions, std::uint64_t at_ns) {
  using format::FieldType;
  constexpr std::uint16_t kSymbol = 1;
  if (functions.empty()) return {};
  format::Encoder out;
  out.schema(kSymbol, "SymbolTableEntry", true,
             {{"addr", FieldType::kVarint},
              {"size", FieldType::kVarint},
              {"symbol_name", FieldType::kPooledString},
              {"inline_depth", FieldType::kVarint},
              {"source_file", FieldType::kPooledString},
              {"source_line", FieldType::kVarint}});
  for (const FunctionRecord& function : functions) {
    out.begin(kSymbol, 0);
    out.varint(function.begin);
    out.varint(function.bytes);
    out.pooled_string(function.name);
    out.varint(0);
    out.pooled_string("");
    out.varint(0);
  }
  return {out.take(), {functions.size(), at_ns, at_ns}};
}

}  // namespace dial9::internal
