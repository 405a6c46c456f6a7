// The audit log's writer thread: takes all that waits, writes it in one go, opens the gates.
// SPDX-License-Identifier: Apache-2.0
#include "audit_log.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

namespace checkout {
namespace {

constexpr auto kWriteLimit = std::chrono::seconds(10);

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

AuditLog::AuditLog(const std::string& path, bool is_synced, std::size_t queue_lines)
    : is_synced_(is_synced), queue_lines_(queue_lines) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "audit log " + path);
  writer_ = std::thread([this] { write_batches(); });
  pthread_setname_np(writer_.native_handle(), "audit-log");
}

AuditLog::~AuditLog() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_one();
  writer_.join();
  ::close(fd_);
}

boost::asio::awaitable<AuditLog::Outcome> AuditLog::append(std::string line) {
  const auto executor = co_await boost::asio::this_coro::executor;
  const auto entry = std::make_shared<Entry>(std::move(line), executor);
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= queue_lines_) co_return Outcome::kRefused;
    queue_.push_back(entry);
  }
  wake_.notify_one();
  const bool is_answered = co_await entry->written.wait(kWriteLimit);
  co_return is_answered ? entry->outcome : Outcome::kFailed;
}

void AuditLog::write_batches() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const auto batch = std::exchange(queue_, {});
    lock.unlock();
    const Outcome outcome = write_batch(batch) ? Outcome::kWritten : Outcome::kFailed;
    for (const auto& entry : batch) {
      entry->outcome = outcome;
      entry->written.open();
    }
    lock.lock();
  }
}

bool AuditLog::write_batch(const std::vector<std::shared_ptr<Entry>>& batch) {
  std::string bytes;
  for (const auto& entry : batch) bytes += entry->line + '\n';
  return write_all(fd_, bytes) && (!is_synced_ || ::fdatasync(fd_) == 0);
}

}  // namespace checkout
