// The recorder's clock: CLOCK_MONOTONIC nanoseconds from one rdtsc, one multiply and two adds.
// Where the time-stamp counter isn't invariant (or the machine isn't x86-64) the kernel's clock is
// read instead; the choice is one a process. Strongest property: a thread never sees time go
// backwards, not across a recalibration either. Error bound: 1 us while the kernel's clock runs at
// a steady rate (src/recorder/clock_calibration.h says how). Spec: docs/spec/recorder.md, "Time".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dial9::internal {

// A straight line from TSC ticks to CLOCK_MONOTONIC: ns = ns_base + ((ticks - tsc_base) * mult >>
// 64). mult = 0: no line, read the kernel's clock.
struct ClockLine {
  std::uint64_t tsc_base;
  std::uint64_t ns_base;
  std::uint64_t mult;
};

// clock_gettime(CLOCK_MONOTONIC). Async-signal-safe; about 23 ns.
std::uint64_t kernel_now_ns() noexcept;

inline std::uint64_t read_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return 0;
#endif
}

inline std::uint64_t line_at(const ClockLine& line, std::uint64_t ticks) noexcept {
  __extension__ using Wide = unsigned __int128;
  // A tick read on another core may lie a hair before the base; the signed form keeps that right.
  const auto delta = static_cast<std::int64_t>(ticks - line.tsc_base);
  if (__builtin_expect(delta < 0, 0)) {
    const auto back = static_cast<std::uint64_t>(-delta);
    return line.ns_base - static_cast<std::uint64_t>((Wide{back} * line.mult) >> 64);
  }
  return line.ns_base +
         static_cast<std::uint64_t>((Wide{static_cast<std::uint64_t>(delta)} * line.mult) >> 64);
}

inline std::uint64_t now_on(const ClockLine& line) noexcept {
  if (__builtin_expect(line.mult == 0, 0)) return kernel_now_ns();
  return line_at(line, read_ticks());
}

}  // namespace dial9::internal
