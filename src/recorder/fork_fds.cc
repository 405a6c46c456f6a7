// See fork_fds.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/fork_fds.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace dial9::internal {
namespace {

constexpr int kFree = -1;
constexpr int kBeingFilled = -2;

struct Slot {
  int fd = kFree;
  FileIdentity file;
};
constinit Slot g_slots[kForkFdSlots] = {};

// One above the descriptor; 0: a free place.
constinit int g_many[kMostForkFds] = {};

bool replace_one(int from, int to) noexcept {
  for (int& place : g_many) {
    if (__atomic_load_n(&place, __ATOMIC_RELAXED) != from) continue;
    __atomic_store_n(&place, to, __ATOMIC_RELAXED);
    return true;
  }
  return false;
}

}  // namespace

bool add_fork_fd(int fd) noexcept { return replace_one(0, fd + 1); }
void remove_fork_fd(int fd) noexcept { replace_one(fd + 1, 0); }

FileIdentity identity_of(int fd) noexcept {
  const int saved_errno = errno;
  struct stat st{};
  FileIdentity file;
  if (fd >= 0 && ::fstat(fd, &st) == 0) {
    file = {static_cast<std::uint64_t>(st.st_dev), static_cast<std::uint64_t>(st.st_ino)};
  }
  errno = saved_errno;
  return file;
}

bool leads_to(int fd, const FileIdentity& file) noexcept {
  return file != FileIdentity{} && identity_of(fd) == file;
}

int note_fork_fd(int fd, const FileIdentity& file) noexcept {
  for (int i = 0; i < kForkFdSlots; ++i) {
    Slot& slot = g_slots[i];
    int expected = kFree;
    if (!__atomic_compare_exchange_n(&slot.fd, &expected, kBeingFilled, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
      continue;
    }
    __atomic_store_n(&slot.file.device, file.device, __ATOMIC_RELAXED);
    __atomic_store_n(&slot.file.inode, file.inode, __ATOMIC_RELAXED);
    // Release: the child that sees the descriptor sees its file.
    __atomic_store_n(&slot.fd, fd, __ATOMIC_RELEASE);
    return i;
  }
  return -1;
}

void forget_fork_fd(int slot, int fd) noexcept {
  if (slot < 0) return;
  int expected = fd;
  __atomic_compare_exchange_n(&g_slots[slot].fd, &expected, kFree, false, __ATOMIC_RELEASE,
                              __ATOMIC_RELAXED);
}

void close_fork_fds() noexcept {
  for (Slot& slot : g_slots) {
    const int fd = __atomic_exchange_n(&slot.fd, kFree, __ATOMIC_ACQUIRE);
    const FileIdentity file{__atomic_load_n(&slot.file.device, __ATOMIC_RELAXED),
                            __atomic_load_n(&slot.file.inode, __ATOMIC_RELAXED)};
    if (fd >= 0 && leads_to(fd, file)) ::close(fd);
  }
  for (int& place : g_many) {
    const int fd = __atomic_exchange_n(&place, 0, __ATOMIC_RELAXED) - 1;
    if (fd >= 0) ::close(fd);
  }
}

}  // namespace dial9::internal
