// See off_cpu_sampler.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/off_cpu_sampler.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/descriptor_numbers.h"
#include "base/plural.h"
#include "recorder/label_changes.h"
#include "recorder/no_exception.h"
#include "recorder/off_cpu_stream.h"
#include "sources/futex_callers.h"
#include "sources/module_table.h"
#include "sources/perf_event.h"
#include "sources/thread_probe.h"
#include "sources/wall_sampler.h"
#include "unwind/unwind.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

}  // namespace

struct OffCpuSampler::State {
  const pid_t pid = ::getpid();
  bool was_asked = false;
  bool is_on = false;  // from start() to stop()
  std::uint32_t frequency_hz = 0;
  double max_cpu_ns = 0;  // the recorder's budget
  bool wants_switches = false;
  bool wants_stacks = false;         // of switches
  std::optional<PerfPlan> switches;  // none: not asked for, or refused
  std::optional<PerfPlan> stacks;    // likewise
  std::string switch_refusal;        // of either
  // While recording:
  std::unique_ptr<ThreadProbe> probe;
  std::unique_ptr<WallSampler> sampler;
  OffCpuEncoder encoder;
  std::uint64_t next_prepare_ns = 0;
  OffCpuProfileRecord totals;  // of the last recording, once it ended
  std::string start_error;
  std::string message;
  std::uint64_t version = 1;
};

// Holds the lock, and gives a child of a fork a state of its own.
class OffCpuSampler::Guard {
 public:
  explicit Guard(const OffCpuSampler& sampler) : sampler_(sampler) {
    const bool was_inside = sampler.lock_.lock();
    const State* before = sampler.state_;
    if (before != nullptr && !was_inside && before->pid == ::getpid()) return;
    try {
      auto own = std::make_unique<State>();
      if (before != nullptr) {
        own->was_asked = before->was_asked;
        own->is_on = before->is_on;
        own->frequency_hz = before->frequency_hz;
        own->wants_switches = before->wants_switches;
        own->wants_stacks = before->wants_stacks;
        own->switches = before->switches;
        own->stacks = before->stacks;
      }
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
  const OffCpuSampler& sampler_;
};

OffCpuSampler& OffCpuSampler::instance() {
  static OffCpuSampler* const sampler = new OffCpuSampler;
  return *sampler;
}

Status OffCpuSampler::start(const OffCpuOptions& options) {
  if (options.frequency_hz < 20 || options.frequency_hz > 100) {
    return Status::failure("off-CPU samples: frequency_hz must be from 20 to 100, not " +
                           std::to_string(options.frequency_hz));
  }
  prepare_futex_callers();  // before the lock
  if (!require_module_table()) return Status::failure("off-CPU samples: too many sources");
  const Guard guard(*this);
  State& state = guard.state();
  if (state.is_on) return Status::failure("off-CPU samples are taken already");
  if (!state.was_asked && !add_stream_source(this)) {
    return Status::failure("off-CPU samples: too many sources");
  }
  state.was_asked = true;
  state.frequency_hz = options.frequency_hz;
  state.message.clear();
  ++state.version;
  const auto refuse = [&](const std::string& why) {
    state.start_error = why;
    return Status::failure("off-CPU samples: " + why);
  };
  if (const std::string why = descriptor_shortage(); !why.empty()) return refuse(why);
  const auto probe = make_thread_probe();
  if (probe == nullptr) return refuse("this platform isn't supported");
  std::vector<std::uint32_t> tids;
  if (!probe->list(&tids)) return refuse("/proc/self/task can't be read: is /proc mounted?");
  // Where another thread is in there, that one makes it.
  if (unwind::prepare() == unwind::Prepared::kNoMemory) {
    return refuse("no memory for the table of modules");
  }
  rest(state);
  ask_for_switches(options, state);
  if (options.requires_switches && !state.switch_refusal.empty()) {
    return refuse(std::exchange(state.switch_refusal, {}));
  }
  state.message = state.switch_refusal;
  state.totals = {};
  state.start_error.clear();
  state.is_on = true;
  if (state.switches) watch_labels(LabelWatcher::kSwitches);  // else only looks, which read labels
  return {};
}

void OffCpuSampler::ask_for_switches(const OffCpuOptions& options, State& state) {
  state.wants_stacks = options.has_switch_stacks;
  state.wants_switches = options.has_switches || options.has_switch_stacks;
  state.switches.reset();
  state.stacks.reset();
  state.switch_refusal.clear();
  if (!state.wants_switches) return;
  PerfProbe probed = probe_perf_switches();
  state.switch_refusal = std::move(probed.refusal);
  if (!state.switch_refusal.empty()) return;
  state.switches = probed.plan;
  if (!state.wants_stacks) return;
  probed = probe_perf_switch_stacks();
  state.switch_refusal = std::move(probed.refusal);
  if (state.switch_refusal.empty()) state.stacks = probed.plan;
}

bool OffCpuSampler::stop() {
  const Guard guard(*this);
  State& state = guard.state();
  if (!state.is_on) return false;
  state.is_on = false;
  unwatch_labels(LabelWatcher::kSwitches);
  ++state.version;
  return true;
}

void OffCpuSampler::note_trouble(State& state) {
  std::string message = state.switch_refusal;
  if (const std::string trouble = state.probe->trouble(); !trouble.empty()) {
    message += (message.empty() ? "" : "; ") + trouble;
  }
  const OffCpuProfileRecord& totals = state.sampler->totals();
  if (totals.threads_unsampled != 0) {
    message += (message.empty() ? "" : "; ") + plural(totals.threads_unsampled, "thread") +
               " beyond the first " + std::to_string(WallSampler::kMostThreads) +
               (totals.threads_unsampled == 1 ? " isn't looked at" : " aren't looked at");
  }
  if (totals.lost != 0) {
    message += (message.empty() ? "" : "; ") + std::string("more than ") +
               std::to_string(StackShelf::kMostBytes >> 20) +
               " MiB of stacks at a time: some waits have none";
  }
  if (totals.switches_lost != 0) {
    message += (message.empty() ? "" : "; ") +
               std::string(
                   "a ring had no room for some switches: the times around them are from "
                   "looks");
  }
  if (totals.switch_stacks_lost != 0) {
    message += (message.empty() ? "" : "; ") +
               std::string(
                   "a ring had no room for the stacks of some switches: their waits have "
                   "none, unless a look saw them");
  }
  if (message == state.message) return;
  state.message = std::move(message);
  ++state.version;
}

std::uint64_t OffCpuSampler::attend(std::uint64_t now_ns) {
  const Guard guard(*this);
  State& state = guard.state();
  if (!state.is_on) {
    rest(state);
    return kNever;
  }
  if (state.sampler == nullptr) {
    state.probe = make_thread_probe(state.switches ? &*state.switches : nullptr,
                                    state.stacks ? &*state.stacks : nullptr);
    if (state.probe == nullptr) return kNever;
    state.sampler = std::make_unique<WallSampler>(*state.probe, state.encoder, state.frequency_hz);
    state.sampler->set_budget(state.max_cpu_ns);
  }
  if (now_ns >= state.next_prepare_ns || state.next_prepare_ns - now_ns > kSecond) {
    unwind::prepare();
    state.next_prepare_ns = now_ns + kSecond;
  }
  const std::uint64_t due_ns = state.sampler->step(now_ns);
  note_trouble(state);
  return due_ns;
}

// Threads that run are looked at whether or not they record anything.
std::uint64_t OffCpuSampler::wake_ns() const {
  const Guard guard(*this);
  const State& state = guard.state();
  if (state.sampler == nullptr || state.sampler->is_idle()) return kNever;
  return state.sampler->due_ns();
}

void OffCpuSampler::rest(State& state) {
  if (state.sampler == nullptr) return;
  state.sampler->finish();
  state.totals = state.sampler->totals();
  state.sampler.reset();
  state.probe.reset();
}

void OffCpuSampler::rest() {
  const Guard guard(*this);
  rest(guard.state());
}

std::vector<SourceStream> OffCpuSampler::take() {
  const Guard guard(*this);
  return guard.state().encoder.take();
}

void OffCpuSampler::set_budget(const GovernorBudget& budget) {
  const Guard guard(*this);
  State& state = guard.state();
  state.max_cpu_ns = budget.max_cpu_ns;
  if (state.sampler != nullptr) state.sampler->set_budget(budget.max_cpu_ns);
}

std::string OffCpuSampler::shortfall() const {
  const Guard guard(*this);
  const State& state = guard.state();
  return state.start_error.empty() ? state.message : state.start_error;
}

std::uint64_t OffCpuSampler::metadata_version() const {
  const Guard guard(*this);
  return guard.state().version;
}

Metadata OffCpuSampler::metadata() const {
  const Guard guard(*this);
  const State& state = guard.state();
  if (!state.was_asked) return {};
  Metadata entries{{"off_cpu.enabled", state.is_on ? "true" : "false"},
                   {"off_cpu.frequency_hz", std::to_string(state.frequency_hz)}};
  if (state.is_on) {
    entries.emplace_back("off_cpu.backend",
                         std::string("wall sampler: schedstat, syscall, stack copies") +
                             (state.switches ? "; perf switches" : "") +
                             (state.stacks ? " with stacks" : ""));
  }
  if (state.wants_switches) {
    entries.emplace_back("off_cpu.switches", state.switches ? "perf" : "refused");
  }
  if (state.wants_stacks) {
    entries.emplace_back("off_cpu.switch_stacks", state.stacks ? "perf" : "refused");
  }
  if (!state.start_error.empty()) entries.emplace_back("off_cpu.start_error", state.start_error);
  if (!state.message.empty()) entries.emplace_back("off_cpu.notice", state.message);
  return entries;
}

OffCpuStatus OffCpuSampler::status() const {
  const Guard guard(*this);
  const State& state = guard.state();
  OffCpuStatus status;
  status.is_sampling = state.is_on && state.sampler != nullptr;
  status.message = state.start_error.empty() ? state.message : state.start_error;
  const OffCpuProfileRecord& totals =
      state.sampler != nullptr ? state.sampler->totals() : state.totals;
  status.threads = totals.threads;
  status.threads_unsampled = totals.threads_unsampled;
  status.looks = totals.looks;
  status.stacks = totals.stacks;
  status.moved = totals.moved;
  status.round_ns = totals.round_ns;
  status.switch_threads = totals.switch_threads;
  status.switches_lost = totals.switches_lost;
  status.switch_stacks = totals.switch_stacks;
  status.switch_stacks_lost = totals.switch_stacks_lost;
  return status;
}

}  // namespace dial9::internal

namespace dial9 {

Status add_off_cpu_samples(const OffCpuOptions& options) noexcept {
  return internal::no_exception([&] { return internal::OffCpuSampler::instance().start(options); },
                                internal::out_of_memory());
}

bool remove_off_cpu_samples() noexcept {
  return internal::no_exception([&] { return internal::OffCpuSampler::instance().stop(); }, false);
}

OffCpuStatus off_cpu_status() noexcept {
  return internal::no_exception([&] { return internal::OffCpuSampler::instance().status(); },
                                OffCpuStatus{});
}

}  // namespace dial9
