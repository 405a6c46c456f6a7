// The service's connections to its key-value store: a bounded pool, shared by all workers. One call
// is one request and one reply on a connection that nobody else uses meanwhile. Every wait has a
// limit: for a connection, for connecting, for the reply. A kept connection that the store has
// closed meanwhile is replaced once, unseen by the caller.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <expected>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "counters.h"
#include "gate.h"
#include "kv_protocol.h"

namespace checkout {

struct KvPoolOptions {
  boost::asio::ip::tcp::endpoint store;
  std::size_t connections = 32;  // most at once
  std::chrono::milliseconds acquire_limit{1000};
  std::chrono::milliseconds connect_limit{1000};
  std::chrono::milliseconds call_limit{2000};
};

class KvPool : public std::enable_shared_from_this<KvPool> {
 public:
  KvPool(boost::asio::io_context& io, KvPoolOptions options, std::shared_ptr<Counters> counters);
  ~KvPool();

  // Sends `request` and resumes with its reply (also one of kind kError), or with one line that
  // says what failed: no free connection in time, connecting, the call itself. Any worker; the
  // calling coroutine's executor must not run two handlers of it at once (a strand, or one thread).
  boost::asio::awaitable<std::expected<kv::Reply, std::string>> call(kv::Request request);

 private:
  struct Connection;
  struct Waiter;
  class Lease;
  using ConnectionPtr = std::unique_ptr<Connection>;

  boost::asio::awaitable<std::expected<Lease, std::string>> acquire();
  boost::asio::awaitable<boost::system::error_code> connect(Lease& lease);
  boost::asio::awaitable<boost::system::error_code> exchange(Connection& connection,
                                                             const std::string& bytes,
                                                             kv::Reply& reply);
  void release(ConnectionPtr connection);  // null: it is gone, its place is free

  boost::asio::io_context& io_;
  const KvPoolOptions options_;
  const std::shared_ptr<Counters> counters_;
  std::mutex mutex_;
  std::vector<ConnectionPtr> idle_;
  std::size_t open_ = 0;  // idle and leased
  std::deque<std::shared_ptr<Waiter>> waiters_;
};

}  // namespace checkout
