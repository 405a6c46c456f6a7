// See collector.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/collector.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "recorder/burst_gate.h"
#include "recorder/kept_files.h"
#include "recorder/own_cost.h"
#include "recorder/own_work.h"
#include "recorder/process_registry.h"
#include "recorder/recording_state.h"
#include "recorder/runtime_host.h"
#include "recorder/stream_source.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMs;
constexpr std::uint64_t kMinSleepNs = 1 * kMs;
constexpr std::uint64_t kBusySleepNs = 5 * kMs;
constexpr std::uint64_t kIdleSleepNs = 250 * kMs;
// The first corrections come quickly: the start's short measurement is the least exact.
constexpr std::uint64_t kFirstCalibrationNs = 10 * kMs;
constexpr std::uint64_t kLastCalibrationGapNs = 250 * kMs;
constexpr std::uint64_t kRuntimeSampleNs = 10 * kMs;
constexpr std::uint64_t kAnchorNs = 60 * kSecond;

std::size_t kind_of(const StreamSource& source) {
  return static_cast<std::size_t>(source.sample_kind());
}

// While it lives, this thread's CPU time is the source's; where a budget has to know it.
class ThinnedTime {
 public:
  ThinnedTime(const GovernorBudget& budget, const StreamSource& source, bool is_thinned,
              PerSampleKind<ThinnedCost>& costs)
      : cost_(budget.max_cpu_ns > 0 && is_thinned ? &costs[kind_of(source)] : nullptr),
        began_ns_(cost_ == nullptr ? 0 : thread_cpu_now_ns()) {}
  ~ThinnedTime() {
    if (cost_ != nullptr) cost_->collector_cpu_ns += thread_cpu_now_ns() - began_ns_;
  }
  ThinnedTime(const ThinnedTime&) = delete;
  ThinnedTime& operator=(const ThinnedTime&) = delete;

 private:
  ThinnedCost* const cost_;
  const std::uint64_t began_ns_;
};

}  // namespace

Collector::Collector(Arena& arena, SegmentStore& store, SegmentWriter& writer, CollectorSeams clock,
                     std::function<std::uint64_t()> metadata_version, ClockCalibration* calibration,
                     const GovernorBudget& budget)
    : arena_(arena),
      store_(store),
      writer_(writer),
      clock_(std::move(clock)),
      metadata_version_now_(std::move(metadata_version)),
      calibration_(calibration),
      drainer_(arena, writer),
      budget_(budget),
      off_stretch_(arena.header()),
      calibration_gap_ns_(kFirstCalibrationNs) {
  const std::uint64_t now = clock_.now_ns();
  next_calibration_ns_ = now + calibration_gap_ns_;
  next_second_ns_ = now + kSecond;
  next_anchor_ns_ = now + kAnchorNs;
  metadata_version_ = metadata_version_now_();
  window_start_ns_ = now;
  close_gate();  // a parent's, or another recorder's, until this one's books are there
  writer_.set_opening([this] { return opening(); });
  drainer_.set_before_append([this] { tell_raises(); });
}

std::vector<std::uint8_t> Collector::opening() {
  std::vector<std::uint8_t> streams;
  if (!clock_.has_sources) return streams;
  if (costs_ != nullptr) streams = costs_->recent_rates();
  for (StreamSource* source : stream_sources()) {
    const std::vector<std::uint8_t> one = source->opening();
    streams.insert(streams.end(), one.begin(), one.end());
  }
  return streams;
}

void Collector::recalibrate(std::uint64_t now_ns) {
  if (calibration_ == nullptr || now_ns < next_calibration_ns_) return;
  const ClockLine line = calibration_->correct(read_clock_pair());
  publish_clock(line);
  arena_.header().clock = line;
  renew_epoch();
  calibration_gap_ns_ = std::min(calibration_gap_ns_ * 3, kLastCalibrationGapNs);
  next_calibration_ns_ = now_ns + calibration_gap_ns_;
}

DrainResult Collector::drain_and_report(std::uint64_t now_ns, bool takes_all) {
  const DrainResult drained = drainer_.drain(now_ns, takes_all, own_tid_);
  seen_events_ += drained.events;
  seen_host_events_ += drained.host_events;
  waiting_bytes_ = drained.waiting_bytes;
  writer_.report_losses(now_ns);
  const std::uint64_t version = metadata_version_now_();
  const bool has_news = version != metadata_version_ || now_ns >= next_anchor_ns_;
  if (has_news) {
    metadata_version_ = version;
    next_anchor_ns_ = now_ns + kAnchorNs;
    writer_.write_metadata(now_ns);
  }
  // The trace goes on to here, whatever is the last event in it.
  tell_off(now_ns, has_news || takes_all);
  writer_.flush(now_ns);
  return drained;
}

CostReading Collector::cost_reading(std::uint64_t now_ns) const {
  CostReading reading;
  reading.now_ns = now_ns;
  reading.events = seen_host_events_;
  // What was recorded and isn't in a segment yet will be.
  reading.bytes = writer_.totals().bytes + waiting_bytes_;
  reading.collector_cpu_ns = thread_cpu_now_ns();
  reading.sample_bytes = stream_bytes_;
  reading.thinned = thinned_;
  for (StreamSource* source : stream_sources()) {
    const std::uint64_t cost_ns = source->host_cost_ns();
    reading.sample_cpu_ns += cost_ns;
    if (source->is_thinned_) reading.thinned[kind_of(*source)].host_cpu_ns += cost_ns;
  }
  return reading;
}

void Collector::keep_costs(std::uint64_t now_ns) {
  if (!clock_.has_sources) return;
  if (costs_ == nullptr) {
    costs_ = std::make_unique<CostKeeper>(budget_, calibrate_producer_costs(), internal::now_ns,
                                          arena_.header().raises);
  }
  decide_costs(now_ns);
  thin_sources();
  if (budget_.is_set()) pass_gate();
}

// Sources come at any time; one that can't be thinned says so each time.
void Collector::thin_sources() {
  const bool is_changed = samples_one_in_ != costs_->samples_one_in();
  samples_one_in_ = costs_->samples_one_in();
  for (StreamSource* source : stream_sources()) {
    if (!is_changed && source->has_budget_) continue;
    source->has_budget_ = true;
    source->set_budget(budget_);
    source->is_thinned_ = source->thin(samples_one_in_[kind_of(*source)]);
  }
}

// Before a decision: threads may have thinned further than they were told.
void Collector::adopt_thinning() {
  for (StreamSource* source : stream_sources()) {
    std::uint32_t& told = samples_one_in_[kind_of(*source)];
    if (!source->is_thinned_ || told == 0) continue;  // 0: of a recorder before this one
    told = source->thinned_to(told);
    costs_->adopt_samples(source->sample_kind(), told);
  }
}

// Each pass looks whether there is a burst.
void Collector::decide_costs(std::uint64_t now_ns) {
  costs_->take_raises();
  const bool is_due = now_ns >= costs_->next_ns() || costs_->has_raises();
  if (!is_due && !budget_.is_set()) return;
  const CostReading reading = cost_reading(now_ns);
  if (!is_due && !costs_->is_burst(reading)) return;
  adopt_thinning();
  costs_->step(reading);
  writer_.append_own(costs_->take_report(), now_ns);
  writer_.flush(now_ns);
  costs_->forget_raises();
}

// Before the events that were kept under them.
void Collector::tell_raises() {
  if (costs_ == nullptr || !costs_->take_raises()) return;
  writer_.append_own(costs_->take_report(), clock_.now_ns());
}

void Collector::tell_off(std::uint64_t now_ns, bool tells_what_goes_on) {
  const auto stretch = off_stretch_.look(internal::now_ns());
  if (!stretch || (stretch->goes_on && !tells_what_goes_on)) return;
  if (writer_.tell_off(stretch->first_ns, stretch->last_ns, now_ns)) off_stretch_.told(*stretch);
}

void Collector::sample(std::uint64_t now_ns) {
  next_always_ns_ = next_busy_ns_ = ~std::uint64_t{0};
  are_runtimes_quiet_ = true;
  if (!clock_.has_sources) return;
  if (recording_epoch() == 0) return rest_sources();
  are_runtimes_quiet_ = runtime_collect(internal::now_ns());
  const SourceRun run = run_due_sources(now_ns, clock_.now_ns);
  next_always_ns_ = run.next_always_ns;
  next_busy_ns_ = run.next_busy_ns;
  attend_streams(now_ns);
}

void Collector::attend_streams(std::uint64_t now_ns) {
  if (!clock_.has_sources || recording_epoch() == 0) return;
  for (StreamSource* source : stream_sources()) {
    const ThinnedTime time(budget_, *source, source->is_thinned_, thinned_);
    next_busy_ns_ = std::min(next_busy_ns_, source->attend(now_ns));
    next_always_ns_ = std::min(next_always_ns_, source->wake_ns());
  }
}

void Collector::rest_sources() {
  const WorkScope own(true);
  if (!clock_.has_sources) return;
  for (StreamSource* source : stream_sources()) source->rest();
  close_kept_files();
}

void Collector::take_streams(std::uint64_t now_ns) {
  if (!clock_.has_sources) return;
  for (StreamSource* source : stream_sources()) take_stream(*source, now_ns);
}

void Collector::take_stream(StreamSource& source, std::uint64_t now_ns) {
  const ThinnedTime time(budget_, source, source.is_thinned_, thinned_);
  std::uint64_t bytes = 0;
  for (const SourceStream& stream : source.take()) {
    writer_.append({}, stream.bytes, stream.info, now_ns);
    bytes += stream.bytes.size();
    seen_events_ += stream.info.events;
    source.events_.fetch_add(stream.info.events, std::memory_order_relaxed);
  }
  stream_bytes_ += bytes;
  const std::uint64_t late = source.late_bytes() - source.late_bytes_;
  source.late_bytes_ += late;
  if (source.is_thinned_) thinned_[kind_of(source)].bytes += bytes - std::min(bytes, late);
}

// A pass that doesn't take all leaves what is younger than kPartialDrainNs, by the pass's clock;
// while the host records any leaves what has its stamp and isn't published yet.
void Collector::tell_drained(std::uint64_t before_ns, bool is_all, std::uint64_t now_ns) {
  if (!clock_.has_sources) return;
  constexpr std::uint64_t kUnderWayNs = 10 * kMs;
  const std::uint64_t left_ns =
      (recording_epoch() != 0 ? kUnderWayNs : 0) + (is_all ? 0 : kPartialDrainNs);
  const std::uint64_t until_ns = before_ns - std::min(before_ns, left_ns);
  for (StreamSource* source : stream_sources()) {
    if (source->drained(until_ns, is_all) && is_all) take_stream(*source, now_ns);
  }
}

std::uint64_t Collector::step() {
  const WorkScope own(true);
  own_tid_ = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  const std::uint64_t began_ns = internal::now_ns();
  const std::uint64_t now = clock_.now_ns();
  recalibrate(now);
  sample(now);
  take_streams(now);
  const bool is_due = writer_.is_due(now);
  const std::uint64_t sampled_ns = internal::now_ns();
  const DrainResult drained = drain_and_report(now, is_due);
  tell_drained(is_due ? sampled_ns : began_ns, is_due, now);
  keep_costs(now);
  if (is_due) writer_.seal(now);
  if (now >= next_second_ns_) {
    writer_.check_intact(now);
    next_second_ns_ = now + kSecond;
  }
  update_counts(now, drained);
  last_pass_ns_ = now;
  return sleep_after(now, drained);
}

// A chunk that is filled in part is drained once a second: nothing older was in no segment.
void Collector::lose_buffers() {
  const std::uint64_t now = clock_.now_ns();
  const std::uint64_t since = last_pass_ns_ == 0 ? window_start_ns_ : last_pass_ns_;
  writer_.lose_buffers(since - std::min(since, kPartialDrainNs), now);
}

bool Collector::seal_all() {
  const WorkScope own(true);
  own_tid_ = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  const std::uint64_t now = clock_.now_ns();
  // What the kernel sampled since the last pass belongs into this segment: whoever asks for it may
  // be in trouble just now.
  try {
    attend_streams(now);
  } catch (const std::bad_alloc&) {  // then they lie in the next one
  }
  take_streams(now);
  const std::uint64_t before_ns = internal::now_ns();
  const DrainResult drained = drain_and_report(now, true);
  tell_drained(before_ns, true, now);
  if (costs_ != nullptr) {
    costs_->finish(cost_reading(now));
    writer_.append_own(costs_->take_report(), now);
  }
  const bool is_sealed = writer_.seal(now);
  update_counts(now, drained);
  return is_sealed && writer_.failure().empty();
}

std::uint64_t Collector::sleep_after(std::uint64_t now_ns, const DrainResult& drained) {
  const bool is_busy = drained.host_events != 0;
  if (is_busy) {
    const bool is_tight = arena_.free_chunks() < arena_.chunk_count() / 2;
    sleep_ns_ = is_tight ? kMinSleepNs : kBusySleepNs;
  } else {
    sleep_ns_ = std::min(std::max(sleep_ns_, kBusySleepNs) * 2, kIdleSleepNs);
  }
  std::uint64_t until = now_ns + sleep_ns_;
  if (calibration_ != nullptr && calibration_gap_ns_ < kLastCalibrationGapNs) {
    until = std::min(until, next_calibration_ns_);
  }
  until = std::min(until, next_always_ns_);
  if (costs_ != nullptr && costs_->is_shedding()) until = std::min(until, costs_->next_ns());
  if (!are_runtimes_quiet_) until = std::min(until, now_ns + kRuntimeSampleNs);
  if (sleep_ns_ < kIdleSleepNs) until = std::min(until, next_busy_ns_);
  return until > now_ns + kMinSleepNs ? until - now_ns : kMinSleepNs;
}

void Collector::update_counts(std::uint64_t now_ns, const DrainResult& drained) {
  const WriterTotals& totals = writer_.totals();
  const std::lock_guard lock(counts_mutex_);
  counts_.events_written = totals.events;
  counts_.bytes_written = totals.bytes;
  counts_.segments_sealed = totals.sealed;
  counts_.segments_evicted = store_.evicted();
  counts_.bytes_held = store_.bytes_held();
  counts_.failure = writer_.failure();
  if (costs_ != nullptr) counts_.bill = costs_->bill();
  if (drained.events != 0) counts_.last_event_ns = now_ns;
  const std::uint64_t window = now_ns - window_start_ns_;
  if (window >= kSecond) {
    const double seconds = static_cast<double>(window) / static_cast<double>(kSecond);
    counts_.events_per_second = static_cast<double>(seen_events_ - window_events_) / seconds;
    counts_.bytes_per_second = static_cast<double>(totals.bytes - window_bytes_) / seconds;
    window_start_ns_ = now_ns;
    window_events_ = seen_events_;
    window_bytes_ = totals.bytes;
  }
}

CollectorCounts Collector::counts() const {
  const std::lock_guard lock(counts_mutex_);
  return counts_;
}

}  // namespace dial9::internal
