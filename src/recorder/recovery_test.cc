// Recovery of what a kill leaves: a copy of a living run's directory is what its death at that
// moment would have left.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/recovery.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "dial9/event.h"
#include "format/encoder.h"
#include "recorder/disk_store.h"
#include "recorder/drainer.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

namespace fs = std::filesystem;

DIAL9_EVENT(Kept, (interned, name), (std::uint64_t, number));

constexpr char kDeadRun[] = "dead-999999999";

RecorderOptions on_disk(const TempDir& dir) {
  RecorderOptions options = RecorderOptions::disk(dir.path());
  options.budget_bytes = std::uint64_t{8} << 20;
  options.arena_bytes = std::uint64_t{256} << 10;
  return options;
}

// What a kill at this moment would leave, under a name of its own.
std::string die(const std::string& run, const std::string& to) {
  fs::create_directories(to);
  for (const std::string& name : list_files(run)) {
    fs::copy_file(run + "/" + name, to + "/" + name, fs::copy_options::overwrite_existing);
  }
  return to;
}

void write_file(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::uint64_t> sorted_numbers(const std::string& run) {
  auto numbers = Trace::of_directory(run).numbers("Kept", "number");
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<std::uint64_t> count_up(std::uint64_t count) {
  std::vector<std::uint64_t> out(count);
  for (std::uint64_t i = 0; i < count; ++i) out[i] = i;
  return out;
}

TEST(Recovery, TurnsTheThreadBuffersIntoASegment) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  for (std::uint64_t i = 0; i < 1500; ++i) record(Kept{"a name", i});  // two chunks
  const std::string run = die(recorder->status().directory, dir.path() + "/x/" + kDeadRun);
  const RunReport report = recover_run(run, {});
  EXPECT_EQ(report.state, RunState::kRecovered) << describe(report);
  EXPECT_EQ(report.events, 1500U);
  EXPECT_EQ(report.pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(list_files(run), (std::vector<std::string>{".lock", "trace.0.bin"}));
  const Trace trace = Trace::of_directory(run);
  EXPECT_EQ(trace.count("Kept"), 1500U);
  EXPECT_EQ(trace.texts("Kept", "name")[1499], "a name");
  EXPECT_EQ(trace.metadata("segment.sealed_clean"), "false");
  EXPECT_EQ(trace.metadata("dial9.writer"), "dial9-cpp") << "the run's own metadata";
  EXPECT_NE(trace.metadata("dial9.recovered"), "(none)");
  EXPECT_EQ(trace.count("ClockSyncEvent"), 1U);
}

TEST(Recovery, TakesFromTheBuffersOnlyWhatIsInNoSegment) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  for (std::uint64_t i = 0; i < 700; ++i) record(Kept{"first", i});
  recorder.advance(2 * kTestSecond);
  recorder.step();
  for (std::uint64_t i = 700; i < 900; ++i) record(Kept{"second", i});
  const std::string run = die(recorder->status().directory, dir.path() + "/x/" + kDeadRun);
  const RunReport report = recover_run(run, {});
  EXPECT_EQ(report.events, 200U);
  ASSERT_EQ(report.sealed.size(), 1U);
  EXPECT_EQ(report.sealed[0].cut_bytes, 0U);
  EXPECT_EQ(list_files(run), (std::vector<std::string>{".lock", "trace.0.bin", "trace.1.bin"}));
  EXPECT_EQ(sorted_numbers(run), count_up(900));
}

TEST(Recovery, DoesNothingTheSecondTimeAndSaysSo) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  record(Kept{"a name", 0});
  const std::string run = die(recorder->status().directory, dir.path() + "/x/" + kDeadRun);
  EXPECT_EQ(recover_run(run, {}).events, 1U);
  const RunReport again = recover_run(run, {});
  EXPECT_EQ(again.state, RunState::kNothing);
  EXPECT_NE(describe(again).find("nothing to recover"), std::string::npos) << describe(again);
  EXPECT_EQ(sorted_numbers(run), count_up(1));
}

TEST(Recovery, NeverTouchesARunWhoseProcessLives) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  record(Kept{"a name", 0});
  const std::string run = recorder->status().directory;
  const auto before = list_files(run);
  EXPECT_EQ(recover_run(run, {}).state, RunState::kAlive);
  EXPECT_EQ(list_files(run), before);
}

TEST(Recovery, CutsASegmentAtItsLastWholeEventWhereNoJournalTells) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  for (std::uint64_t i = 0; i < 100; ++i) record(Kept{"a name", i});
  recorder.advance(2 * kTestSecond);
  recorder.step();
  const std::string run = die(recorder->status().directory, dir.path() + "/x/" + kDeadRun);
  fs::remove(run + "/" + kArenaName);
  auto bytes = read_file(run + "/trace.0.bin.active");
  bytes.resize(bytes.size() - 3);
  write_file(run + "/trace.0.bin.active", bytes);
  const RunReport report = recover_run(run, {});
  EXPECT_EQ(report.state, RunState::kRecovered);
  ASSERT_EQ(report.sealed.size(), 1U);
  EXPECT_GT(report.sealed[0].cut_bytes, 0U);
  EXPECT_EQ(report.sealed[0].bytes + report.sealed[0].cut_bytes, bytes.size());
  EXPECT_EQ(sorted_numbers(run), count_up(99));
}

TEST(Recovery, TellsOfLossesThatNoSegmentToldOf) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  record(Kept{"a name", 0});
  recorder->arena().count_loss(LossCause::kTooLarge, 4, 1, 100, 200);
  recorder.advance(2 * kTestSecond);
  recorder.step();  // told of in segment 0
  recorder->arena().count_loss(LossCause::kTooLarge, 3, 1, 300, 400);
  const std::string run = die(recorder->status().directory, dir.path() + "/x/" + kDeadRun);
  const RunReport report = recover_run(run, {});
  ASSERT_EQ(report.lost.size(), 1U);
  const auto losses = Trace::of_directory(run).losses();
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_EQ(losses[0].count, 4U);
  EXPECT_EQ(losses[1].count, 3U);
  EXPECT_EQ(losses[1].first_ns, 300U);
  EXPECT_EQ(losses[1].last_ns, 400U);
}

TEST(Recovery, KeepsWhatIsReadableOfADamagedFileAndCountsTheRest) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  for (std::uint64_t i = 0; i < 100; ++i) record(Kept{"a name", i});
  const std::string run = die(recorder->status().directory, dir.path() + "/x/" + kDeadRun);
  auto bytes = read_file(run + "/" + kArenaName);
  ArenaHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  std::uint32_t used = 0;
  while (recorder->arena().control(used).producer.committed == 0) ++used;
  const std::size_t at =
      header.chunk_offset + std::size_t{header.chunk_bytes} * used + header.tables_bytes + 500;
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 64, 0x7F);
  write_file(run + "/" + kArenaName, bytes);
  const RunReport report = recover_run(run, {});
  EXPECT_EQ(report.state, RunState::kRecovered);
  EXPECT_GT(report.events, 5U);
  EXPECT_EQ(report.events + report.damaged_events, 100U);
  ASSERT_FALSE(report.problems.empty());
  EXPECT_NE(report.problems[0].offset, kNoOffset);
  const Trace trace = Trace::of_directory(run);
  EXPECT_EQ(trace.count("Kept"), report.events);
  EXPECT_EQ(trace.lost("damaged"), report.damaged_events);
}

TEST(Recovery, LeavesBuffersOfAnotherVersionToTheProgramThatKnowsThem) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  record(Kept{"a name", 0});
  recorder.advance(2 * kTestSecond);
  recorder.step();
  const std::string run = die(recorder->status().directory, dir.path() + "/x/" + kDeadRun);
  auto bytes = read_file(run + "/" + kArenaName);
  bytes[8] = 99;
  write_file(run + "/" + kArenaName, bytes);
  const RunReport report = recover_run(run, {});
  EXPECT_EQ(report.state, RunState::kNotFinished);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_EQ(report.problems[0].offset, 8U);
  EXPECT_NE(report.problems[0].message.find("version 99"), std::string::npos);
  EXPECT_EQ(sorted_numbers(run), count_up(1)) << "the segment is sealed";
  EXPECT_TRUE(fs::exists(run + "/" + kArenaName));
}

// Takes a copy of the run before and after each call, and with each write half done.
class DyingStore : public DiskStore {
 public:
  DyingStore(RunDirectory& run, std::string graves)
      : DiskStore(run, {std::uint64_t{8} << 20, 0, false}), run_(run), graves_(std::move(graves)) {}

  std::uint64_t deaths() const { return deaths_; }
  std::string grave(std::uint64_t n) const { return graves_ + "/" + std::to_string(n); }
  void die_now() { die(run_.path(), grave(deaths_++)); }

  Result<void> open(std::uint64_t index, std::uint64_t reserve_bytes) override {
    active_ = run_.path() + "/trace." + std::to_string(index) + ".bin.active";
    die_now();
    auto done = DiskStore::open(index, reserve_bytes);
    die_now();
    return done;
  }
  Result<void> append(std::span<const std::uint8_t> bytes) override {
    die_now();
    const std::string half = grave(deaths_);
    die_now();
    std::ofstream(half + "/" + fs::path(active_).filename().string(),
                  std::ios::binary | std::ios::app)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size() / 2));
    auto done = DiskStore::append(bytes);
    die_now();
    return done;
  }
  Result<void> seal() override {
    die_now();
    auto done = DiskStore::seal();
    die_now();
    return done;
  }

 private:
  RunDirectory& run_;
  const std::string graves_;
  std::string active_;
  std::uint64_t deaths_ = 0;
};

// A chunk as a thread fills it.
class FilledChunk {
 public:
  explicit FilledChunk(Arena& arena) : arena_(arena) {
    LossCause cause{};
    index_ = arena.take(static_cast<std::uint32_t>(::gettid()), kernel_now_ns(), &cause);
    EXPECT_NE(index_, kNoChunk);
    out_.schema(
        9, "Kept", true,
        {{"name", format::FieldType::kPooledString}, {"number", format::FieldType::kVarint}});
  }
  void record(std::uint64_t number) {
    out_.begin(9, kernel_now_ns());
    out_.pooled_string("a name");
    out_.varint(number);
    const auto bytes = out_.data();
    std::memcpy(arena_.stream(index_), bytes.data(), bytes.size());
    __atomic_store_n(&arena_.control(index_).producer.committed, ++count_ << 32 | bytes.size(),
                     __ATOMIC_RELEASE);
  }
  void close() { Arena::close(arena_.control(index_)); }

 private:
  Arena& arena_;
  std::uint32_t index_ = 0;
  std::uint64_t count_ = 0;
  format::Encoder out_;
};

TEST(Recovery, HasEachEventOnceWhereverTheCollectorDies) {
  const TempDir dir;
  auto run = std::move(*RunDirectory::create(dir.path() + "/root", "live-1"));
  ArenaOptions arena_options;
  arena_options.path = run.path() + "/" + kArenaName;
  arena_options.bytes = std::uint64_t{512} << 10;
  arena_options.thread_bytes = 1 << 30;
  const auto arena = std::move(*Arena::create(arena_options));
  DyingStore store(run, dir.path() + "/graves");
  SegmentWriterOptions options;
  options.segment_bytes = 64 << 10;
  options.rotation_ns = kTestSecond;
  options.metadata = [] { return Metadata{{"service", "test"}}; };
  options.realtime_ns = [] { return std::uint64_t{1'700'000'000'000'000'000}; };
  options.message = [](const std::string&) {};
  SegmentWriter writer(store, *arena, options);
  Drainer drainer(*arena, writer);
  // Closed and open chunks, some drained in part, over several segments.
  std::uint64_t number = 0;
  std::vector<std::uint64_t> published_at;  // at each death
  std::vector<std::uint64_t> lost_at;
  for (std::uint64_t pass = 0; pass < 3; ++pass) {
    const auto note_deaths = [&] {
      published_at.resize(store.deaths(), number);
      lost_at.resize(store.deaths(), pass + 1);
    };
    std::vector<std::unique_ptr<FilledChunk>> chunks;
    for (std::size_t i = 0; i < 8; ++i) {
      chunks.push_back(std::make_unique<FilledChunk>(*arena));
      for (int n = 0; n < 300; ++n) chunks[i]->record(number++);
      if (i % 2 == 0) chunks[i]->close();
    }
    arena->count_loss(LossCause::kTooLarge, 1, 1, 100, 200);
    for (std::uint64_t drain = 0; drain < 2; ++drain) {
      const std::uint64_t now = kernel_now_ns() + (pass * 4 + drain + 2) * kTestSecond;
      drainer.drain(now, true, 0);
      writer.report_losses(now);
      writer.flush(now);
      store.die_now();
      note_deaths();
      for (std::size_t i = 1; i < 8; i += 2) chunks[i]->record(number++);
    }
    for (std::size_t i = 1; i < 8; i += 2) chunks[i]->close();
    const std::uint64_t now = kernel_now_ns() + (pass * 4 + 5) * kTestSecond;
    drainer.drain(now, true, 0);
    writer.flush(now);
    writer.seal(now);
    note_deaths();
  }
  ASSERT_GT(store.deaths(), 40U);
  for (std::uint64_t n = 0; n < store.deaths(); ++n) {
    SCOPED_TRACE("death " + std::to_string(n));
    const RunReport report = recover_run(store.grave(n), {});
    ASSERT_TRUE(report.problems.empty()) << describe(report);
    ASSERT_EQ(sorted_numbers(store.grave(n)), count_up(published_at[n])) << describe(report);
    ASSERT_EQ(Trace::of_directory(store.grave(n)).lost("too_large"), lost_at[n]);
  }
}

TEST(Recovery, OfARecorderStartsWithTheNextOneInTheDirectory) {
  const TempDir dir;
  const TempDir other;
  {
    SteppedRecorder recorder(on_disk(other), false);
    for (std::uint64_t i = 0; i < 50; ++i) record(Kept{"a name", i});
    die(recorder->status().directory, dir.path() + "/" + kDeadRun);
  }
  SteppedRecorder next(on_disk(dir), false);
  for (int i = 0; i < 20; ++i) next.step();
  EXPECT_EQ(next->status().runs_recovered, 1U);
  EXPECT_EQ(next->status().events_recovered, 50U);
  ASSERT_EQ(next.messages().size(), 1U);
  EXPECT_NE(next.messages()[0].find("50 events"), std::string::npos) << next.messages()[0];
  EXPECT_EQ(sorted_numbers(dir.path() + "/" + kDeadRun), count_up(50));
  EXPECT_FALSE(fs::exists(dir.path() + "/" + kDeadRun + "/" + kArenaName));
}

TEST(Recovery, IsLeftToTheUserWhereDeadRunsAreNotOurs) {
  const TempDir dir;
  const TempDir other;
  {
    SteppedRecorder recorder(on_disk(other), false);
    record(Kept{"a name", 0});
    die(recorder->status().directory, dir.path() + "/" + kDeadRun);
  }
  RecorderOptions options = on_disk(dir);
  options.removes_dead_runs = false;
  SteppedRecorder next(options, false);
  for (int i = 0; i < 20; ++i) next.step();
  EXPECT_EQ(next->status().runs_recovered, 0U);
  EXPECT_TRUE(fs::exists(dir.path() + "/" + kDeadRun + "/" + kArenaName));
}

}  // namespace
}  // namespace dial9::internal
