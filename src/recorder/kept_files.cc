// SPDX-License-Identifier: Apache-2.0
#include "recorder/kept_files.h"

#include <atomic>

#include <fcntl.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace dial9::internal {
namespace {

// The descriptor plus one; 0: free.
constinit std::atomic<int> g_files[kMostKeptFiles];
// Changes when all are closed: what a KeptFile knows of its slot is then worth nothing.
constinit std::atomic<std::uint32_t> g_generation{1};

std::string_view read_from(int fd, char* buffer, std::size_t room) noexcept {
  const ssize_t n = ::pread(fd, buffer, room, 0);
  if (n <= 0 || static_cast<std::size_t>(n) == room) return {};
  return {buffer, static_cast<std::size_t>(n)};
}

}  // namespace

KeptFile::~KeptFile() {
  if (slot_plus_one_ == 0 || generation_ != g_generation.load(std::memory_order_relaxed)) return;
  const int plus_one = g_files[slot_plus_one_ - 1].exchange(0, std::memory_order_relaxed);
  if (plus_one != 0) ::close(plus_one - 1);
}

std::string_view KeptFile::read(char* buffer, std::size_t room) noexcept {
  const std::uint32_t generation = g_generation.load(std::memory_order_relaxed);
  if (slot_plus_one_ != 0 && generation_ == generation) {
    const int plus_one = g_files[slot_plus_one_ - 1].load(std::memory_order_relaxed);
    return plus_one == 0 ? std::string_view() : read_from(plus_one - 1, buffer, room);
  }
  UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  slot_plus_one_ = 0;
  if (!fd) return {};
  const std::string_view text = read_from(fd.get(), buffer, room);
  for (std::uint32_t i = 0; i < kMostKeptFiles && slot_plus_one_ == 0 && !text.empty(); ++i) {
    int expected = 0;
    if (g_files[i].compare_exchange_strong(expected, fd.get() + 1, std::memory_order_relaxed)) {
      slot_plus_one_ = i + 1;
      generation_ = generation;
      (void)fd.release();
    }
  }
  return text;
}

std::size_t kept_files_open() noexcept {
  std::size_t count = 0;
  for (const std::atomic<int>& file : g_files) count += file.load(std::memory_order_relaxed) != 0;
  return count;
}

void close_kept_files() noexcept {
  g_generation.fetch_add(1, std::memory_order_relaxed);
  for (std::atomic<int>& file : g_files) {
    const int plus_one = file.exchange(0, std::memory_order_relaxed);
    if (plus_one != 0) ::close(plus_one - 1);
  }
}

}  // namespace dial9::internal
