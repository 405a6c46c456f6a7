// See native.h: Linux on x86-64.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/native.h"

#include <bit>

#include "unwind/arch.h"
#include "unwind/native_walk.h"

namespace dial9::unwind {

namespace native {

long system_call(long number, long a, long b, long c, long d, long e, long f) noexcept {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result = number;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

std::uint64_t load_word(std::uint64_t address) noexcept { return X86_64::load_word(address); }

Result walk_context(const ucontext_t& context, std::span<std::uint64_t> frames,
                    const Options& options) noexcept {
  Registers registers;
  const auto base = std::bit_cast<std::uint64_t>(&context);
  for (const SavedRegister& saved : X86_64::kSignalFrame) {
    registers.set(saved.number, X86_64::load_word(base + saved.offset_bytes));
  }
  return walk_live<X86_64>(registers, frames, options);
}

Result walk_copy(const StackCopy& copy, std::span<std::uint64_t> frames,
                 const Options& options) noexcept {
  return walk_copied<X86_64>(copy, frames, options);
}

}  // namespace native

[[gnu::noinline]] Result unwind_here(std::span<std::uint64_t> frames,
                                     const Options& options) noexcept {
  std::uint64_t pc = 0;
  std::uint64_t sp = 0;
  std::uint64_t fp = 0;
  asm volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
               : "=&r"(pc), "=&r"(sp), "=&r"(fp));
  return native::walk_caller<X86_64>(pc, sp, fp, frames, options);
}

}  // namespace dial9::unwind
