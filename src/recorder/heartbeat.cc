// SPDX-License-Identifier: Apache-2.0
#include "recorder/heartbeat.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace dial9::internal {
namespace {

constinit std::atomic<LateWakeSink> g_sink{nullptr};

std::uint64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

void Heartbeat::sleeps(std::uint64_t sleep_ns) {
  std::uint64_t now_ns = now_ns_();
  if (cpu_read_ns_ == 0 || now_ns - cpu_read_ns_ >= std::max(kCpuReadingNs, cost_.period_ns())) {
    cpu_ns_ = process_cpu_ns_();
    cpu_read_ns_ = std::exchange(now_ns, now_ns_());
    cost_.note(now_ns - cpu_read_ns_);
  }
  due_ns_ = now_ns + sleep_ns;
}

std::optional<LateWake> Heartbeat::wakes() {
  const std::uint64_t due_ns = std::exchange(due_ns_, 0);
  const std::uint64_t now_ns = now_ns_();
  if (due_ns == 0 || now_ns < due_ns + kFloorNs) return std::nullopt;
  // Too dear as yet: whose fault it is isn't known, and where it goes on the next look tells.
  if (now_ns - cpu_read_ns_ < cost_.period_ns()) return std::nullopt;
  const std::uint64_t cpu_ns = process_cpu_ns_();
  cost_.note(now_ns_() - now_ns);
  const std::uint64_t ran_ns = cpu_ns - cpu_ns_;
  cpu_ns_ = cpu_ns;
  cpu_read_ns_ = now_ns;
  const std::uint64_t late_ns = now_ns - due_ns;
  if (late_ns < ran_ns + kFloorNs) return std::nullopt;
  return LateWake{due_ns, now_ns, late_ns - ran_ns};
}

// Relaxed: a sink is a function of the program.
void set_late_wake_sink(LateWakeSink sink) noexcept {
  g_sink.store(sink, std::memory_order_relaxed);
}
LateWakeSink late_wake_sink() noexcept { return g_sink.load(std::memory_order_relaxed); }

Heartbeat make_heartbeat() {
  return {[] { return read_clock(CLOCK_MONOTONIC); },
          [] { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }};
}

}  // namespace dial9::internal
