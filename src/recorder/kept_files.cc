// SPDX-License-Identifier: Apache-2.0
#include "recorder/kept_files.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor_numbers.h"
#include "base/unique_fd.h"
#include "recorder/fork_fds.h"

namespace dial9::internal {
namespace {

struct Slot {
  std::atomic<int> plus_one{0};  // the descriptor plus one; 0: free
  FileIdentity file;             // the host may close what it didn't open, and open its own there
};
constexpr int kBeingFilled = -1;
constinit Slot g_slots[kMostKeptFiles];
// Changes when all are closed: what a KeptFile knows of its slot is then worth nothing.
constinit std::atomic<std::uint32_t> g_generation{1};

std::string_view read_from(int fd, char* buffer, std::size_t room) noexcept {
  const ssize_t n = ::pread(fd, buffer, room, 0);
  if (n <= 0 || static_cast<std::size_t>(n) == room) return {};
  return {buffer, static_cast<std::size_t>(n)};
}

// Not fstat(), which the C library makes a look-up by an empty name: a tenth dearer.
bool read_status(int fd, struct stat* status) noexcept {
  return ::syscall(SYS_fstat, fd, status) == 0;
}

FileIdentity file_of(const struct stat& status) noexcept {
  return {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino), 0};
}

void close_slot(Slot& slot) noexcept {
  const int fd = slot.plus_one.exchange(0, std::memory_order_acquire) - 1;
  if (fd >= 0 && leads_to(fd, slot.file)) ::close(fd);
}

// A host with a low limit needs its numbers more than we do.
std::uint32_t places_here() noexcept {
  constexpr rlim_t kShare = 32;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<std::uint32_t>(std::min<rlim_t>(limit.rlim_cur / kShare, kMostKeptFiles));
}

}  // namespace

KeptFile::~KeptFile() {
  if (is_kept()) close_slot(g_slots[slot_plus_one_ - 1]);
}

bool KeptFile::is_kept() const noexcept {
  return slot_plus_one_ != 0 && generation_ == g_generation.load(std::memory_order_relaxed);
}

int KeptFile::kept(struct stat* status) noexcept {
  if (is_kept()) {
    Slot& slot = g_slots[slot_plus_one_ - 1];
    const int fd = slot.plus_one.load(std::memory_order_acquire) - 1;
    if (fd >= 0 && read_status(fd, status) && file_of(*status) == slot.file) return fd;
    close_slot(slot);  // by the host: it is opened again
  }
  slot_plus_one_ = 0;
  return -1;
}

void KeptFile::keep(UniqueFd fd) noexcept {
  const std::uint32_t generation = g_generation.load(std::memory_order_relaxed);
  const std::uint32_t places = places_here();
  for (std::uint32_t i = 0; i < places; ++i) {
    Slot& slot = g_slots[i];
    int expected = 0;
    if (!slot.plus_one.compare_exchange_strong(expected, kBeingFilled, std::memory_order_acquire)) {
      continue;
    }
    if (const int high = duplicate_high(fd.get()); high >= 0) fd.reset(high);
    slot.file = identity_of(fd.get());
    // Release: a fork's child that sees the descriptor sees its file.
    slot.plus_one.store(fd.release() + 1, std::memory_order_release);
    slot_plus_one_ = i + 1;
    generation_ = generation;
    return;
  }
}

std::string_view KeptFile::read(char* buffer, std::size_t room) noexcept {
  struct stat status;
  if (const int fd = kept(&status); fd >= 0) return read_from(fd, buffer, room);
  UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  const std::string_view text = read_from(fd.get(), buffer, room);
  if (!text.empty()) keep(std::move(fd));
  return text;
}

std::string_view KeptFile::read_and_close(char* buffer, std::size_t room) noexcept {
  struct stat status;
  if (kept(&status) >= 0) close_slot(g_slots[std::exchange(slot_plus_one_, 0U) - 1]);
  const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  return fd ? read_from(fd.get(), buffer, room) : std::string_view();
}

bool KeptFile::status(struct stat* status) noexcept {
  if (kept(status) >= 0) return true;
  UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || !read_status(fd.get(), status)) return false;
  keep(std::move(fd));
  return true;
}

std::size_t kept_files_open() noexcept {
  std::size_t count = 0;
  for (const Slot& slot : g_slots) count += slot.plus_one.load(std::memory_order_relaxed) > 0;
  return count;
}

void close_kept_files() noexcept {
  g_generation.fetch_add(1, std::memory_order_relaxed);
  for (Slot& slot : g_slots) close_slot(slot);
}

}  // namespace dial9::internal
