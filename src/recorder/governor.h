// The governor: from what the recorder cost in the last period and what it was asked to record, to
// how much of each class it keeps in the next. Pure arithmetic: time, counts and costs come in by
// argument. Strongest property: it decides by demand, which its own shedding doesn't change, so a
// steady load gives steady rates. Spec: docs/spec/recorder.md, "Budget"; why:
// docs/adr/0004-governor.md.
//
//   demand by class ─► fill the budget in the order of classes ─► keep one in N, for each
//   cost of the period ─► cost of a unit of each class (learned), debt to be paid back
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "recorder/shed_class.h"

namespace dial9::internal {

// How long one decision holds, unless a burst ends it (is_burst).
inline constexpr std::uint64_t kGovernorPeriodNs = 100'000'000;
// And at least.
inline constexpr std::uint64_t kLeastDecisionNs = 4'000'000;
// A class is thinned to one in the first of these before the next one is touched; when all are
// there, to the second.
inline constexpr std::array<double, 2> kKeepLimits = {32, 1024};
// While a budget is short, samples that can be thinned get at most this share of it. Heap samples
// go first, until they take half of that; CPU samples get what they leave. Of each kind one in this
// many is taken at the least. Large allocations are heap samples however far they are thinned: it
// takes more for the same effect.
inline constexpr double kSampleShare = 0.5;
inline constexpr PerSampleKind<std::uint32_t> kMostSamplesOneIn = {1U << 20, 64};

enum GovernedCost : std::uint8_t { kCpuCost, kBytesCost, kGovernedCosts };

// What is allowed, a second; 0: no limit.
struct GovernorBudget {
  double max_cpu_ns = 0;
  double max_bytes = 0;
  bool is_set() const { return max_cpu_ns > 0 || max_bytes > 0; }
};

// Estimates of what the host's threads pay.
struct ProducerCosts {
  double event_ns = 30;  // of an event that is kept
  double shed_ns = 4;    // of a unit that is not
};

// What samples of one kind took that can be thinned.
struct ThinnedCost {
  std::uint64_t host_cpu_ns = 0;
  std::uint64_t collector_cpu_ns = 0;
  std::uint64_t bytes = 0;
};

// What happened since the sample before.
struct GovernorSample {
  std::uint64_t elapsed_ns = 0;
  std::uint64_t events = 0;  // recorded by the host's threads
  std::uint64_t bytes = 0;   // written, or waiting to be
  std::uint64_t collector_cpu_ns = 0;
  // Of these, what samples took: no class can be thinned for it.
  std::uint64_t sample_cpu_ns = 0;  // on the host's threads; beside `events`
  std::uint64_t sample_bytes = 0;   // of `bytes`
  // What falls with samples_one_in(), of the sums above.
  PerSampleKind<ThinnedCost> thinned;
  ShedCounts counts;  // kept is known only if something was shed
};

// Not thread-safe: the collector's.
class Governor {
 public:
  Governor(const GovernorBudget& budget, const ProducerCosts& costs);

  // Once a period, or later; or as soon as there is a burst.
  void step(const GovernorSample& sample);
  // Threads have thinned the classes since the last step (burst_gate.h).
  void adopt(const KeepOneIn& keep);
  // What was spent since the last step is so much more than it may be that the next decision can't
  // wait: twice the budget's rate, and over a quarter of what a whole period allows.
  bool is_burst(const GovernorSample& so_far) const;

  const KeepOneIn& keep_one_in() const { return keep_; }
  bool is_shedding() const { return is_shedding_; }
  // Of samples that can be thinned one in so many is to be taken: a power of two.
  const PerSampleKind<std::uint32_t>& samples_one_in() const { return samples_one_in_; }
  // What was taken since the last step was one in so many.
  void adopt_samples(SampleKind kind, std::uint32_t one_in);
  // Everything that may be shed is thinned to the last limit, and it isn't enough; or samples alone
  // take more than the budget.
  bool is_over_budget() const { return is_over_; }
  // The host's threads, in the sample: an estimate.
  std::uint64_t producer_cpu_ns(const GovernorSample& sample) const;

 private:
  using Demand = PerClass<double>;  // units a second
  struct Limit {
    double budget = 0;  // a second; 0: none
    double debt_s = 0;  // spent beyond it, in seconds of budget
    double fixed = 0;   // a second, as of the last sample: what no class is thinned for
    PerSampleKind<double> samples{};  // a second, if none were left out
    double unit_of_shed = 0;
    PerClass<double> unit{};  // of a kept one, learned
  };

  struct Used {
    double all[kGovernedCosts];                     // a second
    double fixed[kGovernedCosts];                   // of it
    PerSampleKind<double> thinned[kGovernedCosts];  // of that
  };
  Used used_in(const GovernorSample& sample) const;
  void learn(Limit& limit, double used, const Demand& kept, const Demand& shed) const;
  static void owe(Limit& limit, double used, double seconds);
  static double allowed(const Limit& limit);
  static double cost(const Limit& limit, const Demand& demand, const KeepOneIn& keep);
  bool fits(const Demand& demand, const KeepOneIn& keep, double share) const;
  double thinning(const Demand& demand, const KeepOneIn& keep, std::size_t c, double most) const;
  KeepOneIn plan(const Demand& demand, bool* fits_budget) const;
  void begin_shedding(const GovernorSample& sample, const Used& used);
  void thin_samples(const Used& used, std::uint64_t elapsed_ns);
  double samples_thinning(const Used& used, std::size_t kind) const;

  const ProducerCosts costs_;
  Limit limits_[kGovernedCosts];
  KeepOneIn keep_ = kKeepAll;
  bool is_shedding_ = false;
  bool is_over_ = false;
  bool is_adopted_ = false;  // since the last step, when all was kept
  PerSampleKind<std::uint32_t> samples_one_in_ = {1, 1};
  PerSampleKind<std::uint64_t> samples_calm_ns_{};  // for so long half of it would have done
  std::uint64_t calm_ns_ = 0;                       // for so long everything would have fitted
};

}  // namespace dial9::internal
