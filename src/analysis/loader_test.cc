// Loading: pairing, cuts, order, dialects, custom events, limits.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "analysis/testing/synthetic_trace.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using format::FieldType;
using testing::TraceBuilder;
using Bytes = std::vector<std::uint8_t>;

Bytes synthetic(std::uint64_t polls, std::uint64_t seed = 1) {
  testing::SyntheticOptions options;
  options.polls = polls;
  options.tasks = 20;
  options.seed = seed;
  Bytes out;
  testing::write_synthetic(options, [&](std::span<const std::uint8_t> bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return true;
  });
  return out;
}

// Everything that must not depend on the order of files, as text.
std::string digest(const Trace& trace) {
  std::string out;
  for (std::size_t i = 0; i < trace.polls.size(); ++i) {
    const std::uint32_t task = trace.polls.task[i];
    out += std::to_string(trace.polls.start_ns[i]) + " " + std::to_string(trace.polls.end_ns[i]) +
           " " + std::to_string(trace.polls.ready_ns[i]) + " " +
           std::to_string(trace.polls.lane[i]) + " " +
           std::to_string(task == kNoIndex ? 0 : trace.tasks.id[task]) + " " +
           std::string(trace.names.text(trace.polls.spawn_loc[i])) + " " +
           std::to_string(trace.polls.flags[i]) + "\n";
  }
  for (std::size_t i = 0; i < trace.parks.size(); ++i) {
    out += std::to_string(trace.parks.start_ns[i]) + " " + std::to_string(trace.parks.end_ns[i]) +
           "\n";
  }
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    out += std::to_string(trace.spans.start_ns[i]) + " " + std::to_string(trace.spans.end_ns[i]) +
           " " + std::string(trace.names.text(trace.spans.name[i])) + "\n";
  }
  return out;
}

TEST(Loader, PairsStartsAndEndsByWorker) {
  TraceBuilder builder;
  builder.poll_start(100, 0, 7, "a.cc:1");
  builder.poll_start(110, 1, 8, "b.cc:2");
  builder.poll_end(120, 0);
  builder.poll_end(150, 1);
  const Trace trace = builder.load();
  ASSERT_EQ(trace.polls.size(), 2U);
  EXPECT_EQ(trace.polls.duration_ns(0), 20U);
  EXPECT_EQ(trace.polls.duration_ns(1), 40U);
  EXPECT_EQ(trace.lanes[1].worker, 1U);
  EXPECT_EQ(trace.names.text(trace.polls.spawn_loc[1]), "b.cc:2");
  EXPECT_EQ(trace.tasks.id[trace.polls.task[1]], 8U);
}

TEST(Loader, FlagsWorkThatIsOpenAtTheCut) {
  TraceBuilder builder;
  builder.poll_start(100, 0, 7);
  builder.poll(200, 900, 1, 8);
  const Trace trace = builder.load();
  EXPECT_EQ(trace.polls.flags[0], kPollOpen);
  EXPECT_FALSE(trace.polls.is_complete(0));
  EXPECT_EQ(trace.polls.end_ns[0], 900U);  // the end of the trace
}

TEST(Loader, FlagsAPollWhoseEndWasLost) {
  TraceBuilder builder;
  builder.poll_start(100, 0, 7);
  builder.poll(300, 310, 0, 8);
  builder.poll_start(400, 0, 7);
  builder.park(500, 0);
  const Trace trace = builder.load();
  EXPECT_EQ(trace.polls.flags[0], kPollEndLost);
  EXPECT_EQ(trace.polls.flags[1], 0);
  EXPECT_EQ(trace.polls.flags[2], kPollEndLost);
  EXPECT_EQ(trace.polls.end_ns[2], 500U);
}

TEST(Loader, CountsEndsWhoseStartLiesBeforeTheTrace) {
  TraceBuilder builder;
  builder.poll_end(100, 0);
  builder.poll(200, 210, 0, 7);
  const Trace trace = builder.load();
  EXPECT_EQ(trace.polls.size(), 1U);
  EXPECT_EQ(trace.unmatched_poll_ends, 1U);
}

TEST(Loader, JoinsWorkAcrossSegmentsGivenInAnyOrder) {
  TraceBuilder first;
  first.poll_start(100, 0, 7);
  TraceBuilder second;
  second.poll_end(300, 0);
  second.poll(300, 400, 0, 8);
  const Bytes a = first.take();
  const Bytes b = second.take();
  for (const auto& files : {std::vector<std::span<const std::uint8_t>>{a, b},
                            std::vector<std::span<const std::uint8_t>>{b, a}}) {
    const Trace trace = load(files);
    ASSERT_EQ(trace.polls.size(), 2U);
    EXPECT_EQ(trace.polls.duration_ns(0), 200U);
    EXPECT_TRUE(trace.polls.is_complete(0));
    EXPECT_EQ(trace.unmatched_poll_ends, 0U);
  }
}

TEST(Loader, ConcatenationIsMergeInAnyOrder) {
  testing::SyntheticOptions options;
  options.polls = 6'000;
  std::vector<Bytes> pieces;
  testing::write_synthetic(options, [&](std::span<const std::uint8_t> bytes) {
    pieces.emplace_back(bytes.begin(), bytes.end());
    return true;
  });
  ASSERT_GT(pieces.size(), 10U);
  Bytes joined;
  for (const Bytes& piece : pieces) {
    joined.insert(joined.end(), piece.begin(), piece.end());
  }
  const std::string expected = digest(load(joined));
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    std::shuffle(pieces.begin(), pieces.end(), std::mt19937_64(seed));
    const std::vector<std::span<const std::uint8_t>> files(pieces.begin(), pieces.end());
    EXPECT_TRUE(digest(load(files)) == expected) << "seed " << seed;
  }
}

TEST(Loader, DoesNotDependOnTheSizeOfTheChunks) {
  const Bytes bytes = synthetic(300);
  Loader loader;
  loader.begin_input("x");
  for (std::size_t at = 0; at < bytes.size(); at += 7) {
    ASSERT_TRUE(
        loader.feed(std::span(bytes).subspan(at, std::min<std::size_t>(7, bytes.size() - at))));
  }
  ASSERT_TRUE(loader.end_input());
  EXPECT_EQ(digest(loader.finish()), digest(load(bytes)));
}

TEST(Loader, CountsAnInversionAndPutsItInOrder) {
  TraceBuilder builder;
  builder.poll_start(2'000, 0, 7);
  builder.poll_end(3'000, 0);
  builder.poll_start(1'000, 0, 8);  // recorded late, or its clock went back
  builder.poll_end(1'500, 0);
  const Trace trace = builder.load();
  EXPECT_EQ(trace.inversions, 1U);
  ASSERT_EQ(trace.polls.size(), 2U);
  EXPECT_EQ(trace.polls.start_ns[0], 1'000U);
  EXPECT_EQ(trace.begin_ns, 1'000U);
}

TEST(Loader, PacksThreadsThatShareAWorkerIdIntoLanes) {
  TraceBuilder builder;
  builder.poll(100, 500, kBlockingWorker, 7);
  builder.new_stream();
  builder.poll(200, 300, kBlockingWorker, 8);
  const Trace trace = builder.load();
  ASSERT_EQ(trace.lanes.size(), 2U);
  EXPECT_EQ(trace.lanes[0].part, 0U);
  EXPECT_EQ(trace.lanes[1].part, 1U);
  EXPECT_EQ(trace.polls.duration_ns(0), 400U);
  EXPECT_EQ(trace.polls.duration_ns(1), 100U);
}

TEST(Loader, TakesSchemasWithMissingAndWithFurtherFields) {
  format::Encoder encoder;
  encoder.schema(1, "PollStartEvent", true,
                 {{"future", FieldType::kString},
                  {"task_id", FieldType::kU32},
                  {"worker_id", FieldType::kU8}});
  encoder.schema(2, "PollEndEvent", true, {{"worker_id", FieldType::kU16}});
  encoder.begin(1, 100);
  encoder.string("x");
  encoder.u32(7);
  encoder.u8(3);
  encoder.begin(2, 200);
  encoder.u16(3);
  const Trace trace = load(encoder.data());
  ASSERT_EQ(trace.polls.size(), 1U);
  EXPECT_EQ(trace.lanes[0].worker, 3U);
  EXPECT_EQ(trace.polls.spawn_loc[0], kNoName);
  EXPECT_EQ(trace.polls.local_queue[0], kUnknownDepth);
}

TEST(Loader, ResolvesAStringThatIsDefinedAfterItsUse) {
  format::Encoder encoder;
  encoder.schema(1, "PollStartEvent", true,
                 {{"worker_id", FieldType::kVarint}, {"spawn_loc", FieldType::kPooledString}});
  encoder.begin(1, 100);
  encoder.varint(0);
  encoder.pool_id(77);
  encoder.define_string(77, "late.cc:9");
  const Trace trace = load(encoder.data());
  EXPECT_EQ(trace.names.text(trace.polls.spawn_loc[0]), "late.cc:9");
  EXPECT_EQ(trace.polls.spawn_loc[0], trace.names.find("late.cc:9"));
}

TEST(Loader, KeepsWhatWasReadableOfATruncatedFileAndGoesOnWithTheNext) {
  TraceBuilder first;
  first.poll(100, 200, 0, 7);
  Bytes cut = first.take();
  cut.pop_back();
  TraceBuilder second;
  second.poll(300, 400, 0, 8);
  const Bytes whole = second.take();
  const std::vector<std::span<const std::uint8_t>> files{cut, whole};
  const Trace trace = load(files);
  EXPECT_TRUE(trace.is_truncated());
  ASSERT_TRUE(trace.inputs[0].error.has_value());
  EXPECT_EQ(trace.inputs[0].error->code, ErrorCode::kTruncated);
  EXPECT_FALSE(trace.inputs[1].error.has_value());
  EXPECT_EQ(trace.polls.size(), 2U);
}

TEST(Loader, StopsAtItsMemoryLimitAndSaysSo) {
  LoadOptions options;
  options.max_memory_bytes = 1 << 20;
  const Trace trace = load(synthetic(200'000), options);
  EXPECT_TRUE(trace.hit_memory_limit);
  EXPECT_TRUE(trace.is_truncated());
  EXPECT_LT(trace.events, 200'000U);
  EXPECT_GT(trace.polls.size(), 0U);
}

TEST(Loader, KeepsCustomEventsWholeWithUnits) {
  format::Encoder encoder;
  encoder.schema(9, "OrderPlaced", true,
                 {{"price", FieldType::kF64},
                  {"took", FieldType::kVarint, true},
                  {"tags", FieldType::kDynamicList}});
  encoder.annotations(9, {{1, "unit", "us"}, {1, "kind", "gauge"}});
  encoder.begin(9, 500);
  encoder.f64(1.5);
  encoder.absent();
  encoder.list(1);
  encoder.element(FieldType::kString);
  encoder.string("a\"b");
  const Trace trace = load(encoder.data());
  ASSERT_EQ(trace.custom.size(), 1U);
  const EventTable& table = trace.custom[0];
  EXPECT_EQ(trace.names.text(table.name), "OrderPlaced");
  EXPECT_EQ(trace.names.text(table.fields[1].unit), "us");
  EXPECT_EQ(trace.names.text(table.fields[1].kind), "gauge");
  EXPECT_EQ(table.cell(0, 0).number(), 1.5);
  EXPECT_EQ(table.cell(0, 1).type, CellType::kAbsent);
  EXPECT_EQ(trace.names.text(static_cast<NameId>(table.cell(0, 2).bits)), "[\"a\\\"b\"]");
}

TEST(Trace, ConvertsToWallTimeByTheNearestAnchor) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr std::uint64_t kReal = 1'000'000 * kSecond;
  TraceBuilder builder;
  builder.clock_sync(1 * kSecond, kReal);
  builder.clock_sync(10 * kSecond, kReal + 9 * kSecond - 3'600 * kSecond);
  const Trace trace = builder.load();
  EXPECT_EQ(trace.realtime_ns(6 * kSecond), kReal + 5 * kSecond - 3'600 * kSecond);
  EXPECT_EQ(trace.realtime_ns(2 * kSecond), kReal + 1 * kSecond);
}

TEST(Trace, NamesLanesByTheRuntimesOfTheMetadata) {
  TraceBuilder builder;
  builder.metadata(50, "runtime.http", "1,2");
  builder.poll(100, 110, 0, 7);
  builder.poll(100, 110, 2, 8);
  const Trace trace = builder.load();
  EXPECT_EQ(trace.names.text(trace.lanes[0].runtime), "");
  EXPECT_EQ(trace.names.text(trace.lanes[1].runtime), "http");
}

TEST(Trace, TellsAWaitForAMutexFromAWaitForAStrandAsTheRecordSaysAndNotByItsPoll) {
  for (const LockKind kind : {LockKind::kUnknown, LockKind::kMutex, LockKind::kStrand}) {
    TraceBuilder builder;
    builder.poll(1'000, 90'000, 0, 7);
    builder.lock_wait(2'000, 50'000, 7, 0xA, {.kind = kind});     // inside the poll of task 7
    builder.lock_wait(300'000, 100'000, 7, 0xB, {.kind = kind});  // in none
    builder.poll(400'000, 410'000, 0, 7);
    const Trace trace = builder.load();
    ASSERT_EQ(trace.blocks.size(), 2U);
    EXPECT_EQ(trace.blocks[0].lock_kind, kind);
    EXPECT_EQ(trace.blocks[1].lock_kind, kind);
    EXPECT_EQ(trace.blocks[0].poll, kind == LockKind::kMutex ? 0U : kNoIndex);
    EXPECT_EQ(trace.blocks[1].poll, kNoIndex);
  }
}

}  // namespace
}  // namespace dial9::analysis
