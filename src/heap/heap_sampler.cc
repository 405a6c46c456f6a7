// See heap_sampler.h.
// SPDX-License-Identifier: Apache-2.0
#include "heap/heap_sampler.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "dial9/internal/thread_buffer.h"
#include "heap/hooks.h"
#include "heap/next_allocator.h"
#include "recorder/burst_gate.h"
#include "recorder/heap_sample_stream.h"
#include "recorder/no_exception.h"
#include "recorder/recording_state.h"
#include "sources/module_table.h"
#include "unwind/unwind.h"

namespace dial9::heap {
namespace {

using internal::Metadata;
using internal::SourceStream;

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMs;
constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint64_t kPassNs = 20 * kMs;
// Of a thinned rate a thread looks for another one at the latest after so many gaps of the chosen
// one, or bytes: whichever is more.
constexpr std::uint64_t kLookGaps = 64;
constexpr std::uint64_t kLeastLookBytes = std::uint64_t{1} << 20;
constexpr std::uint32_t kMostOneIn =
    internal::kMostSamplesOneIn[static_cast<std::size_t>(internal::SampleKind::kHeap)];
// Until there are samples to tell.
constexpr double kFirstSampleBytes = 100;

// What there was up to a moment; two of them make a stretch.
struct Tally {
  std::uint64_t at_ns = 0;
  std::uint64_t samples = 0;
  std::uint64_t frees = 0;
  std::uint64_t lost_samples = 0;
  std::uint64_t lost_frees = 0;
  std::uint64_t untracked = 0;
};

std::uint64_t load(const std::uint64_t& counter) {
  return __atomic_load_n(&counter, __ATOMIC_RELAXED);
}

std::string shortfall_of(const HeapSampleStatus& status) {
  std::string text;
  if (status.current_rate_bytes > status.sample_rate_bytes) {
    text = "one in " + std::to_string(status.current_rate_bytes / status.sample_rate_bytes) +
           " of the samples is taken, to keep within the recorder's budget; each says its rate";
  }
  if (status.lost_samples + status.lost_frees != 0) {
    text += std::string(text.empty() ? "" : "; ") +
            "samples were lost: a higher sample_rate_bytes makes fewer of them";
  }
  return text;
}

bool is_gate_open() { return __atomic_load_n(&g_gate.floor, __ATOMIC_RELAXED) != kOff; }

}  // namespace

struct HeapSampler::State {
  const pid_t pid = ::getpid();
  bool was_asked = false;
  bool is_on = false;      // from start() to stop()
  bool is_active = false;  // recording: the collector attends
  HeapSampleOptions options;
  internal::HeapSampleEncoder encoder;
  std::unique_ptr<RecordRing::Record> record;  // where drain() copies to
  std::int64_t generation = 0;
  std::uint64_t active_since_ns = 0;
  std::uint64_t next_prepare_ns = 0;
  std::uint64_t drained_ns = 0;  // the last pass that found a record
  Tally base;                    // what the ring's memory had counted before start()
  Tally total;
  Tally window;                 // `total` as the window began
  std::uint32_t one_in = 1;     // to keep within the recorder's budget
  std::uint64_t most_rate = 0;  // in this window
  internal::GovernorBudget budget;
  std::uint64_t stream_bytes = 0;   // of all, and
  std::uint64_t stream_allocs = 0;  // allocations in them
  std::string start_error;
  std::string allocator;
  std::uint64_t version = 1;

  void read_counters() {
    total.lost_samples = load(g_memory.lost_samples) - base.lost_samples;
    total.lost_frees = load(g_memory.lost_frees) - base.lost_frees;
    total.untracked = load(g_memory.untracked) - base.untracked;
  }
  void begin_counts() {
    base = {};
    base.lost_samples = load(g_memory.lost_samples);
    base.lost_frees = load(g_memory.lost_frees);
    base.untracked = load(g_memory.untracked);
    total = window = {};
    stream_bytes = stream_allocs = 0;
  }
  std::uint64_t rate_of(std::uint32_t times) const {
    return std::min(options.sample_rate_bytes * times, kMostRate);
  }
  void set_rate() {
    __atomic_store_n(&g_allowance.most_rate_bytes, rate_of(kMostOneIn), __ATOMIC_RELAXED);
    __atomic_store_n(&g_gate.rate_bytes, rate_of(one_in), __ATOMIC_RELAXED);
    note_rate();
  }
  // Threads raise it too.
  void note_rate() { most_rate = std::max(most_rate, load(g_gate.rate_bytes)); }
  // Every thread draws anew at its next allocation.
  void open_gate() {
    if (generation == kLastGeneration) return;  // stays open: what isn't recorded is dropped
    ++generation;
    set_rate();
    __atomic_store_n(&g_gate.look_bytes,
                     std::max(options.sample_rate_bytes * kLookGaps, kLeastLookBytes),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&g_gate.tracks_live, options.tracks_live, __ATOMIC_RELAXED);
    __atomic_store_n(&g_gate.floor, generation * kGeneration, __ATOMIC_RELEASE);
  }
  void close_gate() {
    if (generation == kLastGeneration) return;
    __atomic_store_n(&g_gate.floor, kOff, __ATOMIC_RELAXED);
  }
};

// Holds the lock, and gives a child of a fork a state of its own. What is allocated meanwhile isn't
// sampled: at a rate of 1 each sample would make others.
class HeapSampler::Guard {
 public:
  explicit Guard(const HeapSampler& sampler)
      : sampler_(sampler), was_own_(std::exchange(t_thread.is_own, true)) {
    const bool was_inside = sampler.lock_.lock();
    const State* before = sampler.state_;
    if (before != nullptr && !was_inside && before->pid == ::getpid()) return;
    try {
      auto own = std::make_unique<State>();
      own->record = std::make_unique<RecordRing::Record>();
      if (before != nullptr) inherit(*before, *own);
      sampler.state_ = own.release();  // the parent's stays: its threads aren't here to finish
    } catch (...) {
      t_thread.is_own = was_own_;
      sampler.lock_.unlock();
      throw;
    }
  }
  ~Guard() {
    t_thread.is_own = was_own_;
    sampler_.lock_.unlock();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  State& state() const { return *sampler_.state_; }

 private:
  // Plain words that only start() and stop() write, and the generation, which must only grow.
  static void inherit(const State& before, State& own) {
    own.was_asked = before.was_asked;
    own.is_on = before.is_on;
    own.options = before.options;
    own.generation = before.generation;
    own.close_gate();
  }

  const HeapSampler& sampler_;
  const bool was_own_;
};

HeapSampler& HeapSampler::instance() {
  static HeapSampler* const sampler = new HeapSampler;
  return *sampler;
}

Status HeapSampler::start(const HeapSampleOptions& options, std::uint64_t seed) {
  if (options.sample_rate_bytes < 1 || options.sample_rate_bytes > kMostRate) {
    return Status::failure("heap samples: sample_rate_bytes must be from 1 to 2^40, not " +
                           std::to_string(options.sample_rate_bytes));
  }
  const Guard guard(*this);
  State& state = guard.state();
  if (state.is_on) return Status::failure("heap samples are taken already");
  if (!internal::require_module_table() ||
      (!state.was_asked && !internal::add_stream_source(this))) {
    return Status::failure("heap samples: too many sources");
  }
  state.was_asked = true;
  ++state.version;
  const auto refuse = [&](const std::string& why) {
    state.start_error = why;
    return Status::failure("heap samples: " + why);
  };
  if (const std::string sanitizer = sanitizer_in_process(); !sanitizer.empty()) {
    return refuse(sanitizer + " has the allocator of this process; build without it to sample");
  }
  state.allocator = next_allocator_file();
  if (state.allocator.empty()) {
    return refuse(
        "malloc of this program isn't dial9's: another definition came first; link "
        "dial9::heap before other allocators, or preload libdial9_heap.so");
  }
  if (!wipe_memory_on_fork()) {
    return refuse("this kernel can't wipe memory at a fork (Linux 4.14 and later can)");
  }
  if (unwind::prepare() == unwind::Prepared::kNoMemory) {
    return refuse("no memory for the table of modules");
  }
  rest(state);
  state.options = options;
  state.start_error.clear();
  state.one_in = 1;
  state.most_rate = 0;
  (void)internal::now_ns();  // what is calibrated at its first call is by now
  g_memory.ring.drop_published();
  g_memory.live.clear();
  state.begin_counts();
  state.window.at_ns = state.active_since_ns = internal::now_ns();
  g_gate.seed = seed;
  state.is_on = true;
  if (internal::recording_epoch() != 0) state.open_gate();
  return {};
}

bool HeapSampler::stop() {
  const Guard guard(*this);
  State& state = guard.state();
  if (!state.is_on) return false;
  state.is_on = false;
  state.close_gate();
  ++state.version;
  return true;
}

void HeapSampler::drain(State& state) {
  RecordRing::Record& record = *state.record;
  for (; g_memory.ring.front(&record); g_memory.ring.pop()) {
    const RecordHead& head = record.head;
    state.drained_ns = internal::now_ns();
    if (head.kind == RecordKind::kFree) {
      internal::FreeRecord free;
      free.at_ns = head.at_ns;
      free.tid = head.tid;
      free.address = head.address;
      free.size = head.size;
      free.alloc_ns = head.extra;
      state.encoder.add(free);
      ++state.total.frees;
      continue;
    }
    if (head.at_ns < state.active_since_ns) continue;
    internal::AllocRecord alloc;
    alloc.at_ns = head.at_ns;
    alloc.tid = head.tid;
    alloc.size = head.size;
    alloc.address = head.address;
    alloc.task = record.task;
    alloc.span = record.span;
    alloc.rate_bytes = head.extra;
    state.most_rate = std::max(state.most_rate, head.extra);
    alloc.is_tracked = head.is_tracked;
    alloc.is_truncated = head.is_truncated;
    alloc.unwound_by = unwind::method_name(head.method);
    alloc.label = record.label;
    alloc.frames = {record.frames, head.frames};
    state.encoder.add(alloc);
    ++state.total.samples;
  }
}

void HeapSampler::note_window(State& state, std::uint64_t at_ns, bool is_last) {
  const std::uint64_t elapsed_ns = at_ns - state.window.at_ns;
  if (elapsed_ns < kSecond && !is_last) return;
  state.read_counters();
  state.total.at_ns = at_ns;
  internal::HeapProfileRecord record;
  record.at_ns = at_ns;
  record.elapsed_ns = elapsed_ns;
  record.rate_bytes = state.options.sample_rate_bytes;
  record.samples = state.total.samples - state.window.samples;
  record.frees = state.total.frees - state.window.frees;
  record.lost_samples = state.total.lost_samples - state.window.lost_samples;
  record.lost_frees = state.total.lost_frees - state.window.lost_frees;
  record.untracked = state.total.untracked - state.window.untracked;
  record.live_samples = g_memory.live.size();
  record.tracks_live = state.options.tracks_live;
  state.note_rate();
  record.largest_rate_bytes = state.most_rate;
  const bool is_quiet = record.samples == 0 && record.frees == 0 && record.lost_samples == 0 &&
                        record.lost_frees == 0;
  if (is_quiet && !is_last) return;  // goes on
  state.encoder.add(record);
  state.window = state.total;
  state.most_rate = load(g_gate.rate_bytes);
}

std::uint64_t HeapSampler::host_cost_ns() const {
  return __atomic_load_n(&g_memory.cost_ns, __ATOMIC_RELAXED);
}

std::uint64_t HeapSampler::attend(std::uint64_t now_ns) {
  const Guard guard(*this);
  State& state = guard.state();
  if (!state.is_on) {
    if (state.is_active) rest(state);
    return kNever;
  }
  state.is_active = true;
  if (!is_gate_open()) {
    state.window.at_ns = state.active_since_ns = internal::now_ns();
    state.open_gate();
  }
  allow(state);
  drain(state);
  if (now_ns >= state.next_prepare_ns || state.next_prepare_ns - now_ns > kSecond) {
    unwind::prepare();
    state.next_prepare_ns = now_ns + kSecond;
  }
  note_window(state, internal::now_ns(), false);
  return internal::now_ns() - state.drained_ns < kSecond ? now_ns + kPassNs : kNever;
}

// Until the next pass.
void HeapSampler::allow(const State& state) {
  const internal::GovernorBudget& budget = state.budget;
  const double sample_bytes =
      state.stream_allocs == 0
          ? kFirstSampleBytes
          : static_cast<double>(state.stream_bytes) / static_cast<double>(state.stream_allocs);
  double of_cpu_ns = budget.max_cpu_ns > 0 ? 1e9 / budget.max_cpu_ns : 0;
  double of_sample = budget.max_bytes > 0 ? sample_bytes * 1e9 / budget.max_bytes : 0;
  __atomic_store(&g_allowance.of_cpu_ns, &of_cpu_ns, __ATOMIC_RELAXED);
  __atomic_store(&g_allowance.of_sample, &of_sample, __ATOMIC_RELAXED);
  __atomic_store_n(&g_allowance.pass_ns, internal::gate_now_ns(), __ATOMIC_RELAXED);
  __atomic_store_n(&g_allowance.limit, load(g_memory.spent) + kAllowanceNs, __ATOMIC_RELAXED);
}

bool HeapSampler::thin(std::uint32_t one_in) {
  const Guard guard(*this);
  State& state = guard.state();
  state.one_in = one_in;
  state.set_rate();
  return true;
}

std::uint32_t HeapSampler::thinned_to(std::uint32_t told) const {
  const Guard guard(*this);
  const State& state = guard.state();
  if (!state.is_on || !is_gate_open()) return told;
  return static_cast<std::uint32_t>(load(g_gate.rate_bytes) / state.options.sample_rate_bytes);
}

std::uint64_t HeapSampler::late_bytes() const {
  const Guard guard(*this);
  return guard.state().encoder.free_bytes();
}

void HeapSampler::set_budget(const internal::GovernorBudget& budget) {
  const Guard guard(*this);
  guard.state().budget = budget;
  allow(guard.state());
}

void HeapSampler::rest(State& state) {
  const bool can_close = is_gate_open() && state.generation != kLastGeneration;
  if (!state.is_active && !can_close) return;
  state.close_gate();
  drain(state);
  note_window(state, internal::now_ns(), true);
  state.is_active = false;
}

void HeapSampler::rest() {
  const Guard guard(*this);
  rest(guard.state());
}

std::vector<SourceStream> HeapSampler::take() {
  const Guard guard(*this);
  State& state = guard.state();
  drain(state);
  std::vector<SourceStream> streams = state.encoder.take();
  for (const SourceStream& stream : streams) state.stream_bytes += stream.bytes.size();
  state.stream_allocs = state.total.samples;
  return streams;
}

std::uint64_t HeapSampler::metadata_version() const {
  const Guard guard(*this);
  return guard.state().version;
}

Metadata HeapSampler::metadata() const {
  const Guard guard(*this);
  const State& state = guard.state();
  if (!state.was_asked) return {};
  Metadata entries{{"memory.profile.enabled", state.is_on ? "true" : "false"}};
  if (state.is_on) {
    entries.emplace_back("memory.sample_rate_bytes",
                         std::to_string(state.options.sample_rate_bytes));
    entries.emplace_back("memory.track_liveset", state.options.tracks_live ? "true" : "false");
    entries.emplace_back("memory.allocator", state.allocator);
  }
  if (!state.start_error.empty()) {
    entries.emplace_back("memory.profile.start_error", state.start_error);
  }
  return entries;
}

HeapSampleStatus HeapSampler::status() const {
  const Guard guard(*this);
  State& state = guard.state();
  state.read_counters();
  HeapSampleStatus status;
  status.is_sampling = state.is_on && is_gate_open();
  status.message = state.start_error;
  status.sample_rate_bytes = state.is_on ? state.options.sample_rate_bytes : 0;
  status.samples = state.total.samples;
  status.frees = state.total.frees;
  status.lost_samples = state.total.lost_samples;
  status.lost_frees = state.total.lost_frees;
  status.untracked = state.total.untracked;
  status.live_samples = g_memory.live.size();
  status.allocator = state.allocator;
  const std::uint64_t thinned_to = status.is_sampling ? load(g_gate.rate_bytes) : 0;
  status.current_rate_bytes = std::max(status.sample_rate_bytes, thinned_to);
  if (status.message.empty()) status.message = shortfall_of(status);
  return status;
}

}  // namespace dial9::heap

namespace dial9 {

Status add_heap_samples(const HeapSampleOptions& options) noexcept {
  return internal::no_exception([&] { return heap::HeapSampler::instance().start(options); },
                                internal::out_of_memory());
}

bool remove_heap_samples() noexcept {
  return internal::no_exception([&] { return heap::HeapSampler::instance().stop(); }, false);
}

HeapSampleStatus heap_sample_status() noexcept {
  return internal::no_exception([&] { return heap::HeapSampler::instance().status(); },
                                HeapSampleStatus{});
}

}  // namespace dial9
