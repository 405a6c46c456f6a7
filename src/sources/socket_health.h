// The state of the TCP connection that a thread waits for: round trips, retransmits, what is
// outstanding, and since when the other side has sent nothing. Strongest property: it is of the
// socket that the wait began on, or there is none: the kernel's cookie of it is compared before and
// after. Spec: docs/spec/off_cpu_samples.md, "Sockets".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace dial9::internal {

struct SocketHealth {
  std::uint8_t state = 0;    // TCP_ESTABLISHED, ... as the kernel numbers them
  std::uint64_t rtt_ns = 0;  // smoothed; 0: none measured
  std::uint64_t rtt_var_ns = 0;
  std::uint32_t retransmits = 0;                   // time-outs in a row, of what is outstanding now
  std::uint32_t total_retransmits = 0;             // segments, in the connection's life
  std::uint32_t unacked = 0;                       // segments
  std::uint32_t lost = 0;                          // segments, as the kernel takes it
  std::optional<std::uint64_t> since_received_ns;  // data; none: none ever
  std::optional<std::uint64_t> since_sent_ns;      // data; likewise
  std::optional<std::uint64_t> unread_bytes;       // that came and nobody read
  std::optional<std::uint64_t> unsent_bytes;       // written and not acknowledged
};

// The cookie of a connection (no listener); none: it isn't one. About 1 us.
std::optional<std::uint64_t> connection_cookie(int fd) noexcept;
// None: the descriptor isn't that connection any more. About 3 us. The kernel takes the socket's
// lock for it, which a thread that waits doesn't hold.
std::optional<SocketHealth> read_socket_health(int fd, std::uint64_t cookie) noexcept;

}  // namespace dial9::internal
