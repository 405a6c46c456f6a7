// See blocked_call.h.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "sources/blocked_call.h"

namespace dial9::internal {
namespace {

enum class Wants : std::uint8_t { kNothing, kFd, kFdKind, kFutex, kPeerArg };

struct KnownCall {
  std::int64_t number;
  std::string_view name;
  std::string_view cause;
  Wants wants = Wants::kNothing;
};

constexpr KnownCall kCalls[] = {
    {SYS_read, "read", "", Wants::kFdKind},
    {SYS_readv, "readv", "", Wants::kFdKind},
    {SYS_pread64, "pread", "", Wants::kFdKind},
    {SYS_preadv, "preadv", "", Wants::kFdKind},
    {SYS_write, "write", "", Wants::kFdKind},
    {SYS_writev, "writev", "", Wants::kFdKind},
    {SYS_pwrite64, "pwrite", "", Wants::kFdKind},
    {SYS_pwritev, "pwritev", "", Wants::kFdKind},
    {SYS_recvfrom, "recvfrom", "socket", Wants::kPeerArg},
    {SYS_recvmsg, "recvmsg", "socket", Wants::kFd},
    {SYS_recvmmsg, "recvmmsg", "socket", Wants::kFd},
    {SYS_sendto, "sendto", "socket", Wants::kPeerArg},
    {SYS_sendmsg, "sendmsg", "socket", Wants::kFd},
    {SYS_sendmmsg, "sendmmsg", "socket", Wants::kFd},
    {SYS_accept, "accept", "socket", Wants::kFd},
    {SYS_accept4, "accept4", "socket", Wants::kFd},
    {SYS_connect, "connect", "socket", Wants::kFd},
    {SYS_futex, "futex", "futex", Wants::kFutex},
    {SYS_flock, "flock", "lock", Wants::kFd},
    {SYS_fcntl, "fcntl", "lock", Wants::kFd},
    {SYS_nanosleep, "nanosleep", "timer"},
    {SYS_clock_nanosleep, "clock_nanosleep", "timer"},
    {SYS_ppoll, "ppoll", "events"},
    {SYS_pselect6, "pselect6", "events"},
    {SYS_epoll_pwait, "epoll_pwait", "events", Wants::kFd},
    {441, "epoll_pwait2", "events", Wants::kFd},
    {426, "io_uring_enter", "events", Wants::kFd},
    {SYS_io_getevents, "io_getevents", "disk"},
    {SYS_fsync, "fsync", "disk", Wants::kFd},
    {SYS_fdatasync, "fdatasync", "disk", Wants::kFd},
    {SYS_sync_file_range, "sync_file_range", "disk", Wants::kFd},
    {SYS_fallocate, "fallocate", "disk", Wants::kFd},
    {SYS_openat, "openat", ""},
    {SYS_sync, "sync", "disk"},
    {SYS_wait4, "wait4", "child"},
    {SYS_waitid, "waitid", "child"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", "signal"},
    {SYS_rt_sigsuspend, "rt_sigsuspend", "signal"},
    {SYS_mmap, "mmap", "memory"},
    {SYS_munmap, "munmap", "memory"},
    {SYS_mprotect, "mprotect", "memory"},
    {SYS_madvise, "madvise", "memory"},
#ifdef SYS_poll  // newer processors have only the later forms
    {SYS_poll, "poll", "events"},
    {SYS_select, "select", "events"},
    {SYS_epoll_wait, "epoll_wait", "events", Wants::kFd},
    {SYS_pause, "pause", "signal"},
    {SYS_open, "open", ""},
#endif
};

std::string_view cause_of(FdKind kind) {
  switch (kind) {
    case FdKind::kSocket:
      return "socket";
    case FdKind::kPipe:
      return "pipe";
    case FdKind::kFile:
      return "disk";
    default:
      return {};
  }
}

bool take(std::string_view& text, std::uint64_t& value) {
  const std::size_t space = text.find(' ');
  const std::string_view word = text.substr(0, space);
  if (!word.starts_with("0x")) return false;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + 2, end, value, 16);
  if (error != std::errc() || stop != end) return false;
  text = space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
  return true;
}

// recv() is recvfrom() without a place for the address, and so with send().
std::string_view short_name(const KnownCall& known, const SyscallText& text) {
  if (known.wants != Wants::kPeerArg || text.args[4] != 0) return known.name;
  return known.number == SYS_recvfrom ? "recv" : "send";
}

std::string with_port(const char* host, std::uint16_t port, bool is_v6) {
  return (is_v6 ? "[" + std::string(host) + "]" : std::string(host)) + ":" +
         std::to_string(ntohs(port));
}

}  // namespace

std::optional<SyscallText> parse_blocked_call(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  SyscallText parsed;
  if (text == "running") {
    parsed.is_running = true;
    return parsed;
  }
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + space, parsed.number);
  if (error != std::errc() || stop != text.data() + space) return std::nullopt;
  text.remove_prefix(space + 1);
  if (parsed.number >= 0) {
    for (std::uint64_t& arg : parsed.args) {
      if (!take(text, arg)) return std::nullopt;
    }
  }
  if (!take(text, parsed.sp) || !take(text, parsed.pc) || !text.empty()) return std::nullopt;
  return parsed;
}

BlockedCall describe_call(const SyscallText& text, FdKind (*kind_of)(std::uint64_t fd)) {
  BlockedCall call;
  if (text.number < 0) {
    call.cause = "page_fault";
    return call;
  }
  const auto* const known = std::ranges::find(kCalls, text.number, &KnownCall::number);
  if (known == std::end(kCalls)) return call;
  call.name = short_name(*known, text);
  call.cause = known->cause;
  if (known->wants == Wants::kFutex) call.object = text.args[0];
  if (known->wants == Wants::kFd || known->wants == Wants::kFdKind ||
      known->wants == Wants::kPeerArg) {
    call.fd = text.args[0] & 0xffff'ffff;
  }
  if (known->wants == Wants::kFdKind) call.cause = cause_of(kind_of(*call.fd));
  return call;
}

// Neither fstat() nor lseek(): those may wait for the very disk or lock that the thread waits for.
FdKind fd_kind(std::uint64_t fd) {
  char path[48] = "/proc/self/fd/";
  std::to_chars(path + std::strlen(path), path + sizeof path - 1, fd);
  char target[64] = {};
  const ssize_t size = ::readlink(path, target, sizeof target);
  if (size <= 0) return FdKind::kUnknown;
  const std::string_view name(target, static_cast<std::size_t>(size));
  if (name.starts_with("socket:")) return FdKind::kSocket;
  if (name.starts_with("pipe:")) return FdKind::kPipe;
  if (!name.starts_with("/")) return FdKind::kOther;
  if (::fcntl(static_cast<int>(fd), F_GETPIPE_SZ) >= 0) return FdKind::kPipe;  // a named one
  const bool is_special =
      name.starts_with("/dev/") || name.starts_with("/proc/") || name.starts_with("/sys/");
  return is_special ? FdKind::kOther : FdKind::kFile;
}

std::string peer_of(std::uint64_t fd) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  if (::getpeername(static_cast<int>(fd), address, &bytes) != 0) return {};
  char host[INET6_ADDRSTRLEN] = {};
  if (storage.ss_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&storage);
    if (::inet_ntop(AF_INET, &in->sin_addr, host, sizeof host) == nullptr) return {};
    return with_port(host, in->sin_port, false);
  }
  if (storage.ss_family == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(&storage);
    if (::inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof host) == nullptr) return {};
    return with_port(host, in->sin6_port, true);
  }
  if (storage.ss_family != AF_UNIX) return {};
  const auto* un = reinterpret_cast<const sockaddr_un*>(&storage);
  constexpr std::size_t kHead = offsetof(sockaddr_un, sun_path);
  if (bytes <= kHead) return {};
  const bool is_abstract = un->sun_path[0] == 0;
  const char* const begin = un->sun_path + (is_abstract ? 1 : 0);
  const std::size_t most = std::min<std::size_t>(bytes - kHead, sizeof un->sun_path);
  const std::size_t size =
      is_abstract ? most - 1 : static_cast<std::size_t>(std::find(begin, begin + most, 0) - begin);
  return size == 0 ? std::string() : (is_abstract ? "unix:@" : "unix:") + std::string(begin, size);
}

}  // namespace dial9::internal
