// See futex_callers.h.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <link.h>

#include <algorithm>

#include "sources/futex_callers.h"

namespace dial9::internal {
namespace {

// The C library's own frames below the call, at most: a wait, a slow path of it, an interposer's.
constexpr std::size_t kMostFrames = 8;

struct Caller {
  const char* name;
  std::string_view cause;
};
constexpr Caller kCallers[] = {
    {"pthread_mutex_lock", "lock"},          {"pthread_mutex_timedlock", "lock"},
    {"pthread_mutex_clocklock", "lock"},     {"pthread_rwlock_rdlock", "lock"},
    {"pthread_rwlock_wrlock", "lock"},       {"pthread_rwlock_timedrdlock", "lock"},
    {"pthread_rwlock_timedwrlock", "lock"},  {"pthread_rwlock_clockrdlock", "lock"},
    {"pthread_rwlock_clockwrlock", "lock"},  {"pthread_cond_wait", "condition"},
    {"pthread_cond_timedwait", "condition"}, {"pthread_cond_clockwait", "condition"},
};

}  // namespace

FutexCallers::FutexCallers() {
  void* const library = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
  for (const Caller& caller : kCallers) {
    const void* const address = ::dlsym(library, caller.name);
    Dl_info info{};
    ElfW(Sym)* symbol = nullptr;  // the library's own
    if (address == nullptr ||
        ::dladdr1(address, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) == 0 ||
        symbol == nullptr || info.dli_saddr != address) {
      continue;
    }
    const auto begin = reinterpret_cast<std::uint64_t>(address);
    functions_.push_back({begin, begin + symbol->st_size, caller.cause});
  }
  ::dlclose(library);
}

std::string_view FutexCallers::cause(std::span<const std::uint64_t> frames) const noexcept {
  for (const std::uint64_t frame : frames.first(std::min(frames.size(), kMostFrames))) {
    for (const Function& function : functions_) {
      // A return address may be that of the function behind.
      if (frame > function.begin && frame <= function.end) return function.cause;
    }
  }
  return "futex";
}

}  // namespace dial9::internal
