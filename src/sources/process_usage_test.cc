// SPDX-License-Identifier: Apache-2.0
#include "sources/process_usage.h"

#include <gtest/gtest.h>

#include "dial9/recorder.h"
#include "dial9/source.h"
#include "format/materialize.h"

namespace dial9::internal {
namespace {

TEST(ProcessUsage, ReadsNumbersThatGrowWithWork) {
  if (!is_process_usage_supported()) GTEST_SKIP() << "not on this platform";
  ProcessUsageReader reader;
  ProcessResourceUsageEvent before;
  ASSERT_TRUE(reader.read(1, &before));
  ASSERT_TRUE(before.rss_bytes.has_value);
  const std::uint64_t rss_bytes = before.rss_bytes.value.value;
  EXPECT_GT(rss_bytes, 0U);
  EXPECT_GE(before.max_rss_bytes.value, rss_bytes / 2);
  ProcessResourceUsageEvent after;
  do {  // burns CPU until the kernel has noticed
    ASSERT_TRUE(reader.read(2, &after));
  } while (after.user_cpu_ns.value + after.system_cpu_ns.value <=
           before.user_cpu_ns.value + before.system_cpu_ns.value);
  EXPECT_GE(after.minor_faults.value, before.minor_faults.value);
  EXPECT_FALSE(after.rss_bytes.has_value) << "a second hasn't passed";
  ASSERT_TRUE(reader.read(1'000'000'001, &after));
  EXPECT_TRUE(after.rss_bytes.has_value);
}

TEST(ProcessUsage, IsRecordedWithUnitsAndKinds) {
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
        if (schema.name != "ProcessResourceUsageEvent") continue;
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
