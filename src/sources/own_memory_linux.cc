// See own_memory.h. The call is made directly: sanitizers would look at what it reads.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include "base/unique_fd.h"
#include "sources/own_memory.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::size_t kPages = 65;  // a copy of 256 KiB in one call

}  // namespace

std::size_t OwnMemory::copy(std::uint64_t address, void* to, std::size_t size) {
  if (size == 0 || address + size < address) return 0;
  if (!is_direct_denied_) {
    const std::size_t done = copy_directly(address, to, size);
    if (!is_direct_denied_) return done;
  }
  return copy_by_file(address, to, size);
}

// One element a page: an element is copied whole or not at all.
std::size_t OwnMemory::copy_directly(std::uint64_t address, void* to, std::size_t size) {
  std::array<iovec, kPages> remote;
  std::size_t count = 0;
  std::size_t bytes = 0;
  while (bytes < size && count < kPages) {
    const std::uint64_t from = address + bytes;
    const std::size_t part = std::min<std::uint64_t>(kPageBytes - from % kPageBytes, size - bytes);
    remote[count++] = {std::bit_cast<void*>(from), part};
    bytes += part;
  }
  iovec local{to, bytes};
  const long got =
      ::syscall(SYS_process_vm_readv, ::getpid(), &local, 1UL, remote.data(), count, 0UL);
  if (got >= 0) return static_cast<std::size_t>(got);
  error_ = errno;
  if (error_ == EPERM || error_ == ENOSYS || error_ == EACCES) is_direct_denied_ = true;
  return 0;
}

bool OwnMemory::copy_all(std::span<const iovec> local, std::span<const iovec> remote,
                         std::size_t bytes) {
  if (is_direct_denied_) return false;
  const long got = ::syscall(SYS_process_vm_readv, ::getpid(), local.data(), local.size(),
                             remote.data(), remote.size(), 0UL);
  return got >= 0 && static_cast<std::size_t>(got) == bytes;
}

// Opened for the moment: this is rare, and a descriptor less of the host's.
std::size_t OwnMemory::copy_by_file(std::uint64_t address, void* to, std::size_t size) {
  const UniqueFd fd(::open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  if (!fd) {
    error_ = errno;
    return 0;
  }
  const ssize_t got = ::pread(fd.get(), to, size, static_cast<off_t>(address));
  if (got < 0) error_ = errno;
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

}  // namespace dial9::internal
