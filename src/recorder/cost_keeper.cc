// See cost_keeper.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/cost_keeper.h"

#include <algorithm>

#include "format/encoder.h"
#include "recorder/burst_gate.h"
#include "recorder/shedding.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
// An event lies in its thread's chunk for at most a second before it is drained; twice that.
constexpr std::uint64_t kRepeatNs = 2 * kSecond;

enum TypeId : std::uint16_t { kShed = 1, kBill = 2 };

double percent(std::uint64_t cpu_ns, std::uint64_t elapsed_ns) {
  return 100.0 * static_cast<double>(cpu_ns) / static_cast<double>(elapsed_ns);
}

}  // namespace

CostKeeper::CostKeeper(const GovernorBudget& budget, const ProducerCosts& costs,
                       std::function<std::uint64_t()> stamp_ns, ShedRaises& raises)
    : budget_(budget),
      producer_costs_(costs),
      raises_(raises),
      governor_(budget, costs),
      stamp_ns_(std::move(stamp_ns)),
      first_counts_(shed_counts()),
      counts_(first_counts_),
      told_counts_(first_counts_) {
  publish_shedding(kKeepAll, false);  // what a recorder before, or the parent of this fork, left
}

void CostKeeper::note_rates(std::uint64_t at_ns, const KeepOneIn& keep, const ShedCounts& counts) {
  for (const ShedRate& rate : rates_of({at_ns, is_told_shedding_ ? told_ns_ : at_ns, keep,
                                        bill_.keep_one_in, counts.since(told_counts_)})) {
    fresh_.push_back(rate);
    recent_.push_back(rate);
  }
  forget_old(at_ns);
  told_counts_ = counts;
  told_ns_ = at_ns;
  is_told_shedding_ = governor_.is_shedding();
  bill_.keep_one_in = keep;
}

bool CostKeeper::take_raises() {
  // Acquire pairs with the release in raise(): what is counted is whole, and stays until
  // forget_raises().
  const std::uint32_t count =
      std::min(__atomic_load_n(&raises_.count, __ATOMIC_ACQUIRE), kMostRaises);
  // Fewer: the arena has left its file, and begun anew.
  if (count < taken_raises_) taken_raises_ = 0;
  if (count == taken_raises_) return false;
  for (; taken_raises_ < count; ++taken_raises_) {
    const ShedRaise& raise = raises_.list[taken_raises_];
    governor_.adopt(raise.keep_one_in);
    note_rates(raise.at_ns, raise.keep_one_in, raise.counts);
  }
  has_raises_ = true;
  return true;
}

void CostKeeper::forget_raises() {
  if (taken_raises_ == 0) return;
  const RatesHold hold;
  if (!hold || raises_.count != taken_raises_) return;  // at a later pass
  __atomic_store_n(&raises_.count, 0U, __ATOMIC_RELEASE);
  taken_raises_ = 0;
  note_base();
}

void CostKeeper::forget_old(std::uint64_t now_ns) {
  while (!recent_.empty() && recent_.front().at_ns + kRepeatNs < now_ns) recent_.pop_front();
}

void CostKeeper::note_bill(const CostReading& reading) {
  const std::uint64_t elapsed_ns = reading.now_ns - second_.now_ns;
  if (second_.now_ns != 0 && elapsed_ns < kSecond) return;
  const std::uint64_t shed = counts_.since(first_counts_).shed_events();
  if (second_.now_ns != 0) {
    const std::uint64_t collector_ns = reading.collector_cpu_ns - second_.collector_cpu_ns;
    const std::uint64_t producer_ns = producer_ns_ - second_producer_ns_;
    const std::uint64_t bytes = reading.bytes - std::min(reading.bytes, second_.bytes);
    bill_.collector_cpu_percent = percent(collector_ns, elapsed_ns);
    bill_.producer_cpu_percent = percent(producer_ns, elapsed_ns);
    bill_.bytes_per_second = static_cast<double>(bytes) * 1e9 / static_cast<double>(elapsed_ns);
    if (reading.events != second_.events || shed != second_shed_) {
      using format::FieldType;
      format::Encoder out;
      out.schema(kBill, "RecorderBillEvent", true,
                 {{"elapsed_ns", FieldType::kVarint},
                  {"collector_cpu_ns", FieldType::kVarint},
                  {"host_cpu_ns", FieldType::kVarint},
                  {"bytes", FieldType::kVarint},
                  {"events", FieldType::kVarint},
                  {"shed", FieldType::kVarint}});
      out.annotations(
          kBill, {{0, "unit", "ns"}, {1, "unit", "ns"}, {2, "unit", "ns"}, {3, "unit", "bytes"}});
      out.begin(kBill, stamp_ns_());
      for (const std::uint64_t value : {elapsed_ns, collector_ns, producer_ns, bytes,
                                        reading.events - second_.events, shed - second_shed_}) {
        out.varint(value);
      }
      const std::vector<std::uint8_t> stream = out.take();
      fresh_bill_.insert(fresh_bill_.end(), stream.begin(), stream.end());
    }
  }
  second_ = reading;
  second_producer_ns_ = producer_ns_;
  second_shed_ = shed;
}

GovernorSample CostKeeper::sample_since_last(const CostReading& reading,
                                             const ShedCounts& now) const {
  GovernorSample sample;
  sample.elapsed_ns = last_.now_ns == 0 ? 0 : reading.now_ns - last_.now_ns;
  sample.events = reading.events - last_.events;
  sample.bytes = reading.bytes - std::min(reading.bytes, last_.bytes);
  sample.collector_cpu_ns = reading.collector_cpu_ns - last_.collector_cpu_ns;
  const auto grown = [](std::uint64_t now_is, std::uint64_t was) {
    return now_is - std::min(now_is, was);
  };
  sample.sample_cpu_ns = grown(reading.sample_cpu_ns, last_.sample_cpu_ns);
  sample.sample_bytes = std::min(sample.bytes, reading.sample_bytes - last_.sample_bytes);
  // No kind has more than there is of all.
  std::uint64_t host_ns = sample.sample_cpu_ns;
  std::uint64_t collector_ns = sample.collector_cpu_ns;
  std::uint64_t bytes = sample.sample_bytes;
  const auto part = [&](std::uint64_t& all, std::uint64_t now_is, std::uint64_t was) {
    const std::uint64_t taken = std::min(all, grown(now_is, was));
    all -= taken;
    return taken;
  };
  for (std::size_t k = 0; k < kSampleKinds; ++k) {
    const ThinnedCost& is = reading.thinned[k];
    const ThinnedCost& was = last_.thinned[k];
    sample.thinned[k] = {part(host_ns, is.host_cpu_ns, was.host_cpu_ns),
                         part(collector_ns, is.collector_cpu_ns, was.collector_cpu_ns),
                         part(bytes, is.bytes, was.bytes)};
  }
  sample.counts = now.since(counts_);
  return sample;
}

bool CostKeeper::is_burst(const CostReading& reading) const {
  return governor_.is_burst(sample_since_last(reading, counts_));
}

// What the next raises follow. Where there are some still, in their list: each follows the one
// before it.
void CostKeeper::note_base() {
  if (taken_raises_ != 0) {
    if (!is_told_shedding_ || raises_.count != taken_raises_ || taken_raises_ == kMostRaises)
      return;
    raises_.list[taken_raises_] = {told_ns_, bill_.keep_one_in, told_counts_};
    __atomic_store_n(&raises_.count, ++taken_raises_, __ATOMIC_RELEASE);
    return;
  }
  raises_.since_ns = is_told_shedding_ ? told_ns_ : 0;
  raises_.since_counts = told_counts_;
}

bool CostKeeper::step(const CostReading& reading) {
  const RatesHold hold;
  if (!hold) return false;
  take_raises();
  has_raises_ = false;
  next_ns_ = reading.now_ns + kGovernorPeriodNs;
  const ShedCounts now = shed_counts();
  const GovernorSample sample = sample_since_last(reading, now);
  last_ = reading;
  counts_ = now;
  producer_ns_ += governor_.producer_cpu_ns(sample);
  const bool was_shedding = governor_.is_shedding();
  governor_.step(sample);
  if (was_shedding || governor_.is_shedding()) {
    note_rates(stamp_ns_(), governor_.keep_one_in(), counts_);
    publish_shedding(governor_.keep_one_in(), governor_.is_shedding());
    note_base();
  }
  open_gate(budget_, producer_costs_, governor_.keep_one_in());
  note_bill(reading);
  return true;
}

void CostKeeper::finish(const CostReading& reading) {
  // The governor's sample goes on: a rotation ends here too, between two of its steps.
  const auto at_last_step = counts_;
  // Where a thread is raising the rates at this moment, the next step tells.
  const RatesHold hold;
  if (hold) take_raises();
  counts_ = shed_counts();
  if (hold && governor_.is_shedding()) {
    note_rates(stamp_ns_(), governor_.keep_one_in(), counts_);
    note_base();
  }
  note_bill(reading);
  counts_ = at_last_step;
}

std::vector<std::uint8_t> CostKeeper::stream_of(const std::deque<ShedRate>& rates) {
  if (rates.empty()) return {};
  format::Encoder out;
  put_rates(out, kShed, std::vector<ShedRate>(rates.begin(), rates.end()));
  return out.take();
}

std::vector<std::uint8_t> CostKeeper::take_report() {
  std::vector<std::uint8_t> report = stream_of(fresh_);
  report.insert(report.end(), fresh_bill_.begin(), fresh_bill_.end());
  fresh_.clear();
  fresh_bill_.clear();
  return report;
}

std::vector<std::uint8_t> CostKeeper::recent_rates() {
  if (!recent_.empty()) forget_old(stamp_ns_());
  return stream_of(recent_);
}

CostBill CostKeeper::bill() const {
  CostBill bill = bill_;
  bill.counts = shed_counts().since(first_counts_);
  bill.is_shedding = governor_.is_shedding();
  bill.is_over_budget = governor_.is_over_budget();
  return bill;
}

}  // namespace dial9::internal
