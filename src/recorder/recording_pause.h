// The stretch in which recording was off (disable(), starts_disabled) and which no segment tells of
// yet. Nothing says what happened in it: a poll that began before may have ended, a wake may have
// been answered. So readers must know of it. Strongest property: it is in the arena from before the
// first call that isn't recorded until a segment has it, so recovery and snapshot see it, too.
// Spec: docs/spec/recorder.md, "Recording off".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>

#include "recorder/arena.h"

namespace dial9::internal {

class RecordingPause {
 public:
  struct Range {
    std::uint64_t first_ns = 0;
    std::uint64_t last_ns = 0;
    bool goes_on = false;
  };

  // `header` outlives this.
  explicit RecordingPause(ArenaHeader& header) : header_(header) {}

  // Before recording is turned off. One that isn't told yet goes on: as wide as it must be.
  void begin(std::uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    publish(since_ns_ == 0 ? now_ns : since_ns_, 0);
  }
  // Before recording is turned on. Without a begin nothing happens.
  void end(std::uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    if (since_ns_ != 0 && until_ns_ == 0) publish(since_ns_, std::max(now_ns, since_ns_));
  }
  // What there is to tell by now.
  std::optional<Range> look(std::uint64_t now_ns) const {
    const std::lock_guard lock(mutex_);
    if (since_ns_ == 0) return std::nullopt;
    if (until_ns_ != 0) return Range{since_ns_, until_ns_, false};
    return Range{since_ns_, std::max(now_ns, since_ns_), true};
  }
  // It is in a segment; what goes on, or came since, is told next time.
  void told(const Range& range) {
    const std::lock_guard lock(mutex_);
    const bool is_over = until_ns_ != 0 && until_ns_ <= range.last_ns;
    publish(is_over ? 0 : range.last_ns, is_over ? 0 : until_ns_);
  }

 private:
  void publish(std::uint64_t since_ns, std::uint64_t until_ns) {
    since_ns_ = since_ns;
    until_ns_ = until_ns;
    __atomic_store_n(&header_.off_until_ns, until_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&header_.off_since_ns, since_ns, __ATOMIC_RELEASE);
  }

  ArenaHeader& header_;
  mutable std::mutex mutex_;    // guards what follows
  std::uint64_t since_ns_ = 0;  // 0: none
  std::uint64_t until_ns_ = 0;  // 0: it goes on
};

}  // namespace dial9::internal
