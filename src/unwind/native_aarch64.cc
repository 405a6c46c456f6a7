// See native.h: Linux on AArch64.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/native.h"

#include "unwind/arch.h"
#include "unwind/native_walk.h"

namespace dial9::unwind {

namespace native {

long system_call(long number, long a, long b, long c, long d, long e, long f) noexcept {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
}

std::uint64_t load_word(std::uint64_t address) noexcept { return Aarch64::load_word(address); }

Result walk_context(const ucontext_t& context, std::span<std::uint64_t> frames,
                    const Options& options) noexcept {
  Registers registers;
  for (unsigned number = 0; number < 31; ++number) {
    registers.set(number, context.uc_mcontext.regs[number]);
  }
  registers.set(Aarch64::kNumbers.sp, context.uc_mcontext.sp);
  registers.set(Aarch64::kPc, context.uc_mcontext.pc);
  return walk_live<Aarch64>(registers, frames, options);
}

Result walk_copy(const StackCopy& copy, std::span<std::uint64_t> frames,
                 const Options& options) noexcept {
  return walk_copied<Aarch64>(copy, frames, options);
}

}  // namespace native

[[gnu::noinline]] Result unwind_here(std::span<std::uint64_t> frames,
                                     const Options& options) noexcept {
  std::uint64_t pc = 0;
  std::uint64_t sp = 0;
  std::uint64_t fp = 0;
  asm volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29" : "=&r"(pc), "=&r"(sp), "=&r"(fp));
  return native::walk_caller<Aarch64>(pc, sp, fp, frames, options);
}

}  // namespace dial9::unwind
