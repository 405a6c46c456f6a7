// CPU time of the host, from readings that fall at times: the process's clock and the collector's
// own are read one after the other, and their difference is what the host used, give or take what
// lies between. Strongest property: the time counted never falls, so no stretch of it is negative.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::internal {

class HostCpu {
 public:
  // Counts from here on; what was counted stays.
  void resume(std::uint64_t reading_ns) { last_ns_ = reading_ns; }
  // Returns what was counted so far, with what `reading_ns` adds.
  std::uint64_t count(std::uint64_t reading_ns) {
    if (reading_ns > last_ns_) {
      counted_ns_ += reading_ns - last_ns_;
      last_ns_ = reading_ns;
    }
    return counted_ns_;
  }

 private:
  std::uint64_t last_ns_ = 0;
  std::uint64_t counted_ns_ = 0;
};

}  // namespace dial9::internal
