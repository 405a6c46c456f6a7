// The real server over real loopback connections: what the limits and the threads do.
// SPDX-License-Identifier: Apache-2.0
#include "server/http.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "server/server.h"

namespace dial9::server {
namespace {

class Running {
 public:
  explicit Running(HttpOptions options, Handler handler) {
    server_ = *HttpServer::listen(std::move(options), std::move(handler));
    thread_ = std::thread([this] { EXPECT_TRUE(server_->run()); });
  }
  ~Running() {
    server_->stop();
    thread_.join();
  }
  std::uint16_t port() const { return server_->port(); }

 private:
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

class Connection {
 public:
  // `host`: the last number of the own address.
  explicit Connection(std::uint16_t port, std::uint32_t host = 1)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  // Reads until `end` has come `times`, or the peer has closed.
  std::string read_until(std::string_view end, std::size_t times = 1) {
    std::string out;
    char buffer[4096];
    while (count(out, end) < times) {
      const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
      if (got <= 0) break;
      out.append(buffer, static_cast<std::size_t>(got));
    }
    return out;
  }

 private:
  static std::size_t count(const std::string& text, std::string_view part) {
    std::size_t out = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++out;
    }
    return out;
  }
  UniqueFd socket_;
};

Response echo(const Request& request) {
  Response out;
  out.body = "[" + request.target + "]";
  return out;
}

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

bool is_answered(Connection& connection) {
  connection.send(kGet);
  return connection.read_until("]").find("200") != std::string::npos;
}

TEST(HttpServer, AnswersSeveralRequestsOnOneConnection) {
  Running running({}, echo);
  Connection connection(running.port());
  connection.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string reply = connection.read_until("]", 2);
  EXPECT_NE(reply.find("[/a]"), std::string::npos);
  EXPECT_LT(reply.find("[/a]"), reply.find("[/b]"));
  EXPECT_NE(reply.find("X-Content-Type-Options: nosniff"), std::string::npos);
}

TEST(HttpServer, AnswersHeadWithoutABodyButWithItsLength) {
  Running running({}, echo);
  Connection connection(running.port());
  connection.send("HEAD /a HTTP/1.0\r\nHost: x\r\n\r\n");
  const std::string reply = connection.read_until("never");
  EXPECT_NE(reply.find("Content-Length: 4"), std::string::npos);
  EXPECT_TRUE(reply.ends_with("\r\n\r\n"));
}

TEST(HttpServer, RefusesAnEndlessHeaderAndALargeBody) {
  Running running({}, echo);
  Connection header(running.port());
  header.send("GET /a HTTP/1.1\r\nHost: x\r\nX: " + std::string(40'000, 'a') + "\r\n\r\n");
  EXPECT_EQ(header.read_until("never").find("200"), std::string::npos);
  Connection body(running.port());
  body.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_NE(body.read_until("never").find("413"), std::string::npos);
}

TEST(HttpServer, TellsWhoComesTooManyWhileAllOthersAreAnswered) {
  std::promise<void> has_begun;
  std::promise<void> may_end;
  HttpOptions options;
  options.max_connections = 1;
  Running running(options, [&](const Request& request) {
    has_begun.set_value();
    may_end.get_future().wait();
    return echo(request);
  });
  Connection first(running.port());
  first.send(kGet);
  has_begun.get_future().wait();
  Connection second(running.port());
  const std::string reply = second.read_until("never");
  may_end.set_value();
  EXPECT_NE(reply.find("503"), std::string::npos);
  EXPECT_NE(first.read_until("]").find("200"), std::string::npos);
}

TEST(HttpServer, GivesThePlaceOfTheOneThatWaitsLongestToWhoComesNext) {
  HttpOptions options;
  options.max_connections = 3;
  Running running(options, echo);
  std::vector<std::unique_ptr<Connection>> half_open;
  for (int i = 0; i < 3; ++i) {
    half_open.push_back(std::make_unique<Connection>(running.port()));
    half_open.back()->send("GET /a HTTP/1.1\r\nHost:");
  }
  Connection next(running.port());
  EXPECT_TRUE(is_answered(next));
  EXPECT_EQ(half_open[0]->read_until("never"), "");
  half_open[2]->send(" x\r\n\r\n");
  EXPECT_NE(half_open[2]->read_until("]").find("200"), std::string::npos) << "keeps its place";
}

TEST(HttpServer, TakesAPlaceFromTheAddressThatHasTheMost) {
  HttpOptions options;
  options.max_connections = 4;
  Running running(options, echo);
  Connection resting(running.port());
  EXPECT_TRUE(is_answered(resting)) << "waits for a request from now on, longer than all others";
  std::vector<std::unique_ptr<Connection>> many;
  for (int i = 0; i < 3; ++i) {
    many.push_back(std::make_unique<Connection>(running.port(), 2));
  }
  Connection next(running.port());
  EXPECT_TRUE(is_answered(next));
  EXPECT_EQ(many[0]->read_until("never"), "");
  many.push_back(std::make_unique<Connection>(running.port(), 2));
  EXPECT_TRUE(is_answered(*many.back()));
  EXPECT_EQ(many[1]->read_until("never"), "") << "of its own address";
  EXPECT_TRUE(is_answered(resting));
}

// Connections are accepted in the order in which they come, and what lies in a socket before a
// request on another one was sent is read before that one's reply: a reply says how far it is.
class HttpDeadlines : public ::testing::Test {
 protected:
  HttpDeadlines() : other_(server_.port()) { reach(); }

  void pass(std::uint64_t seconds) {
    now_ns_.fetch_add(seconds * 1'000'000'000, std::memory_order_relaxed);
  }
  void reach() { EXPECT_TRUE(is_answered(other_)); }
  std::uint16_t port() const { return server_.port(); }

 private:
  HttpOptions options() {
    HttpOptions out;
    out.request_timeout_s = 10;
    out.idle_timeout_s = 60;
    out.look_period_ms = 1;
    out.now_ns = [this] { return now_ns_.load(std::memory_order_relaxed); };
    return out;
  }

  std::atomic<std::uint64_t> now_ns_{1};
  Running server_{options(), echo};
  Connection other_;
};

TEST_F(HttpDeadlines, ARequestThatDoesNotComeInWholeInTimeEndsItsConnection) {
  Connection in_time(port());
  Connection slow(port());
  Connection silent(port());
  in_time.send("GET /a HTTP/1.1\r\n");
  slow.send("GET /a HTTP/1.1\r\n");
  reach();
  reach();  // the last one's session begins after it was accepted
  pass(9);
  in_time.send("Host: x\r\n\r\n");
  EXPECT_NE(in_time.read_until("]").find("200"), std::string::npos);
  slow.send("X: more\r\n");
  reach();
  pass(2);
  EXPECT_EQ(slow.read_until("never"), "") << "what drips in buys no time";
  EXPECT_EQ(silent.read_until("never"), "");
}

TEST_F(HttpDeadlines, AConnectionMayRestBetweenRequestsButNotWithinOne) {
  Connection connection(port());
  EXPECT_TRUE(is_answered(connection));
  pass(59);
  EXPECT_TRUE(is_answered(connection));
  reach();
  pass(59);
  connection.send("GET /a");
  reach();
  pass(9);
  connection.send(" HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(connection.read_until("]").find("200"), std::string::npos);
  connection.send("GET /a");
  reach();
  pass(11);
  EXPECT_EQ(connection.read_until("never"), "");
}

TEST(HttpServer, TurnsAThrowIntoAnError) {
  Running running({}, [](const Request&) -> Response { throw std::runtime_error("oops"); });
  Connection connection(running.port());
  connection.send("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string reply = connection.read_until("never");
  EXPECT_NE(reply.find("500"), std::string::npos);
  EXPECT_NE(reply.find("oops"), std::string::npos);
}

TEST(HttpServer, KnowsWhoTakesGzip) {
  Running running({}, [](const Request& request) {
    Response out;
    out.body = request.accepts_gzip ? "yes]" : "no]";
    return out;
  });
  Connection connection(running.port());
  const auto answer = [&](const std::string& header) {
    connection.send("GET / HTTP/1.1\r\nHost: x\r\n" + header + "\r\n");
    const std::string reply = connection.read_until("]");
    return reply.substr(reply.rfind('\n') + 1);
  };
  EXPECT_EQ(answer("Accept-Encoding: gzip, br\r\n"), "yes]");
  EXPECT_EQ(answer("Accept-Encoding: br, gzip;q=0\r\n"), "no]");
  EXPECT_EQ(answer(""), "no]");
}

TEST(HttpServer, NamesWhatIsWrongWithAnAddress) {
  HttpOptions options;
  options.address = "localhost";
  EXPECT_EQ(HttpServer::listen(options, echo).error().code, ErrorCode::kInvalidArgument);
  Running running({}, echo);
  HttpOptions taken;
  taken.port = running.port();
  EXPECT_EQ(HttpServer::listen(taken, echo).error().code, ErrorCode::kAlreadyExists);
}

TEST(Serve, SaysWhereItIsAndEndsWhenTold) {
  ServeOptions options;
  options.path = DIAL9_SOURCE_DIR;
  options.port = 0;
  options.stops_on_signals = false;
  std::function<void()> stop;
  std::string url;
  const auto ready = [&](const Serving& serving) {
    url = serving.url;
    EXPECT_EQ(url, "http://127.0.0.1:" + std::to_string(serving.port) + "/");
    stop();
  };
  EXPECT_TRUE(serve(options, ready, [&](std::function<void()> given) { stop = std::move(given); }));
  EXPECT_FALSE(url.empty());
}

TEST(Serve, MakesUpATokenForAnAddressThatOthersReach) {
  ServeOptions options;
  options.path = DIAL9_SOURCE_DIR;
  options.address = "0.0.0.0";
  options.port = 0;
  options.stops_on_signals = false;
  std::function<void()> stop;
  const auto ready = [&](const Serving& serving) {
    EXPECT_NE(serving.url.find("#token="), std::string::npos);
    stop();
  };
  EXPECT_TRUE(serve(options, ready, [&](std::function<void()> given) { stop = std::move(given); }));
}

}  // namespace
}  // namespace dial9::server
