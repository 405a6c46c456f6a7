// See socket_health.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/socket_health.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sources/socket_options.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kNsAUs = 1'000;
constexpr std::uint64_t kNsAMs = 1'000'000;
constexpr std::uint8_t kListenState = 10;  // TCP_LISTEN

// Not by ioctl(): TSan would take it for the host's own access to the descriptor.
std::optional<std::uint64_t> queued_bytes(int fd, unsigned long which) noexcept {
  int bytes = 0;
  if (::syscall(SYS_ioctl, fd, which, &bytes) != 0 || bytes < 0) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

// The kernel counts it from the connection's begin where there was none: as long as the other.
std::optional<std::uint64_t> since(std::uint32_t ms, std::uint64_t bytes, bool is_told) noexcept {
  if (is_told && bytes == 0) return std::nullopt;
  return ms * kNsAMs;
}

}  // namespace

std::optional<std::uint64_t> connection_cookie(int fd) noexcept {
  int protocol = 0;
  int is_listening = 0;
  if (!get_option(fd, SOL_SOCKET, SO_PROTOCOL, &protocol) || protocol != IPPROTO_TCP) {
    return std::nullopt;
  }
  if (!get_option(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening) || is_listening != 0) {
    return std::nullopt;
  }
  return cookie_of(fd);
}

std::optional<SocketHealth> read_socket_health(int fd, std::uint64_t cookie) noexcept {
  if (cookie_of(fd) != cookie) return std::nullopt;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  // Older kernels fill less of it.
  const bool has_bytes = size >= offsetof(tcp_info, tcpi_bytes_sent) + sizeof info.tcpi_bytes_sent;
  SocketHealth health;
  health.state = info.tcpi_state;
  health.rtt_ns = info.tcpi_rtt * kNsAUs;
  health.rtt_var_ns = info.tcpi_rtt == 0 ? 0 : info.tcpi_rttvar * kNsAUs;
  health.retransmits = info.tcpi_retransmits;
  health.total_retransmits = info.tcpi_total_retrans;
  health.unacked = info.tcpi_unacked;
  health.lost = info.tcpi_lost;
  health.since_received_ns = since(info.tcpi_last_data_recv, info.tcpi_bytes_received, has_bytes);
  health.since_sent_ns = since(info.tcpi_last_data_sent, info.tcpi_bytes_sent, has_bytes);
  health.unread_bytes = queued_bytes(fd, SIOCINQ);
  health.unsent_bytes = queued_bytes(fd, SIOCOUTQ);
  if (info.tcpi_state == kListenState || cookie_of(fd) != cookie) return std::nullopt;
  return health;
}

}  // namespace dial9::internal
