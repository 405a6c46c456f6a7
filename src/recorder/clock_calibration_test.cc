// The clock against simulated counters: drift, slews, noise.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/clock_calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace dial9::internal {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMs;

// A machine: a kernel clock, and a counter that runs at `ghz` of it, read with up to `noise_ns` of
// error.
struct Machine {
  double ghz = 2.4;
  double noise_ns = 20;
  std::uint64_t ns = 1'000'000'000'000;
  double ticks = 5e12;
  std::mt19937 random{7};

  void run(std::uint64_t by_ns, double slew = 0) {
    ns += by_ns;
    ticks += static_cast<double>(by_ns) * ghz * (1 - slew);
  }
  ClockPair pair() {
    std::uniform_real_distribution<double> noise(-noise_ns, noise_ns);
    return {static_cast<std::uint64_t>(ticks),
            static_cast<std::uint64_t>(static_cast<double>(ns) + noise(random))};
  }
  double error_of(const ClockLine& line) const {
    return static_cast<double>(
        static_cast<std::int64_t>(line_at(line, static_cast<std::uint64_t>(ticks)) - ns));
  }
};

ClockCalibration started(Machine& machine) {
  const ClockPair first = machine.pair();
  machine.run(2 * kMs);
  return ClockCalibration(first, machine.pair());
}

// The collector's schedule: 10, 30, 90 ms, then every 250 ms. Returns the worst error seen in
// between.
double run_for(Machine& machine, ClockCalibration& clock, std::uint64_t ns, double slew) {
  double worst = 0;
  std::uint64_t gap = 10 * kMs;
  for (std::uint64_t done = 0; done < ns; done += gap, gap = std::min(gap * 3, 250 * kMs)) {
    for (std::uint64_t part = 0; part < gap; part += gap / 5) {
      machine.run(gap / 5, slew);
      worst = std::max(worst, std::fabs(machine.error_of(clock.line())));
    }
    clock.correct(machine.pair());
  }
  return worst;
}

TEST(Clock, StaysWithinOneMicrosecondOverAMinuteAtAnySteadyRate) {
  for (const double ghz : {1.1, 2.0, 2.4, 3.7, 5.3}) {
    Machine machine;
    machine.ghz = ghz;
    ClockCalibration clock = started(machine);
    EXPECT_LT(run_for(machine, clock, 60 * kSecond, 0), 1000) << ghz;
  }
}

TEST(Clock, FollowsAKernelClockThatIsSlewed) {
  Machine machine;
  ClockCalibration clock = started(machine);
  run_for(machine, clock, 20 * kSecond, 0);
  // 50 ppm for ten seconds: the line lags by the slew times the interval, a few intervals' worth.
  EXPECT_LT(run_for(machine, clock, 10 * kSecond, 50e-6), 50e-6 * 250e6 * 6);
  run_for(machine, clock, 20 * kSecond, 0);
  EXPECT_LT(std::fabs(machine.error_of(clock.line())), 1000);
}

TEST(Clock, SuccessiveLinesMeetWhereTheyChange) {
  Machine machine;
  machine.noise_ns = 200;
  ClockCalibration clock = started(machine);
  std::uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    machine.run(250 * kMs, (i % 7) * 1e-6);
    const ClockLine before = clock.line();
    const ClockPair pair = machine.pair();
    const ClockLine after = clock.correct(pair);
    const std::uint64_t at_change = line_at(after, pair.ticks);
    EXPECT_EQ(at_change, line_at(before, pair.ticks));
    EXPECT_GT(at_change, last);
    last = at_change;
  }
}

TEST(Clock, HasNoLineForACounterThatIsTooSlow) {
  EXPECT_EQ(ClockCalibration({0, 0}, {2'000'000, 4'000'000}).line().mult, 0U);
}

TEST(Clock, HasNoLineForACounterThatStandsStill) {
  EXPECT_EQ(ClockCalibration({9, 0}, {9, 4'000'000}).line().mult, 0U);
}

TEST(Clock, ReadsBehindItsBaseToo) {
  const ClockLine line = ClockCalibration({0, 0}, {4'000'000, 2'000'000}).line();
  EXPECT_NEAR(static_cast<double>(line_at(line, 3'000'000)), 1'500'000, 1);
}

TEST(Clock, SaysWhichSourceItChoseAndWhy) {
  EXPECT_EQ(choose_clock(ClockChoice::kKernel).description, "kernel: asked for");
  const ClockSource source = choose_clock(ClockChoice::kAuto);
  EXPECT_EQ(source.description == "tsc", source.uses_tsc);
  EXPECT_FALSE(source.description.empty());
}

TEST(Clock, IsNearTheKernelsClockOnThisMachine) {
  const ClockSource source = choose_clock(ClockChoice::kAuto);
  if (!source.uses_tsc) GTEST_SKIP() << source.description;
  const ClockPair first = read_clock_pair();
  ClockPair second = read_clock_pair();
  while (second.ns - first.ns < 2 * kMs) second = read_clock_pair();
  const ClockCalibration clock(first, second);
  const ClockPair later = read_clock_pair();
  const auto error = static_cast<std::int64_t>(line_at(clock.line(), later.ticks) - later.ns);
  EXPECT_LT(std::llabs(error), 1'000'000);
}

}  // namespace
}  // namespace dial9::internal
