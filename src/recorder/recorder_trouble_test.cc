// A recorder whose files are taken away, or whose disk refuses: what is lost by that, or may be, is
// said, and the last record of it stays.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "dial9/event.h"
#include "dial9/label.h"
#include "recorder/recovery.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

namespace fs = std::filesystem;

DIAL9_EVENT(Kept, (std::uint64_t, number));

RecorderOptions on_disk(const TempDir& dir) {
  RecorderOptions options = RecorderOptions::disk(dir.path());
  options.arena_bytes = std::uint64_t{256} << 10;
  return options;
}

void pass(SteppedRecorder& recorder) {
  recorder.advance(2 * kTestSecond);
  recorder.step();
}

TEST(RecorderTrouble, SaysThatAKillIsNoLongerSurvivedWhenTheBufferFileIsRemoved) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  const std::string run = recorder->status().directory;
  record(Kept{0});
  pass(recorder);
  EXPECT_TRUE(recorder->status().reason.empty()) << recorder->status().reason;
  fs::remove(run + "/" + kArenaName);
  for (std::uint64_t i = 1; i < 4; ++i) {
    record(Kept{i});
    pass(recorder);
  }
  EXPECT_TRUE(recorder->status().is_recording);
  EXPECT_NE(recorder->status().reason.find("don't survive a kill"), std::string::npos)
      << recorder->status().reason;
  ASSERT_EQ(recorder.messages().size(), 1U) << "said once";
  EXPECT_NE(recorder.messages()[0].find(kArenaName), std::string::npos);
  ASSERT_TRUE(recorder->rotate(std::chrono::seconds(1)));
  const Trace trace = Trace::of_directory(run);
  EXPECT_EQ(trace.count("Kept"), 4U);
  EXPECT_NE(trace.metadata("dial9.degraded").find("don't survive a kill"), std::string::npos);
}

TEST(RecorderTrouble, SaysItTooWhenTheWholeDirectoryIsRemoved) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  const std::string run = recorder->status().directory;
  fs::remove_all(run);
  record(Kept{0});
  pass(recorder);
  EXPECT_TRUE(fs::exists(run + "/.lock")) << "the directory is made again";
  EXPECT_NE(recorder->status().reason.find("don't survive a kill"), std::string::npos)
      << recorder->status().reason;
}

// Without it each store into what was cut off is a SIGBUS, the collector's own among them.
TEST(RecorderTrouble, EndsWithAWordWhenItsBufferFileIsCutAndTheHostGoesOn) {
  for (const std::uint64_t bytes : {0, 4096, 100'000}) {
    const TempDir dir;
    SteppedRecorder recorder(on_disk(dir), false);
    const std::string run = recorder->status().directory;
    record(Kept{0});
    pass(recorder);
    record(Kept{1});  // in no segment yet
    ChunkControl* const chunk = t_buffer.control;
    fs::resize_file(run + "/" + kArenaName, bytes);
    recorder.step();
    chunk->producer.committed = 0;  // as a thread does that was inside a record call
    EXPECT_FALSE(is_recording());
    recorder->enable();
    EXPECT_FALSE(is_recording()) << "into what?";
    record(Kept{2});
    pass(recorder);
    EXPECT_FALSE(recorder->status().is_recording);
    EXPECT_NE(recorder->status().reason.find("was cut to"), std::string::npos);
    ASSERT_EQ(recorder.messages().size(), 1U) << "said once";
    EXPECT_TRUE(recorder->rotate(std::chrono::seconds(1)));
    const StopResult result = recorder->stop(std::chrono::seconds(1));
    EXPECT_FALSE(result.is_complete);
    EXPECT_NE(result.unfinished.find("was cut to"), std::string::npos) << result.unfinished;
    const Trace trace = Trace::of_directory(run);
    EXPECT_EQ(trace.numbers("Kept", "number"), std::vector<std::uint64_t>{0});
    ASSERT_EQ(trace.losses().size(), 1U);
    EXPECT_EQ(trace.losses()[0].cause, "buffers_cut");
    EXPECT_EQ(trace.losses()[0].count, 0U) << "nobody knows how many";
  }
}

TEST(RecorderTrouble, KeepsWhatItToldOfLossesWhenItsBufferFileIsCut) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  const std::string run = recorder->status().directory;
  record(Kept{0});
  count_loss(LossCause::kNested, 5);
  pass(recorder);
  fs::resize_file(run + "/" + kArenaName, 0);
  pass(recorder);
  count_loss(LossCause::kNested);  // of no recorder any more
  EXPECT_EQ(recorder->status().events_dropped, 5U);
  EXPECT_EQ(recorder->stop(std::chrono::seconds(1)).events_dropped, 6U);
  EXPECT_EQ(Trace::of_directory(run).lost("nested"), 5U);
}

TEST(RecorderTrouble, LeavesAFileAloneThatTookThePlaceOfItsBuffers) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  const std::string file = recorder->status().directory + "/" + kArenaName;
  fs::remove(file);
  std::ofstream(file) << "somebody's";
  pass(recorder);
  EXPECT_FALSE(recorder->status().reason.empty());
  EXPECT_TRUE(recorder->stop(std::chrono::seconds(1)).is_complete);
  EXPECT_TRUE(fs::exists(file));
}

TEST(RecorderTrouble, KeepsTheOnlyRecordOfALossThatNoSegmentCouldTell) {
  const TempDir dir;
  std::string run;
  StopResult result;
  {
    SteppedRecorder recorder(on_disk(dir), false);
    run = recorder->status().directory;
    record(Kept{0});
    pass(recorder);
    ASSERT_TRUE(recorder->rotate(std::chrono::seconds(1)));
    fs::create_directories(run + "/trace.1.bin.active");  // no segment can be made any more
    for (std::uint64_t i = 1; i < 8; ++i) record(Kept{i});
    result = recorder->stop(std::chrono::seconds(1));
  }
  EXPECT_FALSE(result.is_complete);
  EXPECT_NE(result.unfinished.find("dial9 recover"), std::string::npos) << result.unfinished;
  EXPECT_EQ(result.events_written, 1U);
  EXPECT_EQ(result.events_dropped, 7U);
  ASSERT_TRUE(fs::exists(run + "/" + kArenaName));
  fs::remove(run + "/trace.1.bin.active");
  const RunReport report = recover_run(run, {});
  EXPECT_EQ(report.state, RunState::kRecovered) << describe(report);
  const Trace trace = Trace::of_directory(run);
  EXPECT_EQ(trace.count("Kept") + trace.lost("write_failed"), 8U);
  EXPECT_EQ(trace.lost("write_failed"), 7U);
}

TEST(RecorderTrouble, ASegmentThatCouldNotBeMadeIsNoneThatIsMissing) {
  const TempDir dir;
  const TempDir other;
  const std::string dead = other.path() + "/dead-999999999";
  {
    SteppedRecorder recorder(on_disk(dir), false);
    const std::string run = recorder->status().directory;
    fs::create_directories(run + "/trace.0.bin.active");
    for (std::uint64_t i = 0; i < 7; ++i) record(Kept{i});
    pass(recorder);
    fs::remove(run + "/trace.0.bin.active");
    fs::copy(run, dead);  // as if the process died now
  }
  const RunReport report = recover_run(dead, {});
  EXPECT_FALSE(report.has_unknown_loss) << describe(report);
  EXPECT_TRUE(report.problems.empty()) << describe(report);
  EXPECT_EQ(Trace::of_directory(dead).lost("write_failed"), 7U);
}

// The kernel's limit on file sizes: below it neither a file nor a memory file has room.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit small{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~FileLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(RecorderTrouble, RecordsInAnonymousMemoryWhereNoFileMayHoldItsBuffers) {
  const TempDir dir;
  const FileLimit limit(64 << 10);
  SteppedRecorder recorder(on_disk(dir), false);
  EXPECT_TRUE(recorder->status().is_recording);
  const std::string reason = recorder->status().reason;
  EXPECT_NE(reason.find("don't survive a kill"), std::string::npos) << reason;
  EXPECT_NE(reason.find("can't be read from outside"), std::string::npos) << reason;
  EXPECT_EQ(recorder.messages().size(), 2U);
  const std::string run = recorder->status().directory;
  EXPECT_FALSE(fs::exists(run + "/" + kArenaName));
  for (std::uint64_t i = 0; i < 7; ++i) record(Kept{i});
  ASSERT_TRUE(recorder->rotate(std::chrono::seconds(1)));
  const Trace trace = Trace::of_directory(run);
  EXPECT_EQ(trace.count("Kept"), 7U);
  EXPECT_EQ(trace.metadata("dial9.degraded"), reason);
}

TEST(RecorderTrouble, KeepsItsMemoryRingWhereNoMemoryFileMayBe) {
  const FileLimit limit(4 << 10);
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  EXPECT_NE(recorder->status().reason.find("can't be read from outside"), std::string::npos);
  record(Kept{1});
  EXPECT_EQ(recorder.read().count("Kept"), 1U);
}

TEST(RecorderTrouble, LeavesDeadRunsAndDescriptorsAloneWhereTheseAreFew) {
  const TempDir dir;
  make_dead_run(dir.path() + "/dead-999999999");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{63, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  SteppedRecorder recorder(on_disk(dir), false);
  for (int i = 0; i < 20; ++i) recorder.step();
  const RecorderStatus status = recorder->status();
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(status.is_recording);
  EXPECT_NE(status.reason.find("only 63 descriptors"), std::string::npos) << status.reason;
  EXPECT_EQ(status.runs_recovered, 0U);
  ASSERT_EQ(recorder.messages().size(), 1U);
  EXPECT_TRUE(fs::exists(dir.path() + "/dead-999999999/" + kArenaName));
}

TEST(RecorderTrouble, LeavesNoGapInTheNumbersOfSegmentsWhoseLossIsCounted) {
  const TempDir dir;
  SteppedRecorder recorder(on_disk(dir), false);
  const std::string run = recorder->status().directory;
  record(Kept{0});
  pass(recorder);
  ASSERT_TRUE(recorder->rotate(std::chrono::seconds(1)));
  record(Kept{1});
  pass(recorder);
  ASSERT_TRUE(fs::remove(run + "/trace.1.bin.active"));
  pass(recorder);
  record(Kept{2});
  pass(recorder);
  ASSERT_TRUE(recorder->rotate(std::chrono::seconds(1)));
  const Trace trace = Trace::of_directory(run);
  EXPECT_EQ(trace.count("Kept"), 2U);
  EXPECT_EQ(trace.lost("file_removed"), 1U);
  EXPECT_TRUE(fs::exists(run + "/trace.1.bin")) << "the number is used again";
  EXPECT_EQ(trace.metadata("segment.index"), "1");
}

TEST(RecorderTrouble, AMessageCallbackThatThrowsCostsTheHostNothing) {
  const TempDir dir;
  std::uint64_t now_ns = kTestSecond;
  std::uint64_t told = 0;
  CoreSeams seams;
  seams.has_thread = seams.has_sources = false;
  seams.clock.now_ns = [&] { return now_ns; };
  RecorderOptions options = on_disk(dir);
  options.on_message = [&](const std::string&) {
    ++told;
    throw 1;  // no std::exception
  };
  Status status;
  const auto core = RecorderCore::start(options, seams, &status);
  ASSERT_TRUE(status) << status.message();
  record(Kept{0});
  fs::remove(core->status().directory + "/" + kArenaName);
  for (int i = 0; i < 3; ++i) {
    now_ns += 2 * kTestSecond;
    core->step();
  }
  EXPECT_EQ(told, 1U);
  const StopResult result = core->stop(std::chrono::nanoseconds::max());
  EXPECT_TRUE(result.is_complete) << result.unfinished;
  EXPECT_EQ(result.events_written, 1U);
}

TEST(RecorderTrouble, TheLongestDeadlinesAreWaitedFor) {
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(kTestBudget));
  ASSERT_TRUE(status) << status.message();
  record(Kept{0});
  EXPECT_TRUE(recorder.rotate(std::chrono::nanoseconds::max()));
  const StopResult result = recorder.stop(std::chrono::nanoseconds::max());
  EXPECT_TRUE(result.is_complete) << result.unfinished;
  EXPECT_GE(result.events_written, 1U);
}

DIAL9_EVENT(WithText, (text, words));
DIAL9_EVENT(WithBytes, (bytes, words));
DIAL9_EVENT(WithName, (interned, name));
DIAL9_EVENT(WithFrames, (stack_frames, frames));
DIAL9_EVENT(WithChain, (callchain, frames));

TEST(RecorderTrouble, ASizeThatIsAnErrorCostsItsOwnEventAlone) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  constexpr std::size_t kFailed = ~std::size_t{0};
  const std::uint64_t frame = 1;
  for (const std::size_t size : {kFailed, kFailed / 8 + 1, kFailed - 40}) {
    record(Kept{1});
    record(WithText{text("x", size)});
    record(WithBytes{bytes("x", size)});
    record(WithName{interned("x", size)});
    record(WithFrames{stack_frames(&frame, size)});
    record(WithChain{callchain(&frame, size)});
    record(Kept{2});
    const label marked("n", text("x", size));
  }
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.numbers("Kept", "number"), (std::vector<std::uint64_t>{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(recorder->status().events_dropped, 15U);
  EXPECT_EQ(trace.lost("too_large"), 15U);
}

}  // namespace
}  // namespace dial9::internal
