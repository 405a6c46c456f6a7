// The descriptors that the child of a fork must close: it shares nothing with its parent's
// recording. Strongest property: the closing is async-signal-safe. Spec: docs/spec/recorder.md,
// "Fork".
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dial9::internal {

enum class ForkFd {
  kLock,
  kSegment,
  kRecoveryLock,
  kRecoveryArena,
  kRecoveryFile,
  kDirectory,
  kCount
};

// Notes (or with -1 forgets) the descriptor. Whoever closes it forgets it first.
void set_fork_fd(ForkFd which, int fd) noexcept;

// Descriptors that come and go: one thread at a time. False: so many are noted already.
inline constexpr int kMostForkFds = 256;
bool add_fork_fd(int fd) noexcept;
void remove_fork_fd(int fd) noexcept;

// In the child: closes what is noted.
void close_fork_fds() noexcept;

}  // namespace dial9::internal
