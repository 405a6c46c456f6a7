// The audit log: one line an order in a file, written by a thread of its own in batches, so that no
// worker ever waits for the disk. `append` resumes once the line is written (and synced, if asked
// for). The queue is bounded: a full one refuses at once, and the caller decides what that means.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gate.h"

namespace checkout {

class AuditLog {
 public:
  enum class Outcome { kWritten, kRefused, kFailed };

  // Opens `path` for appending; throws std::system_error if that fails. `is_synced`: each batch is
  // synced to disk before its lines count as written. `queue_lines`: most lines that wait.
  AuditLog(const std::string& path, bool is_synced, std::size_t queue_lines = 4096);
  ~AuditLog();  // writes what waits, then closes
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Queues `line` (without newline) and waits until it is in the file. Any worker.
  boost::asio::awaitable<Outcome> append(std::string line);

 private:
  struct Entry {
    std::string line;
    Outcome outcome = Outcome::kFailed;  // set before the gate opens
    Gate written;
    Entry(std::string text, const boost::asio::any_io_executor& executor)
        : line(std::move(text)), written(executor) {}
  };

  void write_batches();
  bool write_batch(const std::vector<std::shared_ptr<Entry>>& batch);

  const bool is_synced_;
  const std::size_t queue_lines_;
  int fd_ = -1;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Entry>> queue_;
  bool is_stopping_ = false;
  std::thread writer_;
};

}  // namespace checkout
