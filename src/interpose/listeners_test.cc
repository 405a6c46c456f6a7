// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "recorder/listen_hints.h"

namespace dial9::internal {
namespace {

int listening_socket() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  EXPECT_EQ(::listen(fd, 7), 0);
  return fd;
}

TEST(Listen, TellsWhichDescriptorListensAndOnlyIfItDoes) {
  int fds[kMostListenHints];
  bool is_overflown = false;
  (void)take_listen_hints(fds, &is_overflown);
  errno = 0;
  EXPECT_EQ(::listen(-1, 7), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(take_listen_hints(fds, &is_overflown), 0U);
  const int fd = listening_socket();
  EXPECT_EQ(::listen(fd, 9), 0);  // a new backlog of the same socket
  EXPECT_EQ(take_listen_hints(fds, &is_overflown), 1U);
  EXPECT_EQ(fds[0], fd);
  EXPECT_FALSE(is_overflown);
  EXPECT_EQ(take_listen_hints(fds, &is_overflown), 0U);
  ::close(fd);
}

TEST(Listen, NotesThatThereWereMoreThanItKeeps) {
  int fds[kMostListenHints];
  bool is_overflown = false;
  (void)take_listen_hints(fds, &is_overflown);
  for (int fd = 0; fd <= static_cast<int>(kMostListenHints); ++fd) hint_listener(1'000 + fd);
  EXPECT_EQ(take_listen_hints(fds, &is_overflown), kMostListenHints);
  EXPECT_TRUE(is_overflown);
  EXPECT_EQ(take_listen_hints(fds, &is_overflown), 0U);
  EXPECT_FALSE(is_overflown);
}

}  // namespace
}  // namespace dial9::internal
