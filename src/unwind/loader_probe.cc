// See loader_probe.h.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/loader_probe.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>

namespace dial9::unwind {
namespace {

// Process ids and not flags: a child of a fork begins anew. Each guards nothing but itself.
std::atomic<pid_t> g_answered{0};
std::atomic<pid_t> g_asked{0};
std::atomic<pid_t> g_given_up{0};

constexpr std::size_t kStackBytes = 64 << 10;
constexpr long kPollNs = 50'000;
constexpr std::int64_t kMostWaitNs = 200'000'000;

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int stop_at_first(dl_phdr_info* /*info*/, std::size_t /*size*/, void* /*data*/) { return 1; }

void* ask(void* /*unused*/) {
  ::dl_iterate_phdr(stop_at_first, nullptr);
  g_answered.store(::getpid(), std::memory_order_relaxed);
  return nullptr;
}

// None of the host's signals is handled on the thread.
bool start_asking() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) {
    return false;
  }
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, std::max<std::size_t>(kStackBytes, PTHREAD_STACK_MIN));
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_t thread;
  const bool is_started = ::pthread_create(&thread, &attributes, ask, nullptr) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  return is_started;
}

}  // namespace

bool does_loader_answer() noexcept {
  const pid_t self = ::getpid();
  const auto has_answered = [self] { return g_answered.load(std::memory_order_relaxed) == self; };
  if (has_answered() || g_given_up.load(std::memory_order_relaxed) == self) {
    return has_answered();
  }
  if (g_asked.exchange(self, std::memory_order_relaxed) != self && !start_asking()) {
    g_asked.store(0, std::memory_order_relaxed);
    return false;
  }
  for (const std::int64_t end = now_ns() + kMostWaitNs; !has_answered() && now_ns() < end;) {
    const timespec wait{0, kPollNs};
    ::nanosleep(&wait, nullptr);
  }
  if (!has_answered()) {
    g_given_up.store(self, std::memory_order_relaxed);
  }
  return has_answered();
}

}  // namespace dial9::unwind
