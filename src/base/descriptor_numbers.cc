// See descriptor_numbers.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/descriptor_numbers.h"

#include <fcntl.h>
#include <sys/resource.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace dial9 {
namespace {

// The highest number that was got: the table reaches so far.
constinit std::atomic<int> g_highest{-1};

constexpr rlim_t kFirstHigh = 1024;
constexpr rlim_t kMostTries = 16;

rlim_t descriptor_limit() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

int duplicate_from(int fd, rlim_t least) noexcept {
  return ::fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(least));
}

}  // namespace

bool are_descriptors_few() noexcept { return descriptor_limit() < kFewDescriptors; }

std::string descriptor_shortage() {
  const rlim_t limit = descriptor_limit();
  if (limit >= kFewDescriptors) return "";
  return "only " + std::to_string(limit) +
         " descriptors are allowed (RLIMIT_NOFILE), and they are left to the program; allow " +
         std::to_string(kFewDescriptors) + " (ulimit -n)";
}

bool has_one_thread() noexcept {
#if __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded != 0;
#else
  return false;
#endif
}

int duplicate_high(int fd) noexcept {
  const int saved_errno = errno;
  const rlim_t limit = descriptor_limit();
  const auto number = static_cast<rlim_t>(std::max(fd, 0));
  int high = -1;
  if (limit > 2 * kFirstHigh) {
    if (fd >= 0 && number < kFirstHigh) high = duplicate_from(fd, kFirstHigh);
  } else {
    const rlim_t lowest = std::max(number + 1, limit - std::min(limit, kMostTries));
    for (rlim_t least = limit; fd >= 0 && high < 0 && least > lowest;) {
      high = duplicate_from(fd, --least);
    }
    if (high < 0 && fd >= 0 && number < limit / 2) high = duplicate_from(fd, limit / 2);
  }
  errno = saved_errno;
  int highest = g_highest.load(std::memory_order_relaxed);
  while (highest < high &&
         !g_highest.compare_exchange_weak(highest, high, std::memory_order_relaxed)) {
  }
  return high;
}

int duplicate_high_at_once(int fd) noexcept {
  const rlim_t limit = descriptor_limit();
  const rlim_t wanted = limit > 2 * kFirstHigh ? kFirstHigh : limit - std::min(limit, kMostTries);
  const int highest = g_highest.load(std::memory_order_relaxed);
  return highest >= 0 && static_cast<rlim_t>(highest) >= wanted ? duplicate_high(fd) : -1;
}

}  // namespace dial9
