// Platforms whose accept queues nobody reads yet.
// SPDX-License-Identifier: Apache-2.0
#include "sources/listeners.h"

namespace dial9::internal {

bool are_listeners_supported() noexcept { return false; }
std::optional<Listener> identify_listener(int) { return std::nullopt; }
std::optional<QueueReading> read_queue(const Listener&) noexcept { return std::nullopt; }
std::optional<std::unordered_set<std::uint64_t>> listening_inodes() { return std::nullopt; }
bool DescriptorWalk::next(std::size_t, const std::unordered_set<std::uint64_t>*,
                          std::vector<int>*) {
  return false;
}
std::optional<ListenCounters> parse_listen_counters(std::string_view) { return std::nullopt; }
std::optional<ListenCounters> read_listen_counters() { return std::nullopt; }
std::uint64_t net_namespace() noexcept { return 0; }

}  // namespace dial9::internal
