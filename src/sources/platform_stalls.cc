// See platform_stalls.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/platform_stalls.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "base/descriptor_numbers.h"
#include "dial9/runtime.h"
#include "dial9/source.h"
#include "recorder/process_registry.h"

namespace dial9 {
namespace internal {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMs;
constexpr std::uint64_t kThrottlePeriodNs = 200 * kMs;
constexpr std::uint64_t kFilePeriodNs = kSecond;
// Below these nothing is told.
constexpr std::uint64_t kThrottleFloorNs = 1 * kMs;
constexpr double kPressureFloor = 0.02;  // of the time
constexpr std::uint64_t kSuspendFloorNs = 10 * kMs;
constexpr std::uint64_t kStepFloorNs = 5 * kMs;
// A clock that is being adjusted runs up to this much too fast or too slow: no step.
constexpr std::uint64_t kSlewShare = 1'000;  // adjtimex: 500 ppm, and some room

std::uint64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t ns_of_ticks(std::uint64_t ticks) {
  const long per_second = ::sysconf(_SC_CLK_TCK);
  return ticks * (kSecond / static_cast<std::uint64_t>(per_second > 0 ? per_second : 100));
}

std::uint64_t distance(std::int64_t difference) {
  return difference < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(difference)
                        : static_cast<std::uint64_t>(difference);
}

PlatformStallEvent event_of(const char* cause, const char* scope, std::uint64_t begin_ns) {
  PlatformStallEvent event;
  event.cause = cause;
  event.scope = scope;
  event.begin_ns = begin_ns;
  return event;
}

}  // namespace

ClockTriple read_clocks() {
  constexpr int kTries = 5;
  constexpr std::uint64_t kGoodNs = 20'000;
  ClockTriple best;
  best.error_ns = ~std::uint64_t{0};
  for (int i = 0; i < kTries && best.error_ns > kGoodNs; ++i) {
    const std::uint64_t before = read_clock(CLOCK_MONOTONIC);
    const std::uint64_t realtime = read_clock(CLOCK_REALTIME);
    const std::uint64_t boottime = read_clock(CLOCK_BOOTTIME);
    const std::uint64_t after = read_clock(CLOCK_MONOTONIC);
    if (after - before < best.error_ns) {
      best = {before + (after - before) / 2, realtime, boottime, after - before};
    }
  }
  return best;
}

PlatformSeams platform_seams() {
  PlatformSeams seams;
  seams.cost_clock_ns = [] { return read_clock(CLOCK_MONOTONIC); };
  return seams;
}

PlatformStalls::Counter::Rise PlatformStalls::Counter::take(MaybeNumber value,
                                                            std::uint64_t now_ns) {
  Rise rise;
  if (value && last && *value > *last) rise = {at_ns, *value - *last};
  last = value;  // where it fell or wasn't there, it begins anew
  at_ns = now_ns;
  return rise;
}

PlatformStalls::PlatformStalls(PlatformSeams seams)
    : seams_(std::move(seams)),
      cgroup_(find_cgroup_files(seams_.root)),
      cpu_stat_(cgroup_.cpu_stat, kThrottlePeriodNs),
      proc_stat_(seams_.root + "/proc/stat", kFilePeriodNs),
      pressures_{{{cgroup_.cpu_pressure, kFilePeriodNs}, "pressure_cpu", {}, {}},
                 {{cgroup_.memory_pressure, kFilePeriodNs}, "pressure_memory", {}, {}},
                 {{cgroup_.io_pressure, kFilePeriodNs}, "pressure_io", {}, {}}} {}

void PlatformStalls::look_at_clocks(std::uint64_t now_ns) {
  const ClockTriple now = seams_.clocks();
  const ClockTriple before = std::exchange(clocks_, now);
  const std::uint64_t begin_ns = std::exchange(clocks_at_ns_, now_ns);
  if (begin_ns == 0) return;
  const std::uint64_t elapsed_ns = now.monotonic_ns - before.monotonic_ns;
  const std::uint64_t error_ns = now.error_ns + before.error_ns;
  const auto ran = [&](std::uint64_t from_ns, std::uint64_t to_ns) {
    return static_cast<std::int64_t>(to_ns - from_ns - elapsed_ns);
  };
  const std::int64_t suspended_ns = ran(before.boottime_ns, now.boottime_ns);
  if (suspended_ns > 0 && distance(suspended_ns) >= kSuspendFloorNs + error_ns) {
    PlatformStallEvent event = event_of("suspend", "machine", begin_ns);
    event.stalled_ns = distance(suspended_ns);
    record_at(event, now_ns);
  }
  // The wall clock goes on in a suspend.
  const std::int64_t step_ns =
      ran(before.realtime_ns, now.realtime_ns) - std::max<std::int64_t>(suspended_ns, 0);
  if (distance(step_ns) >= kStepFloorNs + error_ns + elapsed_ns / kSlewShare) {
    PlatformStallEvent event = event_of("clock_step", "machine", begin_ns);
    event.step_ns = step_ns;
    record_at(event, now_ns);
  }
}

void PlatformStalls::look_at_throttling(std::uint64_t now_ns) {
  const std::string_view text = cpu_stat_.read(now_ns, seams_.cost_clock_ns);
  MaybeNumber throttled_ns = find_number(text, "throttled_time");  // version 1
  if (const MaybeNumber us = find_number(text, "throttled_usec")) throttled_ns = *us * 1'000;
  const Counter::Rise rise = throttled_.take(throttled_ns, now_ns);
  const Counter::Rise times = throttled_times_.take(find_number(text, "nr_throttled"), now_ns);
  if (rise.by < kThrottleFloorNs) return;
  PlatformStallEvent event = event_of("cpu_throttled", "cgroup", rise.begin_ns);
  event.stalled_ns = rise.by;
  if (times.by != 0) event.count = times.by;
  record_at(event, now_ns);
}

void PlatformStalls::look_at_steal(std::uint64_t now_ns) {
  const std::string_view text = proc_stat_.read(now_ns, seams_.cost_clock_ns);
  const Counter::Rise rise = steal_.take(parse_steal_ticks(text), now_ns);
  if (rise.by == 0) return;
  PlatformStallEvent event = event_of("steal", "machine", rise.begin_ns);
  event.stalled_ns = ns_of_ticks(rise.by);
  record_at(event, now_ns);
}

void PlatformStalls::look_at_pressure(PressureFile& pressure, std::uint64_t now_ns) {
  const Pressure read = parse_pressure(pressure.file.read(now_ns, seams_.cost_clock_ns));
  const Counter::Rise some = pressure.some.take(read.some_us, now_ns);
  const Counter::Rise full = pressure.full.take(read.full_us, now_ns);
  const double share = static_cast<double>(some.by) * 1e3 /
                       static_cast<double>(std::max<std::uint64_t>(now_ns - some.begin_ns, 1));
  if (some.by == 0 || share < kPressureFloor) return;
  PlatformStallEvent event =
      event_of(pressure.cause, cgroup_.is_pressure_own ? "cgroup" : "machine", some.begin_ns);
  event.stalled_ns = some.by * 1'000;
  if (read.full_us) event.full_stalled_ns = full.by * 1'000;
  record_at(event, now_ns);
}

void PlatformStalls::sample(std::uint64_t now_ns) {
  look_at_clocks(now_ns);
  if (cpu_stat_.is_due(now_ns)) look_at_throttling(now_ns);
  if (proc_stat_.is_due(now_ns)) look_at_steal(now_ns);
  for (PressureFile& pressure : pressures_) {
    if (pressure.file.is_due(now_ns)) look_at_pressure(pressure, now_ns);
  }
}

void PlatformStalls::note_late_wake(const LateWake& late) {
  PlatformStallEvent event = event_of("late_wakeup", "process", late.due_ns);
  event.stalled_ns = late.stalled_ns;
  record_at(event, late.woke_ns);
  cpu_stat_.hurry();
  proc_stat_.hurry();
  for (PressureFile& pressure : pressures_) pressure.file.hurry();
}

namespace {

// The collector's alone; of a parent's in the child of a fork nothing is used.
struct State {
  pid_t owner = 0;
  std::unique_ptr<PlatformStalls> stalls;

  PlatformStalls& mine() {
    const pid_t self = ::getpid();
    if (owner != self) {
      (void)stalls.release();
      stalls = std::make_unique<PlatformStalls>(platform_seams());
      owner = self;
    }
    return *stalls;
  }
};

State& state() {
  static State* const instance = new State;  // never destroyed: the collector may outlive main
  return *instance;
}

void take_late_wake(const LateWake& late) {
  if (is_recording()) state().mine().note_late_wake(late);
}

// Heartbeats are listened to as long as the source is there.
class SinkHold {
 public:
  SinkHold() = default;
  ~SinkHold() {
    if (is_set_) set_late_wake_sink(nullptr);
  }
  SinkHold(const SinkHold&) = delete;
  SinkHold& operator=(const SinkHold&) = delete;
  void begin() {
    is_set_ = true;
    set_late_wake_sink(take_late_wake);
  }

 private:
  bool is_set_ = false;
};

}  // namespace
}  // namespace internal

Status add_platform_stalls(std::chrono::nanoseconds period) noexcept {
  try {
    if (const std::string why = descriptor_shortage(); !why.empty()) {
      return Status::failure("platform stalls: " + why);
    }
    auto hold = std::make_shared<internal::SinkHold>();
    Status added =
        internal::add_paced_source("platform_stalls", period, internal::SourcePace::kWhileBusy,
                                   [hold] { internal::state().mine().sample(runtime::now_ns()); });
    if (added) hold->begin();
    return added;
  } catch (const std::exception&) {
    return Status::failure("out of memory");
  }
}

}  // namespace dial9
