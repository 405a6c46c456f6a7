// A one-shot event that any thread opens and one coroutine awaits, with a time limit.
// It is a timer that gets cancelled, so the waiting task keeps its identity in a recording whoever
// opens the gate. Safe to open before, while and after it is awaited.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <mutex>

namespace checkout {

class Gate {
 public:
  explicit Gate(const boost::asio::any_io_executor& executor) : timer_(executor) {}

  // Opens the gate for good. Any thread.
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    timer_.cancel();
  }

  // Resumes once the gate is open (true) or after `limit` (false). One waiter. The gate must live
  // until it resumes, also if the waiting coroutine is destroyed: hold it by a shared_ptr.
  boost::asio::awaitable<bool> wait(std::chrono::steady_clock::duration limit) {
    using Signature = void(boost::system::error_code);
    const auto token = boost::asio::as_tuple(boost::asio::use_awaitable);
    co_await boost::asio::async_initiate<const decltype(token), Signature>(
        [this, limit](auto handler) {
          const std::lock_guard lock(mutex_);
          const auto now = std::chrono::steady_clock::now();
          timer_.expires_at(is_open_ ? now : now + limit);
          timer_.async_wait(std::move(handler));
        },
        token);
    const std::lock_guard lock(mutex_);
    co_return is_open_;
  }

 private:
  std::mutex mutex_;
  bool is_open_ = false;
  boost::asio::steady_timer timer_;
};

}  // namespace checkout
