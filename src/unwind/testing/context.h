// The registers of a signal's or getcontext()'s context that the tests read and change, whatever
// the processor calls them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucontext.h>

#include <bit>
#include <cstdint>

namespace dial9::unwind::testing {

#if defined(__x86_64__)
inline auto& pc_of(ucontext_t& context) { return context.uc_mcontext.gregs[REG_RIP]; }
inline auto& sp_of(ucontext_t& context) { return context.uc_mcontext.gregs[REG_RSP]; }
inline auto& fp_of(ucontext_t& context) { return context.uc_mcontext.gregs[REG_RBP]; }
inline auto& general_registers(ucontext_t& context) { return context.uc_mcontext.gregs; }

// As the callee's first instruction would do it: of a call to nowhere.
inline void return_from_call(ucontext_t& context) {
  pc_of(context) = *std::bit_cast<greg_t*>(sp_of(context));
  sp_of(context) += 8;
}
inline constexpr bool kCallsPush = true;  // the return address
inline constexpr bool kStubsHaveTables = true;
inline void return_from_stub(ucontext_t&) {}
#elif defined(__aarch64__)
inline auto& pc_of(ucontext_t& context) { return context.uc_mcontext.pc; }
inline auto& sp_of(ucontext_t& context) { return context.uc_mcontext.sp; }
inline auto& fp_of(ucontext_t& context) { return context.uc_mcontext.regs[29]; }
inline auto& general_registers(ucontext_t& context) { return context.uc_mcontext.regs; }

inline void return_from_call(ucontext_t& context) {
  pc_of(context) = context.uc_mcontext.regs[30];
}

inline constexpr bool kCallsPush = false;
// Linkage stubs have no unwind table, which ends libgcc's walk. The first of them has pushed two
// registers, x30 among them, from its second instruction on.
inline constexpr bool kStubsHaveTables = false;
inline void return_from_stub(ucontext_t& context) {
  constexpr std::uint32_t kPush = 0xa9bf7bf0;
  const auto* const code = std::bit_cast<const std::uint32_t*>(pc_of(context));
  if (code[-1] == kPush || code[-2] == kPush || code[-3] == kPush || code[-4] == kPush) {
    sp_of(context) += 16;
  }
  return_from_call(context);
}
#endif

}  // namespace dial9::unwind::testing
