// What the faults of fault_names.h do. Each is the real mistake, not a picture of it: the blocking
// read blocks in read(2), the mutex is a std::mutex, the descriptors are descriptors.
// Without faults, at_request() completes without suspending.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "fault_names.h"

namespace checkout {

class LateFile;
class HopLoops;

class Faults : public std::enable_shared_from_this<Faults> {
 public:
  // `workers`: threads that run `io`; `store`: where connect-storm connects to.
  Faults(boost::asio::io_context& io, FaultSet faults, unsigned workers,
         boost::asio::ip::tcp::endpoint store);
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  // Starts those that act without a request. Once.
  void start();

  // Ends the threads of faults; before the io_context is destroyed, after its workers ended.
  void stop();

  // Called by each order and each look at a cart, on its own executor, where it also resumes.
  boost::asio::awaitable<void> at_request();

 private:
  boost::asio::awaitable<void> connect_storm();
  boost::asio::awaitable<void> hop_around();
  void produce_jobs();
  boost::asio::awaitable<void> wait_for_ever();

  boost::asio::io_context& io_;
  const FaultSet faults_;
  const unsigned workers_;
  const boost::asio::ip::tcp::endpoint store_;
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<bool> is_stopping_{false};
  std::mutex price_table_;  // hot-mutex: shared by all workers
  boost::asio::strand<boost::asio::io_context::executor_type> strand_;
  std::unique_ptr<LateFile> late_file_;
  std::unique_ptr<HopLoops> hops_;
  std::vector<std::thread> threads_;
};

}  // namespace checkout
