// The governor against a simulated host: loads, bursts and recoveries, with sizes and costs that
// differ from what the governor takes for granted.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/governor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace dial9::internal {
namespace {

using Rates = PerClass<double>;  // units a second

constexpr auto kCpuKind = static_cast<std::size_t>(SampleKind::kCpu);
constexpr double kTrueEventNs = 33;
constexpr double kTrueShedNs = 3;
constexpr double kCollectorNs = 9;            // an event
constexpr std::uint64_t kPassNs = 5'000'000;  // of the collector, while the host records
constexpr Rates kTrueBytes = {61, 15, 41, 29, 77, 11};

// A service whose events are mostly polls and wakes.
constexpr Rates kService = {20'000, 40'000, 5'000, 40'000, 4'000, 2'000};

Rates times(const Rates& rates, double factor) {
  Rates out{};
  for (std::size_t c = 0; c < kShedClasses; ++c) out[c] = rates[c] * factor;
  return out;
}

double bytes_of(const Rates& rates) {
  double sum = 0;
  for (std::size_t c = 0; c < kShedClasses; ++c) sum += rates[c] * kTrueBytes[c];
  return sum;
}

double events_of(const Rates& rates) {
  double sum = 0;
  for (std::size_t c = 0; c < kShedClasses; ++c) sum += rates[c] * kEventsOfUnit[c];
  return sum;
}

double cpu_of(const Rates& rates) { return events_of(rates) * (kTrueEventNs + kCollectorNs); }

class Simulation {
 public:
  explicit Simulation(const GovernorBudget& budget)
      : governor_(budget, {kTrueEventNs, kTrueShedNs}) {}

  // Runs periods of that load, each with up to `noise` more or less; returns what each cost.
  void run(double seconds, const Rates& load, double noise = 0) {
    const auto periods = static_cast<int>(seconds * 1e9 / kGovernorPeriodNs + 0.5);
    for (int i = 0; i < periods; ++i) period(times(load, 1 + noise * random()));
  }

  // Samples of so many bytes a second come on top.
  void take_samples(double bytes) { sample_bytes_ = bytes; }
  // And such that can be thinned, of so much CPU time a second if they aren't.
  void take_thinned_samples(double cpu_ns) { thinned_cpu_ = cpu_ns; }

  // What threads did, before the next pass.
  void adopt(const KeepOneIn& keep) { governor_.adopt(keep); }

  double bytes_per_second(std::size_t from, std::size_t count) const {
    return sum(bytes_, from, count);
  }
  double cpu_per_second(std::size_t from, std::size_t count) const {
    return sum(cpu_, from, count);
  }
  std::size_t periods() const { return bytes_.size(); }
  const Governor& governor() const { return governor_; }
  const std::vector<KeepOneIn>& history() const { return history_; }

 private:
  double random() {  // -1 to 1
    seed_ = seed_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<double>(seed_ >> 33) / static_cast<double>(std::uint64_t{1} << 30) - 1;
  }

  static double sum(const std::vector<double>& of, std::size_t from, std::size_t count) {
    double total = 0;
    for (std::size_t i = from; i < from + count; ++i) total += of[i];
    return total / static_cast<double>(count) * 1e9 / kGovernorPeriodNs;
  }

  void period(const Rates& load) {
    bytes_.push_back(0);
    cpu_.push_back(0);
    for (std::uint64_t ns = 0; ns < kGovernorPeriodNs; ns += kPassNs) pass(load);
    history_.push_back(governor_.keep_one_in());
  }

  // The collector's: it looks, and decides where that is due.
  void pass(const Rates& load) {
    constexpr double kSeconds = kPassNs / 1e9;
    double bytes = sample_bytes_ * kSeconds;
    double events = 0;
    double cpu = 0;
    for (std::size_t c = 0; c < kShedClasses; ++c) {
      const double units = load[c] * kSeconds;
      const double kept = units / governor_.keep_one_in()[c];
      bytes += kept * kTrueBytes[c];
      events += kept * kEventsOfUnit[c];
      if (!governor_.is_shedding()) continue;
      so_far_.counts.kept[c] += static_cast<std::uint64_t>(kept);
      so_far_.counts.shed[c] += static_cast<std::uint64_t>(units - kept);
      cpu += (units - kept) * kTrueShedNs;
    }
    cpu += events * (kTrueEventNs + kCollectorNs);
    const double samples = thinned_cpu_ * kSeconds / governor_.samples_one_in()[kCpuKind];
    cpu += samples;
    so_far_.sample_cpu_ns += static_cast<std::uint64_t>(samples);
    so_far_.thinned[kCpuKind].host_cpu_ns += static_cast<std::uint64_t>(samples);
    so_far_.elapsed_ns += kPassNs;
    so_far_.bytes += static_cast<std::uint64_t>(bytes);
    so_far_.sample_bytes += static_cast<std::uint64_t>(sample_bytes_ * kSeconds);
    so_far_.events += static_cast<std::uint64_t>(events);
    so_far_.collector_cpu_ns += static_cast<std::uint64_t>(events * kCollectorNs);
    bytes_.back() += bytes;
    cpu_.back() += cpu;
    if (so_far_.elapsed_ns < kGovernorPeriodNs && !governor_.is_burst(so_far_)) return;
    governor_.step(so_far_);
    so_far_ = {};
  }

  Governor governor_;
  GovernorSample so_far_;
  double sample_bytes_ = 0;
  double thinned_cpu_ = 0;
  std::uint64_t seed_ = 1;
  std::vector<double> bytes_;
  std::vector<double> cpu_;
  std::vector<KeepOneIn> history_;
};

GovernorBudget bytes_budget(double bytes) { return {0, bytes}; }
GovernorBudget cpu_budget(double ns) { return {ns, 0}; }

TEST(Governor, keeps_everything_while_the_load_fits) {
  Simulation host(bytes_budget(bytes_of(kService) * 1.2));
  host.run(20, kService, 0.1);
  EXPECT_FALSE(host.governor().is_shedding());
  EXPECT_EQ(host.governor().keep_one_in(), kKeepAll);
}

TEST(Governor, sheds_nothing_without_a_budget) {
  Simulation host(GovernorBudget{});
  host.run(5, times(kService, 1'000));
  EXPECT_FALSE(host.governor().is_shedding());
}

TEST(Governor, holds_the_bytes_of_a_burst_of_twenty_times_the_load_from_its_first_second_on) {
  const double budget = bytes_of(kService) * 1.2;
  Simulation host(bytes_budget(budget));
  host.run(5, kService);
  const std::size_t begin = host.periods();
  host.run(20, times(kService, 20), 0.1);
  for (std::size_t at = begin; at + 10 <= host.periods(); ++at) {
    EXPECT_LE(host.bytes_per_second(at, 10), budget * 1.1) << "in the second from period " << at;
  }
}

TEST(Governor, uses_the_budget_that_there_is) {
  const double budget = bytes_of(kService) * 1.2;
  Simulation host(bytes_budget(budget));
  host.run(60, times(kService, 20), 0.1);
  EXPECT_GE(host.bytes_per_second(300, 300), budget * 0.9);
}

TEST(Governor, holds_the_cpu_of_a_burst_of_twenty_times_the_load_from_its_first_second_on) {
  // Looking at an event without keeping it costs a tenth of keeping it: room for that is needed.
  const double budget = cpu_of(kService) * 2.5;
  Simulation host(cpu_budget(budget));
  host.run(5, kService);
  const std::size_t begin = host.periods();
  host.run(20, times(kService, 20), 0.1);
  for (std::size_t at = begin; at + 10 <= host.periods(); ++at) {
    EXPECT_LE(host.cpu_per_second(at, 10), budget * 1.1) << "in the second from period " << at;
  }
  EXPECT_FALSE(host.governor().is_over_budget());
}

TEST(Governor, says_so_where_even_shedding_everything_costs_more_than_the_budget) {
  Simulation host(cpu_budget(cpu_of(kService) * 0.5));
  host.run(5, times(kService, 20));
  EXPECT_TRUE(host.governor().is_over_budget());
  EXPECT_EQ(host.governor().keep_one_in()[0], kKeepLimits[1]);
}

TEST(Governor, holds_both_budgets_at_once) {
  const double bytes = bytes_of(kService) * 3;
  const double cpu = cpu_of(kService) * 2;
  Simulation host(GovernorBudget{cpu, bytes});
  host.run(10, times(kService, 10), 0.1);
  EXPECT_LE(host.bytes_per_second(0, 50), bytes * 1.1);
  EXPECT_LE(host.cpu_per_second(0, 50), cpu * 1.1);
}

TEST(Governor, leaves_to_samples_what_they_take_and_sheds_the_rest_by_it) {
  const double budget = bytes_of(kService) * 1.2;
  Simulation host(bytes_budget(budget));
  host.take_samples(budget * 0.4);
  host.run(20, times(kService, 20), 0.1);
  for (std::size_t at = 0; at + 10 <= host.periods(); ++at) {
    EXPECT_LE(host.bytes_per_second(at, 10), budget * 1.1) << "in the second from period " << at;
  }
  EXPECT_GE(host.bytes_per_second(100, 100), budget * 0.9);
  EXPECT_FALSE(host.governor().is_over_budget());
}

TEST(Governor, says_so_where_samples_alone_take_more_than_the_budget) {
  Simulation host(bytes_budget(1e6));
  host.take_samples(1.2e6);
  host.run(2, Rates{});
  EXPECT_TRUE(host.governor().is_over_budget());
  EXPECT_FALSE(host.governor().is_shedding()) << "there is nothing to shed";
  host.run(2, kService);
  EXPECT_TRUE(host.governor().is_over_budget());
  host.take_samples(0.1e6);
  host.run(2, Rates{});
  EXPECT_FALSE(host.governor().is_over_budget());
}

TEST(Governor, takes_all_samples_while_everything_fits) {
  const double budget = cpu_of(kService) * 2;
  Simulation host(cpu_budget(budget));
  host.take_thinned_samples(budget * 0.35);
  host.run(20, kService, 0.1);
  EXPECT_EQ(host.governor().samples_one_in()[kCpuKind], 1U);
  EXPECT_FALSE(host.governor().is_shedding());
}

TEST(Governor, thins_samples_that_alone_take_more_than_the_budget) {
  constexpr double kTenthOfAPercent = 1e6;
  Simulation host(cpu_budget(kTenthOfAPercent));
  host.take_thinned_samples(kTenthOfAPercent * 7.5);
  host.run(10, Rates{});
  EXPECT_EQ(host.governor().samples_one_in()[kCpuKind], 16U);
  for (std::size_t at = 0; at + 10 <= host.periods(); ++at) {
    EXPECT_LE(host.cpu_per_second(at, 10), kTenthOfAPercent * 1.1) << "from period " << at;
  }
  EXPECT_FALSE(host.governor().is_over_budget());
  host.take_thinned_samples(kTenthOfAPercent / 2);
  host.run(20, Rates{});
  EXPECT_EQ(host.governor().samples_one_in()[kCpuKind], 1U);
}

TEST(Governor, leaves_half_of_a_short_budget_to_the_classes) {
  const double budget = cpu_of(kService) * 5;
  Simulation host(cpu_budget(budget));
  host.take_thinned_samples(budget * 0.9);
  host.run(10, times(kService, 20), 0.1);
  EXPECT_EQ(host.governor().samples_one_in()[kCpuKind], 2U);
  EXPECT_LE(host.cpu_per_second(0, 10), budget * 1.1);
  EXPECT_LE(host.cpu_per_second(50, 50), budget * 1.1);
  EXPECT_GE(host.cpu_per_second(50, 50), budget * 0.9);
  EXPECT_FALSE(host.governor().is_over_budget());
}

TEST(Governor, says_so_where_the_thinnest_samples_take_more_than_the_budget) {
  Simulation host(cpu_budget(1e6));
  host.take_thinned_samples(100e6);
  host.run(5, Rates{});
  EXPECT_EQ(host.governor().samples_one_in()[kCpuKind], kMostSamplesOneIn[kCpuKind]);
  EXPECT_TRUE(host.governor().is_over_budget());
}

TEST(Governor, takes_over_rates_that_threads_have_raised) {
  Simulation host(bytes_budget(bytes_of(kService) * 1.2));
  host.run(1, kService);
  host.adopt({32, 32, 4, 1, 1, 1});
  EXPECT_TRUE(host.governor().is_shedding());
  host.run(0.1, times(kService, 20));
  EXPECT_EQ(host.governor().keep_one_in()[0], 32);
  host.run(10, kService);
  EXPECT_FALSE(host.governor().is_shedding());
  EXPECT_EQ(host.governor().keep_one_in(), kKeepAll);
}

TEST(Governor, bills_the_time_that_samples_take_on_the_hosts_threads) {
  const Governor governor({}, {kTrueEventNs, kTrueShedNs});
  GovernorSample sample;
  sample.events = 1'000;
  sample.sample_cpu_ns = 500'000;
  EXPECT_EQ(governor.producer_cpu_ns(sample), 533'000U);
}

TEST(Governor, sheds_in_the_order_of_the_classes) {
  Simulation host(bytes_budget(bytes_of(kService)));
  host.run(20, times(kService, 1.3));
  const KeepOneIn slight = host.governor().keep_one_in();
  EXPECT_GT(slight[0], 1);
  for (std::size_t c = 1; c < kShedClasses; ++c) EXPECT_EQ(slight[c], 1) << shed_class_name(c);
  host.run(20, times(kService, 4));
  const KeepOneIn much = host.governor().keep_one_in();
  EXPECT_EQ(much[0], kKeepLimits[0]);
  EXPECT_EQ(much[1], kKeepLimits[0]);
  EXPECT_GT(much[3], 1);
  EXPECT_EQ(much[4], 1);
  EXPECT_EQ(much[5], 1);
}

TEST(Governor, keeps_steady_rates_under_a_steady_load) {
  Simulation host(bytes_budget(bytes_of(kService)));
  host.run(60, times(kService, 5));
  const std::vector<KeepOneIn>& history = host.history();
  for (std::size_t c = 0; c < kShedClasses; ++c) {
    double least = history.back()[c];
    double most = least;
    for (std::size_t i = history.size() - 100; i < history.size(); ++i) {
      least = std::min(least, history[i][c]);
      most = std::max(most, history[i][c]);
    }
    EXPECT_LE(most / least, 1.02) << shed_class_name(c);
  }
}

TEST(Governor, recovers_after_a_burst_and_doesnt_turn_back) {
  Simulation host(bytes_budget(bytes_of(kService) * 1.2));
  host.run(10, times(kService, 20));
  const std::size_t end = host.periods();
  host.run(60, kService);
  EXPECT_FALSE(host.governor().is_shedding());
  const std::vector<KeepOneIn>& history = host.history();
  for (std::size_t i = end + 2; i < history.size(); ++i) {
    for (std::size_t c = 0; c < kShedClasses; ++c) {
      EXPECT_LE(history[i][c], history[i - 1][c]) << shed_class_name(c) << " in period " << i;
    }
  }
}

TEST(Governor, stays_at_rest_for_a_load_that_comes_and_goes_about_the_budget) {
  Simulation host(bytes_budget(bytes_of(kService)));
  std::size_t turns = 0;
  bool was_shedding = false;
  for (int i = 0; i < 100; ++i) {
    host.run(0.5, times(kService, i % 2 == 0 ? 0.95 : 1.05));
    turns += host.governor().is_shedding() != was_shedding ? 1U : 0U;
    was_shedding = host.governor().is_shedding();
  }
  EXPECT_LE(turns, 2U);
}

}  // namespace
}  // namespace dial9::internal
