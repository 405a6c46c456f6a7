// How full the accept queues of this process's TCP listeners are, as one TcpAcceptQueueEvent a
// listener and sample; and what the network namespace dropped. Strongest property: listeners are
// found without the host's help: from listen() where it is interposed, else by asking the kernel at
// the start and once a minute. Spec: docs/spec/events_ours.md, "Accept queues".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dial9/event.h"
#include "sources/listeners.h"

namespace dial9::internal {

DIAL9_EVENT(TcpAcceptQueueEvent, (std::uint64_t, socket_cookie), (std::uint64_t, socket_inode),
            (std::uint8_t, ip_version), (text, local_addr), (std::uint16_t, local_port),
            (gauge_u32, pending_connections), (std::uint32_t, backlog_limit),
            (optional<std::uint64_t>, dropped_connections));

DIAL9_EVENT(TcpListenCountersEvent, (counter_u64, namespace_listen_overflows),
            (counter_u64, namespace_listen_drops), (std::uint64_t, net_namespace),
            (std::uint32_t, sampled_listeners), (std::uint32_t, unsampled_listeners));

// Listeners that are sampled; those beyond are counted.
inline constexpr std::size_t kMostListeners = 128;
// Descriptors that one step of a search looks at.
inline constexpr std::size_t kDescriptorsAStep = 1'024;

class AcceptQueues {
 public:
  // Finds what is new and records a sample; `now_ns` only moves forward. One thread.
  void sample(std::uint64_t now_ns);

  // What is sampled now.
  const std::vector<Listener>& listeners() const { return listeners_; }
  std::uint64_t searches() const { return searches_; }  // walks over the descriptors so far

 private:
  void add(int fd);
  void take_hints();
  void search(std::uint64_t now_ns);
  void begin_search();
  void record_queues(std::uint64_t now_ns);
  void record_counters(std::uint64_t now_ns);

  std::vector<Listener> listeners_;
  std::uint32_t unsampled_ = 0;  // found beyond kMostListeners in the last search
  std::uint64_t searches_ = 0;
  std::uint64_t next_search_ns_ = 0;
  bool must_search_ = true;
  std::uint32_t quiet_rounds_ = 0;  // in which the kernel named no inode that is new
  std::optional<DescriptorWalk> walk_;
  std::optional<std::unordered_set<std::uint64_t>> wanted_;  // inodes of the walk; none: any
  std::unordered_set<std::uint64_t> known_;                  // inodes of the walk before
  std::uint64_t next_counters_ns_ = 0;
  bool is_filling_ = false;
  std::optional<ListenCounters> counters_;
};

}  // namespace dial9::internal
