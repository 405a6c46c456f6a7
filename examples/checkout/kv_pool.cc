// The pool's hand-over rules: an idle connection first, then a new one while there is room, then a
// place in the queue, served in order. A place that becomes free goes to the first waiter directly.
// SPDX-License-Identifier: Apache-2.0
#include "kv_pool.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace checkout {
namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kReadBytes = 4096;

}  // namespace

struct KvPool::Connection {
  explicit Connection(asio::io_context& io) : socket(io) {}
  tcp::socket socket;
  bool is_fresh = true;  // has carried no call yet
};

struct KvPool::Waiter {
  explicit Waiter(const asio::any_io_executor& executor) : granted(executor) {}
  Gate granted;
  bool has_place = false;    // under the pool's mutex
  ConnectionPtr connection;  // likewise; null with a place: connect anew
};

// A place in the pool, with or without a connection in it; gives it back when it goes.
class KvPool::Lease {
 public:
  Lease(std::shared_ptr<KvPool> pool, ConnectionPtr from)
      : connection(std::move(from)), pool_(std::move(pool)) {}
  Lease(Lease&&) noexcept = default;
  Lease& operator=(Lease&&) = delete;
  ~Lease() {
    if (pool_) pool_->release(std::move(connection));
  }
  ConnectionPtr connection;

 private:
  std::shared_ptr<KvPool> pool_;
};

namespace {

// Closes `socket` unless it is destroyed within `limit`. Runs on the coroutine's own executor, so
// the socket is never touched by two threads at once; the flag tells a late handler to keep off.
class Deadline {
 public:
  Deadline(const asio::any_io_executor& executor, tcp::socket& socket,
           std::chrono::steady_clock::duration limit)
      : timer_(executor, limit), is_armed_(std::make_shared<bool>(true)) {
    timer_.async_wait(asio::bind_executor(executor, [armed = is_armed_, &socket](error_code error) {
      if (error || !*armed) return;
      error_code ignored;
      socket.close(ignored);
    }));
  }
  ~Deadline() { *is_armed_ = false; }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  asio::steady_timer timer_;
  std::shared_ptr<bool> is_armed_;
};

}  // namespace

KvPool::KvPool(asio::io_context& io, KvPoolOptions options, std::shared_ptr<Counters> counters)
    : io_(io), options_(std::move(options)), counters_(std::move(counters)) {}

KvPool::~KvPool() = default;

asio::awaitable<std::expected<KvPool::Lease, std::string>> KvPool::acquire() {
  const auto executor = co_await asio::this_coro::executor;
  std::shared_ptr<Waiter> waiter;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      ConnectionPtr connection = std::move(idle_.back());
      idle_.pop_back();
      co_return Lease(shared_from_this(), std::move(connection));
    }
    if (open_ < options_.connections) {
      ++open_;
      co_return Lease(shared_from_this(), nullptr);
    }
    waiter = std::make_shared<Waiter>(executor);
    waiters_.push_back(waiter);
  }
  co_await waiter->granted.wait(options_.acquire_limit);
  const std::lock_guard lock(mutex_);
  if (!waiter->has_place) {
    std::erase(waiters_, waiter);
    co_return std::unexpected("no free connection to the store in time");
  }
  waiter->has_place = false;
  co_return Lease(shared_from_this(), std::move(waiter->connection));
}

void KvPool::release(ConnectionPtr connection) {
  const std::lock_guard lock(mutex_);
  if (!waiters_.empty()) {
    const auto waiter = std::move(waiters_.front());
    waiters_.pop_front();
    waiter->has_place = true;
    waiter->connection = std::move(connection);
    waiter->granted.open();
  } else if (connection) {
    idle_.push_back(std::move(connection));
  } else {
    --open_;
  }
}

asio::awaitable<error_code> KvPool::connect(Lease& lease) {
  const auto executor = co_await asio::this_coro::executor;
  auto connection = std::make_unique<Connection>(io_);
  const Deadline deadline(executor, connection->socket, options_.connect_limit);
  const auto [error] = co_await connection->socket.async_connect(options_.store, kToken);
  if (error) co_return error;
  error_code ignored;
  connection->socket.set_option(tcp::no_delay(true), ignored);
  lease.connection = std::move(connection);
  co_return error_code{};
}

asio::awaitable<error_code> KvPool::exchange(Connection& connection, const std::string& bytes,
                                             kv::Reply& reply) {
  const auto executor = co_await asio::this_coro::executor;
  const Deadline deadline(executor, connection.socket, options_.call_limit);
  const auto [write_error, written] =
      co_await asio::async_write(connection.socket, asio::buffer(bytes), kToken);
  if (write_error) co_return write_error;
  std::string input;
  for (;;) {
    const std::size_t have = input.size();
    input.resize(have + kReadBytes);
    const auto [read_error, count] = co_await connection.socket.async_read_some(
        asio::buffer(input.data() + have, kReadBytes), kToken);
    if (read_error) co_return read_error;
    input.resize(have + count);
    auto parsed = kv::parse_reply(input);
    if (parsed.status == kv::ParseStatus::kNeedMore) continue;
    if (parsed.status == kv::ParseStatus::kBad || parsed.consumed != input.size()) {
      co_return error_code(boost::system::errc::protocol_error, boost::system::generic_category());
    }
    reply = std::move(parsed.message);
    co_return error_code{};
  }
}

asio::awaitable<std::expected<kv::Reply, std::string>> KvPool::call(kv::Request request) {
  Counters::add(counters_->kv_calls);
  const std::string bytes = kv::encode(request);
  auto lease = co_await acquire();
  if (!lease) {
    Counters::add(counters_->kv_failures);
    co_return std::unexpected(lease.error());
  }
  for (;;) {
    const bool is_kept = lease->connection != nullptr && !lease->connection->is_fresh;
    if (!lease->connection) {
      const error_code error = co_await connect(*lease);
      if (error) {
        Counters::add(counters_->kv_failures);
        co_return std::unexpected("cannot connect to the store: " + error.message());
      }
    }
    kv::Reply reply;
    const error_code error = co_await exchange(*lease->connection, bytes, reply);
    if (!error) {
      lease->connection->is_fresh = false;
      co_return reply;
    }
    lease->connection.reset();
    // A closed kept connection says nothing about the request unless the store may have done it:
    // ADD is the one verb that must not be done twice.
    if (!is_kept || error != asio::error::eof || request.verb == kv::Verb::kAdd) {
      Counters::add(counters_->kv_failures);
      co_return std::unexpected("call to the store failed: " + error.message());
    }
  }
}

}  // namespace checkout
