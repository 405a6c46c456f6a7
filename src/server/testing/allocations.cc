// See allocations.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/testing/allocations.h"

#include <cstdlib>
#include <new>

namespace {

thread_local std::uint64_t t_allocations = 0;

}  // namespace

namespace dial9::server::testing {

std::uint64_t allocations() { return t_allocations; }

bool are_allocations_counted() {
#if defined(DIAL9_SANITIZED)
  return false;
#else
  return true;
#endif
}

}  // namespace dial9::server::testing

#if !defined(DIAL9_SANITIZED)
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++t_allocations;
  for (;;) {
    if (void* const memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}
#endif
