// When what the system refused for want of something (memory, processes, descriptors) is tried
// again: after a pause, each time twice as long. Strongest property: what is refused for ever costs
// less and less, and what was refused once isn't given up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace dial9::symbolize {

// The errno says so: later it may work.
inline bool is_shortage(int error_number) {
  switch (error_number) {
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
      return true;
    default:
      return false;
  }
}

class RetryPause {
 public:
  static constexpr int kFirstMs = 100;
  static constexpr int kMostMs = 60'000;

  explicit RetryPause(int first_ms = kFirstMs) : first_ms_(first_ms), next_ms_(first_ms) {}

  bool is_over() const { return Clock::now() >= until_; }
  // It was refused just now.
  void begin() {
    until_ = Clock::now() + std::chrono::milliseconds(next_ms_);
    next_ms_ = std::max(next_ms_, std::min(2 * next_ms_, kMostMs));
  }
  // It went well.
  void end() {
    until_ = {};
    next_ms_ = first_ms_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  int first_ms_;
  int next_ms_;  // the pause after the next refusal
  Clock::time_point until_;
};

}  // namespace dial9::symbolize
