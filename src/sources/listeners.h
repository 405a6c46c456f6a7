// The TCP sockets on which this process listens, and how full their accept queues are. Strongest
// property: a reading is of the socket that it names, or none: the kernel's cookie of the socket is
// compared before and after, so a descriptor that was closed or reused tells nothing. Keeps no
// descriptor. Spec: docs/spec/events_ours.md, "Accept queues".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace dial9::internal {

struct Listener {
  int fd = -1;
  std::uint64_t cookie = 0;  // the kernel's name of the socket: never given twice
  std::uint64_t inode = 0;
  std::uint8_t ip_version = 0;
  std::string address;
  std::uint16_t port = 0;
};

struct QueueReading {
  std::uint32_t pending = 0;           // complete connections that nobody accepted yet
  std::uint32_t backlog = 0;           // the queue is full when pending exceeds it
  std::optional<std::uint64_t> drops;  // connection attempts that this socket dropped in its life
};

// Does the kernel tell (SO_COOKIE, Linux 4.12)?
bool are_listeners_supported() noexcept;
// The listening TCP socket behind the descriptor, if it is one now.
std::optional<Listener> identify_listener(int fd);
// None: the descriptor isn't that socket any more. About 2 us.
std::optional<QueueReading> read_queue(const Listener& listener) noexcept;

// Inodes of the TCP sockets that listen in this network namespace, of all processes; none: the
// kernel didn't say. About 30 us.
std::optional<std::unordered_set<std::uint64_t>> listening_inodes();

// A walk over the process's descriptors, some at a time.
class DescriptorWalk {
 public:
  // Appends the sockets among the next `most` descriptors that are `wanted` (by inode; null: all
  // sockets). False: that was the last of them.
  bool next(std::size_t most, const std::unordered_set<std::uint64_t>* wanted,
            std::vector<int>* sockets);

 private:
  std::int64_t position_ = 0;
};

// Counters of the whole network namespace, all its processes together.
struct ListenCounters {
  std::uint64_t overflows = 0;  // connections refused for a full accept queue
  std::uint64_t drops = 0;      // connection attempts dropped at listeners, those among them
};
// Of the text of /proc/net/netstat; none: it doesn't say.
std::optional<ListenCounters> parse_listen_counters(std::string_view netstat);
// As the kernel has it now. About 100 us.
std::optional<ListenCounters> read_listen_counters();
// The id of the network namespace (the inode of /proc/self/ns/net); 0: not known.
std::uint64_t net_namespace() noexcept;

}  // namespace dial9::internal
