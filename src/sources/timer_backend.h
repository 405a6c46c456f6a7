// Samples from timers on the threads' CPU clocks: the signal's handler puts them into a ring, this
// takes them out, and watches that the signal is still ours. Strongest property: a handler that
// takes the signal over isn't called for our timers any longer than until the next look.
// Spec: docs/spec/cpu_samples.md, "Timers", "The signal".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sources/sample_backend.h"
#include "sources/sample_ring.h"
#include "sources/thread_timers.h"

namespace dial9::internal {

class TimerBackend final : public SampleBackend {
 public:
  // `signal` is handled by on_cpu_tick, and `ring` is where that puts samples.
  TimerBackend(int signal, std::uint64_t period_ns, SampleRing* ring);

  std::string_view name() const override { return "ctimer"; }
  std::string event_source() const override;
  void begin() override;
  void scan(std::uint32_t own_tid) override;
  void drain(std::uint64_t now_ns, const Sink& sink) override;
  void halt() override;
  void thin(std::uint32_t one_in) override;
  std::string find_end() override;
  ThreadCounts threads() const override;
  LossCounts lost() const override { return lost_; }
  void add_shortfalls(bool is_coarse, std::vector<Shortfall>& to) override;

 private:
  void drain_published(const Sink& sink);

  const int signal_;
  const std::uint64_t period_ns_;
  SampleRing* const ring_;
  std::optional<ThreadTimers> timers_;
  LossCounts lost_;
  bool is_tick_bound_ = false;
  LossCounts ring_lost_;  // the ring's own counts, as added to `lost_`
};

}  // namespace dial9::internal
