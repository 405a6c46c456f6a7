// A small open-addressed table from a context's address to its runtime. A forgotten context leaves
// its slot's key at kGone, so that look-ups go on past it, until a new context takes the slot.
// SPDX-License-Identifier: Apache-2.0
#include "asio/contexts.h"

#include <atomic>
#include <mutex>

namespace dial9::asio::hooks {
namespace {

struct Slot {
  std::atomic<std::uintptr_t> context{0};
  std::atomic<runtime::RuntimeId> runtime{0};
};

constexpr std::uintptr_t kGone = 1;
constexpr std::uint32_t kSlots = 2 * kMaxContexts;

constinit Slot g_slots[kSlots];
constinit std::uint32_t g_context_count = 0;
constinit std::mutex g_mutex;

Slot* find(std::uintptr_t context) noexcept {
  std::uint32_t at = static_cast<std::uint32_t>((context >> 4) * 0x9E37'79B9) % kSlots;
  for (std::uint32_t n = 0; n < kSlots; ++n, at = (at + 1) % kSlots) {
    const std::uintptr_t key = g_slots[at].context.load(std::memory_order_acquire);
    if (key == context) return &g_slots[at];
    if (key == 0) return nullptr;
  }
  return nullptr;
}

// Under the mutex.
runtime::RuntimeId insert(std::uintptr_t context, const char* name) noexcept {
  if (const Slot* known = find(context)) return known->runtime.load(std::memory_order_relaxed);
  if (g_context_count == kMaxContexts) return 0;
  const runtime::RuntimeId runtime = runtime::register_runtime(name);
  std::uint32_t at = static_cast<std::uint32_t>((context >> 4) * 0x9E37'79B9) % kSlots;
  while (g_slots[at].context.load(std::memory_order_relaxed) > kGone) at = (at + 1) % kSlots;
  g_slots[at].runtime.store(runtime, std::memory_order_relaxed);
  // Release: whoever finds the key finds the runtime (acquire in find()).
  g_slots[at].context.store(context, std::memory_order_release);
  ++g_context_count;
  return runtime;
}

[[gnu::noinline]] runtime::RuntimeId look_up(const void* context) noexcept {
  const auto key = reinterpret_cast<std::uintptr_t>(context);
  const std::uint32_t forgotten = g_forgotten.load(std::memory_order_acquire);
  runtime::RuntimeId runtime;
  if (const Slot* known = find(key)) {
    runtime = known->runtime.load(std::memory_order_relaxed);
  } else {
    std::lock_guard lock(g_mutex);
    runtime = insert(key, nullptr);
  }
  t_last_context = LastContext{context, runtime, forgotten};
  return runtime;
}

}  // namespace

constinit std::atomic<std::uint32_t> g_forgotten{0};
__thread LastContext t_last_context __attribute__((tls_model("initial-exec"))) = {};

runtime::RuntimeId runtime_of_context(const void* context) noexcept {
  if (context == nullptr) return 0;
  return is_last_context(context) ? t_last_context.runtime : look_up(context);
}

void name_context(const void* context, const char* name) noexcept {
  std::lock_guard lock(g_mutex);
  const auto key = reinterpret_cast<std::uintptr_t>(context);
  if (const Slot* known = find(key)) {
    runtime::rename_runtime(known->runtime.load(std::memory_order_relaxed), name);
  } else {
    insert(key, name);
  }
}

void forget_context(const void* context) noexcept {
  std::lock_guard lock(g_mutex);
  Slot* slot = find(reinterpret_cast<std::uintptr_t>(context));
  if (slot == nullptr) return;
  slot->context.store(kGone, std::memory_order_release);
  --g_context_count;
  g_forgotten.fetch_add(1, std::memory_order_release);
}

}  // namespace dial9::asio::hooks
