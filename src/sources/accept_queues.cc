// See accept_queues.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/accept_queues.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>

#include "base/descriptor_numbers.h"
#include "dial9/runtime.h"
#include "dial9/source.h"
#include "recorder/listen_hints.h"
#include "recorder/process_registry.h"

namespace dial9 {
namespace internal {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kSearchNs = 60 * kSecond;
constexpr std::uint64_t kSearchAgainNs = 10 * kSecond;  // after a listener went away
// A listener of another process may be handed to us: all are looked for every so many rounds.
constexpr std::uint32_t kMostQuietRounds = 10;
// The kernel sums the namespace's counters over all CPUs: 100 us.
constexpr std::uint64_t kCountersNs = 10 * kSecond;
constexpr std::uint64_t kCountersWhileFillingNs = kSecond;

}  // namespace

void AcceptQueues::add(int fd) {
  const std::optional<Listener> found = identify_listener(fd);
  if (!found) return;
  const auto same = std::find_if(listeners_.begin(), listeners_.end(),
                                 [&](const Listener& one) { return one.cookie == found->cookie; });
  if (same != listeners_.end()) return;
  if (listeners_.size() == kMostListeners) {
    ++unsampled_;
  } else {
    listeners_.push_back(*found);
  }
}

void AcceptQueues::take_hints() {
  std::array<int, kMostListenHints> fds{};
  bool is_overflown = false;
  const std::size_t count = take_listen_hints(fds.data(), &is_overflown);
  for (std::size_t i = 0; i < count; ++i) add(fds[i]);
  must_search_ |= is_overflown;
}

void AcceptQueues::begin_search() {
  wanted_ = listening_inodes();
  if (wanted_) {
    for (const Listener& listener : listeners_) wanted_->erase(listener.inode);
    const bool has_new = std::any_of(wanted_->begin(), wanted_->end(),
                                     [&](std::uint64_t inode) { return !known_.contains(inode); });
    quiet_rounds_ = has_new ? 0 : quiet_rounds_ + 1;
    if (wanted_->empty() || (!has_new && !must_search_ && quiet_rounds_ < kMostQuietRounds)) return;
    quiet_rounds_ = 0;
    known_ = *wanted_;
  }
  walk_.emplace();
  unsampled_ = 0;
  ++searches_;
}

void AcceptQueues::search(std::uint64_t now_ns) {
  if (!walk_ && now_ns >= next_search_ns_) {
    next_search_ns_ = now_ns + kSearchNs;
    begin_search();
    must_search_ = false;
  }
  if (!walk_) return;
  std::vector<int> sockets;
  const bool has_more = walk_->next(kDescriptorsAStep, wanted_ ? &*wanted_ : nullptr, &sockets);
  for (const int fd : sockets) add(fd);
  if (!has_more) walk_.reset();
}

void AcceptQueues::record_queues(std::uint64_t now_ns) {
  is_filling_ = false;
  std::erase_if(listeners_, [&](const Listener& listener) {
    const std::optional<QueueReading> reading = read_queue(listener);
    if (!reading) {
      // Another descriptor may still have it.
      must_search_ = true;
      next_search_ns_ = std::min(next_search_ns_, now_ns + kSearchAgainNs);
      return true;
    }
    is_filling_ |= reading->pending > reading->backlog / 2;
    TcpAcceptQueueEvent event;
    event.socket_cookie = listener.cookie;
    event.socket_inode = listener.inode;
    event.ip_version = listener.ip_version;
    event.local_addr = listener.address;
    event.local_port = listener.port;
    event.pending_connections = reading->pending;
    event.backlog_limit = reading->backlog;
    if (reading->drops) event.dropped_connections = *reading->drops;
    record(event);
    return false;
  });
}

void AcceptQueues::record_counters(std::uint64_t now_ns) {
  if (is_filling_)
    next_counters_ns_ = std::min(next_counters_ns_, now_ns + kCountersWhileFillingNs);
  if (listeners_.empty() || now_ns < next_counters_ns_) return;
  next_counters_ns_ = now_ns + kCountersNs;
  const std::optional<ListenCounters> read = read_listen_counters();
  if (!read) return;
  const bool is_same =
      counters_ && counters_->overflows == read->overflows && counters_->drops == read->drops;
  counters_ = read;
  if (is_same) return;
  TcpListenCountersEvent event;
  event.namespace_listen_overflows = read->overflows;
  event.namespace_listen_drops = read->drops;
  event.net_namespace = net_namespace();
  event.sampled_listeners = static_cast<std::uint32_t>(listeners_.size());
  event.unsampled_listeners = unsampled_;
  record(event);
}

void AcceptQueues::sample(std::uint64_t now_ns) {
  take_hints();
  search(now_ns);
  record_queues(now_ns);
  record_counters(now_ns);
}

}  // namespace internal

Status add_accept_queues(std::chrono::nanoseconds period) noexcept {
  try {
    if (const std::string why = descriptor_shortage(); !why.empty()) {
      return Status::failure("accept queues: " + why);
    }
    if (!internal::are_listeners_supported()) {
      return Status::failure(
          "accept queues: this kernel doesn't tell sockets apart (it needs SO_COOKIE, Linux 4.12)");
    }
    // The child of a fork starts anew: its parent may have been in the middle of a sample.
    struct State {
      pid_t owner = 0;
      std::unique_ptr<internal::AcceptQueues> queues;
    };
    auto state = std::make_shared<State>();
    return internal::add_paced_source(
        "accept_queues", period, internal::SourcePace::kWhileBusy, [state] {
          const pid_t self = ::getpid();
          if (state->owner != self) {
            (void)state->queues.release();  // the parent's is left alone
            state->queues = std::make_unique<internal::AcceptQueues>();
            state->owner = self;
          }
          state->queues->sample(runtime::now_ns());
        });
  } catch (const std::exception&) {
    return Status::failure("out of memory");
  }
}

}  // namespace dial9
