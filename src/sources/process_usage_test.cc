// SPDX-License-Identifier: Apache-2.0
#include "sources/process_usage.h"

#include <gtest/gtest.h>

#include "dial9/recorder.h"
#include "dial9/source.h"
#include "format/materialize.h"
#include "recorder/test_support.h"
#include "sources/testing/maybe_numbers.h"

namespace dial9::internal {
namespace {

using testing::maybe_numbers;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kPeriod = kSecond / 10;
const std::string kEvent = "ProcessResourceUsageEvent";

class ProcessUsageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_process_usage_supported()) GTEST_SKIP() << "not on this platform";
    auto [recorder, status] = Recorder::start(RecorderOptions::memory(4 << 20));
    ASSERT_TRUE(status.ok()) << status.message();
    recorder_ = std::move(recorder);
  }
  void TearDown() override { close_kept_files(); }
  Trace recorded() {
    EXPECT_TRUE(recorder_.rotate(std::chrono::seconds(30)));
    return Trace::of(recorder_.sealed_segments());
  }
  // Which events of the trace have the memory.
  std::vector<bool> with_memory() {
    std::vector<bool> with;
    for (const auto& bytes : maybe_numbers(recorded(), kEvent, "rss_bytes")) {
      with.push_back(bytes.has_value());
    }
    return with;
  }

  Recorder recorder_;
  ProcessUsage usage_;
};

TEST_F(ProcessUsageTest, TheNumbersGrowWithWork) {
  ProcessResourceUsageEvent before;
  ASSERT_TRUE(read_process_usage(&before));
  ProcessResourceUsageEvent after;
  do {  // burns CPU until the kernel has noticed
    ASSERT_TRUE(read_process_usage(&after));
  } while (after.user_cpu_ns.value + after.system_cpu_ns.value <=
           before.user_cpu_ns.value + before.system_cpu_ns.value);
  EXPECT_GE(after.minor_faults.value, before.minor_faults.value);
}

TEST_F(ProcessUsageTest, TheMemoryComesOnceASecondAndIsAbsentInBetween) {
  for (std::uint64_t i = 0; i < 12; ++i) usage_.sample(kSecond + i * kPeriod, kPeriod);
  const Trace trace = recorded();
  const auto bytes = maybe_numbers(trace, kEvent, "rss_bytes");
  ASSERT_EQ(bytes.size(), 12U);
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(bytes[i].has_value(), i % 10 == 0) << i;
  ASSERT_TRUE(bytes[0]);
  EXPECT_GT(*bytes[0], 0U);
  EXPECT_GE(trace.numbers(kEvent, "max_rss_bytes")[0], *bytes[0] / 2);
  EXPECT_EQ(trace.stamps(kEvent)[1], kSecond + kPeriod);
}

TEST_F(ProcessUsageTest, AnothersTurnIsOneEventWithTheMemoryForBoth) {
  usage_.sample(kSecond, kPeriod);
  const Pages pages = usage_.sample_for_another(kSecond + kPeriod, kPeriod);
  usage_.sample(kSecond + kPeriod + kPeriod / 3, kPeriod);  // had its turn
  usage_.sample(kSecond + 2 * kPeriod, kPeriod);
  const Trace trace = recorded();
  const auto bytes = maybe_numbers(trace, kEvent, "rss_bytes");
  ASSERT_EQ(bytes.size(), 3U);
  ASSERT_TRUE(pages.resident);
  EXPECT_EQ(bytes[1], *pages.resident * page_bytes());
  EXPECT_FALSE(bytes[2]);
}

TEST_F(ProcessUsageTest, TheMemoryIsReadByOneSourceWhileTheOtherComesAndByTheFirstWhenItStays) {
  for (std::uint64_t second = 1; second <= 3; ++second) {
    (void)usage_.sample_for_another(second * kSecond, kPeriod);
    usage_.sample(second * kSecond + kSecond / 2, kPeriod);
  }
  usage_.sample(5 * kSecond, kPeriod);
  EXPECT_EQ(with_memory(), (std::vector<bool>{true, false, true, false, true, false, true}));
}

// Readings that take what a test says, of the numbers of this process.
class DearUsageTest : public ProcessUsageTest {
 protected:
  // For so many seconds, looked at once a period; `has_another`: and once a second in its turn.
  void run(std::uint64_t seconds, bool has_another) {
    for (std::uint64_t i = 0; i < seconds * 10; ++i, now_ns_ += kPeriod) {
      if (has_another && i % 10 == 0) (void)dear_.sample_for_another(now_ns_, kPeriod);
      dear_.sample(now_ns_, kPeriod);
    }
  }
  // What each event from `begin_ns` on says of its period, in ms; 0: nothing.
  std::vector<std::uint64_t> periods_ms(std::uint64_t begin_ns) {
    const Trace trace = recorded();
    const auto stamps = trace.stamps(kEvent);
    const auto periods_ns = maybe_numbers(trace, kEvent, "period_ns");
    std::vector<std::uint64_t> periods;
    for (std::size_t i = 0; i < stamps.size(); ++i) {
      if (stamps[i] >= begin_ns) periods.push_back(periods_ns.at(i).value_or(0) / 1'000'000);
    }
    return periods;
  }

  std::uint64_t cost_ns_ = 0;
  std::uint64_t clock_ns_ = 1;
  std::uint64_t now_ns_ = kSecond;
  ProcessUsage dear_{{[this](ProcessResourceUsageEvent* usage) {
                        clock_ns_ += cost_ns_;
                        return read_process_usage(usage);
                      },
                      [this] { return clock_ns_; }}};
};

TEST_F(DearUsageTest, ReadingsThatAreCheapComeOnceAPeriodAndSayNothingOfIt) {
  cost_ns_ = 20'000;
  run(6, false);
  EXPECT_EQ(periods_ms(0), std::vector<std::uint64_t>(60, 0));
}

TEST_F(DearUsageTest, DearOnesComeAsSeldomAsTheyTakeAFiveThousandthOfTheTimeAndSaySo) {
  cost_ns_ = 50'000;
  run(3, false);
  EXPECT_EQ(periods_ms(0), std::vector<std::uint64_t>(30, 0));
  const std::uint64_t begin_ns = now_ns_;  // the fourth that is timed
  run(3, false);
  EXPECT_EQ(periods_ms(begin_ns), std::vector<std::uint64_t>(10, 250)) << "300 ms apart";
}

TEST_F(DearUsageTest, TheyComeAgainEachPeriodWhenTheyAreCheapAgain) {
  cost_ns_ = 200'000;
  run(5, false);
  cost_ns_ = 1'000;
  run(3, false);
  const std::uint64_t begin_ns = now_ns_;
  run(1, false);
  EXPECT_EQ(periods_ms(begin_ns), std::vector<std::uint64_t>(10, 0));
}

TEST_F(DearUsageTest, OneReadingThatWasInterruptedMakesNoneSeldom) {
  cost_ns_ = 100'000'000;
  run(1, false);
  cost_ns_ = 1'000;
  run(5, false);
  EXPECT_EQ(periods_ms(0), std::vector<std::uint64_t>(60, 0));
}

TEST_F(DearUsageTest, OnesMoreThanASecondApartAreMadeInAnothersTurnWithTheMemory) {
  cost_ns_ = 700'000;  // 3.5 s apart
  run(16, true);
  const Trace trace = recorded();
  const auto stamps = trace.stamps(kEvent);
  const auto bytes = maybe_numbers(trace, kEvent, "rss_bytes");
  ASSERT_GT(stamps.size(), 4U);
  for (std::size_t i = stamps.size() - 3; i < stamps.size(); ++i) {
    EXPECT_EQ(stamps[i] - stamps[i - 1], 4 * kSecond);
    EXPECT_TRUE(bytes[i]);
  }
}

TEST_F(ProcessUsageTest, TheSourceHasNoTurnForOthersWhereItIsNotThereOrAskedForSeldom) {
  EXPECT_FALSE(sample_process_usage(kSecond));
  ASSERT_TRUE(add_process_usage(std::chrono::seconds(3'600)).ok());
  EXPECT_FALSE(sample_process_usage(kSecond));
  EXPECT_TRUE(remove_source("process_usage"));
}

TEST(ProcessUsageSource, IsRecordedWithUnitsAndKinds) {
  if (!is_process_usage_supported()) GTEST_SKIP() << "not on this platform";
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(4 << 20));
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(add_process_usage().ok());
  EXPECT_FALSE(add_process_usage().ok()) << "a second registration must be refused";
  std::vector<SegmentBytes> segments;
  bool has_event = false;
  while (!has_event) {  // the collector samples by itself; each rotation shows what it has
    ASSERT_TRUE(recorder.rotate(std::chrono::seconds(30)));
    segments = recorder.sealed_segments();
    for (const SegmentBytes& segment : segments) {
      const auto trace = format::materialize(segment.bytes);
      for (const format::Schema& schema : trace.schemas) {
        if (schema.name != kEvent) continue;
        has_event = true;
        EXPECT_EQ(schema.fields.back().name, "period_ns");
        ASSERT_FALSE(schema.annotations.empty());
        EXPECT_EQ(schema.annotations[0].key, "unit");
        EXPECT_EQ(schema.annotations[0].value, "ns");
      }
    }
  }
  EXPECT_TRUE(remove_source("process_usage"));
}

}  // namespace
}  // namespace dial9::internal
