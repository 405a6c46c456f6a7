// See cpu_sampler.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/cpu_sampler.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/descriptor_numbers.h"
#include "dial9/internal/clock.h"
#include "dial9/internal/thread_buffer.h"
#include "recorder/label_changes.h"
#include "recorder/no_exception.h"
#include "sources/cpu_samples.h"
#include "sources/host_cpu.h"
#include "sources/module_table.h"
#include "sources/perf_backend.h"
#include "sources/quiet_kernel.h"
#include "sources/sample_grain.h"
#include "sources/signal_owner.h"
#include "sources/timer_backend.h"
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

// What there was up to a moment; two of them make a stretch.
struct Tally {
  std::uint64_t at_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t samples = 0;
  std::uint64_t periods = 0;
  std::uint64_t lost = 0;
  std::uint64_t lost_periods = 0;
};

// Plain words: a child of a fork takes them over.
struct BackendChoice {
  bool uses_perf = false;
  int signal = 0;
  PerfPlan perf{};
};

std::unique_ptr<SampleBackend> make_backend(const BackendChoice& choice, std::uint64_t period_ns,
                                            SampleRing* ring) {
  if (choice.uses_perf) return std::make_unique<PerfBackend>(choice.perf);
  return std::make_unique<TimerBackend>(choice.signal, period_ns, ring);
}

// Empty: nothing.
std::string wrong_in(const CpuSampleOptions& options) {
  if (options.frequency_hz < 1 || options.frequency_hz > 1000) {
    return "frequency_hz must be from 1 to 1000, not " + std::to_string(options.frequency_hz);
  }
  const int signal = options.signal;
  if (signal != 0 && signal != SIGPROF && (signal < SIGRTMIN || signal > SIGRTMAX)) {
    return "the signal must be SIGPROF or a real-time signal, " + std::to_string(SIGRTMIN) +
           " to " + std::to_string(SIGRTMAX);
  }
  return "";
}

// Where another thread is in there, that one makes it.
std::string prepare_unwinder() {
  return unwind::prepare() == unwind::Prepared::kNoMemory ? "no memory for the table of modules"
                                                          : "";
}

}  // namespace

struct CpuSampler::State {
  const pid_t pid = ::getpid();
  bool was_asked = false;
  bool is_on = false;      // from start() to stop(), or until the signal is lost
  bool is_active = false;  // recording: timers may be armed
  std::uint32_t frequency_hz = 0;
  BackendChoice choice;
  SampleRing* ring = nullptr;              // for the process's life
  std::unique_ptr<SampleBackend> backend;  // since the last start()
  CpuSampleEncoder encoder;
  std::uint64_t active_since_ns = 0;   // by the recorder's clock, as samples are
  std::uint64_t next_scan_ns = 0;      // by the collector's
  std::uint64_t next_scan_cpu_ns = 0;  // of the host's CPU time
  std::uint64_t next_prepare_ns = 0;
  std::uint64_t sampled_ns = 0;  // the last pass that found a sample
  Tally total;                   // since start(), `cpu_ns` as of the last window
  Tally window;                  // `total` as the window began
  SampleGrain grain;             // of samples of windows in which none was left out
  HostCpu host_cpu;
  std::uint64_t host_cost_ns = 0;  // of all handlers
  std::uint32_t one_in = 1;        // is taken, to keep within the recorder's budget
  std::uint32_t most_one_in = 1;   // in this window
  std::uint64_t wake_ns = kNever;
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
  // Plain words that only start() and stop() write. A child inherits no timer, and no event's ring.
  static void inherit(const State& before, State& own) {
    own.was_asked = before.was_asked;
    own.is_on = before.is_on;
    own.frequency_hz = before.frequency_hz;
    own.choice = before.choice;
    own.ring = before.ring;
    if (own.ring != nullptr) own.ring->restart();
    if (own.is_on) own.backend = make_backend(own.choice, own.period_ns(), own.ring);
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
  state.backend.reset();
  state.total = state.window = {};
  state.grain = {};
  state.host_cpu = {};
  state.sampled_ns = 0;
}

Status CpuSampler::start(const CpuSampleOptions& options) {
  if (const std::string wrong = wrong_in(options); !wrong.empty()) {
    return Status::failure("CPU samples: " + wrong);
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
  std::string refusal = descriptor_shortage();  // threads are found in /proc
  if (refusal.empty()) {
    refusal = options.backend == CpuSampleBackend::kPerf ? prepare_perf(state)
                                                         : prepare_timers(state, options);
  }
  state.start_error = refusal;
  state.message.clear();
  state.shortfalls = 0;
  if (!refusal.empty()) return Status::failure("CPU samples: " + refusal);
  state.backend = make_backend(state.choice, state.period_ns(), state.ring);
  state.backend->thin(state.one_in);
  state.is_on = true;
  // What the kernel samples can't be asked for its label. Without: it isn't known.
  if (state.choice.uses_perf) watch_labels(LabelWatcher::kCpuSamples);
  note_shortfalls(state);
  return {};
}

std::string CpuSampler::prepare_timers(State& state, const CpuSampleOptions& options) {
  const int signal = options.signal == 0 ? SIGPROF : options.signal;
  if (const std::string risk = interruption_risk_here();
      !risk.empty() && !options.allow_interrupted_calls) {
    return risk;
  }
  if (const std::string owner = signal_owner(signal, on_cpu_tick); !owner.empty()) {
    return signal_name(signal) + " " + owner +
           "; it is left alone (name a real-time signal that is free: CpuSampleOptions::signal, "
           "DIAL9_CPU_SIGNAL; perf events need none: CpuSampleOptions::backend, "
           "DIAL9_CPU_BACKEND=perf)";
  }
  if (state.ring == nullptr) {
    const std::uint32_t cpus = std::max(1U, std::thread::hardware_concurrency());
    state.ring = SampleRing::make(ring_slots(cpus, options.frequency_hz));
    if (state.ring == nullptr) return "no memory for samples";
  }
  set_sample_ring(state.ring);
  if (const std::string trouble = prepare_unwinder(); !trouble.empty()) return trouble;
  if (!install_tick_handler(signal)) return signal_name(signal) + " can't be handled";
  state.choice = {.signal = signal};
  return "";
}

std::string CpuSampler::prepare_perf(State& state) {
  if (const std::string trouble = prepare_unwinder(); !trouble.empty()) return trouble;
  const PerfProbe probe = probe_perf(state.period_ns());
  state.choice = {.uses_perf = true, .perf = probe.plan};
  return probe.refusal;
}

// No thread is sampled from its return on; what was sampled before is kept.
bool CpuSampler::stop() {
  const Guard guard(*this);
  State& state = guard.state();
  if (!state.is_on) return false;
  state.is_on = false;
  state.backend->halt();
  drain(state);
  unwatch_labels(LabelWatcher::kCpuSamples);  // up to here samples have their labels
  ++state.version;
  return true;
}

void CpuSampler::drain(State& state) {
  if (state.backend == nullptr) return;
  const LossCounts before = state.backend->lost();
  state.backend->drain(internal::now_ns(), [&](const CpuSampleRecord& record) {
    state.host_cost_ns += record.cost_ns;
    if (record.at_ns < state.active_since_ns) return;
    state.encoder.add(record);
    ++state.total.samples;
    state.total.periods += record.weight;
  });
  const LossCounts now = state.backend->lost();
  state.total.lost += now.samples - before.samples;
  state.total.lost_periods += now.periods - before.periods;
}

void CpuSampler::scan(State& state, std::uint64_t now_ns) {
  const std::uint64_t begin = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
  state.backend->scan(static_cast<std::uint32_t>(::syscall(SYS_gettid)));
  const std::uint64_t cost = clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
  state.next_scan_cpu_ns = host_cpu_ns() + std::min(cost * kScanShare, kMostScanWaitNs);
  if (now_ns >= state.next_prepare_ns || state.next_prepare_ns - now_ns > kSecond) {
    unwind::prepare();
    state.next_prepare_ns = now_ns + kSecond;
  }
}

// Before the segment that the samples go into is sealed: so that its metadata tells.
void CpuSampler::judge_grain(State& state) {
  if (!state.is_on || state.most_one_in != 1) return;
  if (state.grain.is_coarse(state.total.samples, state.total.periods)) note_shortfalls(state, true);
}

void CpuSampler::note_shortfalls(State& state, bool is_coarse) {
  std::vector<Shortfall> shortfalls;
  state.backend->add_shortfalls(is_coarse, shortfalls);
  if (state.one_in > 1) {
    shortfalls.push_back({kThinned, "one sample in " + std::to_string(state.one_in) +
                                        " is taken, to keep within the recorder's budget; "
                                        "weights stand for the others"});
  }
  if (state.total.lost != 0) {
    shortfalls.push_back({kLostSamples, "samples were lost: the collector didn't get to run"});
  }
  std::string text;
  std::uint32_t kinds = 0;
  for (const Shortfall& one : shortfalls) {
    text += (text.empty() ? "" : "; ") + one.text;
    kinds |= one.kind;
  }
  // The text goes with every metadata; a new one is due only where the kind of trouble changes.
  if (kinds != state.shortfalls) ++state.version;
  state.shortfalls = kinds;
  state.message = std::move(text);
}

void CpuSampler::note_window(State& state, std::uint64_t at_ns, const ThreadCounts& threads,
                             bool is_last) {
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
  record.threads = threads.sampled;
  record.threads_unsampled = threads.unsampled;
  state.encoder.add(record);
  if (state.is_on && !is_last) note_shortfalls(state);
  if (state.most_one_in != 1) state.grain.restart(state.total.samples, state.total.periods);
  state.window = state.total;
  state.most_one_in = state.one_in;
}

void CpuSampler::activate(State& state, std::uint64_t now_ns) {
  state.is_active = true;
  state.active_since_ns = state.window.at_ns = internal::now_ns();
  state.host_cpu.resume(host_cpu_ns());
  state.next_scan_ns = now_ns;
  state.next_scan_cpu_ns = 0;
  state.backend->begin();
}

std::uint64_t CpuSampler::host_cost_ns() const {
  const Guard guard(*this);
  return guard.state().host_cost_ns;
}

bool CpuSampler::thin(std::uint32_t one_in) {
  const Guard guard(*this);
  State& state = guard.state();
  state.one_in = one_in;
  state.most_one_in = std::max(state.most_one_in, one_in);
  if (state.backend != nullptr) state.backend->thin(one_in);
  return true;
}

std::uint64_t CpuSampler::attend(std::uint64_t now_ns) {
  const Guard guard(*this);
  State& state = guard.state();
  state.wake_ns = kNever;
  if (!state.is_on) {
    if (state.is_active) rest(state);
    return kNever;
  }
  if (!state.is_active) activate(state, now_ns);
  const std::uint64_t before = state.total.samples;
  drain(state);
  if (state.total.samples != before) state.sampled_ns = now_ns;
  judge_grain(state);
  // A clock that starts anew doesn't leave it waiting.
  if (now_ns >= state.next_scan_ns || state.next_scan_ns - now_ns > kScanNs) {
    if (std::string end = state.backend->find_end(); !end.empty()) {
      state.is_on = false;
      set_message(state, std::move(end));
      rest(state);
      return kNever;
    }
    state.next_scan_ns = now_ns + kScanNs;
    if (host_cpu_ns() >= state.next_scan_cpu_ns) scan(state, now_ns);
  }
  note_window(state, internal::now_ns(), state.backend->threads(), false);
  const bool is_busy = now_ns - state.sampled_ns < kSecond;
  const std::uint64_t within_ns = is_busy ? state.backend->drain_within_ns() : kNever;
  if (within_ns != kNever) state.wake_ns = now_ns + within_ns;
  return is_busy ? state.next_scan_ns : kNever;
}

std::uint64_t CpuSampler::wake_ns() const {
  const Guard guard(*this);
  return guard.state().wake_ns;
}

void CpuSampler::rest(State& state) {
  if (!state.is_active) return;
  const ThreadCounts threads = state.backend->threads();
  drain(state);
  judge_grain(state);
  if (state.is_on) note_shortfalls(state);
  state.backend->halt();
  drain(state);
  note_window(state, internal::now_ns(), threads, true);
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
  if (state.is_active) judge_grain(state);
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
    entries.emplace_back("cpu.profile.backend", state.backend->name());
    entries.emplace_back("cpu.profile.event_source", state.backend->event_source());
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
  if (state.backend != nullptr) {
    const ThreadCounts threads = state.backend->threads();
    status.threads = threads.sampled;
    status.threads_unsampled = threads.unsampled;
  }
  return status;
}

}  // namespace dial9::internal

namespace dial9 {

Status add_cpu_samples(const CpuSampleOptions& options) noexcept {
  return internal::no_exception([&] { return internal::CpuSampler::instance().start(options); },
                                internal::out_of_memory());
}

bool remove_cpu_samples() noexcept {
  return internal::no_exception([&] { return internal::CpuSampler::instance().stop(); }, false);
}

CpuSampleStatus cpu_sample_status() noexcept {
  return internal::no_exception([&] { return internal::CpuSampler::instance().status(); },
                                CpuSampleStatus{});
}

}  // namespace dial9
