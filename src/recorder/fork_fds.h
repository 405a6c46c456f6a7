// The descriptors that the child of a fork must close: it shares nothing with its parent's
// recording. Strongest property: the closing is async-signal-safe, and closes nothing but the files
// that were noted, whatever the host put in their numbers' places.
// Spec: docs/spec/recorder.md, "Fork".
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::internal {

// Which file a descriptor leads to; zeros: none.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t event = 0;  // a perf event's id: those have one inode with many other things
  bool operator==(const FileIdentity&) const = default;
};
// Zeros for a descriptor that isn't open. Async-signal-safe; keeps errno.
FileIdentity identity_of(int fd) noexcept;
// False for zeros, too.
bool leads_to(int fd, const FileIdentity& file) noexcept;

// How many can be noted at a time. A recorder and its recovery need six; one that stop() left
// behind keeps its own until it ends; samplers take up to 833: 256 threads each for perf samples,
// for switches and for their stacks, and 65 of the looks at threads.
inline constexpr int kForkFdSlots = 896;

// Notes the descriptor until it is forgotten. Returns its slot; -1: all are taken, and the child
// keeps it. Any thread. GuardedFd (guarded_fd.h) is who calls these two.
int note_fork_fd(int fd, const FileIdentity& file) noexcept;
// Before it is closed. Nothing happens where the slot holds another one, as in a fork's child.
void forget_fork_fd(int slot, int fd) noexcept;

// In the child: closes what is noted. By itself, once something was.
void close_fork_fds() noexcept;

}  // namespace dial9::internal
