// SPDX-License-Identifier: Apache-2.0
#include "sources/accept_queues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "dial9/recorder.h"
#include "dial9/source.h"
#include "recorder/listen_hints.h"
#include "recorder/test_support.h"
#include "sources/testing/sockets.h"

namespace dial9::internal {
namespace {

using testing::QueueOf;

constexpr std::uint64_t kSecond = 1'000'000'000;

bool has(const AcceptQueues& queues, const QueueOf& queue) {
  return std::any_of(queues.listeners().begin(), queues.listeners().end(),
                     [&](const Listener& one) { return one.port == queue.port(); });
}

void search_to_the_end(AcceptQueues& queues, std::uint64_t now_ns) {
  for (int i = 0; i < 20; ++i) queues.sample(now_ns);
}

class AcceptQueuesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!are_listeners_supported()) GTEST_SKIP() << "this kernel has no SO_COOKIE";
    int fds[kMostListenHints];
    bool is_overflown = false;
    (void)take_listen_hints(fds, &is_overflown);
  }
};

TEST_F(AcceptQueuesTest, ListenersAreFoundAtTheStartAndOnceAMinute) {
  QueueOf first(4);
  AcceptQueues queues;
  search_to_the_end(queues, kSecond);
  EXPECT_TRUE(has(queues, first));
  QueueOf later(4);
  search_to_the_end(queues, 30 * kSecond);
  EXPECT_FALSE(has(queues, later));
  search_to_the_end(queues, 62 * kSecond);
  EXPECT_TRUE(has(queues, later));
  EXPECT_TRUE(has(queues, first));
}

TEST_F(AcceptQueuesTest, ListenersThatNobodyNewJoinedCostNoWalk) {
  if (!listening_inodes()) GTEST_SKIP() << "no sock_diag here: every round walks";
  QueueOf queue(4);
  AcceptQueues queues;
  search_to_the_end(queues, kSecond);
  const std::uint64_t searches = queues.searches();
  search_to_the_end(queues, 62 * kSecond);
  search_to_the_end(queues, 123 * kSecond);
  EXPECT_EQ(queues.searches(), searches);
}

TEST_F(AcceptQueuesTest, AHintIsTakenAtOnce) {
  AcceptQueues queues;
  search_to_the_end(queues, kSecond);
  QueueOf queue(4);
  hint_listener(queue.fd());
  hint_listener(0);  // no socket
  queues.sample(2 * kSecond);
  EXPECT_TRUE(has(queues, queue));
}

TEST_F(AcceptQueuesTest, ASocketWithTwoDescriptorsIsOneQueueAndOutlivesTheFirst) {
  QueueOf queue(4);
  const UniqueFd second(::dup(queue.fd()));
  const std::uint16_t port = queue.port();
  const auto count = [&](const AcceptQueues& queues) {
    return std::count_if(queues.listeners().begin(), queues.listeners().end(),
                         [&](const Listener& one) { return one.port == port; });
  };
  AcceptQueues queues;
  search_to_the_end(queues, kSecond);
  EXPECT_EQ(count(queues), 1);
  queue.close();
  search_to_the_end(queues, 2 * kSecond);
  search_to_the_end(queues, 13 * kSecond);
  EXPECT_EQ(count(queues), 1);
}

TEST_F(AcceptQueuesTest, ThoseBeyondTheMostAreLeftOut) {
  std::vector<QueueOf> many;
  for (std::size_t i = 0; i < kMostListeners + 9; ++i) many.emplace_back(1);
  AcceptQueues queues;
  search_to_the_end(queues, kSecond);
  EXPECT_EQ(queues.listeners().size(), kMostListeners);
}

TEST_F(AcceptQueuesTest, AreRecordedWithTheirNumbers) {
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(4 << 20));
  ASSERT_TRUE(status.ok()) << status.message();
  QueueOf queue(16);
  queue.connect(7);
  const auto listener = identify_listener(queue.fd());
  while (read_queue(*listener)->pending < 7) {
  }
  AcceptQueues queues;
  search_to_the_end(queues, kSecond);
  ASSERT_TRUE(recorder.rotate(std::chrono::seconds(30)));
  const Trace trace = Trace::of(recorder.sealed_segments());
  const std::string event = "TcpAcceptQueueEvent";
  const auto ports = trace.numbers(event, "local_port");
  const auto at = std::find(ports.begin(), ports.end(), queue.port()) - ports.begin();
  ASSERT_LT(static_cast<std::size_t>(at), ports.size());
  const auto row = static_cast<std::size_t>(at);
  EXPECT_EQ(trace.numbers(event, "socket_cookie")[row], listener->cookie);
  EXPECT_EQ(trace.numbers(event, "socket_inode")[row], listener->inode);
  EXPECT_EQ(trace.numbers(event, "ip_version")[row], 4U);
  EXPECT_EQ(trace.texts(event, "local_addr")[row], "127.0.0.1");
  EXPECT_EQ(trace.numbers(event, "pending_connections")[row], 7U);
  EXPECT_EQ(trace.numbers(event, "backlog_limit")[row], 16U);
  const auto namespaces = trace.numbers("TcpListenCountersEvent", "net_namespace");
  ASSERT_EQ(namespaces.size(), 1U);
  EXPECT_EQ(namespaces[0], net_namespace());
}

TEST_F(AcceptQueuesTest, TheCollectorSamplesThem) {
  QueueOf queue(16);
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(4 << 20));
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(add_accept_queues(std::chrono::milliseconds(1)).ok());
  EXPECT_FALSE(add_accept_queues().ok()) << "a second registration must be refused";
  std::vector<std::uint64_t> ports;
  do {
    ASSERT_TRUE(recorder.rotate(std::chrono::seconds(30)));
    ports = Trace::of(recorder.sealed_segments()).numbers("TcpAcceptQueueEvent", "local_port");
  } while (std::find(ports.begin(), ports.end(), queue.port()) == ports.end());
  EXPECT_TRUE(remove_source("accept_queues"));
}

}  // namespace
}  // namespace dial9::internal
