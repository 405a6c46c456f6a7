// A table of kept schedstat files. Each slot has a small lock that is only ever tried, except at
// the end of a thread or recording, where the holder is at most one pread (1 us) away.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/sched_files.h"

#include <cerrno>
#include <cstddef>

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor_numbers.h"
#include "dial9/runtime.h"
#include "recorder/fork_fds.h"

namespace dial9::internal {
namespace {

struct Slot {
  std::atomic<std::uint32_t> is_locked{0};
  std::atomic<std::uint32_t> tid{0};  // 0: free
  std::atomic<int> fd{-1};
  FileIdentity file;  // the host may close what it didn't open, and open its own there
};

constinit Slot g_slots[runtime::kMaxSchedFiles];

bool try_lock(Slot& slot) noexcept {
  std::uint32_t expected = 0;
  return slot.is_locked.compare_exchange_strong(expected, 1, std::memory_order_acquire);
}

void lock(Slot& slot) noexcept {
  while (!try_lock(slot)) sched_yield();
}

void unlock(Slot& slot) noexcept { slot.is_locked.store(0, std::memory_order_release); }

// No snprintf: this may run on a small stack.
void path_of(std::uint32_t tid, char* path) noexcept {
  constexpr char kHead[] = "/proc/self/task/";
  for (std::size_t i = 0; i + 1 < sizeof kHead; ++i) *path++ = kHead[i];
  char digits[10];
  int n = 0;
  do {
    digits[n++] = static_cast<char>('0' + tid % 10);
    tid /= 10;
  } while (tid != 0);
  while (n > 0) *path++ = digits[--n];
  for (const char* tail = "/schedstat"; (*path++ = *tail++) != 0;) {
  }
}

// System calls directly: libc's open, pread and close are cancellation points, and a thread that is
// cancelled must not unwind from here.
int open_file(std::uint32_t tid) noexcept {
  if (are_descriptors_few()) return -1;
  char path[48];
  path_of(tid, path);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
}

void close_file(int fd) noexcept { syscall(SYS_close, fd); }

bool read_file(int fd, SchedReading* reading) noexcept {
  char text[96];
  const long n = syscall(SYS_pread64, fd, text, sizeof text, 0L);
  return n > 0 && sched_parse(text, static_cast<std::size_t>(n), reading);
}

void close_slot(Slot& slot) noexcept {
  const int fd = slot.fd.exchange(-1, std::memory_order_relaxed);
  slot.tid.store(0, std::memory_order_relaxed);
  if (fd >= 0 && leads_to(fd, slot.file)) close_file(fd);
}

// Takes a free slot for the thread, locked; null: all are taken.
Slot* claim(SchedFileRef& file, std::uint32_t tid) noexcept {
  for (std::uint32_t i = 0; i < runtime::kMaxSchedFiles; ++i) {
    Slot& slot = g_slots[i];
    if (slot.tid.load(std::memory_order_relaxed) != 0 || !try_lock(slot)) continue;
    if (slot.tid.load(std::memory_order_relaxed) == 0) {
      const int low = open_file(tid);
      const int high = duplicate_high_at_once(low);
      if (high >= 0) close_file(low);
      const int fd = high >= 0 ? high : low;
      if (fd >= 0) {
        slot.file = identity_of(fd);
        slot.fd.store(fd, std::memory_order_relaxed);
        slot.tid.store(tid, std::memory_order_relaxed);
        file.slot_plus_one.store(i + 1, std::memory_order_relaxed);
        return &slot;
      }
      unlock(slot);
      return nullptr;
    }
    unlock(slot);
  }
  return nullptr;
}

bool read_briefly(std::uint32_t tid, SchedReading* reading) noexcept {
  const int fd = open_file(tid);
  if (fd < 0) return false;
  const bool is_read = read_file(fd, reading);
  close_file(fd);
  return is_read;
}

bool read_kept(SchedFileRef& file, std::uint32_t tid, SchedReading* reading,
               bool* is_busy) noexcept {
  const std::uint32_t plus_one = file.slot_plus_one.load(std::memory_order_relaxed);
  Slot* slot = plus_one == 0 ? nullptr : &g_slots[plus_one - 1];
  if (slot != nullptr && !try_lock(*slot)) {
    *is_busy = true;
    return false;
  }
  if (slot != nullptr && slot->tid.load(std::memory_order_relaxed) != tid) {  // closed meanwhile
    unlock(*slot);
    slot = nullptr;
  } else if (slot != nullptr && !leads_to(slot->fd.load(std::memory_order_relaxed), slot->file)) {
    close_slot(*slot);  // by the host: it is opened again
    unlock(*slot);
    slot = nullptr;
  }
  if (slot == nullptr) slot = claim(file, tid);
  if (slot == nullptr) return false;
  const bool is_read = read_file(slot->fd.load(std::memory_order_relaxed), reading);
  unlock(*slot);
  return is_read;
}

}  // namespace

bool sched_parse(const char* text, std::size_t size, SchedReading* reading) noexcept {
  std::uint64_t values[3] = {};
  std::size_t at = 0;
  for (std::uint64_t& value : values) {
    const std::size_t begin = at;
    while (at < size && text[at] >= '0' && text[at] <= '9') {
      value = value * 10 + static_cast<std::uint64_t>(text[at++] - '0');
    }
    if (at == begin || at == size || (text[at] != ' ' && text[at] != '\n')) return false;
    ++at;
  }
  // A thread that reads its own account has run; three zeros are a kernel that keeps none.
  if (values[0] == 0 && values[2] == 0) return false;
  *reading = SchedReading{values[0], values[1], values[2]};
  return true;
}

bool sched_read(SchedFileRef& file, std::uint32_t tid, bool may_open_briefly,
                SchedReading* reading) noexcept {
  const int saved_errno = errno;
  bool is_busy = false;
  bool is_read = read_kept(file, tid, reading, &is_busy);
  if (!is_read && may_open_briefly && !is_busy) is_read = read_briefly(tid, reading);
  errno = saved_errno;
  return is_read;
}

void sched_close(SchedFileRef& file, std::uint32_t tid) noexcept {
  const std::uint32_t plus_one = file.slot_plus_one.exchange(0, std::memory_order_relaxed);
  if (plus_one == 0) return;
  Slot& slot = g_slots[plus_one - 1];
  lock(slot);
  if (slot.tid.load(std::memory_order_relaxed) == tid) close_slot(slot);
  unlock(slot);
}

void sched_close_all() noexcept {
  for (Slot& slot : g_slots) {
    lock(slot);
    close_slot(slot);
    unlock(slot);
  }
}

void sched_close_after_fork() noexcept {
  for (Slot& slot : g_slots) {
    close_slot(slot);
    unlock(slot);
  }
}

std::uint32_t sched_files_open() noexcept {
  std::uint32_t count = 0;
  for (const Slot& slot : g_slots) count += slot.fd.load(std::memory_order_relaxed) >= 0;
  return count;
}

}  // namespace dial9::internal
