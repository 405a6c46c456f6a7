// See governor.h.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/governor.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace dial9::internal {
namespace {

// Aims a little below the budget, and lower while there is a debt: a debt of a fifth of a second,
// which a burst makes until it is noticed, takes four tenths off and is gone within a second.
constexpr double kAim = 0.97;
constexpr double kPayback = 2;
constexpr double kLeastAim = 0.5;
constexpr double kMostDebtS = 5;
constexpr double kMostCreditS = 0.2;
// Of what was mistaken about the cost of a unit, so much is corrected a period.
constexpr double kLearning = 0.7;
// Rates fall at once and recover by this factor a period.
constexpr double kRecovery = 0.7;
// Shedding ends when all would have fitted into this share for so long.
constexpr double kCalmShare = 0.9;
constexpr std::uint64_t kCalmNs = 1'000'000'000;
// What samples cost differs from period to period: so much of a difference is believed.
constexpr double kSampleLearning = 0.4;

// Until learned: bytes of a unit, and the events that it costs to record.
constexpr PerClass<double> kFirstBytes = {28, 14, 46, 26, 90, 12};
constexpr PerClass<double> kFirstEvents = {1, 1, 2, 2, 2.5, 1};

double sum_of(const PerSampleKind<double>& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

}  // namespace

Governor::Governor(const GovernorBudget& budget, const ProducerCosts& costs) : costs_(costs) {
  limits_[kCpuCost].budget = budget.max_cpu_ns;
  limits_[kCpuCost].unit_of_shed = costs.shed_ns;
  limits_[kBytesCost].budget = budget.max_bytes;
  for (std::size_t c = 0; c < kShedClasses; ++c) {
    limits_[kCpuCost].unit[c] = kFirstEvents[c] * costs.event_ns;
    limits_[kBytesCost].unit[c] = kFirstBytes[c];
  }
}

Governor::Used Governor::used_in(const GovernorSample& sample) const {
  const double seconds = static_cast<double>(sample.elapsed_ns) / 1e9;
  Used used{};
  used.all[kCpuCost] =
      static_cast<double>(producer_cpu_ns(sample) + sample.collector_cpu_ns) / seconds;
  used.all[kBytesCost] = static_cast<double>(sample.bytes) / seconds;
  used.fixed[kCpuCost] = static_cast<double>(sample.sample_cpu_ns) / seconds;
  used.fixed[kBytesCost] = static_cast<double>(sample.sample_bytes) / seconds;
  for (std::size_t k = 0; k < kSampleKinds; ++k) {
    const ThinnedCost& cost = sample.thinned[k];
    const double collector = static_cast<double>(cost.collector_cpu_ns) / seconds;
    used.fixed[kCpuCost] += collector;
    used.thinned[kCpuCost][k] = static_cast<double>(cost.host_cpu_ns) / seconds + collector;
    used.thinned[kBytesCost][k] = static_cast<double>(cost.bytes) / seconds;
  }
  return used;
}

bool Governor::is_burst(const GovernorSample& so_far) const {
  // Where nothing is left to shed there is nothing to decide before the period's end.
  if ((is_shedding_ && is_over_) || so_far.elapsed_ns < kLeastDecisionNs) return false;
  const Used used = used_in(so_far);
  const double share = static_cast<double>(so_far.elapsed_ns) / kGovernorPeriodNs;
  for (std::size_t i = 0; i < kGovernedCosts; ++i) {
    const double times = limits_[i].budget <= 0 ? 0 : used.all[i] / limits_[i].budget;
    if (times > 2 && times * share > 0.25) return true;
  }
  return false;
}

std::uint64_t Governor::producer_cpu_ns(const GovernorSample& sample) const {
  double ns = static_cast<double>(sample.events) * costs_.event_ns +
              static_cast<double>(sample.sample_cpu_ns);
  for (std::size_t c = 0; c < kShedClasses; ++c) {
    ns += static_cast<double>(sample.counts.shed[c]) * costs_.shed_ns;
  }
  return static_cast<std::uint64_t>(ns);
}

// Puts what the last estimate missed on the classes that cost most.
void Governor::learn(Limit& limit, double used, const Demand& kept, const Demand& shed) const {
  double expected = 0;
  double squares = 0;
  for (std::size_t c = 0; c < kShedClasses; ++c) {
    const double share = kept[c] * limit.unit[c];
    expected += share + shed[c] * limit.unit_of_shed;
    squares += share * share;
  }
  if (squares <= 0) return;
  for (std::size_t c = 0; c < kShedClasses; ++c) {
    if (kept[c] <= 0) continue;
    const double share = kept[c] * limit.unit[c];
    const double change = kLearning * (used - expected) * share * share / squares / kept[c];
    limit.unit[c] = std::clamp(limit.unit[c] + change, limit.unit[c] / 4, limit.unit[c] * 4);
  }
}

void Governor::owe(Limit& limit, double used, double seconds) {
  if (limit.budget <= 0) return;
  const double more = (used / limit.budget - 1) * seconds;
  limit.debt_s = std::clamp(limit.debt_s + more, -kMostCreditS, kMostDebtS);
}

double Governor::allowed(const Limit& limit) {
  return limit.budget * std::max(kLeastAim, kAim - kPayback * std::max(0.0, limit.debt_s));
}

double Governor::cost(const Limit& limit, const Demand& demand, const KeepOneIn& keep) {
  double sum = 0;
  for (std::size_t c = 0; c < kShedClasses; ++c) {
    sum += demand[c] * (limit.unit[c] / keep[c] + limit.unit_of_shed * (1 - 1 / keep[c]));
  }
  return sum;
}

bool Governor::fits(const Demand& demand, const KeepOneIn& keep, double share) const {
  return std::all_of(std::begin(limits_), std::end(limits_), [&](const Limit& limit) {
    return limit.budget <= 0 || cost(limit, demand, keep) + limit.fixed <= allowed(limit) * share;
  });
}

// How far the class must be thinned, the others as they are.
double Governor::thinning(const Demand& demand, const KeepOneIn& keep, std::size_t c,
                          double most) const {
  double needed = keep[c];
  for (const Limit& limit : limits_) {
    if (limit.budget <= 0) continue;
    KeepOneIn without = keep;
    without[c] = 1e12;
    const double room = (allowed(limit) - limit.fixed - cost(limit, demand, without)) / demand[c];
    const double each = limit.unit[c] - limit.unit_of_shed;
    if (each <= 0) continue;
    needed = std::max(needed, room <= 0 ? most : each / room);
  }
  return std::min(needed, most);
}

KeepOneIn Governor::plan(const Demand& demand, bool* fits_budget) const {
  KeepOneIn keep = kKeepAll;
  for (const double most : kKeepLimits) {
    for (std::size_t c = 0; c < kShedClasses && !fits(demand, keep, 1); ++c) {
      if (demand[c] > 0) keep[c] = thinning(demand, keep, c, most);
    }
  }
  *fits_budget = fits(demand, keep, 1 + 1e-9);
  return keep;
}

// What the load is made of isn't known yet: the first class is taken for all of it, and the next
// period tells.
void Governor::begin_shedding(const GovernorSample& sample, const Used& used) {
  double over = 1;
  for (std::size_t i = 0; i < kGovernedCosts; ++i) {
    if (limits_[i].budget > 0) over = std::max(over, used.all[i] / allowed(limits_[i]));
  }
  if (over <= 1 || sample.events == 0) return;
  is_shedding_ = true;
  calm_ns_ = 0;
  keep_ = kKeepAll;
  keep_[0] = std::min(over, kKeepLimits[0]);
}

// How far samples of the kind must be thinned to keep to their part of the share: half of it, or
// what the others leave; where everything fits, not at all.
double Governor::samples_thinning(const Used& used, std::size_t kind) const {
  double needed = 1;
  for (std::size_t i = 0; i < kGovernedCosts; ++i) {
    const Limit& limit = limits_[i];
    if (limit.budget <= 0) continue;
    const double samples = sum_of(limit.samples);
    const double all = used.all[i] - sum_of(used.thinned[i]) + samples;
    if (!is_shedding_ && all <= limit.budget * kCalmShare) continue;
    const double share = limit.budget * kSampleShare;
    const double own = limit.samples[kind];
    needed = std::max(needed, own / std::max(share / kSampleKinds, share - (samples - own)));
  }
  return needed;
}

// At once where they take too much; back by half a second where they take less.
void Governor::thin_samples(const Used& used, std::uint64_t elapsed_ns) {
  for (std::size_t k = 0; k < kSampleKinds; ++k) {
    for (std::size_t i = 0; i < kGovernedCosts; ++i) {
      const double samples = used.thinned[i][k] * samples_one_in_[k];
      limits_[i].samples[k] += kSampleLearning * (samples - limits_[i].samples[k]);
    }
  }
  for (std::size_t k = 0; k < kSampleKinds; ++k) {
    std::uint32_t& one_in = samples_one_in_[k];
    const double needed = samples_thinning(used, k);
    while (one_in < needed && one_in < kMostSamplesOneIn[k]) one_in *= 2;
    samples_calm_ns_[k] = needed * 2 <= one_in ? samples_calm_ns_[k] + elapsed_ns : 0;
    if (samples_calm_ns_[k] < kCalmNs) continue;
    one_in /= 2;
    samples_calm_ns_[k] = 0;
  }
  for (std::size_t i = 0; i < kGovernedCosts; ++i) {
    Limit& limit = limits_[i];
    limit.fixed = used.fixed[i] - sum_of(used.thinned[i]);
    for (std::size_t k = 0; k < kSampleKinds; ++k) {
      limit.fixed += limit.samples[k] / samples_one_in_[k];
    }
  }
}

void Governor::adopt_samples(SampleKind kind, std::uint32_t one_in) {
  samples_one_in_[static_cast<std::size_t>(kind)] = one_in;
}

void Governor::adopt(const KeepOneIn& keep) {
  is_adopted_ = is_adopted_ || !is_shedding_;
  is_shedding_ = true;
  calm_ns_ = 0;
  keep_ = keep;
}

void Governor::step(const GovernorSample& sample) {
  if (sample.elapsed_ns == 0) return;
  const double seconds = static_cast<double>(sample.elapsed_ns) / 1e9;
  const Used used = used_in(sample);
  for (std::size_t i = 0; i < kGovernedCosts; ++i) {
    owe(limits_[i], used.all[i], seconds);
  }
  thin_samples(used, sample.elapsed_ns);
  if (!is_shedding_) {
    is_over_ = std::any_of(std::begin(limits_), std::end(limits_), [](const Limit& limit) {
      return limit.budget > 0 && limit.fixed > limit.budget;
    });
    begin_shedding(sample, used);
    return;
  }
  // What came before the classes were thinned wasn't counted by class: the next period tells.
  if (std::exchange(is_adopted_, false)) return;
  Demand kept{};
  Demand shed{};
  Demand demand{};
  for (std::size_t c = 0; c < kShedClasses; ++c) {
    kept[c] = static_cast<double>(sample.counts.kept[c]) / seconds;
    shed[c] = static_cast<double>(sample.counts.shed[c]) / seconds;
    demand[c] = kept[c] + shed[c];
  }
  for (std::size_t i = 0; i < kGovernedCosts; ++i) {
    learn(limits_[i], std::max(0.0, used.all[i] - used.fixed[i]), kept, shed);
  }
  bool fits_budget = true;
  const KeepOneIn wanted = plan(demand, &fits_budget);
  is_over_ = !fits_budget;
  const double periods = static_cast<double>(sample.elapsed_ns) / kGovernorPeriodNs;
  const double recovery = std::pow(kRecovery, periods);
  for (std::size_t c = 0; c < kShedClasses; ++c) {
    keep_[c] = std::max(wanted[c], std::max(1.0, keep_[c] * recovery));
  }
  calm_ns_ = fits(demand, kKeepAll, kCalmShare) ? calm_ns_ + sample.elapsed_ns : 0;
  if (calm_ns_ >= kCalmNs && keep_ == kKeepAll) is_shedding_ = false;
}

}  // namespace dial9::internal
