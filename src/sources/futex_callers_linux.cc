// See futex_callers.h.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <link.h>
#include <linux/futex.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "sources/futex_callers.h"

namespace dial9::internal {
namespace {

// The C library's own frames below the call, at most: a wait, a slow path of it, an interposer's.
constexpr std::size_t kMostFrames = 8;

constexpr std::string_view kLock = "lock";
constexpr std::string_view kCondition = "condition";

struct Caller {
  const char* name;
  std::string_view cause;
};
constexpr Caller kCallers[] = {
    {"pthread_mutex_lock", kLock},          {"pthread_mutex_timedlock", kLock},
    {"pthread_mutex_clocklock", kLock},     {"pthread_rwlock_rdlock", kLock},
    {"pthread_rwlock_wrlock", kLock},       {"pthread_rwlock_timedrdlock", kLock},
    {"pthread_rwlock_timedwrlock", kLock},  {"pthread_rwlock_clockrdlock", kLock},
    {"pthread_rwlock_clockwrlock", kLock},  {"pthread_cond_wait", kCondition},
    {"pthread_cond_timedwait", kCondition}, {"pthread_cond_clockwait", kCondition},
};

struct Function {
  std::uint64_t begin;
  std::uint64_t end;
  std::string_view cause;
};
using Functions = std::vector<Function>;
// Never destroyed.
constinit std::atomic<const Functions*> g_functions{nullptr};

Functions look_up() {
  Functions functions;
  void* const library = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return functions;
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
    functions.push_back({begin, begin + symbol->st_size, caller.cause});
  }
  ::dlclose(library);
  return functions;
}

}  // namespace

void prepare_futex_callers() {
  if (g_functions.load(std::memory_order_acquire) != nullptr) return;
  auto made = std::make_unique<const Functions>(look_up());
  const Functions* none = nullptr;
  if (g_functions.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) {
    (void)made.release();
  }
}

namespace {

// Of the innermost caller; empty: none.
std::string_view caller_of(std::span<const std::uint64_t> frames) noexcept {
  const Functions* const functions = g_functions.load(std::memory_order_acquire);
  if (functions == nullptr) return {};
  for (const std::uint64_t frame : frames.first(std::min(frames.size(), kMostFrames))) {
    for (const Function& function : *functions) {
      // A return address may be that of the function behind.
      if (frame > function.begin && frame <= function.end) return function.cause;
    }
  }
  return {};
}

}  // namespace

std::string_view futex_cause(std::uint64_t operation,
                             std::span<const std::uint64_t> frames) noexcept {
  const std::string_view cause = caller_of(frames);
  // The C library waits for a condition's turn by this, for a mutex never.
  const bool is_turn = (operation & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
  if (cause == kCondition && !is_turn) return kLock;
  return cause.empty() ? "futex" : cause;
}

std::string_view switch_cause(std::uint64_t argument,
                              std::span<const std::uint64_t> frames) noexcept {
  const std::string_view cause = caller_of(frames);
  if (cause != kCondition) return cause;
  constexpr std::uint64_t kFlags = FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;
  switch (argument & ~kFlags) {
    case FUTEX_WAIT_BITSET:
      return kCondition;
    case FUTEX_WAIT:
    case FUTEX_LOCK_PI:
      return kLock;
    default:
      return {};
  }
}

}  // namespace dial9::internal
