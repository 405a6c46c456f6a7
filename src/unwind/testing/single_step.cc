// See single_step.h.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/testing/single_step.h"

#include <signal.h>
#include <ucontext.h>

namespace dial9::unwind::testing {
namespace {

#if defined(__x86_64__)
constexpr greg_t kTrapFlag = 0x100;

std::uint32_t g_limit = 0;
std::uint32_t g_steps = 0;

// The flag is set in the interrupted context, so that it takes effect with the return to it, and
// cleared there to stop. A handler itself runs without it.
void on_trap(int, siginfo_t*, void* data) {
  auto* const context = static_cast<ucontext_t*>(data);
  auto& flags = context->uc_mcontext.gregs[REG_EFL];
  if (g_steps >= g_limit) {
    flags &= ~kTrapFlag;
    return;
  }
  ++g_steps;
  compare_here(context);
  flags |= kTrapFlag;
}
#endif

}  // namespace

Comparison step_through(std::uint32_t limit, const std::function<void()>& work) {
#if defined(__x86_64__)
  begin_comparison({});
  g_limit = limit;
  g_steps = 0;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, &before);
  asm volatile("int3" : : : "memory");
  work();
  g_limit = g_steps;  // the next trap is the last
  asm volatile("nop" : : : "memory");
  sigaction(SIGTRAP, &before, nullptr);
  return end_comparison();
#else
  (void)limit;
  (void)work;
  return {};
#endif
}

bool can_single_step() {
#if defined(__x86_64__)
  return signals_are_asynchronous();
#else
  return false;
#endif
}

}  // namespace dial9::unwind::testing
