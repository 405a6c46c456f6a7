// Calibration of the TSC against the kernel's clock: see clock_calibration.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/clock_calibration.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace dial9::internal {
namespace {

// The rate is measured over at most this long, so that it follows the kernel's own corrections.
constexpr std::uint64_t kRateWindowNs = 8'000'000'000;
// No steering by more than this: a step of the line's rate beyond it would be a wrong reading.
constexpr double kMaxSteer = 500e-6;
constexpr double kTwo64 = 18446744073709551616.0;

#if defined(__x86_64__)
bool has_invariant_tsc() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(0x8000'0007, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1U << 8)) != 0;
}
#else
bool has_invariant_tsc() { return false; }
#endif

std::string kernel_clock_source() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  std::getline(file, name);
  return name;
}

double rate_between(ClockPair from, ClockPair to) {  // ns a tick
  return static_cast<double>(to.ns - from.ns) / static_cast<double>(to.ticks - from.ticks);
}

std::uint64_t mult_of(double rate) { return static_cast<std::uint64_t>(rate * kTwo64); }

}  // namespace

std::uint64_t kernel_now_ns() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

ClockPair read_clock_pair() {
  ClockPair best{0, 0};
  std::uint64_t best_width = ~std::uint64_t{0};
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t before = kernel_now_ns();
    const std::uint64_t ticks = read_ticks();
    const std::uint64_t after = kernel_now_ns();
    if (after - before < best_width) {
      best_width = after - before;
      best = {ticks, before + (after - before) / 2};
    }
  }
  return best;
}

ClockSource choose_clock(ClockChoice choice) {
  if (choice == ClockChoice::kKernel) return {false, "kernel: asked for"};
  if (!has_invariant_tsc()) return {false, "kernel: the time-stamp counter isn't invariant here"};
  // The kernel watches the counter and drops it where it misbehaves; where it doesn't trust it for
  // its own clock, neither do we. The two hypervisor clocks are built on it.
  const std::string source = kernel_clock_source();
  const bool is_trusted =
      source == "tsc" || source == "kvm-clock" || source == "hyperv_clocksource_tsc_page";
  if (!is_trusted) {
    return {false, "kernel: its clock source is '" + source + "', not the time-stamp counter"};
  }
  return {true, "tsc"};
}

ClockCalibration::ClockCalibration(ClockPair first, ClockPair second)
    : line_{second.ticks, second.ns, 0}, anchor_(first), last_(second) {
  const double rate = second.ticks > first.ticks ? rate_between(first, second) : 0;
  // A counter slower than 1 GHz doesn't fit the line's 64-bit fraction: no line, kernel's clock.
  if (rate > 0 && rate < 1) line_.mult = mult_of(rate);
}

ClockLine ClockCalibration::correct(ClockPair pair) {
  if (line_.mult == 0 || pair.ticks <= last_.ticks || pair.ns <= last_.ns) return line_;
  const std::uint64_t now_on_line = line_at(line_, pair.ticks);
  last_error_ns_ = static_cast<std::int64_t>(now_on_line - pair.ns);
  const double interval_ns = static_cast<double>(pair.ns - last_.ns);
  const double rate = rate_between(anchor_, pair);
  const double steer =
      std::clamp(-static_cast<double>(last_error_ns_) / interval_ns, -kMaxSteer, kMaxSteer);
  line_ = {pair.ticks, now_on_line, mult_of(rate * (1 + steer))};
  if (pair.ns - anchor_.ns > kRateWindowNs) anchor_ = last_;
  last_ = pair;
  return line_;
}

}  // namespace dial9::internal
