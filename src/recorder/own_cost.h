// What the recorder costs its host: measured where it can be (the collector's CPU time, bytes),
// estimated by calibration where it can't (the host's threads). Strongest property: calibrating
// takes less than a millisecond, once, on the collector's thread and in its own scratch memory: no
// event, count or type id comes of it. Spec: docs/spec/recorder.md, "Budget".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "recorder/governor.h"

namespace dial9::internal {

// Records into a scratch buffer on the calling thread and times it by the best of several rounds,
// so that an interrupted one doesn't count. The clock line must be published.
ProducerCosts calibrate_producer_costs();

// Of the calling thread, user and system. About 0.5 us.
std::uint64_t thread_cpu_now_ns() noexcept;

// What a sample is billed that was taken on a thread of the host's: the time that passed, but at
// most 50 us, which no walk of a stack takes: beyond it the thread was off its CPU meanwhile. To
// ask for CPU time would cost half of the sample. Async-signal-safe.
inline std::uint64_t sample_cost_ns(std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
  constexpr std::uint64_t kMostNs = 50'000;
  return end_ns - begin_ns < kMostNs ? end_ns - begin_ns : kMostNs;
}

}  // namespace dial9::internal
