// The load generator's engine on Asio coroutines: one dispatcher, one coroutine a connection, one
// sweeper for time-outs. All on one thread, so nothing here is locked. Raw HTTP/1.1, no Beast.
// SPDX-License-Identifier: Apache-2.0
#include "client.h"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "response_parser.h"

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

namespace checkout::load {
namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr auto kSweepPeriod = std::chrono::milliseconds(50);
constexpr auto kReconnectPause = std::chrono::milliseconds(100);
constexpr auto kConnectLimit = std::chrono::seconds(10);

std::string http_request(const char* method, const std::string& target, const std::string& body) {
  std::string text = std::string(method) + ' ' + target + " HTTP/1.1\r\nHost: checkout\r\n";
  if (!body.empty()) {
    text +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  return text + "\r\n" + body;
}

std::uint64_t to_ns(Clock::duration duration) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::nanoseconds(duration).count()));
}

// What became of one request.
enum class Fate { kAnswered, kClosed, kBad };

struct Connection {
  explicit Connection(asio::io_context& io) : socket(io), wake(io, Clock::time_point::max()) {}
  tcp::socket socket;
  asio::steady_timer wake;  // cancelled when there is work
  ResponseParser parser;
  std::array<char, 16 * 1024> input{};
  Clock::time_point sent_at = Clock::time_point::max();  // max: nothing in flight
  bool has_timed_out = false;
};

class Client {
 public:
  explicit Client(const ClientOptions& options)
      : options_(options),
        server_(asio::ip::make_address(options.address), options.port),
        arrivals_(options.pattern, options.rate_hz, duration_ns(), options.seed),
        random_(options.seed ^ 0x9e3779b97f4a7c15U) {
    results_.rate_hz = options.rate_hz;
  }

  Results run() {
    asio::co_spawn(io_, main(), [this](const std::exception_ptr&) { io_.stop(); });
    io_.run();
    return std::move(results_);
  }

 private:
  std::uint64_t duration_ns() const {
    return static_cast<std::uint64_t>(options_.duration_s * 1e9);
  }

  asio::awaitable<void> main();
  asio::awaitable<bool> open_all();
  asio::awaitable<bool> write_carts();
  asio::awaitable<void> dispatch();
  asio::awaitable<void> drain();
  asio::awaitable<void> serve(Connection& connection);
  asio::awaitable<bool> connect(Connection& connection);
  asio::awaitable<void> do_request(Connection& connection, Clock::time_point intended);
  asio::awaitable<Fate> exchange(Connection& connection, const std::string& bytes);
  asio::awaitable<void> sweep();
  std::string next_request();
  void count(const Connection& connection, Fate fate, Clock::time_point intended);

  const ClientOptions options_;
  const tcp::endpoint server_;
  asio::io_context io_{1};
  Arrivals arrivals_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::deque<Connection*> idle_;
  std::deque<Clock::time_point> due_;  // intended send times of what waits for a connection
  std::size_t in_flight_ = 0;
  Results results_;
};

asio::awaitable<void> Client::main() {
  const bool is_open = co_await open_all();
  if (!is_open) co_return;
  const bool is_ready = co_await write_carts();
  if (!is_ready) {
    results_.connections = 0;
    co_return;
  }
  for (const auto& connection : connections_) {
    asio::co_spawn(io_, serve(*connection), asio::detached);
  }
  asio::co_spawn(io_, sweep(), asio::detached);
  const auto start = Clock::now();
  co_await dispatch();
  co_await drain();
  results_.unsent = due_.size();
  results_.timeouts += in_flight_;
  results_.duration_s = std::chrono::duration<double>(Clock::now() - start).count();
}

asio::awaitable<bool> Client::open_all() {
  const auto limit = Clock::now() + kConnectLimit;
  for (std::size_t i = 0; i < options_.connections; ++i) {
    connections_.push_back(std::make_unique<Connection>(io_));
    const bool is_connected = co_await connect(*connections_.back());
    if (is_connected) ++results_.connections;
    if (Clock::now() > limit || (i == 0 && !is_connected)) break;
  }
  co_return results_.connections != 0;
}

asio::awaitable<bool> Client::connect(Connection& connection) {
  error_code ignored;
  connection.socket.close(ignored);
  const auto [error] = co_await connection.socket.async_connect(server_, kToken);
  if (error) {
    ++results_.failed_connects;
    connection.socket.close(ignored);
    co_return false;
  }
  connection.socket.set_option(tcp::no_delay(true), ignored);
  co_return true;
}

// A service that has just started may have no way to its store yet: it says so by 503, and gets the
// time of a slow connect.
asio::awaitable<bool> Client::write_carts() {
  Connection& connection = *connections_.front();
  const auto limit = Clock::now() + kConnectLimit;
  for (unsigned cart = 0; cart < options_.carts;) {
    const std::string request =
        http_request("PUT", "/cart/c" + std::to_string(cart), R"({"items":[]})");
    const Fate fate = co_await exchange(connection, request);
    if (fate != Fate::kAnswered) co_return false;
    if (connection.parser.status() < 300) {
      ++cart;
    } else if (connection.parser.status() != 503 || Clock::now() > limit) {
      co_return false;
    } else {
      asio::steady_timer pause(io_, kReconnectPause);
      co_await pause.async_wait(kToken);
    }
  }
  co_return true;
}

// Makes requests due at their times, whatever the service does.
asio::awaitable<void> Client::dispatch() {
  const auto start = Clock::now();
  asio::steady_timer timer(io_);
  for (std::uint64_t at = arrivals_.next_ns(); at < duration_ns(); at = arrivals_.next_ns()) {
    const auto intended = start + std::chrono::nanoseconds(at);
    if (intended > Clock::now()) {
      timer.expires_at(intended);
      co_await timer.async_wait(kToken);
    }
    ++results_.intended;
    due_.push_back(intended);
    if (!idle_.empty()) {
      idle_.front()->wake.cancel();
      idle_.pop_front();
    }
  }
}

asio::awaitable<void> Client::drain() {
  const auto limit = Clock::now() + options_.timeout;
  asio::steady_timer timer(io_);
  while ((in_flight_ != 0 || !due_.empty()) && Clock::now() < limit) {
    timer.expires_after(kSweepPeriod / 10);
    co_await timer.async_wait(kToken);
  }
}

asio::awaitable<void> Client::serve(Connection& connection) {
  for (;;) {
    while (!connection.socket.is_open()) {
      const bool is_connected = co_await connect(connection);
      if (is_connected) break;
      asio::steady_timer pause(io_, kReconnectPause);
      co_await pause.async_wait(kToken);
    }
    if (due_.empty()) {
      idle_.push_back(&connection);
      co_await connection.wake.async_wait(kToken);
      continue;
    }
    const auto intended = due_.front();
    due_.pop_front();
    co_await do_request(connection, intended);
  }
}

asio::awaitable<void> Client::do_request(Connection& connection, Clock::time_point intended) {
  const std::string request = next_request();
  ++in_flight_;
  connection.sent_at = Clock::now();
  connection.has_timed_out = false;
  const Fate fate = co_await exchange(connection, request);
  connection.sent_at = Clock::time_point::max();
  --in_flight_;
  count(connection, fate, intended);
  if (fate != Fate::kAnswered || !connection.parser.keeps_alive()) {
    error_code ignored;
    connection.socket.close(ignored);
  }
}

asio::awaitable<Fate> Client::exchange(Connection& connection, const std::string& bytes) {
  connection.parser.reset();
  const auto [write_error, written] =
      co_await asio::async_write(connection.socket, asio::buffer(bytes), kToken);
  if (write_error) co_return Fate::kClosed;
  for (;;) {
    const auto [read_error, size] =
        co_await connection.socket.async_read_some(asio::buffer(connection.input), kToken);
    if (read_error) co_return Fate::kClosed;
    const std::size_t taken = connection.parser.feed({connection.input.data(), size});
    if (connection.parser.state() == ResponseParser::State::kBad || taken != size) {
      co_return Fate::kBad;
    }
    if (connection.parser.state() == ResponseParser::State::kDone) co_return Fate::kAnswered;
  }
}

void Client::count(const Connection& connection, Fate fate, Clock::time_point intended) {
  switch (fate) {
    case Fate::kBad:
      ++results_.bad_responses;
      return;
    case Fate::kClosed:
      ++(connection.has_timed_out ? results_.timeouts : results_.closed);
      return;
    case Fate::kAnswered:
      break;
  }
  ++results_.by_class.at(static_cast<std::size_t>(connection.parser.status() / 100));
  results_.body_bytes += connection.parser.body_bytes();
  results_.latency_ns.record(to_ns(Clock::now() - intended));
}

// Closes connections whose request is over its time; their coroutines count and reconnect.
asio::awaitable<void> Client::sweep() {
  asio::steady_timer timer(io_);
  for (;;) {
    timer.expires_after(kSweepPeriod);
    co_await timer.async_wait(kToken);
    const auto now = Clock::now();
    for (const auto& connection : connections_) {
      const bool is_busy = connection->sent_at != Clock::time_point::max();
      if (!is_busy || now - connection->sent_at < options_.timeout) continue;
      connection->has_timed_out = true;
      error_code ignored;
      connection->socket.close(ignored);
    }
  }
}

std::string Client::next_request() {
  const std::string cart = "c" + std::to_string(random_() % options_.carts);
  if (std::uniform_real_distribution<double>(0, 1)(random_) >= options_.checkout_share) {
    return http_request("GET", "/cart/" + cart, {});
  }
  const std::string quantity = std::to_string(1 + random_() % 5);
  return http_request("POST", "/checkout",
                      R"({"cart":")" + cart + R"(","items":[{"sku":"tea","quantity":)" + quantity +
                          R"(},{"sku":"lemon","quantity":2}]})");
}

}  // namespace

Results run_load(const ClientOptions& options) { return Client(options).run(); }

}  // namespace checkout::load
