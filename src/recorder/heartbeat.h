// The collector's own wake-ups as heartbeats: one that comes late shows that the machine didn't run
// this process. Strongest property: what is called a stall is a lower bound that the process can't
// have caused: in so much of the time between the due moment and the wake-up no thread of it ran.
// Costs no thread and no wake-up. Spec: docs/spec/events_ours.md, "Platform stalls".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "recorder/reading_cost.h"

namespace dial9::internal {

struct LateWake {
  std::uint64_t due_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t woke_ns = 0;
  std::uint64_t stalled_ns = 0;  // of the time in between, at least
};

// One thread's. Clocks are given: CLOCK_MONOTONIC, and the CPU time of the whole process.
class Heartbeat {
 public:
  static constexpr std::uint64_t kFloorNs = 10'000'000;  // shorter ones are nobody's trouble
  // The CPU clock takes half a microsecond and asks each thread, so it isn't read at every wake-up;
  // where there are so many threads that it takes over 5 us, as seldom as that takes this part of
  // the time.
  static constexpr std::uint64_t kCpuReadingNs = 10'000'000;
  static constexpr std::uint64_t kCostShare = 2'000;

  Heartbeat(std::function<std::uint64_t()> now_ns, std::function<std::uint64_t()> process_cpu_ns)
      : now_ns_(std::move(now_ns)), process_cpu_ns_(std::move(process_cpu_ns)) {}

  // The thread goes to sleep for so long, at most.
  void sleeps(std::uint64_t sleep_ns);
  // It woke. None: in time, or the process's own threads may have kept it waiting.
  std::optional<LateWake> wakes();

 private:
  std::function<std::uint64_t()> now_ns_;
  std::function<std::uint64_t()> process_cpu_ns_;
  std::uint64_t due_ns_ = 0;  // 0: not asleep
  std::uint64_t cpu_read_ns_ = 0;
  std::uint64_t cpu_ns_ = 0;
  ReadingCost cost_{kCostShare};
};

// Who wants to know; null: nobody, and no clock is read. Called on the collector's thread.
using LateWakeSink = void (*)(const LateWake&);
void set_late_wake_sink(LateWakeSink sink) noexcept;
LateWakeSink late_wake_sink() noexcept;
// With the kernel's clocks.
Heartbeat make_heartbeat();

}  // namespace dial9::internal
