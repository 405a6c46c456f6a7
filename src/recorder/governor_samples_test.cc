// How the governor thins samples: which kind first, by how much, and what it does where they don't
// fall as they are told to. Spec: docs/spec/recorder.md, "Budget".
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "recorder/governor.h"

namespace dial9::internal {
namespace {

constexpr auto kHeap = static_cast<std::size_t>(SampleKind::kHeap);
constexpr auto kCpu = static_cast<std::size_t>(SampleKind::kCpu);
constexpr double kBudget = 1e6;  // bytes, or ns of CPU time, a second

// What samples of each kind take a second of the one budget that there is, thinned to one in N.
struct Load {
  std::function<double(double)> heap = [](double) { return 0.0; };
  std::function<double(double)> cpu = [](double) { return 0.0; };
  double frees = 0;  // of heap samples that were taken before
};

std::function<double(double)> falling_from(double all) {
  return [all](double one_in) { return all / one_in; };
}

class SampleHost {
 public:
  explicit SampleHost(GovernedCost cost)
      : cost_(cost),
        governor_(cost == kBytesCost ? GovernorBudget{0, kBudget} : GovernorBudget{kBudget, 0},
                  {}) {}

  // Returns what was spent in the last of the seconds, of the budget.
  double run(int seconds, const Load& load) {
    double spent = 0;
    for (int period = 0; period < seconds * 10; ++period) {
      if (period % 10 == 0) spent = 0;
      spent += step(load);
    }
    return spent / kBudget;
  }
  std::uint32_t one_in(std::size_t kind) const { return governor_.samples_one_in()[kind]; }
  Governor& governor() { return governor_; }

 private:
  double step(const Load& load) {
    constexpr double kSeconds = kGovernorPeriodNs / 1e9;
    const double heap = load.heap(one_in(kHeap)) * kSeconds;
    const double cpu = load.cpu(one_in(kCpu)) * kSeconds;
    const double frees = load.frees * kSeconds;
    GovernorSample sample;
    sample.elapsed_ns = kGovernorPeriodNs;
    const auto put = [&](ThinnedCost& to, double cost) {
      const auto whole = static_cast<std::uint64_t>(cost);
      if (cost_ == kBytesCost) {
        to.bytes = whole;
        sample.bytes += whole;
        sample.sample_bytes += whole;
      } else {  // half of it on the host's threads
        to.host_cpu_ns = whole / 2;
        to.collector_cpu_ns = whole - whole / 2;
        sample.sample_cpu_ns += to.host_cpu_ns;
        sample.collector_cpu_ns += to.collector_cpu_ns;
      }
    };
    put(sample.thinned[kHeap], heap);
    put(sample.thinned[kCpu], cpu);
    sample.bytes += static_cast<std::uint64_t>(frees);
    sample.sample_bytes += static_cast<std::uint64_t>(frees);
    governor_.step(sample);
    return heap + cpu + frees;
  }

  const GovernedCost cost_;
  Governor governor_;
};

class GovernorSamples : public ::testing::TestWithParam<GovernedCost> {
 protected:
  SampleHost host_{GetParam()};
};

TEST_P(GovernorSamples, TakesAllWhileTheyFit) {
  host_.run(5, {.heap = falling_from(0.4e6), .cpu = falling_from(0.4e6)});
  EXPECT_EQ(host_.one_in(kHeap), 1U);
  EXPECT_EQ(host_.one_in(kCpu), 1U);
}

TEST_P(GovernorSamples, ThinsHeapSamplesFirst) {
  const double spent = host_.run(5, {.heap = falling_from(2e6), .cpu = falling_from(0.2e6)});
  EXPECT_EQ(host_.one_in(kHeap), 8U);
  EXPECT_EQ(host_.one_in(kCpu), 1U);
  EXPECT_LE(spent, kSampleShare);
}

TEST_P(GovernorSamples, LeavesHeapSamplesAHalfOfTheShareAndThinsCpuSamplesToTheOther) {
  const double spent = host_.run(5, {.heap = falling_from(2e6), .cpu = falling_from(0.9e6)});
  EXPECT_EQ(host_.one_in(kHeap), 8U);
  EXPECT_EQ(host_.one_in(kCpu), 4U);
  EXPECT_LE(spent, kSampleShare);
}

TEST_P(GovernorSamples, ThinsOnWhereAllocationsAreSoLargeThatTheyStaySamples) {
  // A million allocations of 64 bytes a second, 20 units each, of which each was a sample.
  const auto of_64_bytes = [](double one_in) {
    return 20e6 * (one_in <= 1 ? 1 : -std::expm1(-64 / one_in));
  };
  const double spent = host_.run(5, {.heap = of_64_bytes});
  EXPECT_LE(spent, kSampleShare);
  EXPECT_GT(host_.one_in(kHeap), 1'000U);
  const double rested = host_.run(30, {.heap = falling_from(0.01e6)});
  EXPECT_LE(rested, kSampleShare);
  EXPECT_EQ(host_.one_in(kHeap), 1U);
}

TEST_P(GovernorSamples, GoesOnFromWhatThreadsHaveThinnedThemselves) {
  host_.run(1, {});
  host_.governor().adopt_samples(SampleKind::kHeap, 64);
  host_.run(1, {.heap = falling_from(25e6)});
  EXPECT_EQ(host_.one_in(kHeap), 64U) << "a sixty-fourth of it takes 0.39";
}

INSTANTIATE_TEST_SUITE_P(Costs, GovernorSamples, ::testing::Values(kCpuCost, kBytesCost),
                         [](const auto& test) { return test.param == kCpuCost ? "cpu" : "bytes"; });

TEST(GovernorSamples, FreesOfWhatWasSampledBeforeDontThinWhatIsSampledNow) {
  SampleHost host(kBytesCost);
  host.run(2, {.heap = falling_from(2e6)});
  const std::uint32_t before = host.one_in(kHeap);
  host.run(2, {.heap = falling_from(2e6), .frees = 2e6});
  EXPECT_EQ(host.one_in(kHeap), before);
  EXPECT_TRUE(host.governor().is_over_budget()) << "nothing can be done about these";
}

}  // namespace
}  // namespace dial9::internal
