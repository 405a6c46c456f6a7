// SPDX-License-Identifier: Apache-2.0
#include "recorder/heap_sample_stream.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

constexpr std::array<std::uint64_t, 3> kFrames{0x1111, 0x2222, 0x3333};

AllocRecord alloc(std::uint64_t at_ns) {
  AllocRecord record;
  record.at_ns = at_ns;
  record.tid = 7;
  record.size = 100;
  record.address = 0x5000;
  record.rate_bytes = 4096;
  record.unwound_by = "tables";
  record.frames = kFrames;
  return record;
}

TEST(HeapSampleStream, HasEveryFieldOfAnAllocation) {
  HeapSampleEncoder encoder;
  AllocRecord record = alloc(5'000);
  record.task = 11;
  record.span = 12;
  record.is_truncated = true;
  record.is_tracked = true;
  record.label.name_bytes = 2;
  record.label.value_bytes = 3;
  std::memcpy(record.label.text, "abxyz", 5);
  encoder.add(record);
  const auto streams = encoder.take();
  ASSERT_EQ(streams.size(), 1U);
  const Trace trace = Trace::of(streams[0].bytes);
  const auto only = [&](const char* field) { return trace.numbers("AllocEvent", field).at(0); };
  EXPECT_EQ(trace.stamps("AllocEvent").at(0), 5'000U);
  EXPECT_EQ(only("tid"), 7U);
  EXPECT_EQ(only("size"), 100U);
  EXPECT_EQ(only("addr"), 0x5000U);
  EXPECT_EQ(only("task_id"), 11U);
  EXPECT_EQ(only("span_id"), 12U);
  EXPECT_EQ(only("truncated"), 1U);
  EXPECT_EQ(only("tracked"), 1U);
  EXPECT_EQ(only("sample_rate_bytes"), 4096U);
  EXPECT_EQ(trace.texts("AllocEvent", "unwound_by").at(0), "tables");
  EXPECT_EQ(trace.texts("AllocEvent", "label_name").at(0), "ab");
  EXPECT_EQ(trace.texts("AllocEvent", "label_value").at(0), "xyz");
  EXPECT_EQ(trace.raw().field(trace.raw().events.at(0), "callchain")->frames,
            (std::vector<std::uint64_t>{0x1111, 0x2222, 0x3333}));
}

TEST(HeapSampleStream, LeavesOutTaskSpanAndLabelWhereThereAreNone) {
  HeapSampleEncoder encoder;
  encoder.add(alloc(1));
  const Trace trace = Trace::of(encoder.take().at(0).bytes);
  const auto& event = trace.raw().events.at(0);
  for (const char* name : {"task_id", "span_id", "label_name", "label_value"}) {
    EXPECT_FALSE(trace.raw().field(event, name)->is_present) << name;
  }
}

TEST(HeapSampleStream, AFreeNamesItsAllocation) {
  HeapSampleEncoder encoder;
  FreeRecord record;
  record.at_ns = 9'000;
  record.tid = 8;
  record.address = 0x5000;
  record.size = 100;
  record.alloc_ns = 5'000;
  encoder.add(record);
  const Trace trace = Trace::of(encoder.take().at(0).bytes);
  const auto only = [&](const char* field) { return trace.numbers("FreeEvent", field).at(0); };
  EXPECT_EQ(trace.stamps("FreeEvent").at(0), 9'000U);
  EXPECT_EQ(only("tid"), 8U);
  EXPECT_EQ(only("addr"), 0x5000U);
  EXPECT_EQ(only("size"), 100U);
  EXPECT_EQ(only("alloc_timestamp_ns"), 5'000U);
}

TEST(HeapSampleStream, WhatWasLostIsInTheEcosystemsEventToo) {
  HeapSampleEncoder encoder;
  HeapProfileRecord record;
  record.at_ns = 1'000'000'000;
  record.elapsed_ns = 999'000'000;
  record.rate_bytes = 4096;
  record.samples = 10;
  record.frees = 4;
  record.live_samples = 6;
  record.tracks_live = true;
  record.largest_rate_bytes = 8192;
  encoder.add(record);
  Trace trace = Trace::of(encoder.take().at(0).bytes);
  EXPECT_EQ(trace.count("HeapProfileEvent"), 1U);
  EXPECT_EQ(trace.count("MemoryProfileOverflowEvent"), 0U) << "nothing was";
  EXPECT_EQ(trace.numbers("HeapProfileEvent", "live_samples").at(0), 6U);
  EXPECT_EQ(trace.numbers("HeapProfileEvent", "tracks_live").at(0), 1U);
  EXPECT_EQ(trace.numbers("HeapProfileEvent", "sample_rate_bytes").at(0), 4096U);
  EXPECT_EQ(trace.numbers("HeapProfileEvent", "largest_rate_bytes").at(0), 8192U);
  record.lost_samples = 3;
  record.lost_frees = 2;
  record.untracked = 5;
  encoder.add(record);
  trace = Trace::of(encoder.take().at(0).bytes);
  EXPECT_EQ(trace.numbers("HeapProfileEvent", "lost_samples").at(0), 3U);
  EXPECT_EQ(trace.numbers("HeapProfileEvent", "lost_frees").at(0), 2U);
  EXPECT_EQ(trace.numbers("HeapProfileEvent", "untracked").at(0), 5U);
  EXPECT_EQ(trace.numbers("MemoryProfileOverflowEvent", "dropped_allocs").at(0), 3U);
  EXPECT_EQ(trace.numbers("MemoryProfileOverflowEvent", "dropped_frees").at(0), 7U);
}

TEST(HeapSampleStream, ManyMakeSeveralStreamsEachWholeByItself) {
  HeapSampleEncoder encoder;
  constexpr std::uint64_t kMany = 20'000;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    encoder.add(alloc(i));
    FreeRecord free;
    free.at_ns = i;
    encoder.add(free);
  }
  const auto streams = encoder.take();
  EXPECT_GT(streams.size(), 3U);
  std::uint64_t events = 0;
  for (const SourceStream& stream : streams) {
    EXPECT_LT(stream.bytes.size(), std::size_t{66} << 10);
    const Trace trace = Trace::of(stream.bytes);
    EXPECT_EQ(trace.raw().events.size(), stream.info.events);
    events += stream.info.events;
  }
  EXPECT_EQ(events, 2 * kMany);
  EXPECT_TRUE(encoder.take().empty());
}

}  // namespace
}  // namespace dial9::internal
