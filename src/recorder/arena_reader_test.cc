// Reading an arena from outside: alive, dead, damaged.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/arena_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>

#include "dial9/event.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

// Bytes that a test may damage.
class CopiedBytes : public ArenaBytes {
 public:
  explicit CopiedBytes(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  bool read(std::uint64_t offset, std::span<std::uint8_t> to) const override {
    if (offset > bytes_.size() || to.size() > bytes_.size() - offset) return false;
    std::memcpy(to.data(), bytes_.data() + offset, to.size());
    return true;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

DIAL9_EVENT(Noted, (interned, name), (std::uint64_t, number));

RecorderOptions on_disk(const TempDir& dir) {
  RecorderOptions options = RecorderOptions::disk(dir.path());
  options.budget_bytes = std::uint64_t{4} << 20;
  options.arena_bytes = std::uint64_t{1} << 20;
  return options;
}

ArenaReader reader_of(RecorderCore& core) {
  auto reader = ArenaReader::open(core.status().directory + "/" + kArenaName);
  EXPECT_TRUE(reader.has_value()) << reader.error().message;
  return std::move(*reader);
}

// The chunk of this thread.
ChunkView own_chunk(const ArenaReader& reader) {
  ChunkView view;
  for (std::uint32_t i = 0; i < reader.chunk_count(); ++i) {
    if (reader.read(i, &view) == ChunkLook::kRead && view.tid == t_buffer.tid) return view;
  }
  return {};
}

TEST(ArenaReader, ReadsWhatALivingThreadPublishedAsAStream) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  for (std::uint64_t i = 0; i < 3; ++i) record(Noted{"a name", i});
  const ArenaReader reader = reader_of(recorder.core());
  EXPECT_EQ(reader.identity().pid, static_cast<std::uint32_t>(::getpid()));
  const ChunkView view = own_chunk(reader);
  EXPECT_TRUE(view.is_open);
  EXPECT_EQ(view.events, 3U);
  EXPECT_EQ(view.events_in_segment, 0U);
  EXPECT_EQ(view.rest, view.stream);
  EXPECT_FALSE(view.problem.has_value());
  const Trace trace = Trace::of(view.stream);
  EXPECT_EQ(trace.numbers("Noted", "number"), (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(trace.texts("Noted", "name")[2], "a name");
}

TEST(ArenaReader, TellsWhatIsInASegmentFromTheRest) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  for (std::uint64_t i = 0; i < 3; ++i) record(Noted{"a name", i});
  recorder.advance(2 * kTestSecond);
  recorder.step();  // drains the open chunk in part
  const ArenaReader reader = reader_of(recorder.core());
  EXPECT_TRUE(own_chunk(reader).rest.empty());
  EXPECT_EQ(own_chunk(reader).events_in_segment, 3U);
  for (std::uint64_t i = 3; i < 5; ++i) record(Noted{"a name", i});
  const ChunkView view = own_chunk(reader);
  EXPECT_EQ(view.events, 5U);
  EXPECT_EQ(view.rest_events, 2U);
  const Trace rest = Trace::of(view.rest);
  EXPECT_EQ(rest.numbers("Noted", "number"), (std::vector<std::uint64_t>{3, 4}));
  EXPECT_EQ(rest.texts("Noted", "name")[1], "a name") << "definitions come along";
  const auto segment = reader.active_segment();
  ASSERT_TRUE(segment.has_value());
  EXPECT_EQ(segment->index, 0U);
  EXPECT_EQ(segment->bytes, read_file(recorder->status().directory + "/trace.0.bin.active").size());
}

TEST(ArenaReader, FindsTheMemoryFileOfAProcess) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  record(Noted{"in memory", 7});
  const auto reader = ArenaReader::open_process(::getpid());
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_EQ(Trace::of(own_chunk(*reader).stream).numbers("Noted", "number"),
            (std::vector<std::uint64_t>{7}));
  EXPECT_EQ(Trace::of(reader->prologue()).metadata("dial9.writer"), "dial9-cpp");
}

// Two copies of the library, or a recorder that was stopped and one after it.
TEST(ArenaReader, TakesTheNewestThatRunsOfAProcessAndNamesTheOthersThatDo) {
  const TempDir dir;
  std::vector<std::unique_ptr<Arena>> arenas;
  for (const char* id : {"older-1", "newer-1", "newest-1"}) {
    ArenaOptions options;
    options.path = dir.path() + "/" + kArenaName;
    options.boot_id = id;
    arenas.push_back(std::move(*Arena::create(options)));
    std::filesystem::remove(options.path);
    // Later than any that the process has mapped for another test.
    arenas.back()->header().started_ns += (1 + arenas.size()) * 1'000'000'000'000;
  }
  arenas[2]->header().stopped_ns = 7;
  std::vector<ArenaIdentity> others;
  auto reader = ArenaReader::open_process(::getpid(), &others);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_EQ(reader->identity().boot_id, "newer-1");
  const auto is_named = [&](const char* id) {
    return std::any_of(others.begin(), others.end(),
                       [&](const ArenaIdentity& other) { return other.boot_id == id; });
  };
  EXPECT_TRUE(is_named("older-1"));
  EXPECT_FALSE(is_named("newer-1"));
  EXPECT_FALSE(is_named("newest-1")) << "it was stopped";
}

TEST(ArenaReader, SaysThatAProcessHasNoRecorder) {
  const auto reader = ArenaReader::open_process(1'000'000'000);
  ASSERT_FALSE(reader.has_value());
  EXPECT_EQ(reader.error().code, ErrorCode::kNotFound) << reader.error().message;
}

TEST(ArenaReader, NeverHandsOutATornStreamWhileThreadsRecord) {
  const TempDir dir;
  Status status;
  const auto core = RecorderCore::start(on_disk(dir), {}, &status);
  ASSERT_TRUE(status.ok()) << status.message();
  const ArenaReader reader = reader_of(*core);
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; !is_done.load(std::memory_order_relaxed); ++i) {
        record(Noted{"busy", i});
      }
    });
  }
  std::uint64_t looked_at = 0;
  ChunkView view;
  for (int pass = 0; pass < 40 || looked_at < 20; ++pass) {
    for (std::uint32_t i = 0; i < reader.chunk_count(); ++i) {
      if (reader.read(i, &view) != ChunkLook::kRead) continue;
      EXPECT_FALSE(view.problem.has_value()) << view.problem->message;
      EXPECT_EQ(view.events_unreadable, 0U);
      const auto numbers = Trace::of(view.stream).numbers("Noted", "number");
      for (std::size_t n = 1; n < numbers.size(); ++n) {
        ASSERT_EQ(numbers[n], numbers[0] + n) << "one chunk, one thread, in order";
      }
      looked_at += numbers.size();
    }
  }
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  core->stop(std::chrono::seconds(60));
}

class DamagedArena : public ::testing::Test {
 protected:
  DamagedArena() {
    SteppedRecorder recorder(on_disk(dir_), false);
    for (std::uint64_t i = 0; i < 100; ++i) record(Noted{"a name", i});
    chunk_ = own_chunk(reader_of(recorder.core())).index;
    bytes_ = read_file(recorder->status().directory + "/" + kArenaName);
    std::memcpy(&header_, bytes_.data(), sizeof header_);
  }
  Result<ArenaReader> open() { return ArenaReader::from(std::make_unique<CopiedBytes>(bytes_)); }
  std::size_t stream_at() const {
    return header_.chunk_offset + std::size_t{header_.chunk_bytes} * chunk_ + header_.tables_bytes;
  }
  std::size_t control_at() const { return header_.control_offset + sizeof(ChunkControl) * chunk_; }

  const TempDir dir_;
  std::vector<std::uint8_t> bytes_;
  ArenaHeader header_{};
  std::uint32_t chunk_ = 0;
};

// Of a living process: at each look at one chunk's state it is another one, and stays at the last.
class ChangingBytes : public CopiedBytes {
 public:
  ChangingBytes(std::vector<std::uint8_t> bytes, std::uint64_t at, std::vector<ChunkControl> states)
      : CopiedBytes(std::move(bytes)), at_(at), states_(std::move(states)) {}
  bool read(std::uint64_t offset, std::span<std::uint8_t> to) const override {
    if (!CopiedBytes::read(offset, to)) return false;
    if (offset == at_ && to.size() == sizeof(ChunkControl)) {
      std::memcpy(to.data(), &states_[std::min(looks_++, states_.size() - 1)],
                  sizeof(ChunkControl));
    }
    return true;
  }

 private:
  std::uint64_t at_;
  std::vector<ChunkControl> states_;
  mutable std::size_t looks_ = 0;
};

TEST_F(DamagedArena, CountsABatchOnceThatIsSettledDuringTheLook) {
  ChunkControl before{};
  std::memcpy(&before, bytes_.data() + control_at(), sizeof before);
  ASSERT_EQ(before.collector.drained, 0U);
  // The collector has stored both; the look got the first word early and the last one late.
  ChunkControl torn = before;
  torn.collector.staged_to = before.producer.committed;
  ChunkControl settled = torn;
  settled.collector.drained = before.producer.committed;
  const auto reader = ArenaReader::from(
      std::make_unique<ChangingBytes>(bytes_, control_at(), std::vector{torn, settled}));
  ChunkView view;
  ASSERT_EQ(reader->read(chunk_, &view), ChunkLook::kRead);
  EXPECT_EQ(view.events, 100U);
  EXPECT_EQ(view.events_in_segment, 100U);
  EXPECT_TRUE(view.rest.empty());
}

// States of four looks, of which each two differ in what was drained; the last one is `last`.
std::vector<ChunkControl> drained_at_each_look(const ChunkControl& first,
                                               const ChunkControl& last) {
  std::vector<ChunkControl> states(8, first);
  for (std::size_t i = 0; i < states.size(); ++i) states[i].collector.drained = (i << 32) + i;
  states.back() = last;
  return states;
}

TEST_F(DamagedArena, LeavesAChunkOutThatIsDrainedAtEachLookAndCountsWhatIsInNoSegment) {
  ChunkControl last{};
  std::memcpy(&last, bytes_.data() + control_at(), sizeof last);
  last.collector.drained = (std::uint64_t{60} << 32) + 1'000;
  ChunkControl staged = last;  // but not confirmed
  staged.collector.staged_to = last.producer.committed;
  staged.collector.staged_position = kOpenEnd;
  ChunkControl settled = last;
  settled.collector.drained = last.producer.committed;
  ChunkControl freed = last;
  freed.producer.state = kChunkFree;
  ChunkControl taken_anew = last;
  ++taken_anew.producer.sequence;
  taken_anew.producer.committed = (std::uint64_t{3} << 32) + 200;
  taken_anew.collector.drained = 0;
  const std::pair<ChunkControl, std::uint64_t> cases[] = {
      {last, 40}, {staged, 40}, {settled, 0}, {freed, 0}, {taken_anew, 3}};
  for (const auto& [state, unreadable] : cases) {
    const auto reader = ArenaReader::from(
        std::make_unique<ChangingBytes>(bytes_, control_at(), drained_at_each_look(last, state)));
    ChunkView view;
    EXPECT_EQ(reader->read(chunk_, &view), ChunkLook::kRecycled);
    EXPECT_EQ(view.events_unreadable, unreadable);
    EXPECT_TRUE(view.stream.empty());
    EXPECT_TRUE(view.rest.empty());
  }
}

TEST_F(DamagedArena, IsRefusedWithTheOffsetOfWhatIsWrong) {
  ASSERT_TRUE(open().has_value());
  const std::vector<std::uint8_t> good = bytes_;
  bytes_[3] ^= 1;
  EXPECT_EQ(open().error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(open().error().offset, 0U);
  bytes_ = good;
  bytes_[8] = 99;
  EXPECT_EQ(open().error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(open().error().offset, 8U);
  EXPECT_NE(open().error().message.find("version 99"), std::string::npos);
  bytes_.assign(good.begin(), good.begin() + 100);
  EXPECT_EQ(open().error().code, ErrorCode::kTruncated);
  EXPECT_EQ(open().error().offset, 100U);
  bytes_ = good;
  header_.chunk_offset = ~std::uint64_t{0} - 7;
  std::memcpy(bytes_.data(), &header_, sizeof header_);
  EXPECT_EQ(open().error().code, ErrorCode::kCorrupt);
}

TEST_F(DamagedArena, GivesTheEventsBeforeTheDamageOfAChunkAndCountsTheOthers) {
  bytes_[stream_at() + 400] = 0x7F;  // no such frame, or a wrong field
  for (std::size_t i = 0; i < 64; ++i) bytes_[stream_at() + 400 + i] = 0x7F;
  const ChunkView view = own_chunk(*open());
  EXPECT_GT(view.events, 5U);
  EXPECT_EQ(view.events + view.events_unreadable, 100U);
  ASSERT_TRUE(view.problem.has_value());
  EXPECT_GE(view.problem->offset, stream_at());
  EXPECT_EQ(Trace::of(view.rest).count("Noted"), view.events);
}

TEST_F(DamagedArena, DoesNotBelieveALengthBeyondTheChunk) {
  const std::uint64_t lie = std::uint64_t{5} << 32 | 0xFFFF'FFFF;
  std::memcpy(bytes_.data() + control_at(), &lie, sizeof lie);
  ChunkView view;
  EXPECT_EQ(open()->read(chunk_, &view), ChunkLook::kUnreadable);
  ASSERT_TRUE(view.problem.has_value());
  EXPECT_EQ(view.problem->offset, control_at());
}

TEST_F(DamagedArena, ReadsWhatIsLeftOfAFileThatWasCut) {
  bytes_.resize(stream_at() + 10);
  const auto reader = open();
  ASSERT_TRUE(reader.has_value());
  EXPECT_TRUE(reader->identity().is_cut);
  ChunkView view;
  EXPECT_EQ(reader->read(chunk_, &view), ChunkLook::kUnreadable);
  EXPECT_EQ(view.events_unreadable, 100U);
}

}  // namespace
}  // namespace dial9::internal
