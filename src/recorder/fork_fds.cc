// See fork_fds.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/fork_fds.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "recorder/fork_child.h"

namespace dial9::internal {
namespace {

constexpr int kFree = -1;
constexpr int kBeingFilled = -2;

struct Slot {
  int fd = kFree;
  FileIdentity file;
};
constinit Slot g_slots[kForkFdSlots] = {};
constinit bool g_is_watched = false;

// Only files without a type are asked: no device of the host's gets a call that it doesn't know.
std::uint64_t perf_event_of(int fd, const struct stat& st) noexcept {
  std::uint64_t id = 0;
  if ((st.st_mode & S_IFMT) != 0 || ::ioctl(fd, PERF_EVENT_IOC_ID, &id) != 0) return 0;
  return id;
}

}  // namespace

FileIdentity identity_of(int fd) noexcept {
  const int saved_errno = errno;
  struct stat st{};
  FileIdentity file;
  if (fd >= 0 && ::fstat(fd, &st) == 0) {
    file = {static_cast<std::uint64_t>(st.st_dev), static_cast<std::uint64_t>(st.st_ino),
            perf_event_of(fd, st)};
  }
  errno = saved_errno;
  return file;
}

bool leads_to(int fd, const FileIdentity& file) noexcept {
  return file != FileIdentity{} && identity_of(fd) == file;
}

int note_fork_fd(int fd, const FileIdentity& file) noexcept {
  if (!__atomic_exchange_n(&g_is_watched, true, __ATOMIC_RELAXED)) {
    add_child_handler(close_fork_fds);
  }
  for (int i = 0; i < kForkFdSlots; ++i) {
    Slot& slot = g_slots[i];
    int expected = kFree;
    if (__atomic_load_n(&slot.fd, __ATOMIC_RELAXED) != kFree) continue;
    if (!__atomic_compare_exchange_n(&slot.fd, &expected, kBeingFilled, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
      continue;
    }
    __atomic_store_n(&slot.file.device, file.device, __ATOMIC_RELAXED);
    __atomic_store_n(&slot.file.inode, file.inode, __ATOMIC_RELAXED);
    __atomic_store_n(&slot.file.event, file.event, __ATOMIC_RELAXED);
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
                            __atomic_load_n(&slot.file.inode, __ATOMIC_RELAXED),
                            __atomic_load_n(&slot.file.event, __ATOMIC_RELAXED)};
    if (fd >= 0 && leads_to(fd, file)) ::close(fd);
  }
}

}  // namespace dial9::internal
