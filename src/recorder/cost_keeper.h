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

namespace dial9::internal {

// Sums since the recorder began.
struct CostReading {
  std::uint64_t now_ns = 0;  // the collector's clock
  std::uint64_t events = 0;  // by the host's threads
  std::uint64_t bytes = 0;   // written, or waiting to be
  std::uint64_t collector_cpu_ns = 0;
  std::uint64_t sample_cpu_ns = 0;  // of the host's threads, for samples (StreamSource)
  std::uint64_t sample_bytes = 0;   // of `bytes`
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
  // `stamp_ns` is the clock of the events.
  CostKeeper(const GovernorBudget& budget, const ProducerCosts& costs,
             std::function<std::uint64_t()> stamp_ns);
  CostKeeper(const CostKeeper&) = delete;
  CostKeeper& operator=(const CostKeeper&) = delete;

  // When the next step is due; the collector sleeps no longer while something is shed.
  std::uint64_t next_ns() const { return next_ns_; }
  bool is_shedding() const { return governor_.is_shedding(); }
  // Too much was spent since the last step to wait for the next.
  bool is_burst(const CostReading& reading) const;
  void step(const CostReading& reading);
  // The end of the recording: counts what was decided since the last step.
  void finish(const CostReading& reading);

  // A stream with what is new for the trace; empty: nothing.
  std::vector<std::uint8_t> take_report();
  // A stream with the rates that may hold for events which a new segment gets; empty: none.
  std::vector<std::uint8_t> recent_rates();
  CostBill bill() const;

 private:
  struct Rate {
    std::uint64_t at_ns;
    std::uint64_t since_ns;
    std::size_t shed_class;
    double keep_one_in;
    std::uint64_t kept;
    std::uint64_t shed;
  };
  void note_rates(std::uint64_t at_ns, const KeepOneIn& keep, bool was_shedding);
  void forget_old(std::uint64_t now_ns);
  GovernorSample sample_since_last(const CostReading& reading, const ShedCounts& now) const;
  void note_bill(const CostReading& reading);
  static std::vector<std::uint8_t> stream_of(const std::deque<Rate>& rates);

  Governor governor_;
  const std::function<std::uint64_t()> stamp_ns_;
  const ShedCounts first_counts_;
  ShedCounts counts_;       // at the last step
  ShedCounts told_counts_;  // in the last rates
  std::uint64_t told_ns_ = 0;
  CostReading last_;
  std::uint64_t next_ns_ = 0;
  std::deque<Rate> recent_;
  std::deque<Rate> fresh_;
  // The bill of the second that runs.
  CostReading second_;
  std::uint64_t second_producer_ns_ = 0;
  std::uint64_t producer_ns_ = 0;
  std::uint64_t second_shed_ = 0;
  std::vector<std::uint8_t> fresh_bill_;
  CostBill bill_;
};

}  // namespace dial9::internal
