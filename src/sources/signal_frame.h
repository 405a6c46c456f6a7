// What a signal handler asks of the frame that it was called with: how much stack is left for it,
// and where the thread was. Async-signal-safe. Spec: docs/spec/recorder.md, "Crashes", and
// docs/spec/cpu_samples.md, "Handler".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>

namespace dial9::internal {

// What is left of the alternate stack that the caller runs on; on a thread's own stack: the
// maximum.
inline std::size_t alternate_stack_left(const ucontext_t& context) noexcept {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const auto low = reinterpret_cast<std::uintptr_t>(context.uc_stack.ss_sp);
  const bool is_alternate = (context.uc_stack.ss_flags & SS_DISABLE) == 0 && here >= low &&
                            here - low < context.uc_stack.ss_size;
  return is_alternate ? here - low : ~std::size_t{0};
}

// The interrupted instruction; 0: not known on this processor.
inline std::uint64_t interrupted_instruction(const ucontext_t& context) noexcept {
#if defined(__x86_64__)
  return static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return context.uc_mcontext.pc;
#else
  static_cast<void>(context);
  return 0;
#endif
}

}  // namespace dial9::internal
