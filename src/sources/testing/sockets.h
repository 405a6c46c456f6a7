// Real sockets for tests: a listener whose queue has a known length, and a child without rights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "base/unique_fd.h"

namespace dial9::internal::testing {

// Listens on loopback, on a port of the kernel's choice; connections are never accepted.
class QueueOf {
 public:
  explicit QueueOf(int backlog, int family = AF_INET);

  int fd() const { return fd_.get(); }
  std::uint16_t port() const;
  // Begins so many connections, without waiting for them.
  void connect(int count);
  // Takes one connection out of the queue.
  void accept_one();
  void close() { fd_.reset(); }

 private:
  int family_;
  UniqueFd fd_;
  std::vector<UniqueFd> clients_;
};

// Runs `check` in a child that is user nobody without capabilities: 0 if it returned true, 1 if
// false; -1: this process may not become somebody else.
int run_as_nobody(const std::function<bool()>& check);

}  // namespace dial9::internal::testing
