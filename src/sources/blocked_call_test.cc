// A blocked call as the kernel prints it, and what it is taken for.
// SPDX-License-Identifier: Apache-2.0
#include "sources/blocked_call.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

std::string line(std::int64_t number, const std::string& first_arg) {
  return std::to_string(number) + " " + first_arg + " 0x2 0x3 0x4 0x0 0x6 0x7ffc00001000 0x55d0\n";
}

BlockedCall described(std::int64_t number, const std::string& first_arg,
                      FdKind kind = FdKind::kUnknown) {
  static FdKind answer;
  answer = kind;
  const auto text = parse_blocked_call(line(number, first_arg));
  EXPECT_TRUE(text);
  return describe_call(*text, [](std::uint64_t) { return answer; });
}

TEST(BlockedCall, ReadsNumberArgumentsAndPlace) {
  const auto text = parse_blocked_call(line(SYS_read, "0xc"));
  ASSERT_TRUE(text);
  EXPECT_EQ(text->number, SYS_read);
  EXPECT_EQ(text->args[0], 12U);
  EXPECT_EQ(text->args[5], 6U);
  EXPECT_EQ(text->sp, 0x7ffc00001000U);
  EXPECT_EQ(text->pc, 0x55d0U);
}

TEST(BlockedCall, KnowsARunningThreadAndOneBlockedOutsideACall) {
  EXPECT_TRUE(parse_blocked_call("running\n")->is_running);
  const auto fault = parse_blocked_call("-1 0x7ffc00001000 0x55d0\n");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->sp, 0x7ffc00001000U);
  EXPECT_EQ(describe_call(*fault, fd_kind).cause, "page_fault");
}

TEST(BlockedCall, RefusesWhatIsNotOfTheForm) {
  for (const char* text : {"", "\n", "run", "0", "0 0x1", "x 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8",
                           "0 1 2 3 4 5 6 7 8", "0 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8 0x9",
                           "0 0xg 0x2 0x3 0x4 0x5 0x6 0x7 0x8", "-1 0x1", "-1 0x1 0x2 0x3"}) {
    EXPECT_FALSE(parse_blocked_call(text)) << text;
  }
}

TEST(BlockedCall, TellsTheDescriptorAndTheCauseAsFarAsTheyGo) {
  const BlockedCall recv = described(SYS_recvfrom, "0xc");
  EXPECT_EQ(recv.name, "recv");
  EXPECT_EQ(recv.cause, "socket");
  EXPECT_EQ(recv.fd, 12U);
  EXPECT_EQ(described(SYS_read, "0x3", FdKind::kPipe).cause, "pipe");
  EXPECT_EQ(described(SYS_read, "0x3", FdKind::kFile).cause, "disk");
  EXPECT_EQ(described(SYS_read, "0x3", FdKind::kSocket).cause, "socket");
  EXPECT_EQ(described(SYS_read, "0x3", FdKind::kOther).cause, "");
  const BlockedCall futex = described(SYS_futex, "0x7f00000010");
  EXPECT_EQ(futex.cause, "futex");
  EXPECT_EQ(futex.object, 0x7f00000010U);
  EXPECT_FALSE(futex.fd);
  EXPECT_EQ(described(SYS_clock_nanosleep, "0x0").cause, "timer");
  const BlockedCall strange = described(9'999, "0x1");
  EXPECT_TRUE(strange.name.empty());
  EXPECT_TRUE(strange.cause.empty());
  EXPECT_FALSE(strange.fd);
}

TEST(BlockedCall, KnowsKindsOfDescriptorsWithoutTouchingTheFile) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const UniqueFd pipe_out(pipe[0]);
  const UniqueFd pipe_in(pipe[1]);
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const TempDir directory;
  const UniqueFd file(
      ::open((directory.path() + "/f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::mkfifo((directory.path() + "/p").c_str(), 0600), 0);
  const UniqueFd fifo(::open((directory.path() + "/p").c_str(), O_RDWR | O_CLOEXEC));
  const auto kind = [](const UniqueFd& fd) {
    return fd_kind(static_cast<std::uint64_t>(fd.get()));
  };
  EXPECT_EQ(kind(pipe_out), FdKind::kPipe);
  EXPECT_EQ(kind(fifo), FdKind::kPipe);
  EXPECT_EQ(kind(socket), FdKind::kSocket);
  EXPECT_EQ(kind(file), FdKind::kFile);
  EXPECT_EQ(kind(event), FdKind::kOther);
  EXPECT_EQ(kind(null), FdKind::kOther);
  EXPECT_EQ(fd_kind(0xffff'ffff), FdKind::kUnknown);
}

TEST(BlockedCall, NamesTheOtherEndOfASocketOrNothing) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), generic, bytes), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), generic, &bytes), 0);
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.get(), generic, bytes), 0);
  EXPECT_EQ(peer_of(static_cast<std::uint64_t>(client.get())),
            "127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  EXPECT_EQ(peer_of(static_cast<std::uint64_t>(listener.get())), "");
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd one(pair[0]);
  const UniqueFd other(pair[1]);
  EXPECT_EQ(peer_of(static_cast<std::uint64_t>(pair[0])), "");
}

}  // namespace
}  // namespace dial9::internal
