// See open_hook.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/open_hook.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>

namespace {

thread_local std::uint64_t t_openings = 0;
thread_local dial9::internal::OpenHook t_hook = nullptr;
thread_local dial9::internal::CloseHook t_close_hook = nullptr;

}  // namespace

namespace dial9::internal {

std::uint64_t openings() noexcept { return t_openings; }

void set_open_hook(OpenHook hook) noexcept { t_hook = hook; }
void set_close_hook(CloseHook hook) noexcept { t_close_hook = hook; }

}  // namespace dial9::internal

extern "C" int open(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  ++t_openings;
  const auto fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  if (fd >= 0 && t_hook != nullptr) t_hook(path);
  return fd;
}

#if !defined(DIAL9_SANITIZED_THREAD)  // it follows who closes what
extern "C" int close(int fd) {
  if (t_close_hook != nullptr) t_close_hook(fd);
  return static_cast<int>(::syscall(SYS_close, fd));
}
#endif
