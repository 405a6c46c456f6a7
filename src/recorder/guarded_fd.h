// A descriptor of the recorder's, in a process whose host may close every number that it didn't
// open itself (closefrom) and open its own files under them. Strongest property: what is used, and
// closed, leads to the file that was opened, or nothing is. A fork's child closes it.
// Spec: docs/spec/recorder.md, "Descriptors".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "recorder/fork_fds.h"

namespace dial9::internal {

// Not thread-safe. Closing ignores errors. One fstat when it is made, each time it is used, and at
// its end. A host that closes in the very moment between such a look and the use isn't noticed.
class GuardedFd {
 public:
  GuardedFd() = default;
  explicit GuardedFd(int fd) noexcept { reset(fd); }  // takes ownership; negative: none
  ~GuardedFd() { reset(); }
  // open(2), close-on-exec; no fork falls between that and the note. None: see errno.
  static GuardedFd open(const std::string& path, int flags, unsigned mode = 0) noexcept;
  GuardedFd(GuardedFd&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        slot_(std::exchange(other.slot_, -1)),
        file_(std::exchange(other.file_, {})),
        is_high_(other.is_high_) {}
  GuardedFd& operator=(GuardedFd&& other) noexcept;
  GuardedFd(const GuardedFd&) = delete;
  GuardedFd& operator=(const GuardedFd&) = delete;

  // True if it was opened; what the host did since, only get() tells.
  explicit operator bool() const noexcept { return fd_ >= 0; }
  // -1: none, or the number isn't ours any more.
  int get() const noexcept { return leads_to(fd_, file_) ? fd_ : -1; }
  // False: a fork's child will keep it.
  bool is_noted() const noexcept { return slot_ >= 0; }
  // Closes it if it is ours, and takes the new one. Keeps errno.
  void reset(int fd = -1) noexcept;

  // If the number isn't ours any more: opens `path` once more, never making it. False: the file
  // isn't there any more, or is another one.
  bool regain(const std::string& path, int flags) noexcept;

  // Out of the host's way (duplicate_high), now and after regain(). What is kept for long.
  void move_up() noexcept;

 private:
  void replace(int fd) noexcept;
  void raise() noexcept;

  int fd_ = -1;
  int slot_ = -1;
  FileIdentity file_;
  bool is_high_ = false;
};

}  // namespace dial9::internal
