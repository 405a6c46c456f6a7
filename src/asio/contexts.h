// Which runtime an Asio execution context is (declared in dial9/internal/asio_seam.h). Strongest
// property: lock-free for a context seen before, and a context that says it is gone
// (dial9::asio::name_context) never lends its name to the next one at its address.
// Spec: docs/spec/events_ours.md, "Asio".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "dial9/internal/asio_seam.h"

namespace dial9::asio::hooks {

// Contexts at a time; those beyond have no runtime (id 0).
inline constexpr std::uint32_t kMaxContexts = 256;

// The thread's last look-up; void once a context was forgotten.
struct LastContext {
  const void* context;
  runtime::RuntimeId runtime;
  std::uint32_t forgotten;
};
extern __thread LastContext t_last_context __attribute__((tls_model("initial-exec")));
extern constinit std::atomic<std::uint32_t> g_forgotten;  // how many were

inline bool is_last_context(const void* context) noexcept {
  return t_last_context.context == context &&
         t_last_context.forgotten == g_forgotten.load(std::memory_order_relaxed);
}

}  // namespace dial9::asio::hooks
