// A kernel file that a source reads every so often. Strongest property: one that is dear to read is
// read more seldom, so that no file costs more than 10 us a second, whatever the machine; that one
// reading was interrupted makes none of them seldom.
// Spec: docs/spec/events_ours.md, "Resources".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "recorder/kept_files.h"

namespace dial9::internal {

inline constexpr std::size_t kKernelTextRoom = 32 << 10;
// On the collector's thread, whose stack is small: one buffer for all files, until the next read.
inline char* kernel_text_buffer() {
  static char bytes[kKernelTextRoom];
  return bytes;
}

// When something is due again: after its period, or later if it is dear.
class Pace {
 public:
  explicit Pace(std::uint64_t period_ns) : period_ns_(period_ns) {}

  bool is_due(std::uint64_t now_ns) const { return now_ns >= next_ns_; }
  // It was done at `now_ns`, and took so long.
  void note(std::uint64_t now_ns, std::uint64_t cost_ns) {
    constexpr std::uint64_t kCostShare = 100'000;  // it costs at most this part of the time
    // The clock counts what interrupted it, too: one time counts for so long at most, and what it
    // took twice in a row as long as it says.
    constexpr std::uint64_t kOnceNs = 10'000'000'000;
    const std::uint64_t twice_ns = std::min(cost_ns, std::exchange(last_cost_ns_, cost_ns));
    // Whoever looks once a period may look a little early.
    constexpr std::uint64_t kEarlyShare = 64;
    next_ns_ = now_ns + std::max({period_ns_ - period_ns_ / kEarlyShare,
                                  std::min(cost_ns * kCostShare, kOnceNs), twice_ns * kCostShare});
  }
  std::uint64_t period_ns() const { return period_ns_; }
  void set_period(std::uint64_t period_ns) { period_ns_ = period_ns; }
  void hurry() { next_ns_ = 0; }

 private:
  std::uint64_t period_ns_;
  std::uint64_t next_ns_ = 0;
  std::uint64_t last_cost_ns_ = 0;
};

class PacedFile {
 public:
  PacedFile(std::string path, std::uint64_t period_ns) : file_(std::move(path)), pace_(period_ns) {}

  bool is_due(std::uint64_t now_ns) const { return !file_.path().empty() && pace_.is_due(now_ns); }
  // Reads it; `clock` measures what that costs. Empty: it can't be read, and is tried again
  // kSeldomNs later than it would be.
  std::string_view read(std::uint64_t now_ns, const std::function<std::uint64_t()>& clock) {
    const std::uint64_t before_ns = clock();
    const bool is_kept = pace_.period_ns() < kSeldomNs;
    const std::string_view text = is_kept
                                      ? file_.read(kernel_text_buffer(), kKernelTextRoom)
                                      : file_.read_and_close(kernel_text_buffer(), kKernelTextRoom);
    pace_.note(text.empty() ? now_ns + kSeldomNs : now_ns, clock() - before_ns);
    return text;
  }
  // The same where it is due; empty else.
  std::string_view read_if_due(std::uint64_t now_ns, const std::function<std::uint64_t()>& clock) {
    return is_due(now_ns) ? read(now_ns, clock) : std::string_view();
  }
  // What is read so seldom isn't kept open.
  void set_period(std::uint64_t period_ns) { pace_.set_period(period_ns); }
  void hurry() { pace_.hurry(); }

  static constexpr std::uint64_t kSeldomNs = 10'000'000'000;

 private:
  KeptFile file_;
  Pace pace_;
};

}  // namespace dial9::internal
