// Options of sockets that belong to the host. Strongest property: no call here is one that TSan
// takes for the host's own access to the descriptor. An answer is of the descriptor as it is at
// that moment, so callers compare the socket's cookie before and after.
// Spec: docs/spec/events_ours.md, "Accept queues".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>

namespace dial9::internal {

template <class T>
bool get_option(int fd, int level, int name, T* value) noexcept {
  socklen_t size = sizeof *value;
  return ::getsockopt(fd, level, name, value, &size) == 0;
}

// The kernel's name of the socket, never given twice in a boot; none: it is no socket, or the
// kernel is older than 4.12.
inline std::optional<std::uint64_t> cookie_of(int fd) noexcept {
  constexpr int kSoCookie = 57;  // older headers lack the name
  std::uint64_t cookie = 0;
  if (!get_option(fd, SOL_SOCKET, kSoCookie, &cookie)) return std::nullopt;
  return cookie;
}

}  // namespace dial9::internal
