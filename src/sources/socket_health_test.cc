// The connection that a thread waits for: what the kernel says of it while the peer is silent, is
// slow, or doesn't read; and nothing where the descriptor has become another's.
// SPDX-License-Identifier: Apache-2.0
#include "sources/socket_health.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/unique_fd.h"
#include "recorder/recording_state.h"
#include "recorder/test_support.h"
#include "sources/testing/blocked_worker.h"
#include "sources/testing/sockets.h"
#include "sources/thread_probe.h"

namespace dial9::internal {
namespace {

using namespace testing;

constexpr std::uint8_t kEstablished = 1;

struct Connection {
  Connection() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t bytes = sizeof address;
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener.get(), generic, bytes), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), generic, &bytes), 0);
    near.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(near.get(), generic, bytes), 0);
    far.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  UniqueFd near;
  UniqueFd far;
};

class SocketHealthTest : public OffCpuTest {
 protected:
  // Of the thread that is blocked in `call`, as the sampler asks for it.
  std::optional<SocketHealth> health_of(std::uint32_t tid, std::string_view call) {
    for (;;) {
      const BlockedThread thread = look(tid, call);
      const auto reading = probe->account(tid);
      if (!thread.socket || !reading) return std::nullopt;
      if (auto health = probe->socket_health(tid, *reading, thread)) return health;
      std::this_thread::yield();
    }
  }
};

void receive_one(int fd) {
  char byte = 0;
  EXPECT_EQ(::recv(fd, &byte, 1, 0), 1);
}

TEST_F(SocketHealthTest, OfAPeerThatNeverAnsweredTheKernelSaysSo) {
  const Connection connection;
  const Worker worker([&] { receive_one(connection.near.get()); });
  const auto health = health_of(worker.tid(), "recv");
  EXPECT_EQ(::send(connection.far.get(), "x", 1, 0), 1);
  ASSERT_TRUE(health);
  EXPECT_EQ(health->state, kEstablished);
  EXPECT_FALSE(health->since_received_ns);
  EXPECT_EQ(health->unread_bytes, 0U);
  EXPECT_EQ(health->unsent_bytes, 0U);
  EXPECT_EQ(health->retransmits, 0U);
  EXPECT_EQ(health->total_retransmits, 0U);
}

TEST_F(SocketHealthTest, OfAPeerThatIsLateTheTimeSinceItsLastByteComesBack) {
  constexpr std::uint64_t kLateNs = 40 * kTestMs;
  constexpr std::uint64_t kGrainNs = 12 * kTestMs;  // of the kernel's clock, at 100 Hz and more
  const Connection connection;
  const Worker worker([&] {
    receive_one(connection.near.get());
    receive_one(connection.near.get());
  });
  const std::uint64_t before_ns = now_ns();
  EXPECT_EQ(::send(connection.far.get(), "x", 1, 0), 1);
  const std::uint64_t sent_ns = now_ns();
  std::optional<SocketHealth> health;
  std::uint64_t asked_ns = 0;
  do {
    asked_ns = now_ns();
    health = health_of(worker.tid(), "recv");
  } while (health && health->since_received_ns.value_or(0) < kLateNs);
  const std::uint64_t read_ns = now_ns();
  EXPECT_EQ(::send(connection.far.get(), "x", 1, 0), 1);
  ASSERT_TRUE(health);
  EXPECT_LE(*health->since_received_ns, read_ns - before_ns + kGrainNs);
  EXPECT_GE(*health->since_received_ns + kGrainNs, asked_ns - sent_ns);
}

TEST_F(SocketHealthTest, OfAPeerThatDoesntReadWhatIsOutstandingComesBack) {
  const Connection connection;
  const int small = 4'096;
  ::setsockopt(connection.near.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  ::setsockopt(connection.far.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  const std::vector<char> bytes(std::size_t{8} << 20);
  const Worker worker([&] {
    const ssize_t sent = ::send(connection.near.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    EXPECT_GT(sent, 0);
  });
  const auto health = health_of(worker.tid(), "send");
  ::shutdown(connection.near.get(), SHUT_RDWR);
  ASSERT_TRUE(health);
  EXPECT_GT(health->unsent_bytes.value_or(0), 0U);
  EXPECT_TRUE(health->since_sent_ns);
}

TEST_F(SocketHealthTest, ADescriptorThatBecameAnothersTellsNothing) {
  Connection connection;
  const auto cookie = connection_cookie(connection.near.get());
  ASSERT_TRUE(cookie);
  EXPECT_TRUE(read_socket_health(connection.near.get(), *cookie));
  const Connection other;
  ASSERT_EQ(::dup2(other.near.get(), connection.near.get()), connection.near.get());
  EXPECT_FALSE(read_socket_health(connection.near.get(), *cookie));
  EXPECT_FALSE(read_socket_health(-1, *cookie));
}

TEST_F(SocketHealthTest, OnlyConnectionsHaveAny) {
  const QueueOf listener(1);
  EXPECT_FALSE(connection_cookie(listener.fd()));
  int pair[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd one(pair[0]);
  const UniqueFd two(pair[1]);
  EXPECT_FALSE(connection_cookie(one.get()));
  const Pipe pipe;
  EXPECT_FALSE(connection_cookie(pipe.out.get()));
  const UniqueFd udp(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  EXPECT_FALSE(connection_cookie(udp.get()));
}

TEST_F(SocketHealthTest, NobodyWithoutCapabilitiesReadsItToo) {
  const Connection connection;
  const auto cookie = connection_cookie(connection.near.get());
  ASSERT_TRUE(cookie);
  const int result =
      run_as_nobody([&] { return read_socket_health(connection.near.get(), *cookie).has_value(); });
  if (result < 0) GTEST_SKIP() << "only root can become nobody";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace dial9::internal
