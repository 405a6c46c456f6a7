// Memory may end in the middle of a reply: who asked sees that it isn't whole, and the server lives
// on.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/testing/failing_memory.h"
#include "base/unique_fd.h"
#include "server/http.h"

namespace dial9::server {
namespace {

using dial9::testing::FailingMemory;
using Ends = FailingMemory::Ends;

// More than what both ends hold of it on its way.
constexpr std::size_t kLargeBytes = std::size_t{10} << 20;
constexpr int kReceiverBytes = 64 << 10;

std::string body_of(const std::string& target) {
  std::string body = "[" + target;
  body.resize(target == "/large" ? kLargeBytes : 100, '.');
  return body + "]";
}

Response answer(const Request& request) {
  Response out;
  out.body = body_of(request.target);
  return out;
}

class Connection {
 public:
  explicit Connection(std::uint16_t port)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const auto* const to = reinterpret_cast<const sockaddr*>(&address);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &kReceiverBytes, sizeof kReceiverBytes);
    EXPECT_EQ(::connect(socket_.get(), to, sizeof address), 0);
  }
  void ask(const std::string& target, bool keep_alive) const {
    const std::string request = "GET " + target + " HTTP/1.1\r\nHost: x\r\n" +
                                (keep_alive ? "" : "Connection: close\r\n") + "\r\n";
    EXPECT_EQ(::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
  }
  // Up to `most` bytes; less: the peer has ended it.
  std::string read(std::size_t most) const {
    std::string out(most, '\0');
    std::size_t size = 0;
    while (size < most) {
      const ssize_t got = ::recv(socket_.get(), out.data() + size, most - size, 0);
      if (got <= 0) break;
      size += static_cast<std::size_t>(got);
    }
    out.resize(size);
    return out;
  }
  std::string read_all() const { return read(2 * kLargeBytes); }

 private:
  UniqueFd socket_;
};

enum class Reply : std::uint8_t { kRight, kBusy, kCut, kWrong };

// As a client sees it: whole is what has all the bytes that its header tells of.
Reply look_at(std::string_view reply, const std::string& target) {
  const std::size_t head = reply.find("\r\n\r\n");
  if (head == std::string_view::npos) return Reply::kCut;
  constexpr std::string_view kLength = "Content-Length: ";
  const std::size_t at = reply.find(kLength);
  if (at == std::string_view::npos || at > head) return Reply::kWrong;
  std::size_t length = 0;
  std::from_chars(reply.data() + at + kLength.size(), reply.data() + head, length);
  const std::string_view body = reply.substr(head + 4);
  if (body.size() < length) return Reply::kCut;
  if (reply.starts_with("HTTP/1.1 503 ")) return Reply::kBusy;
  const bool is_right = reply.starts_with("HTTP/1.1 200 ") && body == body_of(target);
  return is_right ? Reply::kRight : Reply::kWrong;
}

class HalfReply : public ::testing::Test {
 protected:
  HalfReply() : server_(*HttpServer::listen({}, answer)) {
    network_ = std::thread([this] {
      FailingMemory::take_part(&memory_);
      EXPECT_TRUE(server_->run());
    });
  }
  ~HalfReply() override {
    server_->stop();
    network_.join();
  }
  void SetUp() override {
    if (!dial9::testing::can_memory_fail()) GTEST_SKIP() << dial9::testing::kMemoryIsOthers;
  }
  void expect_service(std::uint64_t pieces) const {
    const Connection next(server_->port());
    next.ask("/next", false);
    EXPECT_EQ(look_at(next.read_all(), "/next"), Reply::kRight) << pieces;
  }

  FailingMemory memory_;
  std::unique_ptr<HttpServer> server_;
  std::thread network_;
};

TEST_F(HalfReply, IsNeverTakenForAWholeOneWhereverMemoryEnds) {
  int cut_or_busy = 0;
  for (const std::string& target : {std::string("/small"), std::string("/large")}) {
    for (const Ends ends : {Ends::kOnce, Ends::kForGood}) {
      bool was_refused = true;
      for (std::uint64_t pieces = 0; was_refused; ++pieces) {
        const Connection connection(server_->port());
        connection.ask("/first", true);  // it has its place
        const std::string first = connection.read(1);
        ASSERT_EQ(first, "H");
        memory_.end_after(pieces, ends);
        connection.ask(target, false);
        const std::string rest = connection.read_all();
        was_refused = memory_.restore();
        const std::string before = first + rest.substr(0, rest.find("]") + 1);
        ASSERT_EQ(look_at(before, "/first"), Reply::kRight) << pieces;
        const Reply reply = look_at(std::string_view(rest).substr(rest.find("]") + 1), target);
        EXPECT_NE(reply, Reply::kWrong) << target << ", " << pieces;
        EXPECT_TRUE(was_refused || reply == Reply::kRight) << target << ", " << pieces;
        cut_or_busy += reply == Reply::kRight ? 0 : 1;
        expect_service(pieces);
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  EXPECT_GT(cut_or_busy, 4);
}

TEST_F(HalfReply, WhoseBytesAreOnTheirWayIsWholeOrCut) {
  for (const Ends ends : {Ends::kOnce, Ends::kForGood}) {
    bool was_refused = true;
    for (std::uint64_t pieces = 0; was_refused; ++pieces) {
      const Connection connection(server_->port());
      connection.ask("/large", false);
      std::string reply = connection.read(std::size_t{64} << 10);
      memory_.end_after(pieces, ends);
      reply += connection.read_all();
      was_refused = memory_.restore();
      const Reply seen = look_at(reply, "/large");
      EXPECT_TRUE(seen == Reply::kRight || seen == Reply::kCut) << pieces;
      expect_service(pieces);
      ASSERT_FALSE(HasFailure());
    }
  }
}

}  // namespace
}  // namespace dial9::server
