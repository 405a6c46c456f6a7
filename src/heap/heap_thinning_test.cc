// Heap samples within a budget: however the rate changes, totals come back, what lives stays
// known, and the bytes keep to what is allowed. The malloc of this process is dial9's.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <set>
#include <vector>

#include "heap/heap_sampler.h"
#include "heap/hooks.h"
#include "heap/testing/heap_recording.h"
#include "recorder/burst_gate.h"

namespace dial9::heap {
namespace {

using namespace testing;
using internal::kTestMs;
using internal::kTestSecond;

constexpr std::uint64_t kRate = 512;
constexpr std::size_t kSize = 64;

std::vector<AllocRow> from_one(const std::vector<AllocRow>& rows) {
  std::vector<AllocRow> some;
  for (const AllocRow& row : rows) {
    if (passes(row.frames, allocate_one)) some.push_back(row);
  }
  return some;
}

double count_of(const std::vector<AllocRow>& rows) {
  return estimate(rows, [](const AllocRow&) { return true; }).count;
}

// Of the estimated count.
double standard_error(const std::vector<AllocRow>& rows) {
  double variance = 0;
  for (const AllocRow& row : rows) {
    const double weight = weight_of(row.size, row.rate);
    variance += weight * (weight - 1);
  }
  return std::sqrt(variance);
}

void expect_comes_back(const std::vector<AllocRow>& rows, std::uint64_t allocations) {
  EXPECT_NEAR(count_of(rows), static_cast<double>(allocations), 5 * standard_error(rows));
}

void allocate_and_free(std::uint64_t times) {
  for (std::uint64_t i = 0; i < times; ++i) std::free(allocate_one(kSize));
}

constinit std::uint64_t g_gate_ns = 0;
std::uint64_t gate_clock() noexcept { return g_gate_ns; }

// Samples under a recorder on a clock that stands still but for its steps. What the recorder itself
// allocates is none of the test's.
class HeapThinning : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kStepNs = 5 * kTestMs;

  HeapThinning() { begin(RecorderOptions::memory(std::uint64_t{256} << 20)); }
  explicit HeapThinning(const RecorderOptions& options) { begin(options); }
  ~HeapThinning() override {
    remove_heap_samples();
    recorder_.reset();
    internal::set_gate_clock(nullptr);
  }

  void begin(const RecorderOptions& options) {
    g_gate_ns = internal::now_ns();
    internal::set_gate_clock(gate_clock);
    recorder_.reset();
    recorder_ = std::make_unique<internal::SteppedRecorder>(options);
  }
  void sample(std::uint64_t rate_bytes) {
    remove_heap_samples();
    EXPECT_TRUE(HeapSampler::instance().start({.sample_rate_bytes = rate_bytes}, 1).ok());
    step(0);  // in which the recorder tells its thinning: none
  }
  template <class Call>
  static auto unsampled(Call call) {
    t_thread.is_own = true;
    auto result = call();
    t_thread.is_own = false;
    return result;
  }
  void step(std::uint64_t ns = kStepNs) {
    unsampled([&] {
      g_gate_ns += ns;
      recorder_->advance(ns);
      recorder_->step();
      return 0;
    });
  }
  static void thin(std::uint32_t one_in) { HeapSampler::instance().thin(one_in); }
  internal::Trace read() {
    return unsampled([&] { return recorder_->read(); });
  }
  std::vector<AllocRow> all_rows() {
    return unsampled([&] { return allocs_of(recorder_->read()); });
  }
  std::vector<AllocRow> rows() { return from_one(all_rows()); }
  std::uint64_t bytes() {
    return unsampled([&] { return (*recorder_)->status().bytes_written; });
  }

  std::unique_ptr<internal::SteppedRecorder> recorder_;
};

TEST_F(HeapThinning, TotalsComeBackWhereTheRateKeepsChanging) {
  sample(kRate);
  constexpr std::uint32_t kThinnings[] = {1, 16, 2, 256, 4, 1, 64};
  std::uint64_t allocations = 0;
  for (int turn = 0; turn < 700; ++turn) {
    thin(kThinnings[turn % 7]);
    const auto times = static_cast<std::uint64_t>(100 + turn % 13 * 50);
    allocate_and_free(times);
    allocations += times;
    if (turn % 7 == 0) step(0);
  }
  const auto all = rows();
  expect_comes_back(all, allocations);
  std::set<std::uint64_t> rates;
  for (const AllocRow& row : all) {
    rates.insert(row.rate);
    EXPECT_NE(row.freed_ns, 0U);
  }
  EXPECT_GE(rates.size(), 5U);
  EXPECT_EQ(heap_sample_status().lost_samples, 0U);
}

TEST_F(HeapThinning, EachAllocationIsASampleOnlyWhileTheRateIsOne) {
  sample(1);
  allocate_and_free(300);
  thin(4096);
  allocate_and_free(100'000);
  thin(1);
  allocate_and_free(2'000);  // its next sample at the rate before is within some 64
  const auto all = rows();
  expect_comes_back(all, 102'300);
  EXPECT_LT(all.size(), 5'000U);
  const auto are_one = [&](std::size_t from) {
    for (std::size_t i = from; i < from + 300; ++i) EXPECT_EQ(all.at(i).rate, 1U);
  };
  are_one(0);
  are_one(all.size() - 300);
}

TEST_F(HeapThinning, AThreadTakesUpALowerRateWithinALookHoweverFarItsNextSampleIs) {
  sample(4096);
  thin(1U << 20);
  allocate_and_free(200);  // from here on a sample is 4 GiB away
  for (int i = 0; i < 100; ++i) std::free(allocate_other(4096));
  thin(1);
  for (int i = 0; i < 512; ++i) std::free(allocate_other(4096));  // two looks
  std::uint64_t at_chosen_rate = 0;
  for (const AllocRow& row : all_rows()) {
    if (!passes(row.frames, allocate_other) || row.rate != 4096) continue;
    ++at_chosen_rate;
  }
  EXPECT_GT(at_chosen_rate, 50U);
}

TEST_F(HeapThinning, WhatLivedBeforeLivesOnAndItsFreeIsRecorded) {
  sample(1);
  std::vector<void*> before;
  for (int i = 0; i < 500; ++i) before.push_back(allocate_one(kSize));
  thin(1U << 20);
  std::vector<void*> during;
  for (int i = 0; i < 500; ++i) during.push_back(allocate_one(kSize));
  const std::uint64_t live = heap_sample_status().live_samples;
  for (void* block : during) std::free(block);
  EXPECT_GE(heap_sample_status().live_samples + 10, live) << "frees of what wasn't sampled";
  for (int i = 0; i < 250; ++i) std::free(before[static_cast<std::size_t>(i)]);
  std::uint64_t freed = 0;
  std::uint64_t alive = 0;
  for (const AllocRow& row : rows()) {
    if (row.rate == 1) ++(row.freed_ns != 0 ? freed : alive);
  }
  EXPECT_NEAR(static_cast<double>(freed), 250, 1) << "and the gap that was drawn at rate 1";
  EXPECT_NEAR(static_cast<double>(alive), 250, 1);
  EXPECT_EQ(heap_sample_status().lost_frees, 0U);
  for (std::size_t i = 250; i < 500; ++i) std::free(before[i]);
}

TEST_F(HeapThinning, ALargeAllocationAtASmallRateTakesFewDraws) {
  sample(2);
  std::free(allocate_one(8));
  const std::uint64_t before = t_thread.random;
  std::free(allocate_one(std::size_t{64} << 20));
  // SplitMix64 counts its draws by this.
  std::uint64_t draws = 0;
  for (std::uint64_t state = before; state != t_thread.random && draws < 1'000; ++draws) {
    state += 0x9E37'79B9'7F4A'7C15;
  }
  EXPECT_LT(draws, 200U);
}

TEST_F(HeapThinning, TheTraceAndTheStatusTellTheRate) {
  sample(kRate);
  EXPECT_EQ(heap_sample_status().current_rate_bytes, kRate);
  EXPECT_EQ(heap_sample_status().message, "");
  thin(16);
  allocate_and_free(10'000);
  EXPECT_EQ(heap_sample_status().sample_rate_bytes, kRate);
  EXPECT_EQ(heap_sample_status().current_rate_bytes, 16 * kRate);
  EXPECT_NE(heap_sample_status().message.find("one in 16"), std::string::npos);
  thin(1);
  unsampled([] {
    HeapSampler::instance().rest();
    return 0;
  });
  const internal::Trace trace = read();
  const auto largest = trace.numbers("HeapProfileEvent", "largest_rate_bytes");
  ASSERT_FALSE(largest.empty());
  EXPECT_EQ(*std::ranges::max_element(largest), 16 * kRate);
  EXPECT_EQ(trace.numbers("HeapProfileEvent", "sample_rate_bytes").at(0), kRate);
  EXPECT_EQ(trace.metadata("memory.sample_rate_bytes"), std::to_string(kRate));
}

TEST_F(HeapThinning, ANewStartBeginsWithTheRateThatItIsGiven) {
  sample(kRate);
  thin(64);
  remove_heap_samples();
  ASSERT_TRUE(add_heap_samples({.sample_rate_bytes = kRate}).ok());
  EXPECT_EQ(heap_sample_status().current_rate_bytes, kRate);
}

// --- Under a budget

constexpr double kBudgetBytes = 2e6;
constexpr std::uint64_t kAllocationsAStep = 600;  // 14,000 samples a second: half of the budget

RecorderOptions governed() {
  RecorderOptions options = RecorderOptions::memory(std::uint64_t{256} << 20);
  options.max_mb_per_sec = kBudgetBytes / 1e6;
  return options;
}

class HeapBudget : public HeapThinning {
 protected:
  HeapBudget() : HeapThinning(governed()) {
    sample(kRate);
    step();
  }

  void run(int seconds, std::uint64_t load) {
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(seconds) * kTestSecond / kStepNs;
         ++i) {
      for (std::uint64_t n = 0; n < load * kAllocationsAStep; ++n) {
        void* block = allocate_one(kSize);
        if (++allocations_ % 100 == 0) {
          kept_.emplace_back(block, std::free);
        } else {
          std::free(block);
        }
      }
      step();
    }
  }

  std::uint64_t allocations_ = 0;
  std::vector<std::unique_ptr<void, void (*)(void*)>> kept_;
};

TEST_F(HeapBudget, ABurstOfHeapSamplesKeepsToTheBudgetAndItsTotalsAreNearTheTruth) {
  kept_.reserve(200'000);
  run(1, 1);
  EXPECT_EQ(heap_sample_status().current_rate_bytes, kRate) << "it fits";
  for (int second = 0; second < 4; ++second) {
    const std::uint64_t before = bytes();
    run(1, 20);
    EXPECT_LE(static_cast<double>(bytes() - before), kBudgetBytes * 1.1) << second;
  }
  EXPECT_GT(heap_sample_status().current_rate_bytes, kRate);
  run(6, 1);
  EXPECT_EQ(heap_sample_status().current_rate_bytes, kRate) << "back again";
  EXPECT_EQ(heap_sample_status().lost_samples, 0U);
  EXPECT_EQ(heap_sample_status().lost_frees, 0U);
  EXPECT_FALSE((*recorder_)->status().is_over_budget);

  const std::vector<AllocRow> all = rows();
  const auto truth = static_cast<double>(allocations_);
  EXPECT_NEAR(count_of(all), truth, truth * 0.03);
  std::vector<AllocRow> alive;
  for (const AllocRow& row : all) {
    if (row.freed_ns == 0) alive.push_back(row);
  }
  expect_comes_back(alive, kept_.size());
}

TEST_F(HeapBudget, ThreadsBoundABurstThatTheCollectorHasNotSeenYet) {
  allocate_and_free(1'000'000);  // a hundred times the budget of the time that passed
  EXPECT_GE(heap_sample_status().current_rate_bytes, kRate * 64);
  const std::uint64_t rate = heap_sample_status().current_rate_bytes;
  const std::uint64_t before = bytes();
  step();
  EXPECT_LE(static_cast<double>(bytes() - before), kBudgetBytes * 0.15);
  EXPECT_GE(heap_sample_status().current_rate_bytes, rate / 4) << "the governor goes on from it";
  expect_comes_back(rows(), 1'000'000);
  EXPECT_EQ(heap_sample_status().lost_samples, 0U);
}

TEST_F(HeapBudget, TheNextRecorderWithoutABudgetTakesAllOfThemAgain) {
  allocate_and_free(1'000'000);
  step();
  EXPECT_GT(heap_sample_status().current_rate_bytes, kRate);
  begin(RecorderOptions::memory(std::uint64_t{256} << 20));
  step();
  EXPECT_EQ(heap_sample_status().current_rate_bytes, kRate);
  for (int i = 0; i < 100; ++i) {
    allocate_and_free(10'000);
    step();
  }
  EXPECT_EQ(heap_sample_status().current_rate_bytes, kRate) << "nobody raises it";
}

}  // namespace
}  // namespace dial9::heap
