// Of a thread's periods of CPU time one in so many is taken, and stands for all of them. Strongest
// property: whatever the periods come in, and however often the rate changes, the expected sum of
// the weights is the number of the periods. Async-signal-safe. Spec: docs/spec/cpu_samples.md,
// "Within a budget".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::internal {

// Of one thread. Trivial: usable in thread-local storage, from zeros.
struct Thinning {
  std::uint32_t one_in;  // as of the last call
  std::uint32_t left;    // periods up to the next one that is taken, that one included

  // Returns what a sample of `periods` stands for; 0: it is left out. `random` gives the phase
  // where the rate is new.
  std::uint32_t take(std::uint32_t periods, std::uint32_t rate, std::uint64_t random) noexcept {
    if (rate <= 1) {
      one_in = 1;
      return periods;
    }
    if (one_in != rate) {
      one_in = rate;
      left = 1 + static_cast<std::uint32_t>(random % rate);
    }
    if (periods < left) {
      left -= periods;
      return 0;
    }
    const std::uint64_t taken = 1 + (periods - left) / rate;
    left = static_cast<std::uint32_t>(left + taken * rate - periods);
    constexpr std::uint64_t kMost = ~std::uint32_t{0};
    return static_cast<std::uint32_t>(taken * rate < kMost ? taken * rate : kMost);
  }
};

}  // namespace dial9::internal
