// See listeners.h. sock_diag finds listeners, /proc/self/fd their descriptors, TCP_INFO reads them:
// of a listener tcpi_unacked is the length of the accept queue and tcpi_sacked its limit.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/unique_fd.h"
#include "sources/listeners.h"
#include "sources/socket_options.h"

namespace dial9::internal {
namespace {

constexpr int kSoMeminfo = 55;  // older headers lack the name
constexpr std::size_t kMeminfoDrops = 8;
constexpr std::uint32_t kListenState = 10;  // TCP_LISTEN
constexpr std::size_t kMostInodes = 65'536;

// The descriptor is the host's, which may close it right now. As fstatat() on the descriptor itself
// (what glibc's fstat() does): under TSan an fstat() here would be reported as the host's race.
bool look_at(int fd, struct stat* status) noexcept {
  return ::fstatat(fd, "", status, AT_EMPTY_PATH) == 0;
}

bool is_tcp_listener(int fd) noexcept {
  int is_listening = 0;
  int protocol = 0;
  return get_option(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening) && is_listening != 0 &&
         get_option(fd, SOL_SOCKET, SO_PROTOCOL, &protocol) && protocol == IPPROTO_TCP;
}

bool read_address(int fd, Listener* listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* raw = nullptr;
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    listener->ip_version = 4;
    listener->port = ntohs(v4.sin_port);
    raw = &v4.sin_addr;
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    listener->ip_version = 6;
    listener->port = ntohs(v6.sin6_port);
    raw = &v6.sin6_addr;
  } else {
    return false;
  }
  if (::inet_ntop(address.ss_family, raw, text.data(), text.size()) == nullptr) return false;
  listener->address = text.data();
  return true;
}

// Adds the inodes of one reply; true: the dump goes on.
enum class Dump { kGoesOn, kDone, kFailed };
Dump take_reply(const char* bytes, std::size_t size, std::unordered_set<std::uint64_t>* inodes) {
  while (size >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    std::memcpy(&header, bytes, sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > size) return Dump::kFailed;
    if (header.nlmsg_type == NLMSG_DONE) return Dump::kDone;
    if (header.nlmsg_type == NLMSG_ERROR) return Dump::kFailed;
    inet_diag_msg message;
    if (header.nlmsg_len >= NLMSG_LENGTH(sizeof message)) {
      std::memcpy(&message, bytes + NLMSG_HDRLEN, sizeof message);
      if (inodes->size() >= kMostInodes) return Dump::kFailed;
      inodes->insert(message.idiag_inode);
    }
    const std::size_t step = std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), size);
    bytes += step;
    size -= step;
  }
  return Dump::kGoesOn;
}

bool dump_listeners(int netlink, std::uint8_t family, std::unordered_set<std::uint64_t>* inodes) {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } ask{};
  ask.header.nlmsg_len = sizeof ask;
  ask.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  ask.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  ask.request.sdiag_family = family;
  ask.request.sdiag_protocol = IPPROTO_TCP;
  ask.request.idiag_states = 1U << kListenState;
  if (::send(netlink, &ask, sizeof ask, MSG_NOSIGNAL) != sizeof ask) return false;
  std::vector<char> reply(32 << 10);
  for (;;) {
    const ssize_t n = ::recv(netlink, reply.data(), reply.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    const Dump result = take_reply(reply.data(), static_cast<std::size_t>(n), inodes);
    if (result != Dump::kGoesOn) return result == Dump::kDone;
  }
}

// The value under `name` in a pair of lines, names and numbers.
std::optional<std::uint64_t> column(std::string_view names, std::string_view values,
                                    std::string_view name) {
  while (!names.empty() && !values.empty()) {
    const std::string_view one = names.substr(0, names.find(' '));
    const std::string_view number = values.substr(0, values.find(' '));
    if (one == name) {
      std::uint64_t value = 0;
      const auto [end, error] =
          std::from_chars(number.data(), number.data() + number.size(), value);
      if (error != std::errc{} || end != number.data() + number.size()) return std::nullopt;
      return value;
    }
    names.remove_prefix(std::min(names.size(), one.size() + 1));
    values.remove_prefix(std::min(values.size(), number.size() + 1));
  }
  return std::nullopt;
}

std::string_view take_line(std::string_view* text) {
  const std::string_view line = text->substr(0, text->find('\n'));
  text->remove_prefix(std::min(text->size(), line.size() + 1));
  return line;
}

struct DirectoryEntry {  // as getdents64 writes it
  std::uint64_t inode;
  std::int64_t next;
  std::uint16_t size;
  std::uint8_t type;
};
constexpr std::size_t kNameAt = 19;

}  // namespace

bool are_listeners_supported() noexcept {
  for (const int family : {AF_INET, AF_INET6}) {
    const UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP));
    if (fd && cookie_of(fd.get())) return true;
  }
  return false;
}

std::optional<Listener> identify_listener(int fd) {
  const auto before = cookie_of(fd);
  if (!before || !is_tcp_listener(fd)) return std::nullopt;
  Listener listener;
  listener.fd = fd;
  listener.cookie = *before;
  struct stat status{};
  if (!look_at(fd, &status) || !read_address(fd, &listener)) return std::nullopt;
  listener.inode = status.st_ino;
  if (cookie_of(fd) != before) return std::nullopt;
  return listener;
}

std::optional<QueueReading> read_queue(const Listener& listener) noexcept {
  if (cookie_of(listener.fd) != listener.cookie) return std::nullopt;
  tcp_info info{};
  if (!get_option(listener.fd, IPPROTO_TCP, TCP_INFO, &info)) return std::nullopt;
  QueueReading reading;
  reading.pending = info.tcpi_unacked;
  reading.backlog = info.tcpi_sacked;
  std::array<std::uint32_t, kMeminfoDrops + 1> memory{};
  socklen_t size = sizeof memory;
  if (::getsockopt(listener.fd, SOL_SOCKET, kSoMeminfo, memory.data(), &size) == 0 &&
      size == sizeof memory) {
    reading.drops = memory[kMeminfoDrops];
  }
  if (info.tcpi_state != kListenState || cookie_of(listener.fd) != listener.cookie) {
    return std::nullopt;
  }
  return reading;
}

std::optional<std::unordered_set<std::uint64_t>> listening_inodes() {
  const UniqueFd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink) return std::nullopt;
  const timeval patience{1, 0};  // the kernel answers at once
  ::setsockopt(netlink.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::unordered_set<std::uint64_t> inodes;
  // A kernel without one of the families says so for that one.
  const bool has_v4 = dump_listeners(netlink.get(), AF_INET, &inodes);
  const bool has_v6 = dump_listeners(netlink.get(), AF_INET6, &inodes);
  if (!has_v4 && !has_v6) return std::nullopt;
  return inodes;
}

bool DescriptorWalk::next(std::size_t most, const std::unordered_set<std::uint64_t>* wanted,
                          std::vector<int>* sockets) {
  const UniqueFd directory(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || ::lseek(directory.get(), position_, SEEK_SET) < 0) return false;
  std::size_t seen = 0;
  std::array<char, 4096> bytes;
  while (seen < most) {
    const long n = ::syscall(SYS_getdents64, directory.get(), bytes.data(), bytes.size());
    if (n <= 0) return false;
    for (long at = 0; at < n;) {
      DirectoryEntry entry;
      std::memcpy(&entry, bytes.data() + at, kNameAt);
      const std::string_view name(bytes.data() + at + kNameAt);
      at += entry.size;
      position_ = entry.next;
      int fd = -1;
      std::from_chars(name.data(), name.data() + name.size(), fd);
      struct stat status{};
      if (fd < 0 || !look_at(fd, &status) || !S_ISSOCK(status.st_mode)) continue;
      if (wanted == nullptr || wanted->contains(status.st_ino)) sockets->push_back(fd);
    }
    seen += static_cast<std::size_t>(n) / 24;  // of an entry with a short name
  }
  return true;
}

std::optional<ListenCounters> parse_listen_counters(std::string_view netstat) {
  while (!netstat.empty()) {
    const std::string_view names = take_line(&netstat);
    const std::string_view values = take_line(&netstat);
    if (!names.starts_with("TcpExt: ") || !values.starts_with("TcpExt: ")) continue;
    const auto overflows = column(names, values, "ListenOverflows");
    const auto drops = column(names, values, "ListenDrops");
    if (!overflows || !drops) return std::nullopt;
    return ListenCounters{*overflows, *drops};
  }
  return std::nullopt;
}

std::optional<ListenCounters> read_listen_counters() {
  const UniqueFd fd(::open("/proc/self/net/netstat", O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string text(16 << 10, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + size, text.size() - size);
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  return parse_listen_counters(std::string_view(text).substr(0, size));
}

std::uint64_t net_namespace() noexcept {
  struct stat status{};
  return ::stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
}

}  // namespace dial9::internal
