// See failing_memory.h. All forms that libstdc++ or a sanitizer would define are, so that none
// frees what another one took.
// SPDX-License-Identifier: Apache-2.0
#include "base/testing/failing_memory.h"

#include <cstdlib>
#include <new>

namespace dial9::testing {

bool can_memory_fail() {
#if defined(DIAL9_SANITIZED_THREAD)
  return false;
#else
  return true;
#endif
}

namespace {

constinit thread_local FailingMemory* t_memory = nullptr;
constinit std::atomic<std::int64_t> g_held{0};  // relaxed: read where the others are at rest

[[maybe_unused]] void* take(std::size_t bytes) {
  if (t_memory != nullptr && t_memory->refuses()) return nullptr;
  void* const piece = std::malloc(bytes != 0 ? bytes : 1);
  if (piece != nullptr) g_held.fetch_add(1, std::memory_order_relaxed);
  return piece;
}

[[maybe_unused]] void* take_or_throw(std::size_t bytes) {
  void* const piece = take(bytes);
  if (piece == nullptr) throw std::bad_alloc();
  return piece;
}

[[maybe_unused]] void give(void* piece) {
  if (piece == nullptr) return;
  g_held.fetch_sub(1, std::memory_order_relaxed);
  std::free(piece);
}

}  // namespace

void FailingMemory::take_part(FailingMemory* in) { t_memory = in; }

bool FailingMemory::refuses() {
  std::uint64_t left = left_.load(std::memory_order_relaxed);
  if (left == kEnough) return false;
  if (left != 0) {
    left_.store(left - 1, std::memory_order_relaxed);
    return false;
  }
  was_refused_.store(true, std::memory_order_relaxed);
  const bool is_once = ends_.load(std::memory_order_relaxed) == Ends::kOnce;
  if (is_once) left_.store(kEnough, std::memory_order_relaxed);
  return true;
}

std::int64_t held_pieces() { return g_held.load(std::memory_order_relaxed); }

}  // namespace dial9::testing

#if !defined(DIAL9_SANITIZED_THREAD)
using dial9::testing::give;
using dial9::testing::take;
using dial9::testing::take_or_throw;

void* operator new(std::size_t bytes) { return take_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return take_or_throw(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  return take(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  return take(bytes);
}
void operator delete(void* piece) noexcept { give(piece); }
void operator delete[](void* piece) noexcept { give(piece); }
void operator delete(void* piece, std::size_t /*bytes*/) noexcept { give(piece); }
void operator delete[](void* piece, std::size_t /*bytes*/) noexcept { give(piece); }
void operator delete(void* piece, const std::nothrow_t& /*tag*/) noexcept { give(piece); }
void operator delete[](void* piece, const std::nothrow_t& /*tag*/) noexcept { give(piece); }
#endif
