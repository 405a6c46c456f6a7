// The governor's books: reads what the recorder has cost, lets the governor decide once a period,
// publishes its decision to the threads and writes both, the rates and the bill, into the trace.
// Strongest property: a rate is in the trace before the first event that was kept under it can be,
// and every later segment repeats those of the last seconds, so that none is read without its
// weight. Spec: docs/spec/recorder.md, "Budget"; the events in docs/spec/events_ours.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "recorder/governor.h"
#include "recorder/shed_rate.h"

namespace dial9::internal {

// Sums since the recorder began.
struct CostReading {
  std::uint64_t now_ns = 0;  // the collector's clock
  std::uint64_t events = 0;  // by the host's threads
  std::uint64_t bytes = 0;   // written, or waiting to be
  std::uint64_t collector_cpu_ns = 0;
  std::uint64_t sample_cpu_ns = 0;     // of the host's threads, for samples (StreamSource)
  std::uint64_t sample_bytes = 0;      // of `bytes`
  PerSampleKind<ThinnedCost> thinned;  // of these, and of the collector's
};

// What the recorder costs; of the last second or so, where it is a rate.
struct CostBill {
  double collector_cpu_percent = 0;  // of one CPU
  double producer_cpu_percent = 0;   // an estimate
  double bytes_per_second = 0;
  ShedCounts counts;  // since the recorder began
  KeepOneIn keep_one_in = kKeepAll;
  bool is_shedding = false;
  bool is_over_budget = false;
};

// The collector's thread only.
class CostKeeper {
 public:
  // `stamp_ns` is the clock of the events; `raises` is where threads put the rates that they raise
  // (burst_gate.h).
  CostKeeper(const GovernorBudget& budget, const ProducerCosts& costs,
             std::function<std::uint64_t()> stamp_ns, ShedRaises& raises);
  CostKeeper(const CostKeeper&) = delete;
  CostKeeper& operator=(const CostKeeper&) = delete;

  // When the next step is due; the collector sleeps no longer while something is shed.
  std::uint64_t next_ns() const { return next_ns_; }
  bool is_shedding() const { return governor_.is_shedding(); }
  const PerSampleKind<std::uint32_t>& samples_one_in() const { return governor_.samples_one_in(); }
  void adopt_samples(SampleKind kind, std::uint32_t one_in) {
    governor_.adopt_samples(kind, one_in);
  }
  // Too much was spent since the last step to wait for the next.
  bool is_burst(const CostReading& reading) const;
  // Rates that threads have raised go into the books; true if there are any, which are due in the
  // trace before the next event is. A step is due, too.
  bool take_raises();
  bool has_raises() const { return has_raises_; }
  // False: a thread is changing the rates at this moment, and a step is due at the next pass.
  bool step(const CostReading& reading);
  // What was taken of raises is in a segment.
  void forget_raises();
  // The end of the recording: counts what was decided since the last step.
  void finish(const CostReading& reading);

  // A stream with what is new for the trace; empty: nothing.
  std::vector<std::uint8_t> take_report();
  // A stream with the rates that may hold for events which a new segment gets; empty: none.
  std::vector<std::uint8_t> recent_rates();
  CostBill bill() const;

 private:
  void note_rates(std::uint64_t at_ns, const KeepOneIn& keep, const ShedCounts& counts);
  void note_base();
  void forget_old(std::uint64_t now_ns);
  GovernorSample sample_since_last(const CostReading& reading, const ShedCounts& now) const;
  void note_bill(const CostReading& reading);
  static std::vector<std::uint8_t> stream_of(const std::deque<ShedRate>& rates);

  const GovernorBudget budget_;
  const ProducerCosts producer_costs_;
  ShedRaises& raises_;
  std::uint32_t taken_raises_ = 0;
  bool has_raises_ = false;
  Governor governor_;
  const std::function<std::uint64_t()> stamp_ns_;
  const ShedCounts first_counts_;
  ShedCounts counts_;       // at the last step
  ShedCounts told_counts_;  // in the last rates
  std::uint64_t told_ns_ = 0;
  bool is_told_shedding_ = false;  // the last rates said that something is shed
  CostReading last_;
  std::uint64_t next_ns_ = 0;
  std::deque<ShedRate> recent_;
  std::deque<ShedRate> fresh_;
  // The bill of the second that runs.
  CostReading second_;
  std::uint64_t second_producer_ns_ = 0;
  std::uint64_t producer_ns_ = 0;
  std::uint64_t second_shed_ = 0;
  std::vector<std::uint8_t> fresh_bill_;
  CostBill bill_;
};

}  // namespace dial9::internal
