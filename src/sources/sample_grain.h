// Do samples mostly stand for several periods each? Strongest property: the answer waits for enough
// samples, not for a time: where other processes take the CPUs a thread gets few samples a second,
// and those are the coarsest. Spec: docs/spec/cpu_samples.md, "Timers".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::internal {

// Of running sums of samples and of the periods that they stand for. Not thread-safe.
class SampleGrain {
 public:
  // What came before counts no more.
  void restart(std::uint64_t samples, std::uint64_t periods) {
    samples_ = samples;
    periods_ = periods;
  }

  // True: those since the last answer are enough, and their mean is over 1.5 periods.
  bool is_coarse(std::uint64_t samples, std::uint64_t periods) {
    const std::uint64_t more = samples - samples_;
    if (more < kEnough) return false;
    const bool is_over = (periods - periods_) * 2 > more * 3;
    restart(samples, periods);
    return is_over;
  }

 private:
  static constexpr std::uint64_t kEnough = 50;

  std::uint64_t samples_ = 0;
  std::uint64_t periods_ = 0;
};

}  // namespace dial9::internal
