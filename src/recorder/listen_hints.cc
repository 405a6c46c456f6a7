// SPDX-License-Identifier: Apache-2.0
#include "recorder/listen_hints.h"

#include <atomic>

namespace dial9::internal {
namespace {

// The descriptor plus one; 0: free. Relaxed: a slot carries all that there is to know.
constinit std::atomic<int> g_hints[kMostListenHints];
constinit std::atomic<bool> g_is_overflown{false};

}  // namespace

void hint_listener(int fd) noexcept {
  for (std::atomic<int>& hint : g_hints) {
    int seen = hint.load(std::memory_order_relaxed);
    if (seen == fd + 1) return;
    if (seen == 0 && hint.compare_exchange_strong(seen, fd + 1, std::memory_order_relaxed)) return;
  }
  g_is_overflown.store(true, std::memory_order_relaxed);
}

std::size_t take_listen_hints(int* fds, bool* is_overflown) noexcept {
  std::size_t count = 0;
  for (std::atomic<int>& hint : g_hints) {
    if (hint.load(std::memory_order_relaxed) == 0) continue;
    const int fd_plus_one = hint.exchange(0, std::memory_order_relaxed);
    if (fd_plus_one != 0) fds[count++] = fd_plus_one - 1;
  }
  *is_overflown = g_is_overflown.exchange(false, std::memory_order_relaxed);
  return count;
}

}  // namespace dial9::internal
