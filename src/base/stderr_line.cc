// See stderr_line.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/stderr_line.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/signal_shield.h"

namespace dial9 {

void print_line(std::string_view text) noexcept {
  constexpr std::string_view kPrefix = "dial9: ";
  // Below PIPE_BUF: a pipe that polls as writable takes it whole, at once.
  constexpr std::size_t kMaxText = 4000;
  char line[kPrefix.size() + kMaxText + 1];
  const std::size_t size = std::min(text.size(), kMaxText);
  std::memcpy(line, kPrefix.data(), kPrefix.size());
  std::memcpy(line + kPrefix.size(), text.data(), size);
  line[kPrefix.size() + size] = '\n';
  const int error = errno;
  const SignalShield shield;
  struct pollfd stderr_now{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&stderr_now, 1, 0) == 1 && (stderr_now.revents & POLLOUT) != 0) {
    // What the host's stderr does not take is gone: there is nobody to tell.
    [[maybe_unused]] const ssize_t written =
        ::write(STDERR_FILENO, line, kPrefix.size() + size + 1);
  }
  errno = error;
}

}  // namespace dial9
