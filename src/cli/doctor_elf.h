// What a program's file says about how well it can be profiled: build id, debug info, symbols,
// frame pointers. Strongest property: any bytes are safe to look at; every offset is checked.
// Spec: docs/guide/on_call.md, "doctor".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dial9::cli {

struct ElfFacts {
  std::string build_id;    // hexadecimal; empty: none
  std::string debug_link;  // file name in .gnu_debuglink; empty: none
  bool has_debug_info = false;
  bool has_symbols = false;            // .symtab
  bool can_judge_frames = false;       // a machine whose function prologues are known here
  std::uint64_t functions = 0;         // looked at: of 32 bytes or more, at most 20,000
  std::uint64_t framed_functions = 0;  // of them, those that set up a frame pointer at their start
};

// Of a 64-bit little-endian ELF file. Errors: kUnsupported (another kind of file), kCorrupt.
// Cost: one pass over the symbol table.
Result<ElfFacts> read_elf(std::span<const std::uint8_t> file);

// True if a function that begins with these bytes sets up a frame pointer. Machines: ELF's numbers
// for x86-64 (62) and AArch64 (183).
bool sets_up_frame(std::span<const std::uint8_t> code, std::uint16_t machine);

}  // namespace dial9::cli
