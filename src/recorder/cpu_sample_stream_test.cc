// SPDX-License-Identifier: Apache-2.0
#include "recorder/cpu_sample_stream.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

constexpr std::array<std::uint64_t, 3> kFrames{0x1111, 0x2222, 0x3333};

CpuSampleRecord sample(std::uint64_t at_ns) {
  CpuSampleRecord record;
  record.at_ns = at_ns;
  record.tid = 7;
  record.unwound_by = "tables";
  record.frames = kFrames;
  return record;
}

TEST(CpuSampleStream, HasEveryFieldOfASample) {
  CpuSampleEncoder encoder;
  CpuSampleRecord record = sample(5'000);
  record.task = 11;
  record.span = 12;
  record.weight = 3;
  record.cpu = 1;
  record.is_truncated = true;
  record.thread_name = "io";
  record.label.name_bytes = 2;
  record.label.value_bytes = 3;
  std::memcpy(record.label.text, "abxyz", 5);
  encoder.add(record);
  const auto streams = encoder.take();
  ASSERT_EQ(streams.size(), 1U);
  EXPECT_EQ(streams[0].info.events, 1U);
  EXPECT_EQ(streams[0].info.first_ns, 5'000U);
  const Trace trace = Trace::of(streams[0].bytes);
  const auto only = [&](const char* field) { return trace.numbers("CpuSampleEvent", field).at(0); };
  EXPECT_EQ(trace.stamps("CpuSampleEvent").at(0), 5'000U);
  EXPECT_EQ(only("worker_id"), 255U);
  EXPECT_EQ(only("tid"), 7U);
  EXPECT_EQ(only("source"), 0U);
  EXPECT_EQ(only("cpu"), 1U);
  EXPECT_EQ(only("weight"), 3U);
  EXPECT_EQ(only("task_id"), 11U);
  EXPECT_EQ(only("span_id"), 12U);
  EXPECT_EQ(only("truncated"), 1U);
  EXPECT_EQ(trace.texts("CpuSampleEvent", "thread_name").at(0), "io");
  EXPECT_EQ(trace.texts("CpuSampleEvent", "label_name").at(0), "ab");
  EXPECT_EQ(trace.texts("CpuSampleEvent", "label_value").at(0), "xyz");
  const auto& event = trace.raw().events.at(0);
  EXPECT_EQ(trace.raw().field(event, "callchain")->frames,
            (std::vector<std::uint64_t>{0x1111, 0x2222, 0x3333}));
}

TEST(CpuSampleStream, LeavesOutWhatASampleHasNot) {
  CpuSampleEncoder encoder;
  encoder.add(sample(1));
  const auto streams = encoder.take();
  const Trace trace = Trace::of(streams.at(0).bytes);
  const auto& event = trace.raw().events.at(0);
  for (const char* field :
       {"thread_name", "cpu", "weight", "task_id", "span_id", "label_name", "label_value"}) {
    EXPECT_FALSE(trace.raw().field(event, field)->is_present) << field;
  }
}

TEST(CpuSampleStream, HasAStackOnceHoweverOftenItComes) {
  CpuSampleEncoder encoder;
  encoder.add(sample(1));
  const std::size_t one = encoder.take().at(0).bytes.size();
  for (std::uint64_t i = 0; i < 100; ++i) encoder.add(sample(i));
  const std::size_t hundred = encoder.take().at(0).bytes.size();
  EXPECT_LT(hundred - one, 99U * 40) << "8 bytes a frame would be more";
}

TEST(CpuSampleStream, EndsAtAboutSixtyFourKilobytesAndTheNextStandsAlone) {
  CpuSampleEncoder encoder;
  for (std::uint64_t i = 0; i < 5'000; ++i) encoder.add(sample(i));
  const auto streams = encoder.take();
  ASSERT_GT(streams.size(), 1U);
  std::uint64_t events = 0;
  for (const SourceStream& stream : streams) {
    EXPECT_LT(stream.bytes.size(), std::size_t{70} << 10);
    EXPECT_EQ(Trace::of(stream.bytes).count("CpuSampleEvent"), stream.info.events);
    events += stream.info.events;
  }
  EXPECT_EQ(events, 5'000U);
  EXPECT_TRUE(encoder.take().empty());
}

TEST(CpuSampleStream, SaysWhatSamplesStandFor) {
  CpuSampleEncoder encoder;
  CpuProfileRecord record;
  record.at_ns = 9;
  record.elapsed_ns = 1'000;
  record.cpu_ns = 900;
  record.asked_hz = 99;
  record.samples = 5;
  record.periods = 6;
  record.lost = 1;
  record.lost_periods = 2;
  record.threads = 3;
  record.threads_unsampled = 4;
  encoder.add(record);
  const Trace trace = Trace::of(encoder.take().at(0).bytes);
  const std::pair<const char*, std::uint64_t> wanted[] = {
      {"elapsed_ns", 1'000}, {"cpu_ns", 900}, {"asked_hz", 99},
      {"samples", 5},        {"periods", 6},  {"lost", 1},
      {"lost_periods", 2},   {"threads", 3},  {"threads_unsampled", 4}};
  for (const auto& [field, value] : wanted) {
    EXPECT_EQ(trace.numbers("CpuProfileEvent", field).at(0), value) << field;
  }
}

}  // namespace
}  // namespace dial9::internal
