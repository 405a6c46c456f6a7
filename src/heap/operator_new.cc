// operator new and delete, defined by us: an allocator that comes after us defines its own, past
// our malloc, and the sample's first frame is who asked for the object. A program that replaces
// them keeps its own: then this file isn't linked. Spec: docs/spec/heap_samples.md, "C++".
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <new>

#include "heap/hooks.h"
#include "heap/next_allocator.h"

namespace {

namespace heap = dial9::heap;

void* counted(void* pointer, std::uint64_t rate, std::size_t size, const void* caller) noexcept {
  if (rate != 0 && pointer != nullptr) heap::record_alloc(pointer, size, rate, caller);
  return pointer;
}

// Gives the program's new-handler its tries. Null: there is none, or it gave up with bad_alloc.
template <class Allocate>
void* with_handler(Allocate allocate) noexcept {
  for (;;) {
    void* pointer = allocate();
    if (pointer != nullptr) return pointer;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) return nullptr;
    try {
      handler();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
}

[[gnu::noinline, gnu::cold]] void* cold_new(std::size_t size, bool is_due_now,
                                            const void* caller) noexcept {
  const std::uint64_t rate = !is_due_now ? 0 : heap::crosses(size);
  return counted(with_handler([&] { return heap::g_next.malloc(size == 0 ? 1 : size); }), rate,
                 size, caller);
}

[[gnu::noinline, gnu::cold]] void* cold_new(std::size_t size, std::size_t alignment,
                                            bool is_due_now, const void* caller) noexcept {
  const std::uint64_t rate = !is_due_now ? 0 : heap::crosses(size);
  const std::size_t whole = (size + alignment - 1) & ~(alignment - 1);
  return counted(with_handler([&] {
                   if (whole < size) return static_cast<void*>(nullptr);
                   return heap::g_next.aligned_alloc(alignment, whole == 0 ? alignment : whole);
                 }),
                 rate, size, caller);
}

inline void* allocate(std::size_t size, const void* caller) noexcept {
  if (heap::is_due(size)) return cold_new(size, true, caller);
  void* pointer = heap::g_next.malloc(size == 0 ? 1 : size);
  return __builtin_expect(pointer != nullptr, 1) ? pointer : cold_new(size, false, caller);
}

inline void* allocate(std::size_t size, std::align_val_t alignment, const void* caller) noexcept {
  return cold_new(size, static_cast<std::size_t>(alignment), heap::is_due(size), caller);
}

inline void* or_throw(void* pointer) {
  if (__builtin_expect(pointer == nullptr, 0)) throw std::bad_alloc();
  return pointer;
}

[[gnu::noinline, gnu::cold]] void cold_delete(void* pointer) noexcept {
  heap::record_free(heap::take_out(pointer));
  heap::g_next.free(pointer);
}

inline void release(void* pointer) noexcept {
  if (heap::may_be_sample(pointer)) return cold_delete(pointer);
  heap::g_next.free(pointer);
}

}  // namespace

#define DIAL9_CALLER __builtin_return_address(0)
#pragma GCC visibility push(default)
void* operator new(std::size_t n) { return or_throw(allocate(n, DIAL9_CALLER)); }
void* operator new[](std::size_t n) { return or_throw(allocate(n, DIAL9_CALLER)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return allocate(n, DIAL9_CALLER);
}
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return allocate(n, DIAL9_CALLER);
}
void* operator new(std::size_t n, std::align_val_t a) {
  return or_throw(allocate(n, a, DIAL9_CALLER));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return or_throw(allocate(n, a, DIAL9_CALLER));
}
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, a, DIAL9_CALLER);
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, a, DIAL9_CALLER);
}
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { release(p); }
#pragma GCC visibility pop
