// See fork_child.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/fork_child.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "base/fork_lock.h"

namespace dial9::internal {

constinit ForkPage g_fork_page{};

namespace {

// Of all processes up to this one: not on the page, so that no child has its parent's number.
constinit std::uint32_t g_last_process = 0;
constinit pid_t g_noticed_by = 0;
constinit ForkLock g_lock;
constinit bool g_is_watching = false;
constinit bool g_is_wiped = false;
constinit ChildHandler g_handlers[kMostChildHandlers] = {};
// Descriptors that are being made, and forks under way. Each side counts itself before it looks for
// the other one, sequentially consistent, so that of two at once one sees the other.
constinit std::uint32_t g_pauses = 0;
constinit std::uint32_t g_forks = 0;
constinit bool g_is_stuck = false;  // a fork has waited for a pause in vain
constinit std::uint32_t g_fork_number = 0;
constinit std::uint32_t g_vain_fork = 0;  // that a pause has waited for in vain
constinit ForkWait g_wait = nullptr;

// The page lies in .bss, which is private and anonymous but for its first page. Where pages are
// larger than ours, others' variables would be cleared as well.
bool wipe_page() noexcept {
#ifdef MADV_WIPEONFORK
  if (::sysconf(_SC_PAGESIZE) != static_cast<long>(kForkPageBytes)) return false;
  return ::madvise(&g_fork_page, sizeof g_fork_page, MADV_WIPEONFORK) == 0;
#else
  return false;
#endif
}

// Under the lock.
void count_process() noexcept {
  g_noticed_by = ::getpid();
  // Release: the handlers' work goes before it.
  __atomic_store_n(&g_fork_page.process, ++g_last_process, __ATOMIC_RELEASE);
}

void become_child() noexcept {
  // None of the threads that were counted is here.
  __atomic_store_n(&g_pauses, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&g_forks, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&g_is_stuck, false, __ATOMIC_RELAXED);
  for (const ChildHandler& place : g_handlers) {
    if (const ChildHandler handler = __atomic_load_n(&place, __ATOMIC_ACQUIRE)) handler();
  }
  count_process();
}

constexpr int kMostWaits = 100;
constexpr long kWaitNs = 100'000;

// False: it lasts too long. Raw calls: the C library's is a place to be cancelled at, and one that
// we interpose.
bool wait_for_none(const std::uint32_t& count) noexcept {
  for (int i = 0; i < kMostWaits; ++i) {
    if (__atomic_load_n(&count, __ATOMIC_SEQ_CST) == 0) return true;
    if (const ForkWait wait = __atomic_load_n(&g_wait, __ATOMIC_RELAXED)) {
      wait();
      continue;
    }
    const timespec some{0, kWaitNs};
    ::syscall(SYS_nanosleep, &some, nullptr);
  }
  return false;
}

// A disk that doesn't answer holds up one fork, not each.
void before_fork() noexcept {
  const int saved_errno = errno;
  __atomic_fetch_add(&g_fork_number, 1, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&g_forks, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&g_is_stuck, __ATOMIC_RELAXED)) {
    const bool is_stuck = __atomic_load_n(&g_pauses, __ATOMIC_SEQ_CST) != 0;
    __atomic_store_n(&g_is_stuck, is_stuck, __ATOMIC_RELAXED);
  } else if (!wait_for_none(g_pauses)) {
    __atomic_store_n(&g_is_stuck, true, __ATOMIC_RELAXED);
  }
  errno = saved_errno;
}

void on_fork_in_parent() noexcept { __atomic_fetch_sub(&g_forks, 1, __ATOMIC_SEQ_CST); }

// A handler of the host's that runs before it may have come into our cold paths already.
void on_fork_in_child() noexcept {
  g_lock.lock();
  if (process_number() == 0 || g_noticed_by != ::getpid()) become_child();
  g_lock.unlock();
}

}  // namespace

void watch_forks() noexcept {
  g_lock.lock();
  if (!g_is_watching) {
    g_is_wiped = wipe_page();
    count_process();
    ::pthread_atfork(before_fork, on_fork_in_parent, on_fork_in_child);
    __atomic_store_n(&g_is_watching, true, __ATOMIC_RELEASE);
  }
  g_lock.unlock();
}

void notice_fork() noexcept {
  if (__builtin_expect(process_number() != 0, 1)) return;
  if (!__atomic_load_n(&g_is_watching, __ATOMIC_ACQUIRE)) return;
  g_lock.lock();
  if (process_number() == 0) become_child();
  g_lock.unlock();
}

bool add_child_handler(ChildHandler handler) noexcept {
  watch_forks();
  for (ChildHandler& place : g_handlers) {
    ChildHandler none = nullptr;
    if (__atomic_compare_exchange_n(&place, &none, handler, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED)) {
      return true;
    }
  }
  return false;
}

ForkPause::ForkPause() noexcept {
  watch_forks();
  process_ = process_number();
  for (int i = 0; i < 2; ++i) {
    __atomic_fetch_add(&g_pauses, 1, __ATOMIC_SEQ_CST);
    if (i != 0 || __atomic_load_n(&g_forks, __ATOMIC_SEQ_CST) == 0) return;
    // Out of its way; the second time it isn't waited for, since it may be this thread's own.
    __atomic_fetch_sub(&g_pauses, 1, __ATOMIC_SEQ_CST);
    // Nor is one that another pause has waited for in vain: closing many would take as many waits.
    const std::uint32_t fork = __atomic_load_n(&g_fork_number, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&g_vain_fork, __ATOMIC_RELAXED) == fork) continue;
    if (!wait_for_none(g_forks)) __atomic_store_n(&g_vain_fork, fork, __ATOMIC_RELAXED);
  }
}

// In a child that was made meanwhile all counts are gone already.
ForkPause::~ForkPause() {
  if (process_ == process_number()) __atomic_fetch_sub(&g_pauses, 1, __ATOMIC_SEQ_CST);
}

std::uint32_t fork_pauses() noexcept { return __atomic_load_n(&g_pauses, __ATOMIC_SEQ_CST); }

void set_fork_wait(ForkWait wait) noexcept { __atomic_store_n(&g_wait, wait, __ATOMIC_RELAXED); }

bool is_fork_page_wiped() noexcept { return g_is_wiped; }

}  // namespace dial9::internal
