// See unwind.h: what happens around a walk.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/unwind.h"

#include <unistd.h>

#include <atomic>

#include "unwind/loader_probe.h"
#include "unwind/modules.h"
#include "unwind/native.h"
#include "unwind/thread_stack.h"

namespace dial9::unwind {
namespace {

// The process that is in prepare(), or 0. Its id and not a flag: a fork child whose parent was in
// there takes over. Acquire and release hand what prepare() guards from one caller to the next.
std::atomic<pid_t> g_preparing{0};

}  // namespace

Prepared prepare() noexcept {
  if (!does_loader_answer()) {
    return Prepared::kBusy;
  }
  const pid_t self = getpid();
  pid_t holder = 0;
  while (!g_preparing.compare_exchange_weak(holder, self, std::memory_order_acquire)) {
    if (holder == self) {
      return Prepared::kBusy;
    }
  }
  calibrate_stacks();
  const bool refreshed = refresh_modules();
  g_preparing.store(0, std::memory_order_release);
  return refreshed ? Prepared::kDone : Prepared::kNoMemory;
}

Result unwind(const ucontext_t* context, std::span<std::uint64_t> frames,
              const Options& options) noexcept {
  return native::walk_context(*context, frames, options);
}

Result unwind_copy(const StackCopy& copy, std::span<std::uint64_t> frames,
                   const Options& options) noexcept {
  return native::walk_copy(copy, frames, options);
}

}  // namespace dial9::unwind
