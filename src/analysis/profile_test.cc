// Samples, dumps and symbols: on whose row a sample lies, and what an address is called.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/profile.h"

#include <gtest/gtest.h>

#include "analysis/loader.h"
#include "analysis/testing/symbols.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using format::FieldType;
using testing::add_symbol;
using testing::TraceBuilder;

constexpr std::uint16_t kSample = 100;
constexpr std::uint16_t kDump = 102;

void sample(TraceBuilder& builder, std::uint64_t at_ns, std::uint32_t tid,
            std::initializer_list<std::uint64_t> frames, std::string_view thread = "") {
  auto& out = builder.encoder();
  out.schema(kSample, "CpuSampleEvent", true,
             {{"worker_id", FieldType::kVarint},
              {"tid", FieldType::kU32},
              {"source", FieldType::kU8},
              {"thread_name", FieldType::kPooledString, true},
              {"callchain", FieldType::kPooledStackFrames}});
  out.begin(kSample, at_ns);
  out.varint(255);
  out.u32(tid);
  out.u8(0);
  if (thread.empty()) {
    out.absent();
  } else {
    out.present();
    out.pooled_string(thread);
  }
  out.pooled_stack(std::vector<std::uint64_t>(frames));
}

void symbol(TraceBuilder& builder, std::uint64_t addr, std::uint64_t size, std::string_view name,
            std::uint64_t inline_depth = 0) {
  add_symbol(builder.encoder(), {addr, size, name, inline_depth, "a.cc", 7});
}

void dump(TraceBuilder& builder, std::uint64_t at_ns, std::uint64_t task,
          std::initializer_list<std::uint64_t> frames) {
  auto& out = builder.encoder();
  out.schema(kDump, "TaskDumpEvent", true,
             {{"task_id", FieldType::kVarint}, {"callchain", FieldType::kPooledStackFrames}});
  out.begin(kDump, at_ns);
  out.varint(task);
  out.pooled_stack(std::vector<std::uint64_t>(frames));
}

std::vector<std::uint64_t> frames_of(const Trace& trace, std::uint32_t stack) {
  std::vector<std::uint64_t> out;
  for (std::uint32_t i = trace.stacks.ranges[stack].first; i < trace.stacks.ranges[stack].last;
       ++i) {
    out.push_back(trace.stacks.frames[i]);
  }
  return out;
}

TEST(Profile, PutsASampleOnTheLaneOfTheWorkerThatHadTheThreadThen) {
  TraceBuilder builder;
  builder.park(1'000, 0, 77);
  builder.unpark(1'100, 0, TraceBuilder::kNoWait, 77);
  sample(builder, 1'200, 77, {1, 2});
  builder.park(1'300, 0, 77);
  builder.unpark(1'320, 0, TraceBuilder::kNoWait, 77);
  builder.park(1'400, 0, 88);  // another thread has taken the worker over
  builder.unpark(1'440, 0, TraceBuilder::kNoWait, 88);
  builder.park(1'900, 0, 88);
  sample(builder, 1'500, 77, {1, 2});
  sample(builder, 1'450, 99, {3}, "logger");
  const Trace trace = builder.load();
  ASSERT_EQ(trace.sample_rows.size(), 3U);
  EXPECT_EQ(trace.sample_rows[0].lane, 0U);
  EXPECT_EQ(trace.samples[trace.sample_rows[0].samples.first].at_ns, 1'200U);
  EXPECT_EQ(trace.sample_rows[1].lane, kNoIndex);
  EXPECT_EQ(trace.sample_rows[1].tid, 77U);
  EXPECT_EQ(trace.names.text(trace.sample_rows[2].thread_name), "logger");
}

TEST(Profile, AThreadIdThatWasUsedAgainIsOfTheWorkerThatHasItNow) {
  TraceBuilder builder;
  for (const std::uint64_t worker : {1U, 0U}) {  // first worker 1 has it, then worker 0
    const std::uint64_t from_ns = worker == 1 ? 1'000 : 9'000;
    builder.park(from_ns, worker, 77);
    builder.unpark(from_ns + 100, worker, TraceBuilder::kNoWait, 77);
    builder.park(from_ns + 500, worker, 77);
    builder.unpark(from_ns + 600, worker, TraceBuilder::kNoWait, 77);
  }
  sample(builder, 1'300, 77, {1});
  sample(builder, 5'000, 77, {1});  // of either, or of a thread that was neither
  sample(builder, 9'300, 77, {1});
  const Trace trace = builder.load();
  ASSERT_EQ(trace.sample_rows.size(), 3U);
  EXPECT_EQ(trace.sample_rows[0].lane, 0U);
  EXPECT_EQ(trace.samples[trace.sample_rows[0].samples.first].at_ns, 9'300U);
  EXPECT_EQ(trace.sample_rows[1].lane, 1U);
  EXPECT_EQ(trace.samples[trace.sample_rows[1].samples.first].at_ns, 1'300U);
  EXPECT_EQ(trace.sample_rows[2].lane, kNoIndex);
}

// Frames that the loader's hash brings to one value, whatever the first is.
std::vector<std::uint64_t> colliding_stack(std::uint64_t first) {
  std::uint64_t hash = 0x9e3779b97f4a7c15U + 2;
  hash = (hash ^ first) * 0xff51afd7ed558ccdU;
  hash ^= hash >> 32;
  return {first, hash ^ 12'345};
}

TEST(Profile, StacksOfOneHashStayApartAndDoNotSlowALoadDown) {
  TraceBuilder builder;
  auto& out = builder.encoder();
  out.schema(kSample, "CpuSampleEvent", true,
             {{"tid", FieldType::kU32}, {"callchain", FieldType::kStackFrames}});
  constexpr std::uint64_t kStacks = 200'000;  // each compared with all before would take minutes
  for (std::uint64_t i = 0; i < kStacks; ++i) {
    out.begin(kSample, 1'000 + i);
    out.u32(1);
    out.stack_frames(colliding_stack(i));
  }
  const Trace trace = builder.load();
  ASSERT_EQ(trace.samples.size(), kStacks);
  for (std::uint32_t i = 0; i < kStacks; i += 999) {
    ASSERT_EQ(frames_of(trace, trace.samples[i].stack), colliding_stack(i));
  }
}

TEST(Profile, KeepsAStackOnceHoweverOftenItIsMet) {
  TraceBuilder builder;
  sample(builder, 1'000, 1, {10, 20});
  sample(builder, 1'001, 1, {10, 20});
  builder.new_stream();
  sample(builder, 1'002, 1, {10, 20});
  sample(builder, 1'003, 1, {10});
  const Trace trace = builder.load();
  EXPECT_EQ(trace.stacks.size(), 2U);
  EXPECT_EQ(trace.samples[0].stack, trace.samples[2].stack);
  EXPECT_EQ(frames_of(trace, trace.samples[3].stack), (std::vector<std::uint64_t>{10}));
}

TEST(Profile, NamesAnAddressBySymbolsFromTheInnermostToTheOutermost) {
  TraceBuilder builder;
  symbol(builder, 100, 50, "outer");
  symbol(builder, 100, 50, "inlined", 1);
  symbol(builder, 200, 0, "exact");
  const Trace trace = builder.load();
  const auto names = [&](std::uint64_t address) {
    std::string out;
    for (const Symbol& one : trace.symbols.at(kNoName, address, 8)) {
      out += std::string(trace.names.text(one.name)) + " ";
    }
    return out;
  };
  EXPECT_EQ(names(99), "");
  EXPECT_EQ(names(100), "inlined outer ");
  EXPECT_EQ(names(149), "inlined outer ");
  EXPECT_EQ(names(150), "");
  EXPECT_EQ(names(200), "exact ");
  EXPECT_EQ(names(201), "");
}

TEST(Profile, PutsADumpInTheLifeOfItsTaskByTheTimeOfItsStamp) {
  TraceBuilder builder;
  builder.poll(1'000, 1'100, 0, 7);
  dump(builder, 1'500, 7, {1});
  dump(builder, 1'100, 7, {2});
  dump(builder, 1'200, 9, {3});
  const Trace trace = builder.load();
  const Range dumps = trace.dumps_of_task(trace.task_by_id.at(7));
  ASSERT_EQ(dumps.size(), 2U);
  EXPECT_EQ(trace.dumps[dumps.first].at_ns, 1'100U);
  EXPECT_EQ(trace.tasks.last_ns[trace.task_by_id.at(9)], 1'200U);
}

TEST(Profile, KeepsSampledAllocationsAsEventsWithTheirStack) {
  TraceBuilder builder;
  auto& out = builder.encoder();
  out.schema(110, "AllocEvent", true,
             {{"tid", FieldType::kU32},
              {"size", FieldType::kVarint},
              {"addr", FieldType::kVarint},
              {"callchain", FieldType::kPooledStackFrames}});
  out.begin(110, 1'000);
  out.u32(5);
  out.varint(4'096);
  out.varint(0xabc);
  out.pooled_stack(std::vector<std::uint64_t>{8, 9});
  const Trace trace = builder.load();
  ASSERT_EQ(trace.custom.size(), 1U);
  const Cell cell = trace.custom[0].cell(0, 3);
  ASSERT_EQ(cell.type, CellType::kStack);
  EXPECT_FALSE(cell.is_number());
  EXPECT_EQ(frames_of(trace, static_cast<std::uint32_t>(cell.bits)),
            (std::vector<std::uint64_t>{8, 9}));
}

}  // namespace
}  // namespace dial9::analysis
