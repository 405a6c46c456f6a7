// See guarded_fd.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/guarded_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor_numbers.h"
#include "recorder/fork_child.h"

namespace dial9::internal {

GuardedFd& GuardedFd::operator=(GuardedFd&& other) noexcept {
  if (this == &other) return *this;
  reset();
  fd_ = std::exchange(other.fd_, -1);
  slot_ = std::exchange(other.slot_, -1);
  file_ = std::exchange(other.file_, {});
  is_high_ = other.is_high_;
  return *this;
}

GuardedFd GuardedFd::open(const std::string& path, int flags, unsigned mode) noexcept {
  const ForkPause pause;
  return GuardedFd(::open(path.c_str(), flags | O_CLOEXEC, mode));
}

// No fork falls between the forgetting and the closing either.
void GuardedFd::reset(int fd) noexcept {
  if (fd_ < 0) return replace(fd);
  const int saved_errno = errno;
  const ForkPause pause;
  replace(fd);
  errno = saved_errno;
}

// In a pause of forks, where there is one to close. The new one has the old one's number where the
// host closed that.
void GuardedFd::replace(int fd) noexcept {
  const int saved_errno = errno;
  if (fd_ >= 0) {
    forget_fork_fd(slot_, fd_);  // before the number can be anyone's
    if (fd != fd_ && leads_to(fd_, file_)) ::close(fd_);
  }
  fd_ = fd;
  file_ = identity_of(fd);
  slot_ = fd >= 0 ? note_fork_fd(fd, file_) : -1;
  errno = saved_errno;
}

bool GuardedFd::regain(const std::string& path, int flags) noexcept {
  if (fd_ < 0) return false;
  if (leads_to(fd_, file_)) return true;
  const ForkPause pause;
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  if (!leads_to(fd, file_)) {
    ::close(fd);
    return false;
  }
  replace(fd);
  if (is_high_) raise();
  return true;
}

void GuardedFd::move_up() noexcept {
  const ForkPause pause;
  raise();
}

void GuardedFd::raise() noexcept {
  is_high_ = true;
  const int high = duplicate_high(get());
  if (high >= 0) replace(high);
}

}  // namespace dial9::internal
