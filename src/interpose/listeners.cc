// listen(): tells which sockets have accept queues, so that nobody has to look for them.
// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include "interpose/wait.h"
#include "recorder/listen_hints.h"

DIAL9_FIND_AT_LOAD(nullptr, listen, int(*)(int, int))

extern "C" __attribute__((visibility("default"))) int listen(int fd, int backlog) noexcept {
  const auto function = dial9::interpose::real_listen.get();
  if (function == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  const int result = function(fd, backlog);
  if (result == 0) dial9::internal::hint_listener(fd);
  return result;
}

namespace dial9::interpose {
extern const char listeners_anchor;
const char listeners_anchor = 1;
}  // namespace dial9::interpose
