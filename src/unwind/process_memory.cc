// See process_memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/process_memory.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>

#include "unwind/native.h"

namespace dial9::unwind {
namespace {

constexpr std::uint64_t kPageBytes = 4096;  // the smallest: larger ones only split copies in vain
constexpr long kNotASignalAction = ~0L;

// Set once and for all when the kernel refuses; relaxed: it guards no other data.
std::atomic<bool> g_kernel_copies_denied{false};

long as_argument(const void* pointer) { return std::bit_cast<long>(pointer); }

std::uint64_t to_page_end(std::uint64_t address) { return kPageBytes - address % kPageBytes; }

// The kernel reads the 8 bytes of a signal set before it looks at the (invalid) action.
bool is_readable(std::uint64_t word_address) noexcept {
  return native::system_call(SYS_rt_sigprocmask, kNotASignalAction, static_cast<long>(word_address),
                             0, 8, 0, 0) == -EINVAL;
}

std::size_t copy_by_probe(std::uint64_t address, void* to, std::size_t size) noexcept {
  auto* const out = static_cast<std::uint8_t*>(to);
  std::size_t done = 0;
  while (done < size) {
    const std::uint64_t from = address + done;
    const std::size_t part = std::min<std::uint64_t>(to_page_end(from), size - done);
    if (!is_readable(from & ~std::uint64_t{7})) {
      break;
    }
    for (std::size_t i = 0; i < part;) {
      const std::uint64_t at = from + i;
      const std::uint64_t word = native::load_word(at & ~std::uint64_t{7});
      for (std::uint64_t byte = at & 7; byte < 8 && i < part; ++byte, ++i) {
        out[done + i] = static_cast<std::uint8_t>(word >> (8 * byte));
      }
    }
    done += part;
  }
  return done;
}

}  // namespace

std::size_t ProcessMemory::copy_by_kernel(std::uint64_t address, void* to,
                                          std::size_t size) noexcept {
  if (pid_ == 0) {
    pid_ = native::system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
  }
  // One element a page: an element is copied whole or not at all.
  std::size_t done = 0;
  while (done < size) {
    iovec local{static_cast<std::uint8_t*>(to) + done, 0};
    iovec remote[2];
    std::size_t parts = 0;
    for (; parts < 2 && done + local.iov_len < size; ++parts) {
      const std::uint64_t from = address + done + local.iov_len;
      const std::size_t bytes = std::min<std::uint64_t>(to_page_end(from),
                                                        size - done - local.iov_len);
      remote[parts] = {std::bit_cast<void*>(from), bytes};
      local.iov_len += bytes;
    }
    const long got = native::system_call(SYS_process_vm_readv, pid_, as_argument(&local), 1,
                                         as_argument(remote), static_cast<long>(parts), 0);
    if (got < 0) {
      if (got == -EPERM || got == -ENOSYS || got == -EACCES) {
        g_kernel_copies_denied.store(true, std::memory_order_relaxed);
      }
      return done;
    }
    done += static_cast<std::size_t>(got);
    if (static_cast<std::size_t>(got) < local.iov_len) {
      return done;
    }
  }
  return done;
}

std::size_t ProcessMemory::copy(std::uint64_t address, void* to, std::size_t size) noexcept {
  if (size == 0 || address + size < address) {
    return 0;
  }
  if (!g_kernel_copies_denied.load(std::memory_order_relaxed)) {
    const std::size_t done = copy_by_kernel(address, to, size);
    if (done != 0 || !g_kernel_copies_denied.load(std::memory_order_relaxed)) {
      return done;
    }
  }
  return copy_by_probe(address, to, size);
}

void ProcessMemory::deny_kernel_copies(bool denied) noexcept {
  g_kernel_copies_denied.store(denied, std::memory_order_relaxed);
}

}  // namespace dial9::unwind
