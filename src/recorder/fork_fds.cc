// See fork_fds.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/fork_fds.h"

#include <unistd.h>

#include <iterator>

namespace dial9::internal {
namespace {
constinit int g_fork_fds[] = {-1, -1, -1, -1, -1, -1};
static_assert(std::size(g_fork_fds) == static_cast<std::size_t>(ForkFd::kCount));
}  // namespace

void set_fork_fd(ForkFd which, int fd) noexcept {
  __atomic_store_n(&g_fork_fds[static_cast<int>(which)], fd, __ATOMIC_RELAXED);
}

void close_fork_fds() noexcept {
  for (int& slot : g_fork_fds) {
    const int fd = __atomic_exchange_n(&slot, -1, __ATOMIC_RELAXED);
    if (fd >= 0) ::close(fd);
  }
}

}  // namespace dial9::internal
