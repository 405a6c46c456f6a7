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
  const Pages pages = usage_.sample_for_another(kSecond + kPeriod);
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
    (void)usage_.sample_for_another(second * kSecond);
    usage_.sample(second * kSecond + kSecond / 2, kPeriod);
  }
  usage_.sample(5 * kSecond, kPeriod);
  EXPECT_EQ(with_memory(), (std::vector<bool>{true, false, true, false, true, false, true}));
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
        EXPECT_EQ(schema.fields.back().name, "rss_bytes");
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
