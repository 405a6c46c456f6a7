// Samples and dumps as the page gets them, and where a span's time went.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/testing/cpu_trace.h"
#include "analysis/testing/symbols.h"
#include "format/encoder.h"
#include "server/details_json.h"
#include "server/json.h"
#include "server/profile_json.h"
#include "server/sample_columns.h"
#include "server/summary_json.h"
#include "server/task_json.h"
#include "server/testing/column_reader.h"
#include "server/testing/sample_runs.h"

namespace dial9::server {
namespace {

using format::Encoder;
using format::FieldType;

constexpr std::uint64_t kOriginNs = testing::kOriginNs;

void declare_dumps(Encoder& out) {
  out.schema(3, "TaskDumpEvent", true,
             {{"task_id", FieldType::kVarint}, {"callchain", FieldType::kPooledStackFrames}});
}

void declare_samples(Encoder& out) {
  out.schema(1, "CpuSampleEvent", true,
             {{"tid", FieldType::kU32},
              {"source", FieldType::kU8},
              {"callchain", FieldType::kPooledStackFrames}});
}

void add_sample(Encoder& out, std::uint64_t at_ns, const std::vector<std::uint64_t>& frames) {
  out.begin(1, at_ns);
  out.u32(5);
  out.u8(0);
  out.pooled_stack(frames);
}

// Of 16 bytes.
void add_symbol(Encoder& out, std::uint64_t addr, std::string_view name, std::uint64_t depth) {
  analysis::testing::add_symbol(out, {addr, 16, name, depth, "/src/app/main.cc", 12});
}

// Thread 5 is sampled each millisecond, `samples` times, in work() inlined into run(); task 7 is
// dumped at 3 ms at an address that has no symbol, inside std code.
testing::Bytes profile_trace(std::uint32_t samples) {
  Encoder out;
  declare_samples(out);
  declare_dumps(out);
  add_symbol(out, 0x1000, "run", 0);
  add_symbol(out, 0x1000, "work", 1);
  add_symbol(out, 0x2000, "std::wait", 0);
  add_symbol(out, 0x3000, "checkout", 0);
  for (std::uint32_t i = 0; i < samples; ++i) {
    add_sample(out, kOriginNs + i * 1'000'000, {0x1004, 0xdead});
  }
  out.begin(3, kOriginNs + 3'000'000);
  out.varint(7);
  out.pooled_stack(std::vector<std::uint64_t>{0x2000, 0x3000});
  return out.take();
}

// A task is dumped in one frame of 2,000 functions inlined into each other, and 5,000 frames more,
// all of std, with names of 10,000 letters.
testing::Bytes hostile_trace() {
  Encoder out;
  declare_dumps(out);
  for (std::uint64_t depth = 0; depth < 2'000; ++depth) {
    const std::string name = "std::" + std::string(10'000, 'x');
    const std::string file = "/src/" + std::string(10'000, 'y');
    analysis::testing::add_symbol(out, {0x1000, 1 << 20, name, depth, file, 12});
  }
  std::vector<std::uint64_t> frames;
  for (std::uint64_t i = 0; i < 5'000; ++i) frames.push_back(0x1000 + i);
  out.begin(3, kOriginNs + 3'000'000);
  out.varint(7);
  out.pooled_stack(frames);
  return out.take();
}

TEST(Profile, BoundsWhatAStackOfAnyDepthAndNamesOfAnyLengthTakeOnThePage) {
  const auto run = testing::load_run(hostile_trace());
  const json dump = dump_json(*run, 0);
  EXPECT_EQ(dump["frames"].size(), 256u);
  EXPECT_LT(dump["frames"][0]["name"].get<std::string>().size(), 600u);
  EXPECT_LT(dump["frames"][0]["file"].get<std::string>().size(), 600u);
  EXPECT_LT(dump.dump().size(), 400'000u);
  EXPECT_LT(leaf_text(*run, 0).size(), 600u);
}

TEST(Profile, NamesTheFramesOfASampleAndShowsWhatHasNoNameByItsAddress) {
  const auto run = testing::load_run(profile_trace(3));
  const json sample = sample_json(*run, 2);
  EXPECT_EQ(sample["at_ns"], 2'000'000);
  EXPECT_TRUE(sample["lane"].is_null());
  ASSERT_EQ(sample["frames"].size(), 3U);
  EXPECT_EQ(sample["frames"][0]["name"], "work");
  EXPECT_EQ(sample["frames"][0]["inlined"], true);
  EXPECT_EQ(sample["frames"][1]["name"], "run");
  EXPECT_EQ(sample["frames"][1]["line"], 12);
  EXPECT_TRUE(sample["frames"][2]["name"].is_null());
  EXPECT_EQ(sample["frames"][2]["address"], "0xdead");
}

TEST(Profile, TellsHowTheStackOfASampleWasFoundAndThatItIsCutShort) {
  analysis::testing::CpuTrace made;
  made.add({.at_ns = kOriginNs, .frames = {0x1}, .unwound_by = "tables"});
  made.add(
      {.at_ns = kOriginNs + 1, .frames = {0x1, 0x2}, .is_truncated = true, .unwound_by = "mixed"});
  made.add({.at_ns = kOriginNs + 2, .frames = {0x1}});
  const auto run = testing::load_run(made.builder.take());
  EXPECT_NE(sample_json(*run, 0).dump().find("by unwind tables"), std::string::npos);
  EXPECT_NE(
      sample_json(*run, 1).dump().find("partly by frame pointers; its outer frames are missing"),
      std::string::npos);
  EXPECT_EQ(sample_json(*run, 2).dump().find("\"Stack\""), std::string::npos) << "nothing is known";
}

TEST(Profile, NamesACallerByTheCallNotByWhatBeginsBehindIt) {
  Encoder out;
  declare_samples(out);
  declare_dumps(out);
  add_symbol(out, 0x1000, "f", 0);  // ends in a call that doesn't return
  add_symbol(out, 0x1010, "g", 0);
  add_symbol(out, 0x2000, "by_address", 0);
  add_sample(out, kOriginNs, {0x1010, 0x1010, 0x2000, 0x2011});
  const auto run = testing::load_run(out.take());
  const json frames = sample_json(*run, 0)["frames"];
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_EQ(frames[0]["name"], "g") << "was interrupted at its first instruction";
  EXPECT_EQ(frames[1]["name"], "f");
  EXPECT_EQ(frames[1]["address"], "0x1010");
  EXPECT_EQ(frames[2]["name"], "by_address");
  EXPECT_TRUE(frames[3]["name"].is_null());
}

// As the Rust dial9 names them: each address as it is met, one behind a call, too.
TEST(Profile, SaysThatNamesBehindCallsMayBeOfOtherFunctions) {
  Encoder out;
  declare_samples(out);
  declare_dumps(out);
  for (const auto& [name, depth] : {std::pair("shop::poll", 0), std::pair("shop::drop", 1)}) {
    analysis::testing::add_symbol(
        out, {0x1000, 0, name, static_cast<std::uint64_t>(depth), "/src/app/main.rs", 12});
  }
  analysis::testing::add_symbol(out, {0x2000, 0, "std::wait"});
  add_sample(out, kOriginNs, {0x2000, 0x1000});
  add_sample(out, kOriginNs + 1, {0x1000, 0x2000});
  out.begin(3, kOriginNs + 2);
  out.varint(7);
  out.pooled_stack(std::vector<std::uint64_t>{0x2000, 0x1000});
  const auto run = testing::load_run(out.take());
  const std::string fact = "named by the code that each call returns to";
  EXPECT_NE(sample_json(*run, 0).dump().find(fact), std::string::npos);
  EXPECT_EQ(sample_json(*run, 1).dump().find(fact), std::string::npos)
      << "it was interrupted there, and its caller has a name alone";
  const json dump = dump_json(*run, 0);
  EXPECT_NE(dump.dump().find(fact), std::string::npos);
  EXPECT_EQ(leaf_text(*run, run->trace().dumps[0].stack), "shop::poll")
      << "not what is inlined behind its call";
}

// As perf takes them: in a poll of task 42, which is older than the trace, and between polls.
TEST(Profile, SaysWhoseASampleIsOnlyAsFarAsItIsKnown) {
  analysis::testing::CpuTrace trace;
  trace.builder.park(10, 3, 7);
  trace.builder.unpark(20, 3, analysis::testing::TraceBuilder::kNoWait, 7);
  trace.builder.poll(30, 600, 3, 42);
  trace.builder.park(900, 3, 7);
  for (const std::uint64_t at_ns : {100U, 700U}) {
    trace.add({.at_ns = at_ns, .frames = {0x1}, .tid = 7, .has_context = false});
  }
  const auto run = testing::load_run(trace.builder.take());
  const std::string in_poll = sample_json(*run, 0).dump();
  EXPECT_NE(in_poll.find("the task of the poll that it lies in; span not known"), std::string::npos)
      << in_poll;
  const std::string between = sample_json(*run, 1).dump();
  EXPECT_NE(between.find("none: between polls"), std::string::npos) << between;
  EXPECT_EQ(between.find("Task and span"), std::string::npos) << between;
}

TEST(Profile, ListsTheRowsOfSamplesInTheSummary) {
  const auto run = testing::load_run(profile_trace(3));
  const json summary = summary_json(*run);
  ASSERT_EQ(summary["samples"].size(), 1U);
  EXPECT_EQ(summary["samples"][0]["tid"], 5);
  EXPECT_TRUE(summary["samples"][0]["lane"].is_null());
  EXPECT_EQ(summary["samples"][0]["count"], 3);
}

TEST(Profile, GivesSamplesOneByOneOrAsCountsThatAddUp) {
  const auto run = testing::load_run(profile_trace(100));
  const WindowQuery exact{10.5e6, 1e6, 4, 50};
  const testing::ColumnReader few(sample_columns(*run, exact, 0, 1));
  EXPECT_EQ(few.f64("time"), (std::vector<double>{11e6, 12e6, 13e6, 14e6}));
  EXPECT_EQ(few.u32("index").front(), 11U);
  const WindowQuery coarse{0, 25e6, 4, 4};
  const testing::ColumnReader many(sample_columns(*run, coarse, 0, 1));
  EXPECT_EQ(many.u8("mode"), (std::vector<std::uint8_t>{kModeBins}));
  EXPECT_EQ(many.u32("n"), (std::vector<std::uint32_t>{25, 25, 25, 25}));
  EXPECT_EQ(many.u32("first"), (std::vector<std::uint32_t>{0, 25, 50, 75}));
}

TEST(Profile, ShowsInATasksLifeWhereItWaited) {
  const auto run = testing::load_run(profile_trace(1));
  const json life = task_json(*run, run->trace().task_by_id.at(7), 0, 10);
  ASSERT_EQ(life["rows_total"], 1);
  EXPECT_EQ(life["rows"][0]["what"], "dump");
  EXPECT_EQ(life["rows"][0]["where"], "checkout") << "the first frame that isn't of a library";
  const json dump = dump_json(*run, life["rows"][0]["dump"].get<std::uint32_t>());
  EXPECT_EQ(dump["task"], "7");
  EXPECT_EQ(dump["frames"][0]["name"], "std::wait");
}

TEST(Profile, SplitsASpansLengthIntoPartsThatAddUpToIt) {
  const auto run = testing::load_run(testing::sample_trace());
  const json span = span_json(*run, 0);
  const json& parts = span["parts"];
  const auto ns = [&](const char* name) { return parts[name].get<std::uint64_t>(); };
  EXPECT_EQ(ns("on_cpu_ns") + ns("blocked_ns") + ns("async_wait_ns") + ns("scheduler_delay_ns") +
                ns("unknown_ns"),
            span["dur_ns"].get<std::uint64_t>());
  std::uint64_t explained = 0;
  for (const json& reason : parts["unknown"]) {
    explained += reason["ns"].get<std::uint64_t>();
    EXPECT_FALSE(reason["why"].get<std::string>().empty());
  }
  EXPECT_EQ(explained, ns("unknown_ns"));
}

}  // namespace
}  // namespace dial9::server
