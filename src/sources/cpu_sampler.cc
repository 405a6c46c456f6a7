// See cpu_sampler.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/cpu_sampler.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>

#include "base/os_error.h"
#include "dial9/internal/clock.h"
#include "dial9/internal/thread_buffer.h"
#include "sources/cpu_samples.h"
#include "sources/host_cpu.h"
#include "sources/module_table.h"
#include "sources/quiet_kernel.h"
#include "sources/signal_owner.h"
#include "unwind/unwind.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMs;
constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint64_t kScanNs = 100 * kMs;
// The next scan waits until the host has used so many times the CPU time of the last one: scans
// take 0.2 % of what is sampled, and nothing of an idle host.
constexpr std::uint64_t kScanShare = 500;
constexpr std::uint64_t kMostScanWaitNs = 5 * kSecond;  // of the host's CPU time
constexpr std::uint64_t kPeriodsWorthTelling = 5;

std::uint64_t clock_now_ns(clockid_t clock) {
  timespec now{};
  if (::clock_gettime(clock, &now) != 0) return 0;
  return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

// Of the process, without the thread that calls this: the collector's. Two readings: it may fall.
std::uint64_t host_cpu_ns() {
  const std::uint64_t own = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
  const std::uint64_t all = clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
  return all > own ? all - own : 0;
}

std::string_view method_name(unwind::Method method) {
  switch (method) {
    case unwind::Method::kTables:
      return "tables";
    case unwind::Method::kFramePointer:
      return "frame_pointers";
    case unwind::Method::kMixed:
      return "mixed";
    case unwind::Method::kNone:
      break;
  }
  return "none";
}

// What there was up to a moment; two of them make a stretch.
struct Tally {
  std::uint64_t at_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t samples = 0;
  std::uint64_t periods = 0;
  std::uint64_t lost = 0;
  std::uint64_t lost_periods = 0;
};

enum Shortfall : std::uint32_t { kRefused = 1, kBlocking = 2, kTickBound = 4, kLost = 8 };

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

struct CpuSampler::State {
  const pid_t pid = ::getpid();
  bool was_asked = false;
  bool is_on = false;      // from start() to stop(), or until the signal is lost
  bool is_active = false;  // recording: timers may be armed
  std::uint32_t frequency_hz = 0;
  int signal = 0;
  SampleRing* ring = nullptr;
  std::optional<ThreadTimers> timers;
  CpuSampleEncoder encoder;
  std::uint64_t active_since_ns = 0;   // by the recorder's clock, as samples are
  std::uint64_t next_scan_ns = 0;      // by the collector's
  std::uint64_t next_scan_cpu_ns = 0;  // of the host's CPU time
  std::uint64_t next_prepare_ns = 0;
  std::uint64_t sampled_ns = 0;  // the last pass that found a sample
  Tally total;                   // since start(), `cpu_ns` as of the last window
  Tally window;                  // `total` as the window began
  HostCpu host_cpu;
  std::uint64_t last_lost = 0;  // the ring's own counts, as added to `total`
  std::uint64_t last_lost_weight = 0;
  std::uint32_t shortfalls = 0;
  std::string start_error;
  std::string message;
  std::uint64_t version = 1;

  std::uint64_t period_ns() const { return kSecond / frequency_hz; }
};

// Holds the lock, and gives a child of a fork a state of its own.
class CpuSampler::Guard {
 public:
  explicit Guard(const CpuSampler& sampler) : sampler_(sampler) {
    const bool was_inside = sampler.lock_.lock();
    const State* before = sampler.state_;
    if (before != nullptr && !was_inside && before->pid == ::getpid()) return;
    try {
      auto own = std::make_unique<State>();
      if (before != nullptr) inherit(*before, *own);
      sampler.state_ = own.release();  // the parent's stays: its threads aren't here to finish
    } catch (...) {
      sampler.lock_.unlock();
      throw;
    }
  }
  ~Guard() { sampler_.lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  State& state() const { return *sampler_.state_; }

 private:
  // Plain words that only start() and stop() write. Timers aren't inherited by a child.
  static void inherit(const State& before, State& own) {
    own.was_asked = before.was_asked;
    own.is_on = before.is_on;
    own.frequency_hz = before.frequency_hz;
    own.signal = before.signal;
    own.ring = before.ring;
    if (own.ring != nullptr) own.ring->restart();
  }

  const CpuSampler& sampler_;
};

CpuSampler& CpuSampler::instance() {
  static CpuSampler* const sampler = new CpuSampler;
  return *sampler;
}

void CpuSampler::set_message(State& state, std::string message) {
  if (state.message == message) return;
  state.message = std::move(message);
  ++state.version;
}

// What was removed and is added again while recording goes on ends here, not at the collector's
// next pass, which would find it on and keep its timers.
void CpuSampler::begin_anew(State& state) {
  rest(state);
  state.timers.reset();
  state.total = state.window = {};
  state.host_cpu = {};
  state.sampled_ns = 0;
  if (state.ring == nullptr) return;
  state.ring->drop_all();
  state.last_lost = state.ring->lost();
  state.last_lost_weight = state.ring->lost_weight();
}

Status CpuSampler::start(const CpuSampleOptions& options) {
  const int signal = options.signal == 0 ? SIGPROF : options.signal;
  if (options.frequency_hz < 1 || options.frequency_hz > 1000) {
    return Status::failure("CPU samples: frequency_hz must be from 1 to 1000, not " +
                           std::to_string(options.frequency_hz));
  }
  if (signal != SIGPROF && (signal < SIGRTMIN || signal > SIGRTMAX)) {
    return Status::failure("CPU samples: the signal must be SIGPROF or a real-time signal, " +
                           std::to_string(SIGRTMIN) + " to " + std::to_string(SIGRTMAX));
  }
  const Guard guard(*this);
  State& state = guard.state();
  if (state.is_on) return Status::failure("CPU samples are taken already");
  begin_anew(state);
  if (!state.was_asked && !add_stream_source(this)) {
    return Status::failure("CPU samples: too many sources");
  }
  state.was_asked = true;
  if (!require_module_table()) return Status::failure("CPU samples: too many sources");
  state.frequency_hz = options.frequency_hz;
  ++state.version;
  const auto refuse = [&](const std::string& why) {
    state.start_error = why;
    return Status::failure("CPU samples: " + why);
  };
  if (const std::string risk = interruption_risk_here();
      !risk.empty() && !options.allow_interrupted_calls) {
    return refuse(risk);
  }
  if (const std::string owner = signal_owner(signal, on_cpu_tick); !owner.empty()) {
    return refuse(signal_name(signal) + " " + owner +
                  "; it is left alone (name a real-time signal that is free: "
                  "CpuSampleOptions::signal, DIAL9_CPU_SIGNAL)");
  }
  if (state.ring == nullptr) {
    const std::uint32_t cpus = std::max(1U, std::thread::hardware_concurrency());
    state.ring = SampleRing::make(ring_slots(cpus, options.frequency_hz));
    if (state.ring == nullptr) return refuse("no memory for samples");
  }
  set_sample_ring(state.ring);
  // Where another thread is in there, that one makes it.
  if (unwind::prepare() == unwind::Prepared::kNoMemory) {
    return refuse("no memory for the table of modules");
  }
  if (!install_tick_handler(signal)) return refuse(signal_name(signal) + " can't be handled");
  state.signal = signal;
  state.start_error.clear();
  state.message.clear();
  state.shortfalls = 0;
  state.is_on = true;
  return {};
}

bool CpuSampler::stop() {
  const Guard guard(*this);
  State& state = guard.state();
  if (!state.is_on) return false;
  state.is_on = false;
  if (state.timers) state.timers->disarm_all();
  ++state.version;
  return true;
}

// A handler of the host's that came later would be called for our timers: they go at once.
bool CpuSampler::keeps_signal(State& state) {
  if (is_tick_handler_installed(state.signal)) return true;
  if (state.timers) state.timers->disarm_all();
  state.is_on = false;
  const std::string owner = signal_owner(state.signal, on_cpu_tick);
  set_message(state, signal_name(state.signal) + " " +
                         (owner.empty() ? "has lost its handler" : owner) +
                         " now; sampling has stopped");
  return false;
}

void CpuSampler::drain(State& state) {
  if (state.ring == nullptr) return;
  const std::uint64_t now_ns = internal::now_ns();
  do {
    drain_published(state);
  } while (state.ring->pass_over_stuck(now_ns));
  const std::uint64_t lost = state.ring->lost();
  const std::uint64_t lost_weight = state.ring->lost_weight();
  state.total.lost += lost - std::exchange(state.last_lost, lost);
  state.total.lost_periods += lost_weight - std::exchange(state.last_lost_weight, lost_weight);
}

void CpuSampler::drain_published(State& state) {
  while (const Sample* sample = state.ring->front()) {
    if (sample->at_ns >= state.active_since_ns) {
      CpuSampleRecord record;
      record.at_ns = sample->at_ns;
      record.task = sample->context.task;
      record.span = sample->context.span;
      record.tid = sample->tid;
      record.weight = sample->weight;
      record.cpu = sample->cpu;
      record.is_truncated = sample->is_truncated;
      record.unwound_by = method_name(sample->method);
      if (state.timers) record.thread_name = state.timers->name(sample->tid);
      record.label = sample->context.label;
      record.frames = {sample->frames, sample->frame_count};
      state.encoder.add(record);
      ++state.total.samples;
      state.total.periods += sample->weight;
    }
    state.ring->pop();
  }
}

void CpuSampler::scan(State& state, std::uint64_t now_ns) {
  const std::uint64_t begin = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
  state.timers->scan(static_cast<std::uint32_t>(::syscall(SYS_gettid)));
  const std::uint64_t cost = clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
  state.next_scan_cpu_ns = host_cpu_ns() + std::min(cost * kScanShare, kMostScanWaitNs);
  if (now_ns >= state.next_prepare_ns || state.next_prepare_ns - now_ns > kSecond) {
    unwind::prepare();
    state.next_prepare_ns = now_ns + kSecond;
  }
}

void CpuSampler::note_shortfalls(State& state) {
  const TimerCounts& counts = state.timers->counts();
  const std::uint64_t samples = state.total.samples - state.window.samples;
  const std::uint64_t periods = state.total.periods - state.window.periods;
  const bool is_tick_bound = samples >= 50 && periods * 2 > samples * 3;
  const std::uint32_t now = (counts.refused != 0 ? kRefused : 0U) |
                            (counts.blocking != 0 ? kBlocking : 0U) |
                            (is_tick_bound ? kTickBound : 0U) |
                            (state.total.lost != 0 ? kLost : 0U) | (state.shortfalls & kTickBound);
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
  if ((now & kRefused) != 0) add(refusal_text(counts));
  if ((now & kBlocking) != 0) {
    add(std::to_string(counts.blocking) + " threads block " + signal_name(state.signal) +
        " and aren't sampled");
  }
  if ((now & kTickBound) != 0) {
    add(std::to_string(state.frequency_hz) +
        " Hz asked; the kernel's tick allows fewer signals; samples carry overrun weights");
  }
  if ((now & kLost) != 0) add("samples were lost: the collector didn't get to run");
  // The text goes with every metadata; a new one is due only where the kind of trouble changes.
  if (now != state.shortfalls) ++state.version;
  state.shortfalls = now;
  state.message = std::move(text);
}

void CpuSampler::note_window(State& state, std::uint64_t at_ns, bool is_last) {
  const std::uint64_t elapsed_ns = at_ns - state.window.at_ns;
  if (elapsed_ns < kSecond && !is_last) return;
  state.total.at_ns = at_ns;
  state.total.cpu_ns = state.host_cpu.count(host_cpu_ns());
  CpuProfileRecord record;
  record.at_ns = at_ns;
  record.elapsed_ns = elapsed_ns;
  record.cpu_ns = state.total.cpu_ns - state.window.cpu_ns;
  record.asked_hz = state.frequency_hz;
  record.samples = state.total.samples - state.window.samples;
  record.periods = state.total.periods - state.window.periods;
  record.lost = state.total.lost - state.window.lost;
  record.lost_periods = state.total.lost_periods - state.window.lost_periods;
  const bool is_quiet = record.samples == 0 && record.lost == 0;
  const std::uint64_t worth_ns = is_last ? 1 : kPeriodsWorthTelling * state.period_ns();
  if (is_quiet && record.cpu_ns < worth_ns) return;  // goes on
  const TimerCounts& counts = state.timers->counts();
  record.threads = counts.armed;
  record.threads_unsampled = counts.blocking + counts.refused;
  state.encoder.add(record);
  if (state.is_on) note_shortfalls(state);
  state.window = state.total;
}

std::uint64_t CpuSampler::attend(std::uint64_t now_ns) {
  const Guard guard(*this);
  State& state = guard.state();
  if (!state.is_on) {
    if (state.is_active) rest(state);
    return kNever;
  }
  if (!state.is_active) {
    state.is_active = true;
    state.active_since_ns = state.window.at_ns = internal::now_ns();
    state.host_cpu.resume(host_cpu_ns());
    state.next_scan_ns = now_ns;
    state.next_scan_cpu_ns = 0;
    state.timers.emplace(state.signal, state.period_ns());
  }
  const std::uint64_t before = state.total.samples;
  drain(state);
  if (state.total.samples != before) state.sampled_ns = now_ns;
  // A clock that starts anew doesn't leave it waiting.
  if (now_ns >= state.next_scan_ns || state.next_scan_ns - now_ns > kScanNs) {
    if (!keeps_signal(state)) {
      rest(state);
      return kNever;
    }
    state.next_scan_ns = now_ns + kScanNs;
    if (host_cpu_ns() >= state.next_scan_cpu_ns) scan(state, now_ns);
  }
  note_window(state, internal::now_ns(), false);
  return now_ns - state.sampled_ns < kSecond ? state.next_scan_ns : kNever;
}

void CpuSampler::rest(State& state) {
  if (!state.is_active) return;
  drain(state);
  note_window(state, internal::now_ns(), true);
  state.timers->disarm_all();
  state.is_active = false;
}

void CpuSampler::rest() {
  const Guard guard(*this);
  rest(guard.state());
}

std::vector<SourceStream> CpuSampler::take() {
  const Guard guard(*this);
  State& state = guard.state();
  drain(state);
  return state.encoder.take();
}

std::uint64_t CpuSampler::metadata_version() const {
  const Guard guard(*this);
  return guard.state().version;
}

namespace {

double rate_of(const Tally& total) {
  return total.cpu_ns == 0
             ? 0
             : static_cast<double>(total.samples) * 1e9 / static_cast<double>(total.cpu_ns);
}

}  // namespace

Metadata CpuSampler::metadata() const {
  const Guard guard(*this);
  const State& state = guard.state();
  if (!state.was_asked) return {};
  Metadata entries{{"cpu.profile.enabled", state.is_on ? "true" : "false"},
                   {"cpu.profile.frequency_hz", std::to_string(state.frequency_hz)}};
  if (state.is_on) {
    entries.emplace_back("cpu.profile.backend", "ctimer");
    entries.emplace_back("cpu.profile.event_source",
                         "thread CPU clock, " + signal_name(state.signal));
  }
  if (state.total.cpu_ns >= kSecond / 10) {
    std::array<char, 32> rate{};
    std::snprintf(rate.data(), rate.size(), "%.1f", rate_of(state.total));
    entries.emplace_back("cpu.profile.achieved_hz", rate.data());
  }
  if (!state.start_error.empty()) {
    entries.emplace_back("cpu.profile.start_error", state.start_error);
  }
  if (!state.message.empty()) entries.emplace_back("cpu.profile.notice", state.message);
  return entries;
}

CpuSampleStatus CpuSampler::status() const {
  const Guard guard(*this);
  const State& state = guard.state();
  CpuSampleStatus status;
  status.is_sampling = state.is_on && state.is_active;
  status.message = state.start_error.empty() ? state.message : state.start_error;
  status.asked_hz = state.is_on ? state.frequency_hz : 0;
  status.achieved_hz = rate_of(state.total);
  status.samples = state.total.samples;
  status.periods = state.total.periods;
  status.lost = state.total.lost;
  if (state.timers) {
    const TimerCounts& counts = state.timers->counts();
    status.threads = counts.armed;
    status.threads_unsampled = counts.blocking + counts.refused;
  }
  return status;
}

}  // namespace dial9::internal

namespace dial9 {

Status add_cpu_samples(const CpuSampleOptions& options) noexcept {
  try {
    return internal::CpuSampler::instance().start(options);
  } catch (const std::exception&) {
    return Status::failure("out of memory");
  }
}

bool remove_cpu_samples() noexcept {
  try {
    return internal::CpuSampler::instance().stop();
  } catch (const std::exception&) {
    return false;
  }
}

CpuSampleStatus cpu_sample_status() noexcept {
  try {
    return internal::CpuSampler::instance().status();
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace dial9
