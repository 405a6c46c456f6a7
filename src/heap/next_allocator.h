// Whom allocations are passed on to: the allocator that comes after this object in the search order
// of the dynamic linker (jemalloc, tcmalloc, mimalloc, ...), else the C library's. Strongest
// property: usable from a process's very first allocation on, before any constructor, and the path
// to it is one indirect jump. Spec: docs/spec/heap_samples.md, "Chain".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace dial9::heap {

struct NextAllocator {
  void* (*malloc)(std::size_t) noexcept;
  void (*free)(void*) noexcept;
  void* (*calloc)(std::size_t, std::size_t) noexcept;
  void* (*realloc)(void*, std::size_t) noexcept;
  void* (*memalign)(std::size_t, std::size_t) noexcept;
  void* (*aligned_alloc)(std::size_t, std::size_t) noexcept;
  int (*posix_memalign)(void**, std::size_t, std::size_t) noexcept;
};

// Each finds all of them at its first call, and is replaced by what was found.
// Hidden: each copy of this object has its own, and reaches it without a detour.
extern NextAllocator g_next __attribute__((visibility("hidden")));

// The file that malloc was found in. Allocates; not within a hook.
std::string next_allocator_file();
// The name of the sanitizer that is in this process, empty: none.
std::string sanitizer_in_process();

}  // namespace dial9::heap
