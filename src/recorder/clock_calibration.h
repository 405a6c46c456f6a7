// Keeps the recorder's clock on CLOCK_MONOTONIC: picks the source once a process, then corrects the
// line's slope from pairs of readings. Strongest property: successive lines meet where one takes
// over from the other, so the clock never jumps; an error is steered away over the next interval.
// Error: at most 1 us while the kernel's rate is steady (tested against simulated drift), growing
// with a slew of the kernel's clock by its rate times the interval. Spec: docs/spec/recorder.md,
// "Time".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "dial9/internal/clock.h"
#include "dial9/recorder.h"

namespace dial9::internal {

// A moment on both clocks: ticks read between two readings of the kernel's clock, their midpoint.
struct ClockPair {
  std::uint64_t ticks;
  std::uint64_t ns;
};

// The best (closest together) of a few tries.
ClockPair read_clock_pair();

struct ClockSource {
  bool uses_tsc;
  std::string description;  // "tsc", or "kernel: " and why
};
// What this machine allows. kTsc on a machine without an invariant TSC is refused to the kernel's
// clock.
ClockSource choose_clock(ClockChoice choice);

// The line's arithmetic, without a clock of its own: tests feed it pairs.
class ClockCalibration {
 public:
  // Two pairs some time apart (more apart: less error until the first correct()).
  ClockCalibration(ClockPair first, ClockPair second);

  // Takes a new pair and returns the line to use from now on. It starts where the old one is at
  // `pair.ticks` and meets the kernel's clock after about the time since the last correction.
  ClockLine correct(ClockPair pair);

  const ClockLine& line() const { return line_; }
  // Signed distance of the line from the kernel's clock at the last correct(), in ns.
  std::int64_t last_error_ns() const { return last_error_ns_; }

 private:
  ClockLine line_;
  ClockPair anchor_;  // the rate is measured from here to the newest pair
  ClockPair last_;
  std::int64_t last_error_ns_ = 0;
};

}  // namespace dial9::internal
