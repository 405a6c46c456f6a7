// Injected CPU time comes back as samples: by thread, function, task, span and label, with nothing
// but the CPU clock to say how much there was.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <random>

#include "dial9/runtime.h"
#include "dial9/span.h"
#include "recorder/recording_state.h"
#include "sources/cpu_sampler.h"
#include "sources/testing/in_child.h"
#include "sources/testing/sampled.h"

namespace dial9::internal {
namespace {

using namespace testing;

constexpr std::uint32_t kHz = 200;
constexpr std::uint64_t kSettleMs = 5;

DIAL9_SPAN(Working, "working", DIAL9_FIELDS((std::uint64_t, number)));

// What samples coarser than a period add to how far off a count may be, for each end of a stretch.
double coarse(const std::vector<SampleRow>& rows) { return static_cast<double>(grain(rows) - 1); }

// Periods that `ms` of CPU time hold.
double expected(std::uint64_t ms) { return static_cast<double>(ms) * kHz / 1'000; }

class CpuSamples : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(DIAL9_SANITIZED_THREAD)
    GTEST_SKIP() << "ThreadSanitizer holds signals back until the thread calls it";
#endif
  }
};

TEST_F(CpuSamples, AThreadsCpuTimeComesBackAsPeriodsAndTheRateIsTheOneAskedFor) {
  Sampled sampled({.frequency_hz = kHz});
  sampled.wait_until_sampled();
  const std::uint32_t own = this_tid();
  const std::uint64_t from = now_ns();
  burn_one(1'000);
  const std::uint64_t to = now_ns();
  const auto rows = sampled.finish();
  const std::uint64_t count = periods(rows, [&](const SampleRow& row) {
    return row.tid == own && row.at_ns >= from && row.at_ns < to;
  });
  EXPECT_NEAR(static_cast<double>(count), expected(1'000),
              0.02 * expected(1'000) + 2 * coarse(rows));
  const CpuSampleStatus status = cpu_sample_status();
  EXPECT_TRUE(status.is_sampling);
  EXPECT_EQ(status.asked_hz, kHz);
  EXPECT_EQ(status.lost, 0U);
  EXPECT_GT(status.achieved_hz, 0);
}

TEST_F(CpuSamples, ThatAreThinnedStandForAllOfThem) {
  constexpr std::uint32_t kOneIn = 8;
  Sampled sampled({.frequency_hz = kHz});
  sampled.wait_until_sampled();
  ASSERT_TRUE(CpuSampler::instance().thin(kOneIn));
  const std::uint32_t own = this_tid();
  const std::uint64_t from = now_ns();
  burn_one(1'000);
  const std::uint64_t to = now_ns();
  CpuSampler::instance().thin(1);
  const auto rows = sampled.finish();
  const auto is_ours = [&](const SampleRow& row) {
    return row.tid == own && row.at_ns >= from && row.at_ns < to;
  };
  EXPECT_TRUE(std::ranges::all_of(
      rows, [&](const SampleRow& row) { return !is_ours(row) || row.weight % kOneIn == 0; }));
  const auto samples = static_cast<double>(std::ranges::count_if(rows, is_ours));
  EXPECT_GT(samples, 0);
  EXPECT_LE(samples, expected(1'000) / kOneIn + 2 * coarse(rows) + 1);
  EXPECT_NEAR(static_cast<double>(periods(rows, is_ours)), expected(1'000),
              0.02 * expected(1'000) + kOneIn + 2 * coarse(rows));
}

TEST_F(CpuSamples, FunctionsHaveTheSharesOfTheTimeSpentInThem) {
  Sampled sampled({.frequency_hz = kHz});
  sampled.wait_until_sampled();
  const std::uint64_t from = now_ns();
  for (int i = 0; i < 3; ++i) {
    burn_one(300);
    burn_other(100);
  }
  const std::uint64_t to = now_ns();
  const auto rows = sampled.finish();
  const auto in = [&](void (*function)(std::uint64_t)) {
    return static_cast<double>(periods(rows, [&](const SampleRow& row) {
      return row.at_ns >= from && row.at_ns < to && passes(row.frames, function);
    }));
  };
  EXPECT_NEAR(in(burn_one), expected(900), 6 + 6 * coarse(rows));
  EXPECT_NEAR(in(burn_other), expected(300), 6 + 6 * coarse(rows));
}

TEST_F(CpuSamples, ThreadsThatNobodyRegisteredHaveTheirSharesAndNames) {
  Sampled sampled({.frequency_hz = kHz});
  const Burnt burnt = burn_on_threads(sampled);
  std::map<std::string, double> found;
  for (const SampleRow& row : burnt.rows) {
    found[row.thread_name] += static_cast<double>(row.weight);
    EXPECT_TRUE(row.has_cpu);
  }
  EXPECT_NEAR(found["burns-600"], expected(600), 3 + 2 * coarse(burnt.all));
  EXPECT_NEAR(found["burns-300"], expected(300), 3 + 2 * coarse(burnt.all));
  EXPECT_NEAR(found["burns-100"], expected(100), 3 + 2 * coarse(burnt.all));
}

TEST_F(CpuSamples, NobodyWithoutCapabilitiesAndWithoutPerfHasTheSharesToo) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer starts no threads after a fork";
#endif
  if (::getuid() != 0) GTEST_SKIP() << "can't become nobody";
  EXPECT_EQ(in_child([] {
              if (!deny_perf(EPERM) || !become_nobody()) return 1;
              Sampled sampled({.frequency_hz = kHz});
              const Burnt burnt = burn_on_threads(sampled);
              const double margin = 3 + 2 * coarse(burnt.all);
              int wrong = 0;
              for (const std::uint64_t ms : {600U, 300U, 100U}) {
                const auto found = static_cast<double>(periods(
                    burnt.rows, [name = "burns-" + std::to_string(ms)](const SampleRow& row) {
                      return row.thread_name == name;
                    }));
                wrong += std::abs(found - expected(ms)) > margin ? 10 : 0;
              }
              return wrong;
            }),
            0);
}

TEST_F(CpuSamples, ThreeTenantsOfOneThreadComeOutWithinTwoPercent) {
  Sampled sampled({.frequency_hz = kHz});
  sampled.wait_until_sampled();
  std::map<std::string, double> spent;
  double total = 0;
  std::minstd_rand random(7);
  const std::uint64_t from = now_ns();
  for (int request = 0; request < 24; ++request) {
    const char* tenants[] = {"acme", "acme", "acme", "bolt", "bolt", "crux"};
    const std::string tenant = tenants[request % 6];
    const std::uint64_t ms = 60 + random() % 120;
    const label scope("tenant", tenant);
    burn_one(ms);
    spent["tenant=" + tenant] += static_cast<double>(ms);
    total += static_cast<double>(ms);
  }
  const std::uint64_t to = now_ns();
  std::map<std::string, double> found;
  double found_total = 0;
  int unlabelled = 0;
  const auto rows = sampled.finish();
  for (const SampleRow& row : rows) {
    if (row.at_ns < from || row.at_ns >= to) continue;
    unlabelled += row.label.empty() ? 1 : 0;
    found[row.label] += static_cast<double>(row.weight);
    found_total += static_cast<double>(row.weight);
  }
  for (const auto& [tenant, ms] : spent) {
    EXPECT_NEAR(found[tenant] / found_total, ms / total, 0.02 + 8 * coarse(rows) / found_total)
        << tenant;
  }
  EXPECT_LE(unlabelled, 2) << "between two labels";
}

TEST_F(CpuSamples, CarryTheTaskAndSpanOfThePollThatTheyInterrupt) {
  static runtime::Place place{"sampled task"};
  Sampled sampled({.frequency_hz = kHz});
  sampled.wait_until_sampled();
  const runtime::RuntimeId runtime = runtime::register_runtime("sampled");
  const runtime::TaskId task = runtime::task_spawn(place, runtime);
  std::uint64_t span_id = 0;
  const std::uint64_t from = now_ns();
  {
    const runtime::PollScope poll(runtime, {task, &place});
    const span<Working> working({1});
    span_id = working.as_parent().id;
    const label scope("tenant", "acme");
    burn_one(200);
  }
  const std::uint64_t between = now_ns();
  burn_one(200);
  const std::uint64_t to = now_ns();
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  const auto rows = sampled.finish();
  for (const SampleRow& row : rows) {
    if (row.at_ns < from || row.at_ns >= to) continue;
    const bool is_inside = row.at_ns < between;
    (is_inside ? inside : outside) += row.weight;
    EXPECT_EQ(row.task, is_inside ? task : 0);
    EXPECT_EQ(row.span, is_inside ? span_id : 0);
    EXPECT_EQ(row.label, is_inside ? "tenant=acme" : "");
  }
  EXPECT_NEAR(static_cast<double>(inside), expected(200), 3 + 2 * coarse(rows));
  EXPECT_NEAR(static_cast<double>(outside), expected(200), 3 + 2 * coarse(rows));
}

TEST_F(CpuSamples, HaveWholeStacksFoundByUnwindTables) {
  Sampled sampled({.frequency_hz = kHz});
  sampled.wait_until_sampled();
  burn_one(300);
  std::uint64_t count = 0;
  for (const SampleRow& row : sampled.finish()) {
    if (!passes(row.frames, burn_one)) continue;
    count += row.weight;
    EXPECT_FALSE(row.is_truncated);
    EXPECT_EQ(row.unwound_by, "tables");
    EXPECT_GT(row.frames.size(), 5U);
  }
  EXPECT_GT(count, 20U);
}

TEST_F(CpuSamples, SayInTheTraceWhatWasAskedAndWhatCameOfIt) {
  Sampled sampled({.frequency_hz = kHz});
  sampled.wait_until_sampled();
  burn_one(1'200);  // a window is a second
  burn_one(kSettleMs);
  const Trace trace = sampled.read();
  EXPECT_EQ(trace.metadata("cpu.profile.enabled"), "true");
  EXPECT_EQ(trace.metadata("cpu.profile.frequency_hz"), "200");
  EXPECT_EQ(trace.metadata("cpu.profile.backend"), "ctimer");
  EXPECT_NE(trace.metadata("cpu.profile.achieved_hz"), "(none)");
  ASSERT_GE(trace.count("CpuProfileEvent"), 1U);
  for (const std::uint64_t hz : trace.numbers("CpuProfileEvent", "asked_hz")) EXPECT_EQ(hz, kHz);
  double cpu_ns = 0;
  double sampled_periods = 0;
  for (const std::uint64_t ns : trace.numbers("CpuProfileEvent", "cpu_ns")) {
    cpu_ns += static_cast<double>(ns);
  }
  for (const std::uint64_t n : trace.numbers("CpuProfileEvent", "periods")) {
    sampled_periods += static_cast<double>(n);
  }
  // What is missing are the first moments, before the thread had a timer, at most a tenth of a
  // second.
  EXPECT_LE(sampled_periods, cpu_ns * kHz / 1e9 + 3);
  EXPECT_GE(sampled_periods, (cpu_ns - 0.15e9) * kHz / 1e9 - 3 - 2 * coarse(samples_of(trace)));
}

TEST_F(CpuSamples, TheTimeThatTheirHandlersTakeIsMeasured) {
  Sampled sampled({.frequency_hz = kHz});
  sampled.wait_until_sampled();
  const std::uint64_t before = CpuSampler::instance().host_cost_ns();
  const std::uint64_t from = now_ns();
  burn_one(200);
  const std::uint64_t elapsed_ns = now_ns() - from;
  const auto rows = sampled.finish();
  const std::uint64_t took_ns = CpuSampler::instance().host_cost_ns() - before;
  const auto samples =
      static_cast<std::uint64_t>(std::ranges::count_if(rows, [&](const SampleRow& row) {
        return row.at_ns >= from && row.at_ns < from + elapsed_ns;
      }));
  EXPECT_GT(samples, 0U);
  EXPECT_GT(took_ns, samples * 100) << "nobody walks a stack in so little";
  EXPECT_LT(took_ns, elapsed_ns);
}

TEST_F(CpuSamples, ARateBeyondTheKernelsTickHasWeightsAndTheTraceSaysSo) {
  Sampled sampled({.frequency_hz = 1'000});
  sampled.wait_until_sampled();
  const std::uint64_t from = now_ns();
  burn_one(1'500);
  const std::uint64_t to = now_ns();
  const Trace trace = sampled.read();
  const auto rows = samples_of(trace);
  const auto is_here = [&](const SampleRow& row) { return row.at_ns >= from && row.at_ns < to; };
  EXPECT_NEAR(static_cast<double>(periods(rows, is_here)), 1'500, 30 + 2 * coarse(rows));
  const auto count = std::count_if(rows.begin(), rows.end(), is_here);
  if (count > 1'000) GTEST_SKIP() << "the kernel ticks a thousand times a second";
  EXPECT_NE(trace.metadata("cpu.profile.notice").find("1000 Hz asked"), std::string::npos);
}

}  // namespace
}  // namespace dial9::internal
