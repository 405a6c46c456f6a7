// Draining in passes that don't come to their end.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/drainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <set>

#include "dial9/event.h"
#include "recorder/memory_store.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_EVENT(Drained, (std::uint64_t, number));

// Throws at its next write, as the host's own allocator may.
class ThrowingStore : public MemoryStore {
 public:
  ThrowingStore() : MemoryStore(kTestBudget) {}
  bool throws = false;
  Result<void> append(std::span<const std::uint8_t> bytes) override {
    if (throws) throw std::bad_alloc();
    return MemoryStore::append(bytes);
  }
};

// The pages of the arena go while it writes, as when somebody cuts their file.
class CuttingStore : public MemoryStore {
 public:
  CuttingStore() : MemoryStore(kTestBudget) {}
  Arena* cuts = nullptr;
  Result<void> append(std::span<const std::uint8_t> bytes) override {
    auto done = MemoryStore::append(bytes);
    if (cuts != nullptr) {
      EXPECT_TRUE(cuts->leave_file());
    }
    return done;
  }
};

SegmentWriterOptions writer_options() {
  SegmentWriterOptions options;
  options.segment_bytes = 1 << 20;
  options.rotation_ns = 10 * kTestSecond;
  options.metadata = [] { return Metadata{}; };
  options.realtime_ns = [] { return std::uint64_t{1'700'000'000'000'000'000}; };
  options.message = [](const std::string&) {};
  return options;
}

// Chunks come back in any order: the later of a thread's may lie before the earlier.
TEST(Drainer, KeepsTheOrderOfAThreadWhoseChunksLieTheOtherWayRound) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  MemoryStore store(kTestBudget);
  SegmentWriter writer(store, recorder->arena(), writer_options());
  Drainer drainer(recorder->arena(), writer);
  std::uint64_t now = kernel_now_ns();
  std::uint64_t count = 0;
  const auto fill_chunk = [&] {
    record(Drained{count++});
    const ChunkControl* const first = t_buffer.control;
    while (t_buffer.control == first) record(Drained{count++});
  };
  const auto pass = [&] {
    now += 2 * kTestSecond;
    drainer.drain(now, true, 0);
    writer.flush(now);
  };
  bool has_gone_back = false;
  for (int i = 0; i < 8; ++i) {
    const ChunkControl* const before = t_buffer.control;
    fill_chunk();
    has_gone_back |= t_buffer.control < before;
    pass();
  }
  EXPECT_TRUE(has_gone_back);
  EXPECT_TRUE(writer.seal(now));
  const auto numbers = Trace::of(store.sealed_segments()).numbers("Drained", "number");
  EXPECT_EQ(numbers.size(), count);
  EXPECT_TRUE(std::ranges::is_sorted(numbers));
}

TEST(Drainer, GivesWhatAnExceptionLeftStagedToASegmentOnce) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  ThrowingStore store;
  SegmentWriter writer(store, recorder->arena(), writer_options());
  Drainer drainer(recorder->arena(), writer);
  std::uint64_t now = kernel_now_ns();
  const auto pass = [&] {
    now += 2 * kTestSecond;
    drainer.drain(now, true, 0);
    writer.flush(now);
  };
  record(Drained{0});
  pass();
  record(Drained{1});
  store.throws = true;
  EXPECT_THROW(pass(), std::bad_alloc);
  EXPECT_THROW(pass(), std::bad_alloc);
  store.throws = false;
  record(Drained{2});
  pass();
  pass();
  EXPECT_TRUE(writer.seal(now));
  EXPECT_EQ(Trace::of(store.sealed_segments()).numbers("Drained", "number"),
            (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(writer.totals().events, 3U);
}

TEST(Drainer, PutsNoZerosIntoASegmentWhenItsPagesGoInTheMiddleOfAPass) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  CuttingStore store;
  SegmentWriter writer(store, recorder->arena(), writer_options());
  Drainer drainer(recorder->arena(), writer);
  std::uint64_t now = kernel_now_ns() + 2 * kTestSecond;
  record(Drained{0});
  drainer.drain(now, true, 0);
  writer.flush(now);
  std::uint64_t count = 1;
  // More than is staged before it is written: the write comes before the copy of a chunk.
  while (recorder->arena().free_chunks() + 16 > recorder->arena().chunk_count()) {
    record(Drained{count++});
  }
  store.cuts = &recorder->arena();
  now += 2 * kTestSecond;
  drainer.drain(now, true, 0);
  store.cuts = nullptr;
  writer.flush(now);
  EXPECT_TRUE(writer.seal(now));
  const auto numbers = Trace::of(store.sealed_segments()).numbers("Drained", "number");
  ASSERT_GT(numbers.size(), 1U);
  EXPECT_LT(numbers.size(), count);
  for (std::uint64_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], i);
  EXPECT_EQ(writer.totals().events, numbers.size());
}

TEST(Drainer, TellsOfNoLossByCountersThatBecameZeros) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  CuttingStore store;
  SegmentWriter writer(store, recorder->arena(), writer_options());
  const std::uint64_t now = kernel_now_ns();
  recorder->arena().count_loss(LossCause::kTooLarge, 3, 1, 100, 200);
  writer.report_losses(now);
  writer.flush(now);
  ASSERT_TRUE(recorder->arena().leave_file());
  writer.report_losses(now + 1);
  writer.flush(now + 1);
  writer.lose_buffers(now, now + 2);
  writer.report_losses(now + 2);
  EXPECT_TRUE(writer.seal(now + 2));
  const auto losses = Trace::of(store.sealed_segments()).losses();
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_EQ(losses[0].cause, "too_large");
  EXPECT_EQ(losses[0].count, 3U);
  EXPECT_EQ(losses[1].cause, "buffers_cut");
  EXPECT_EQ(losses[1].count, 0U);
}

}  // namespace
}  // namespace dial9::internal
