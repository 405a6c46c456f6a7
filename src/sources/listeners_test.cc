// SPDX-License-Identifier: Apache-2.0
#include "sources/listeners.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "sources/testing/sockets.h"

namespace dial9::internal {
namespace {

using testing::QueueOf;

// A handshake on loopback ends a moment after connect() returned.
QueueReading reading_with(const Listener& listener, std::uint32_t pending) {
  std::optional<QueueReading> reading;
  do {
    reading = read_queue(listener);
  } while (reading && reading->pending < pending);
  EXPECT_TRUE(reading);
  return reading.value_or(QueueReading{});
}

class Listeners : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!are_listeners_supported()) GTEST_SKIP() << "this kernel has no SO_COOKIE";
  }
};

TEST_F(Listeners, TellTheLengthAndTheLimitOfTheQueueExactly) {
  QueueOf queue(16);
  const auto listener = identify_listener(queue.fd());
  ASSERT_TRUE(listener);
  EXPECT_EQ(listener->address, "127.0.0.1");
  EXPECT_EQ(listener->port, queue.port());
  EXPECT_EQ(listener->ip_version, 4);
  EXPECT_EQ(read_queue(*listener)->pending, 0U);
  queue.connect(7);
  EXPECT_EQ(reading_with(*listener, 7).pending, 7U);
  EXPECT_EQ(read_queue(*listener)->backlog, 16U);
  for (int i = 0; i < 3; ++i) queue.accept_one();
  EXPECT_EQ(read_queue(*listener)->pending, 4U);
  EXPECT_EQ(::listen(queue.fd(), 99), 0);  // a new limit of the same socket
  EXPECT_EQ(read_queue(*listener)->backlog, 99U);
}

TEST_F(Listeners, TellOfIpVersion6) {
  QueueOf queue(5, AF_INET6);
  const auto listener = identify_listener(queue.fd());
  ASSERT_TRUE(listener);
  EXPECT_EQ(listener->address, "::1");
  EXPECT_EQ(listener->ip_version, 6);
  queue.connect(2);
  EXPECT_EQ(reading_with(*listener, 2).backlog, 5U);
}

TEST_F(Listeners, CountTheAttemptsThatAFullQueueDropped) {
  QueueOf queue(1);
  const auto listener = identify_listener(queue.fd());
  ASSERT_TRUE(listener);
  if (!read_queue(*listener)->drops) GTEST_SKIP() << "this kernel has no SO_MEMINFO";
  EXPECT_EQ(read_queue(*listener)->drops, 0U);
  const auto before = read_listen_counters();
  queue.connect(2);  // one beyond the limit still fits
  EXPECT_EQ(reading_with(*listener, 2).drops, 0U);
  queue.connect(3);
  std::optional<QueueReading> full;
  do {
    full = read_queue(*listener);
  } while (full && full->drops.value_or(0) < 3);
  ASSERT_TRUE(full);
  EXPECT_EQ(full->pending, 2U);
  const auto after = read_listen_counters();
  ASSERT_TRUE(before && after);
  EXPECT_GE(after->overflows, before->overflows + 3);  // of all processes together
  EXPECT_GE(after->drops, before->drops + 3);
}

TEST_F(Listeners, ADescriptorThatIsAnotherSocketNowTellsNothing) {
  QueueOf queue(16);
  QueueOf other(16);
  other.connect(3);
  const auto listener = identify_listener(queue.fd());
  ASSERT_TRUE(listener);
  const int fd = queue.fd();
  ASSERT_EQ(::dup3(other.fd(), fd, O_CLOEXEC), fd);  // closes it and takes its number
  EXPECT_FALSE(read_queue(*listener));
  queue.close();
  EXPECT_FALSE(read_queue(*listener));
}

TEST_F(Listeners, AreOnlySocketsThatListen) {
  const UniqueFd plain(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const UniqueFd datagram(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const UniqueFd local(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (const int fd : {plain.get(), datagram.get(), local.get(), 0, -1}) {
    EXPECT_FALSE(identify_listener(fd)) << fd;
  }
}

TEST_F(Listeners, TheWalkSeesEverySocketWhateverItsSteps) {
  std::vector<QueueOf> queues;
  for (int i = 0; i < 200; ++i) queues.emplace_back(1);
  for (const std::size_t step : {std::size_t{1}, std::size_t{100}, std::size_t{100'000}}) {
    DescriptorWalk walk;
    std::vector<int> sockets;
    while (walk.next(step, nullptr, &sockets)) {
    }
    for (const QueueOf& queue : queues) {
      EXPECT_EQ(std::count(sockets.begin(), sockets.end(), queue.fd()), 1) << "step " << step;
    }
  }
}

TEST_F(Listeners, TheKernelNamesTheInodesOfThoseThatListen) {
  QueueOf queue(1);
  QueueOf six(1, AF_INET6);
  const auto inodes = listening_inodes();
  if (!inodes) GTEST_SKIP() << "no sock_diag here";
  EXPECT_TRUE(inodes->contains(identify_listener(queue.fd())->inode));
  EXPECT_TRUE(inodes->contains(identify_listener(six.fd())->inode));
}

TEST_F(Listeners, AreReadWithoutAnyRights) {
  const int result = testing::run_as_nobody([] {
    QueueOf queue(16);
    queue.connect(4);
    const auto listener = identify_listener(queue.fd());
    return listener && reading_with(*listener, 4).pending == 4 && listening_inodes() &&
           read_listen_counters();
  });
  if (result < 0) GTEST_SKIP() << "only root can become nobody";
  EXPECT_EQ(result, 0);
}

TEST(ListenCountersText, FindsTheColumnsByName) {
  const auto counters = parse_listen_counters(
      "TcpExt: SyncookiesSent ListenOverflows Other ListenDrops\nTcpExt: 1 23 4 56\n"
      "IpExt: InNoRoutes\nIpExt: 0\n");
  ASSERT_TRUE(counters);
  EXPECT_EQ(counters->overflows, 23U);
  EXPECT_EQ(counters->drops, 56U);
}

TEST(ListenCountersText, WithoutThemNothingIsKnown) {
  EXPECT_FALSE(parse_listen_counters(""));
  EXPECT_FALSE(parse_listen_counters("TcpExt: ListenOverflows\nTcpExt: 5\n"));
  EXPECT_FALSE(parse_listen_counters("TcpExt: ListenOverflows ListenDrops\nTcpExt: 5\n"));
  EXPECT_FALSE(parse_listen_counters("TcpExt: ListenOverflows ListenDrops\nTcpExt: x 1\n"));
  EXPECT_FALSE(parse_listen_counters("TcpExt: ListenOverflows ListenDrops"));
}

}  // namespace
}  // namespace dial9::internal
