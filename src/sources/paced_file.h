// A kernel file that a source reads every so often. Strongest property: one that is dear to read is
// read more seldom, so that no file costs more than 10 us a second, whatever the machine.
// Spec: docs/spec/events_ours.md, "Resources".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "recorder/kept_files.h"

namespace dial9::internal {

inline constexpr std::size_t kKernelTextRoom = 32 << 10;
// On the collector's thread, whose stack is small: one buffer for all files, until the next read.
inline char* kernel_text_buffer() {
  static char bytes[kKernelTextRoom];
  return bytes;
}

class PacedFile {
 public:
  PacedFile(std::string path, std::uint64_t period_ns)
      : file_(std::move(path)), period_ns_(period_ns) {}

  bool is_due(std::uint64_t now_ns) const { return !file_.path().empty() && now_ns >= next_ns_; }
  // Reads it; `clock` measures what that costs. Empty: it can't be read.
  std::string_view read(std::uint64_t now_ns, const std::function<std::uint64_t()>& clock) {
    constexpr std::uint64_t kCostShare = 100'000;  // a file costs at most this part of the time
    const std::uint64_t before_ns = clock();
    const std::string_view text = file_.read(kernel_text_buffer(), kKernelTextRoom);
    next_ns_ = now_ns + std::max(period_ns_, (clock() - before_ns) * kCostShare);
    return text;
  }
  // The same where it is due; empty else.
  std::string_view read_if_due(std::uint64_t now_ns, const std::function<std::uint64_t()>& clock) {
    return is_due(now_ns) ? read(now_ns, clock) : std::string_view();
  }
  void hurry() { next_ns_ = 0; }

 private:
  KeptFile file_;
  std::uint64_t period_ns_;
  std::uint64_t next_ns_ = 0;
};

}  // namespace dial9::internal
