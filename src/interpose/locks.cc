// Contended mutexes inside a poll. A lock that is free costs a trylock, as the lock itself would;
// only one that isn't is timed. Outside polls the real function runs at once.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "interpose/wait.h"
#include "recorder/runtime_state.h"
#include "recorder/wait_stacks.h"

DIAL9_FIND_AT_LOAD(nullptr, pthread_mutex_lock, int (*)(pthread_mutex_t*) noexcept)
DIAL9_FIND_AT_LOAD(nullptr, pthread_mutex_trylock, int (*)(pthread_mutex_t*) noexcept)

namespace dial9::interpose {
namespace {

// As a call that throws nothing it can be left to the real function altogether.
using Lock = int (*)(pthread_mutex_t*) noexcept;

// The thread that holds the mutex as glibc notes it; 0 if it doesn't, or is between two holders.
std::uint32_t owner_of(const pthread_mutex_t& mutex) noexcept {
  const int owner = __atomic_load_n(&mutex.__data.__owner, __ATOMIC_RELAXED);
  return owner > 0 ? static_cast<std::uint32_t>(owner) : 0;
}

// The mutex is held by another. Waits for it; inside a poll the wait is recorded.
[[gnu::cold, gnu::noinline]] int wait_for(pthread_mutex_t* mutex, Lock real,
                                          const void* caller) noexcept {
  if (!runtime::is_in_poll()) return real(mutex);
  const std::uint32_t owner = owner_of(*mutex);
  const std::uint64_t start_ns = runtime::now_ns();
  const int result = real(mutex);
  const int saved_errno = errno;
  internal::lock_wait_of(caller, runtime::polled_task(), reinterpret_cast<std::uintptr_t>(mutex),
                         owner, start_ns, runtime::now_ns() - start_ns);
  errno = saved_errno;
  return result;
}

// Before the constructors that find the real functions; or there is none (a static program).
[[gnu::cold, gnu::noinline]] int lock_early(pthread_mutex_t* mutex) noexcept {
  const Lock real = real_pthread_mutex_lock.get();
  return real == nullptr ? ENOSYS : real(mutex);
}

}  // namespace

// Always inlined: the return address is that of the interposed function's caller.
[[gnu::always_inline]] static inline int lock(pthread_mutex_t* mutex) noexcept {
  const Lock real = real_pthread_mutex_lock.known();
  if (__builtin_expect(real == nullptr, 0)) return lock_early(mutex);
  const Lock trylock = real_pthread_mutex_trylock.known();
  if (internal::t_state.poll == nullptr || !is_recording() || trylock == nullptr) {
    return real(mutex);
  }
  // Any result but EBUSY is the caller's: the lock taken, also from a dead owner (EOWNERDEAD), or
  // why it can't be.
  const int tried = trylock(mutex);
  if (__builtin_expect(tried != EBUSY, 1)) return tried;
  return wait_for(mutex, real, __builtin_return_address(0));
}

extern const char locks_anchor;
const char locks_anchor = 1;

}  // namespace dial9::interpose

extern "C" __attribute__((visibility("default"))) int pthread_mutex_lock(
    pthread_mutex_t* mutex) noexcept {
  return dial9::interpose::lock(mutex);
}
