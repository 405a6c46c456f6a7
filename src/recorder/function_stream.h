// Functions as a stream of SymbolTableEntries, as readers of any writer's traces know them.
// Spec: docs/spec/events.md, "Profiling"; docs/spec/modules.md, "Names".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "recorder/stream_source.h"

namespace dial9::internal {

// Code at [begin, begin + bytes) of the process.
struct FunctionRecord {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::string name;  // as people write it
};

// An entry each, stamped 0 as all of its kind; `at_ns` is when they were found. Empty for none.
SourceStream encode_functions(std::span<const FunctionRecord> functions, std::uint64_t at_ns);

}  // namespace dial9::internal
