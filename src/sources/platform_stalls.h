// "It was not you": times in which the platform held the process up, as PlatformStallEvents: late
// wake-ups, throttling of the cgroup, steal, pressure, steps of the wall clock, suspends. Strongest
// property: no thread and no wake-up of its own; each file is read so seldom that it costs at most
// 10 us a second. Spec: docs/spec/events_ours.md, "Platform stalls".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "dial9/event.h"
#include "recorder/heartbeat.h"
#include "sources/cgroup.h"
#include "sources/paced_file.h"

namespace dial9::internal {

using ns_i64 = annotated<std::int64_t, Unit::kNs>;

// From begin_ns to the stamp.
DIAL9_EVENT(PlatformStallEvent, (interned, cause), (interned, scope), (ns_u64, begin_ns),
            (optional<ns_u64>, stalled_ns), (optional<ns_u64>, full_stalled_ns),
            (optional<ns_i64>, step_ns), (optional<std::uint64_t>, count));

// Three clocks at one moment.
struct ClockTriple {
  std::uint64_t monotonic_ns = 0;
  std::uint64_t realtime_ns = 0;
  std::uint64_t boottime_ns = 0;
  std::uint64_t error_ns = 0;  // the three lie so far apart at most
};
ClockTriple read_clocks();

struct PlatformSeams {
  std::function<ClockTriple()> clocks = read_clocks;
  std::function<std::uint64_t()> cost_clock_ns;  // of what reading costs
  std::string root;                              // before /proc and mount points
};
PlatformSeams platform_seams();  // the machine's

class PlatformStalls {
 public:
  explicit PlatformStalls(PlatformSeams seams);

  // Looks at what is due and records what stalled since the look before; `now_ns` is the recorder's
  // clock. One thread.
  void sample(std::uint64_t now_ns);
  // A heartbeat that came late; the next sample() looks at everything.
  void note_late_wake(const LateWake& late);

 private:
  // A counter that only grows, and what it grew by in which time.
  struct Counter {
    MaybeNumber last;
    std::uint64_t at_ns = 0;
    struct Rise {
      std::uint64_t begin_ns = 0;
      std::uint64_t by = 0;  // 0: nothing, or not known
    };
    Rise take(MaybeNumber value, std::uint64_t now_ns);
  };
  struct PressureFile {
    PacedFile file;
    const char* cause;
    Counter some;
    Counter full;
  };

  void look_at_clocks(std::uint64_t now_ns);
  void look_at_throttling(std::uint64_t now_ns);
  void look_at_steal(std::uint64_t now_ns);
  void look_at_pressure(PressureFile& pressure, std::uint64_t now_ns);

  PlatformSeams seams_;
  CgroupFiles cgroup_;
  PacedFile cpu_stat_;
  PacedFile proc_stat_;
  PressureFile pressures_[3];
  ClockTriple clocks_;
  std::uint64_t clocks_at_ns_ = 0;  // 0: never
  Counter throttled_;
  Counter throttled_times_;
  Counter steal_;
};

}  // namespace dial9::internal
