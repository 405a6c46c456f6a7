// SPDX-License-Identifier: Apache-2.0
#include "sources/testing/sockets.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dial9::internal::testing {
namespace {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

Address loopback(int family, std::uint16_t port) {
  Address address;
  if (family == AF_INET) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address.bytes);
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    v4.sin_port = htons(port);
    address.size = sizeof v4;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address.bytes);
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_loopback;
    v6.sin6_port = htons(port);
    address.size = sizeof v6;
  }
  return address;
}

const sockaddr* as_sockaddr(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.bytes);
}

}  // namespace

QueueOf::QueueOf(int backlog, int family)
    : family_(family), fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const Address any_port = loopback(family, 0);
  EXPECT_EQ(::bind(fd_.get(), as_sockaddr(any_port), any_port.size), 0);
  EXPECT_EQ(::listen(fd_.get(), backlog), 0);
}

std::uint16_t QueueOf::port() const {
  Address address;
  address.size = sizeof address.bytes;
  EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address.bytes), &address.size),
            0);
  return ntohs(family_ == AF_INET ? reinterpret_cast<const sockaddr_in&>(address.bytes).sin_port
                                  : reinterpret_cast<const sockaddr_in6&>(address.bytes).sin6_port);
}

void QueueOf::connect(int count) {
  const Address to = loopback(family_, port());
  for (int i = 0; i < count; ++i) {
    clients_.emplace_back(::socket(family_, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    (void)::connect(clients_.back().get(), as_sockaddr(to), to.size);
  }
}

void QueueOf::accept_one() {
  const UniqueFd taken(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(taken);
}

int run_as_nobody(const std::function<bool()>& check) {
  constexpr int kMayNot = 77;
  constexpr unsigned kNobody = 65'534;
  const pid_t child = ::fork();
  if (child == 0) {
    // Capabilities go with the last of root's ids.
    if (::setresgid(kNobody, kNobody, kNobody) != 0 ||
        ::setresuid(kNobody, kNobody, kNobody) != 0) {
      ::_exit(kMayNot);
    }
    ::_exit(check() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (!WIFEXITED(status)) return 1;
  return WEXITSTATUS(status) == kMayNot ? -1 : WEXITSTATUS(status);
}

}  // namespace dial9::internal::testing
