// malloc and its family, defined by us: a countdown, a look at a byte, and on to the next
// allocator. errno is the next one's. See hooks.h. Spec: docs/spec/heap_samples.md.
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "dial9/heap_samples.h"
#include "heap/hooks.h"
#include "heap/next_allocator.h"

using namespace dial9::heap;  // NOLINT: what is defined here are C's names

// Named by those who link dial9::heap, so that the linker takes this file.
extern "C" const void* const dial9_heap_is_linked;
const void* const dial9_heap_is_linked = reinterpret_cast<const void*>(&dial9::add_heap_samples);

namespace {

void* counted(void* pointer, std::uint64_t rate, std::size_t size, const void* caller) noexcept {
  if (rate != 0 && pointer != nullptr) record_alloc(pointer, size, rate, caller);
  return pointer;
}

[[gnu::noinline, gnu::cold]] void* cold_malloc(std::size_t size, const void* caller) noexcept {
  const std::uint64_t rate = crosses(size);
  return counted(g_next.malloc(size), rate, size, caller);
}

[[gnu::noinline, gnu::cold]] void* cold_calloc(std::size_t count, std::size_t size,
                                               const void* caller) noexcept {
  const std::uint64_t rate = crosses(count * size);
  return counted(g_next.calloc(count, size), rate, count * size, caller);
}

[[gnu::noinline, gnu::cold]] void cold_free(void* pointer) noexcept {
  record_free(take_out(pointer));
  g_next.free(pointer);
}

// The old block may be anybody's as soon as the real one ran: it is taken out before, and put back
// where that failed.
[[gnu::noinline, gnu::cold]] void* cold_realloc(void* pointer, std::size_t size, bool is_due_now,
                                                const void* caller) noexcept {
  const std::uint64_t rate = !is_due_now ? 0 : crosses(size);
  const TakenOut taken = take_out(pointer);
  void* moved = g_next.realloc(pointer, size);
  if (moved == nullptr && size != 0) {
    put_back(taken);
  } else {
    record_free(taken);
  }
  return counted(moved, rate, size, caller);
}

[[gnu::noinline, gnu::cold]] void* cold_memalign(std::size_t alignment, std::size_t size,
                                                 const void* caller) noexcept {
  const std::uint64_t rate = crosses(size);
  return counted(g_next.memalign(alignment, size), rate, size, caller);
}

[[gnu::noinline, gnu::cold]] void* cold_aligned_alloc(std::size_t alignment, std::size_t size,
                                                      const void* caller) noexcept {
  const std::uint64_t rate = crosses(size);
  return counted(g_next.aligned_alloc(alignment, size), rate, size, caller);
}

[[gnu::noinline, gnu::cold]] int cold_posix_memalign(void** to, std::size_t alignment,
                                                     std::size_t size,
                                                     const void* caller) noexcept {
  const std::uint64_t rate = crosses(size);
  const int failed = g_next.posix_memalign(to, alignment, size);
  if (failed == 0) counted(*to, rate, size, caller);
  return failed;
}

void* refuse() noexcept {
  errno = ENOMEM;
  return nullptr;
}

std::size_t page_bytes() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

#define DIAL9_CALLER __builtin_return_address(0)
// Seen by every object of the process, whatever this one is compiled with.
#pragma GCC visibility push(default)
extern "C" {

void* malloc(std::size_t size) noexcept {
  if (is_due(size)) return cold_malloc(size, DIAL9_CALLER);
  return g_next.malloc(size);
}

void* calloc(std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return refuse();
  if (is_due(bytes)) return cold_calloc(count, size, DIAL9_CALLER);
  return g_next.calloc(count, size);
}

void free(void* pointer) noexcept {
  if (may_be_sample(pointer)) return cold_free(pointer);
  g_next.free(pointer);
}

void* realloc(void* pointer, std::size_t size) noexcept {
  const bool is_due_now = is_due(size);
  if (is_due_now || may_be_sample(pointer)) {
    return cold_realloc(pointer, size, is_due_now, DIAL9_CALLER);
  }
  return g_next.realloc(pointer, size);
}

void* reallocarray(void* pointer, std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return refuse();
  const bool is_due_now = is_due(bytes);
  if (is_due_now || may_be_sample(pointer)) {
    return cold_realloc(pointer, bytes, is_due_now, DIAL9_CALLER);
  }
  return g_next.realloc(pointer, bytes);
}

void* memalign(std::size_t alignment, std::size_t size) noexcept {
  if (is_due(size)) return cold_memalign(alignment, size, DIAL9_CALLER);
  return g_next.memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  if (is_due(size)) return cold_aligned_alloc(alignment, size, DIAL9_CALLER);
  return g_next.aligned_alloc(alignment, size);
}

int posix_memalign(void** to, std::size_t alignment, std::size_t size) noexcept {
  if (is_due(size)) return cold_posix_memalign(to, alignment, size, DIAL9_CALLER);
  return g_next.posix_memalign(to, alignment, size);
}

void* valloc(std::size_t size) noexcept {
  const std::size_t page = page_bytes();
  if (is_due(size)) return cold_memalign(page, size, DIAL9_CALLER);
  return g_next.memalign(page, size);
}

void* pvalloc(std::size_t size) noexcept {
  const std::size_t page = page_bytes();
  if (size > SIZE_MAX - page) return refuse();
  const std::size_t whole = (size + page - 1) / page * page;
  if (is_due(whole)) return cold_memalign(page, whole, DIAL9_CALLER);
  return g_next.memalign(page, whole);
}

}  // extern "C"
#pragma GCC visibility pop
