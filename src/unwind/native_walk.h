// Puts a walk together for the processor at hand: its stack, this process's tables. Included by
// native_<processor>.cc only, so that each function of a walk is compiled once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "unwind/fp_guess.h"
#include "unwind/registers.h"
#include "unwind/stack_memory.h"
#include "unwind/tables.h"
#include "unwind/unwind.h"
#include "unwind/walker.h"

namespace dial9::unwind::native {

template <class Arch>
Registers basic_registers(std::uint64_t pc, std::uint64_t sp, std::uint64_t fp) {
  Registers registers;
  registers.set(Arch::kPc, pc);
  registers.set(Arch::kNumbers.sp, sp);
  registers.set(Arch::kNumbers.fp, fp);
  return registers;
}

template <class Arch>
Result walk_live(Registers& registers, std::span<std::uint64_t> frames, const Options& options) {
  ProcessTables tables(Arch::kNumbers);
  LiveStack<Arch> stack(options.distrust_stack);
  return Walker<Arch, LiveStack<Arch>, ProcessTables>(registers, stack, tables, frames, options)
      .run();
}

template <class Arch>
Result walk_copied(const StackCopy& copy, std::span<std::uint64_t> frames, const Options& options) {
  ProcessTables tables(Arch::kNumbers);
  CopiedStack stack(copy);
  const auto walk = [&](std::uint64_t fp) {
    Registers registers = basic_registers<Arch>(copy.pc, copy.sp, fp);
    return Walker<Arch, CopiedStack, ProcessTables>(registers, stack, tables, frames, options)
        .run();
  };
  if (copy.has_fp) return walk(copy.fp);
  return FpGuess<Arch, CopiedStack, ProcessTables>(stack, tables, frames).run(copy.sp, walk);
}

// The walk of unwind_here(), whose own frame is left out.
template <class Arch>
Result walk_caller(std::uint64_t pc, std::uint64_t sp, std::uint64_t fp,
                   std::span<std::uint64_t> frames, const Options& options) {
  Registers registers = basic_registers<Arch>(pc, sp, fp);
  Options with_own = options;
  ++with_own.skip;
  return walk_live<Arch>(registers, frames, with_own);
}

}  // namespace dial9::unwind::native
