// See next_allocator.h. Looking up a name may allocate: then this is entered again, and serves from
// a few bytes of its own, whose frees are told apart from then on.
// SPDX-License-Identifier: Apache-2.0
#include "heap/next_allocator.h"

#include <dlfcn.h>
#include <errno.h>

#include <cstdint>
#include <cstring>

extern "C" {
// In a program that is linked statically there is no search order.
[[gnu::weak]] void* __libc_malloc(std::size_t) noexcept;
[[gnu::weak]] void __libc_free(void*) noexcept;
[[gnu::weak]] void* __libc_calloc(std::size_t, std::size_t) noexcept;
[[gnu::weak]] void* __libc_realloc(void*, std::size_t) noexcept;
[[gnu::weak]] void* __libc_memalign(std::size_t, std::size_t) noexcept;
// A sanitizer's own, where it is part of the program and not of a library.
[[gnu::weak]] void* __interceptor_malloc(std::size_t) noexcept;
[[gnu::weak]] void __interceptor_free(void*) noexcept;
[[gnu::weak]] void* __interceptor_calloc(std::size_t, std::size_t) noexcept;
[[gnu::weak]] void* __interceptor_realloc(void*, std::size_t) noexcept;
[[gnu::weak]] void* __interceptor_memalign(std::size_t, std::size_t) noexcept;
[[gnu::weak]] void* __interceptor_aligned_alloc(std::size_t, std::size_t) noexcept;
[[gnu::weak]] int __interceptor_posix_memalign(void**, std::size_t, std::size_t) noexcept;
[[gnu::weak]] void __asan_init();
[[gnu::weak]] void __tsan_init();
[[gnu::weak]] void __msan_init();
[[gnu::weak]] void __hwasan_init();
[[gnu::weak]] void __lsan_init();
}

namespace dial9::heap {
namespace {

alignas(16) constinit unsigned char g_early[4096] = {};
constinit std::size_t g_early_used = 0;
// What was found, where the two above have to be told apart.
constinit NextAllocator g_real = {};
__thread bool t_is_looking __attribute__((tls_model("initial-exec"))) = false;

bool is_early(const void* pointer) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(pointer);
  const auto base = reinterpret_cast<std::uintptr_t>(g_early);
  return at >= base && at < base + sizeof g_early;
}

void* early(std::size_t size) noexcept {
  const std::size_t bytes = (size + 31) & ~std::size_t{15};  // its size, then itself
  const std::size_t at = __atomic_fetch_add(&g_early_used, bytes, __ATOMIC_RELAXED);
  if (size > sizeof g_early || at + bytes > sizeof g_early) {
    errno = ENOMEM;
    return nullptr;
  }
  std::memcpy(g_early + at, &size, sizeof size);
  return g_early + at + 16;
}

void free_told_apart(void* pointer) noexcept {
  if (!is_early(pointer)) g_real.free(pointer);
}

void* realloc_told_apart(void* pointer, std::size_t size) noexcept {
  if (!is_early(pointer)) return g_real.realloc(pointer, size);
  void* to = g_next.malloc(size);
  std::size_t held = 0;
  std::memcpy(&held, static_cast<unsigned char*>(pointer) - 16, sizeof held);
  if (to != nullptr) std::memcpy(to, pointer, held < size ? held : size);
  return to;
}

void* align_by_libc(std::size_t alignment, std::size_t size) noexcept {
  return __libc_memalign(alignment, size);
}

int align_into_by_libc(void** to, std::size_t alignment, std::size_t size) noexcept {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  const int before = errno;
  void* pointer = __libc_memalign(alignment, size);
  errno = before;
  if (pointer == nullptr) return ENOMEM;
  *to = pointer;
  return 0;
}

template <class F>
bool find(const char* name, F** function) {
  *function = reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
  return *function != nullptr;
}

bool find_all(NextAllocator& next) {
  if (__interceptor_malloc != nullptr && __interceptor_posix_memalign != nullptr) {
    next = {__interceptor_malloc,        __interceptor_free,     __interceptor_calloc,
            __interceptor_realloc,       __interceptor_memalign, __interceptor_aligned_alloc,
            __interceptor_posix_memalign};
    return true;
  }
  return find("malloc", &next.malloc) && find("free", &next.free) && find("calloc", &next.calloc) &&
         find("realloc", &next.realloc) && find("memalign", &next.memalign) &&
         find("aligned_alloc", &next.aligned_alloc) && find("posix_memalign", &next.posix_memalign);
}

// Several threads may be in here: all find the same.
void look_up() {
  t_is_looking = true;
  const int before = errno;
  NextAllocator next{};
  if (!find_all(next)) {
    if (__libc_malloc == nullptr) __builtin_trap();  // no allocator at all: nothing can run
    next = {__libc_malloc,   __libc_free,   __libc_calloc,     __libc_realloc,
            __libc_memalign, align_by_libc, align_into_by_libc};
  }
  if (__atomic_load_n(&g_early_used, __ATOMIC_RELAXED) != 0) {
    g_real = next;
    next.free = free_told_apart;
    next.realloc = realloc_told_apart;
  }
  // Release: whoever calls through one of them finds what it needs.
  __atomic_store_n(&g_next.malloc, next.malloc, __ATOMIC_RELEASE);
  __atomic_store_n(&g_next.free, next.free, __ATOMIC_RELEASE);
  __atomic_store_n(&g_next.calloc, next.calloc, __ATOMIC_RELEASE);
  __atomic_store_n(&g_next.realloc, next.realloc, __ATOMIC_RELEASE);
  __atomic_store_n(&g_next.memalign, next.memalign, __ATOMIC_RELEASE);
  __atomic_store_n(&g_next.aligned_alloc, next.aligned_alloc, __ATOMIC_RELEASE);
  __atomic_store_n(&g_next.posix_memalign, next.posix_memalign, __ATOMIC_RELEASE);
  errno = before;
  t_is_looking = false;
}

void* first_malloc(std::size_t size) noexcept {
  if (t_is_looking) return early(size);
  look_up();
  return g_next.malloc(size);
}

void first_free(void* pointer) noexcept {
  if (pointer == nullptr || is_early(pointer)) return;
  if (!t_is_looking) look_up();
  g_next.free(pointer);
}

void* first_calloc(std::size_t count, std::size_t size) noexcept {
  if (t_is_looking) return early(count * size);  // zeroed, and small
  look_up();
  return g_next.calloc(count, size);
}

void* first_realloc(void* pointer, std::size_t size) noexcept {
  if (t_is_looking) {
    void* to = early(size);
    std::size_t held = 0;
    if (is_early(pointer)) {
      std::memcpy(&held, static_cast<unsigned char*>(pointer) - 16, sizeof held);
    }
    if (to != nullptr && held != 0) std::memcpy(to, pointer, held < size ? held : size);
    return to;
  }
  look_up();
  return g_next.realloc(pointer, size);
}

void* first_memalign(std::size_t alignment, std::size_t size) noexcept {
  if (t_is_looking) return alignment <= 16 ? early(size) : nullptr;
  look_up();
  return g_next.memalign(alignment, size);
}

void* first_aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  if (t_is_looking) return alignment <= 16 ? early(size) : nullptr;
  look_up();
  return g_next.aligned_alloc(alignment, size);
}

int first_posix_memalign(void** to, std::size_t alignment, std::size_t size) noexcept {
  if (!t_is_looking) {
    look_up();
    return g_next.posix_memalign(to, alignment, size);
  }
  void* pointer = alignment <= 16 ? early(size) : nullptr;
  if (pointer == nullptr) return ENOMEM;
  *to = pointer;
  return 0;
}

}  // namespace

constinit NextAllocator g_next = {first_malloc,        first_free,     first_calloc,
                                  first_realloc,       first_memalign, first_aligned_alloc,
                                  first_posix_memalign};

std::string next_allocator_file() {
  Dl_info info{};
  const auto malloc_at = __atomic_load_n(&g_next.malloc, __ATOMIC_ACQUIRE);
  if (malloc_at == first_malloc || ::dladdr(reinterpret_cast<void*>(malloc_at), &info) == 0 ||
      info.dli_fname == nullptr) {
    return {};
  }
  return info.dli_fname;
}

std::string sanitizer_in_process() {
  if (__asan_init != nullptr) return "AddressSanitizer";
  if (__tsan_init != nullptr) return "ThreadSanitizer";
  if (__msan_init != nullptr) return "MemorySanitizer";
  if (__hwasan_init != nullptr) return "HWAddressSanitizer";
  if (__lsan_init != nullptr) return "LeakSanitizer";
  return {};
}

}  // namespace dial9::heap
