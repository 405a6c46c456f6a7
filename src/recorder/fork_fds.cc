// See fork_fds.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/fork_fds.h"

#include <unistd.h>

#include <iterator>

namespace dial9::internal {
namespace {
constinit int g_fork_fds[] = {-1, -1, -1, -1, -1, -1};
static_assert(std::size(g_fork_fds) == static_cast<std::size_t>(ForkFd::kCount));

// One above the descriptor; 0: a free place.
constinit int g_many[kMostForkFds] = {};

bool replace_one(int from, int to) noexcept {
  for (int& place : g_many) {
    if (__atomic_load_n(&place, __ATOMIC_RELAXED) != from) continue;
    __atomic_store_n(&place, to, __ATOMIC_RELAXED);
    return true;
  }
  return false;
}
}  // namespace

void set_fork_fd(ForkFd which, int fd) noexcept {
  __atomic_store_n(&g_fork_fds[static_cast<int>(which)], fd, __ATOMIC_RELAXED);
}

bool add_fork_fd(int fd) noexcept { return replace_one(0, fd + 1); }
void remove_fork_fd(int fd) noexcept { replace_one(fd + 1, 0); }

void close_fork_fds() noexcept {
  for (int& place : g_many) {
    const int fd = __atomic_exchange_n(&place, 0, __ATOMIC_RELAXED) - 1;
    if (fd >= 0) ::close(fd);
  }
  for (int& slot : g_fork_fds) {
    const int fd = __atomic_exchange_n(&slot, -1, __ATOMIC_RELAXED);
    if (fd >= 0) ::close(fd);
  }
}

}  // namespace dial9::internal
