// See timer_backend.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/timer_backend.h"

#include <sys/resource.h>

#include <cerrno>
#include <utility>

#include "base/os_error.h"
#include "base/plural.h"
#include "sources/cpu_samples.h"
#include "sources/signal_owner.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

std::string refusal_text(const TimerCounts& counts) {
  rlimit limit{};
  ::getrlimit(RLIMIT_SIGPENDING, &limit);
  const std::uint32_t all = counts.armed + counts.blocking + counts.refused;
  const bool is_limit = counts.refused_error == EAGAIN;
  return "timer for thread " + std::to_string(counts.refused_tid) + " refused: " +
         (is_limit ? "RLIMIT_SIGPENDING=" + std::to_string(limit.rlim_cur) +
                         " of this user's processes leaves no more (half of what is left is "
                         "taken; raise ulimit -i)"
                   : os_error(counts.refused_error, "create", "a timer").error().message) +
         "; " + std::to_string(counts.armed) + " of " + std::to_string(all) +
         " threads are sampled";
}

}  // namespace

TimerBackend::TimerBackend(int signal, std::uint64_t period_ns, SampleRing* ring)
    : signal_(signal), period_ns_(period_ns), ring_(ring) {
  ring_->drop_all();
  ring_lost_ = {ring_->lost(), ring_->lost_weight()};
}

std::string TimerBackend::event_source() const {
  return "thread CPU clock, " + signal_name(signal_);
}

void TimerBackend::begin() { timers_.emplace(signal_, period_ns_); }

void TimerBackend::scan(std::uint32_t own_tid) { timers_->scan(own_tid); }

void TimerBackend::halt() {
  if (timers_) timers_->disarm_all();
}

void TimerBackend::thin(std::uint32_t one_in) { thin_ticks(one_in); }

// A handler of the host's that came later would be called for our timers: they go at once.
std::string TimerBackend::find_end() {
  if (is_tick_handler_installed(signal_)) return "";
  halt();
  const std::string owner = signal_owner(signal_, on_cpu_tick);
  return signal_name(signal_) + " " + (owner.empty() ? "has lost its handler" : owner) +
         " now; sampling has stopped";
}

void TimerBackend::drain(std::uint64_t now_ns, const Sink& sink) {
  do {
    drain_published(sink);
  } while (ring_->pass_over_stuck(now_ns));
  const LossCounts now{ring_->lost(), ring_->lost_weight()};
  const LossCounts before = std::exchange(ring_lost_, now);
  lost_.samples += now.samples - before.samples;
  lost_.periods += now.periods - before.periods;
}

void TimerBackend::drain_published(const Sink& sink) {
  while (const Sample* sample = ring_->front()) {
    CpuSampleRecord record;
    record.at_ns = sample->at_ns;
    record.task = sample->context.task;
    record.span = sample->context.span;
    record.tid = sample->tid;
    record.weight = sample->weight;
    record.cost_ns = sample->cost_ns;
    record.cpu = sample->cpu;
    record.is_truncated = sample->is_truncated;
    record.unwound_by = unwind::method_name(sample->method);
    if (timers_) record.thread_name = timers_->name(sample->tid);
    record.label = sample->context.label;
    record.frames = {sample->frames, sample->frame_count};
    sink(record);
    ring_->pop();
  }
}

ThreadCounts TimerBackend::threads() const {
  if (!timers_) return {};
  const TimerCounts& counts = timers_->counts();
  return {counts.armed, counts.blocking + counts.refused};
}

void TimerBackend::add_shortfalls(bool is_coarse, std::vector<Shortfall>& to) {
  if (!timers_) return;
  const TimerCounts& counts = timers_->counts();
  if (counts.refused != 0) to.push_back({kRefusedThreads, refusal_text(counts)});
  if (counts.blocking != 0) {
    to.push_back({kBlockingThreads, plural(counts.blocking, "thread") +
                                        (counts.blocking == 1 ? " blocks " : " block ") +
                                        signal_name(signal_) + " and " +
                                        (counts.blocking == 1 ? "isn't" : "aren't") + " sampled"});
  }
  is_tick_bound_ = is_tick_bound_ || is_coarse;
  if (is_tick_bound_) {
    to.push_back({kTickBound, std::to_string(kSecondNs / period_ns_) +
                                  " Hz asked; the kernel's tick allows fewer signals; samples "
                                  "carry overrun weights"});
  }
}

}  // namespace dial9::internal
