// The recorder's life: start, on and off, status, stop, fork, kill.
// SPDX-License-Identifier: Apache-2.0
#include "dial9/recorder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <thread>

#include "dial9/event.h"
#include "dial9/source.h"
#include "recorder/retired_arenas.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_EVENT(Seen, (std::uint64_t, number));

constexpr auto kLong = std::chrono::seconds(60);

TEST(Recorder, RecordsToADirectoryThatTheDecoderReads) {
  const TempDir dir;
  auto [recorder, status] = Recorder::start(RecorderOptions::disk(dir.path()));
  ASSERT_TRUE(status.ok()) << status.message();
  for (std::uint64_t i = 0; i < 1000; ++i) record(Seen{i});
  const std::string run = recorder.status().directory;
  const StopResult result = recorder.stop(kLong);
  EXPECT_TRUE(result.is_complete) << result.unfinished;
  EXPECT_EQ(result.events_written, 1000U);
  EXPECT_EQ(result.events_dropped, 0U);
  EXPECT_EQ(list_files(run), (std::vector<std::string>{".lock", "trace.0.bin"}));
  const Trace trace = Trace::of_directory(run);
  EXPECT_EQ(trace.count("Seen"), 1000U);
  EXPECT_EQ(trace.metadata("segment.sealed_clean"), "true");
  EXPECT_EQ(trace.metadata("boot_id"), std::filesystem::path(run).filename());
  EXPECT_EQ(trace.metadata("dial9.writer"), "dial9-cpp");
  EXPECT_NE(trace.metadata("process.available_parallelism"), "(none)");
  EXPECT_EQ(trace.metadata("kernel.boot_id").size(), 36U);
  EXPECT_GE(trace.count("ClockSyncEvent"), 1U);
}

TEST(Recorder, PairsTheClocksAtTheStartOfEachSegment) {
  SteppedRecorder recorder;
  for (int i = 0; i < 3; ++i) {
    record(Seen{1});
    ASSERT_TRUE(recorder->rotate(kLong));
  }
  const auto segments = recorder->sealed_segments();
  ASSERT_EQ(segments.size(), 3U);
  for (const SegmentBytes& segment : segments) {
    const Trace trace = Trace::of(segment.bytes);
    const std::uint64_t realtime = trace.numbers("ClockSyncEvent", "realtime_ns").front();
    EXPECT_GT(realtime, 1'600'000'000'000'000'000U) << "after 2020";
    EXPECT_NEAR(static_cast<double>(trace.stamps("ClockSyncEvent").front()),
                static_cast<double>(kernel_now_ns()), 60e9);
  }
}

TEST(Recorder, IsOneAProcess) {
  const TempDir dir;
  auto [first, status] = Recorder::start(RecorderOptions::disk(dir.path()));
  ASSERT_TRUE(status.ok());
  auto [second, refused] = Recorder::start(RecorderOptions::memory(4 << 20));
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(refused.message().find(dir.path()), std::string::npos) << refused.message();
  EXPECT_FALSE(second.is_running());
  second.enable();
  EXPECT_FALSE(second.status().is_recording);
  first.stop(kLong);
  auto [third, started] = Recorder::start(RecorderOptions::memory(4 << 20));
  EXPECT_TRUE(started.ok()) << started.message();
  EXPECT_TRUE(third.is_running());
}

TEST(Recorder, RefusesOptionsThatAreOutOfRangeByName) {
  const std::pair<std::string, std::function<void(RecorderOptions&)>> cases[] = {
      {"budget_bytes", [](RecorderOptions& o) { o.budget_bytes = 1000; }},
      {"segment_bytes", [](RecorderOptions& o) { o.segment_bytes = o.budget_bytes; }},
      {"segment_bytes", [](RecorderOptions& o) { o.segment_bytes = 1; }},
      {"rotation_period", [](RecorderOptions& o) { o.rotation_period = {}; }},
      {"arena_bytes", [](RecorderOptions& o) { o.arena_bytes = 1; }},
  };
  for (const auto& [name, spoil] : cases) {
    RecorderOptions options = RecorderOptions::memory(4 << 20);
    spoil(options);
    auto [recorder, status] = Recorder::start(options);
    EXPECT_FALSE(status.ok()) << name;
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
  }
}

TEST(Recorder, SaysWhyItCouldNotMakeItsDirectory) {
  const TempDir dir;
  {
    std::ofstream(dir.path() + "/file") << "in the way";
  }
  auto [recorder, status] = Recorder::start(RecorderOptions::disk(dir.path() + "/file/traces"));
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(dir.path() + "/file"), std::string::npos) << status.message();
  EXPECT_FALSE(is_recording());
}

TEST(Recorder, RecordsNothingAtAllWhileDisabled) {
  SteppedRecorder recorder;
  int samples = 0;
  ASSERT_TRUE(add_source("disabled_test", std::chrono::milliseconds(1), [&] {
                ++samples;
                record(Seen{99});
              }).ok());
  record(Seen{1});
  recorder->disable();
  EXPECT_FALSE(is_recording());
  record(Seen{2});
  for (int i = 0; i < 5; ++i) {
    recorder.advance(kTestSecond);
    recorder.step();
  }
  EXPECT_EQ(samples, 0);
  EXPECT_EQ(recorder->status().reason, "disabled");
  recorder->enable();
  recorder->enable();
  EXPECT_TRUE(recorder->status().is_recording);
  record(Seen{3});
  remove_source("disabled_test");
  EXPECT_EQ(recorder.read().numbers("Seen", "number"), (std::vector<std::uint64_t>{1, 3}));
}

TEST(Recorder, CanStartDisabled) {
  RecorderOptions options = RecorderOptions::memory(4 << 20);
  options.starts_disabled = true;
  SteppedRecorder recorder(options);
  record(Seen{1});
  EXPECT_FALSE(is_recording());
  EXPECT_TRUE(recorder->rotate(kLong));
  EXPECT_TRUE(recorder->sealed_segments().empty()) << "an empty segment is never sealed";
}

TEST(Recorder, IsInertAfterItsStop) {
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(4 << 20));
  ASSERT_TRUE(status.ok());
  record(Seen{1});
  EXPECT_TRUE(recorder.stop(kLong).is_complete);
  for (std::uint64_t i = 0; i < 100; ++i) record(Seen{i});
  EXPECT_FALSE(is_recording());
  EXPECT_FALSE(recorder.is_running());
  recorder.enable();
  EXPECT_FALSE(is_recording());
  EXPECT_FALSE(recorder.rotate());
  EXPECT_EQ(recorder.status().reason, "not started");
}

TEST(Recorder, CountsTheEventOfARecordCallThatOutlastsTheLastDrain) {
  CoreSeams seams;
  seams.has_thread = false;
  seams.has_sources = false;
  bool is_in_record_call = false;
  // Asked for when the last segment is sealed, behind the last drain.
  seams.clock.realtime_ns = [&] {
    if (is_in_record_call) write_event(t_buffer.ready_epoch, Seen{3});
    is_in_record_call = false;
    return std::uint64_t{1'700'000'000'000'000'000};
  };
  Status status;
  const auto core = RecorderCore::start(RecorderOptions::memory(kTestBudget), seams, &status);
  ASSERT_TRUE(status.ok()) << status.message();
  record(Seen{1});
  ASSERT_TRUE(core->rotate(std::chrono::seconds(1)));  // the thread is ready
  record(Seen{2});
  core->step();
  is_in_record_call = true;
  const StopResult result = core->stop(std::chrono::seconds(1));
  EXPECT_TRUE(result.is_complete);
  EXPECT_EQ(result.events_written + result.events_dropped, 3U);
  EXPECT_EQ(result.events_late, result.events_dropped);
}

std::size_t entries_of(const char* path) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

TEST(Recorder, LeaksNoDescriptorThreadOrMappingOverAHundredStarts) {
  const TempDir dir;
  const auto cycle = [&] {
    RecorderOptions options = RecorderOptions::disk(dir.path());
    options.budget_bytes = 4 << 20;
    auto [recorder, status] = Recorder::start(options);
    ASSERT_TRUE(status.ok()) << status.message();
    record(Seen{1});
    EXPECT_TRUE(recorder.stop(kLong).is_complete);
  };
  cycle();
  const std::size_t descriptors = entries_of("/proc/self/fd");
  const std::size_t threads = entries_of("/proc/self/task");
  for (int i = 0; i < 100; ++i) cycle();
  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
  EXPECT_EQ(entries_of("/proc/self/task"), threads);
  EXPECT_LE(sweep_retired_arenas(), 1U) << "this thread's last chunk";
}

TEST(Recorder, KeepsTheBudgetOverRestarts) {
  const TempDir dir;
  constexpr std::uint64_t kBudget = std::uint64_t{2} << 20;
  for (int run = 0; run < 4; ++run) {
    RecorderOptions options = RecorderOptions::disk(dir.path());
    options.budget_bytes = kBudget;
    options.arena_bytes = 512 << 10;
    auto [recorder, status] = Recorder::start(options);
    ASSERT_TRUE(status.ok()) << status.message();
    for (int part = 0; part < 8; ++part) {
      for (std::uint64_t i = 0; i < 20'000; ++i) record(Seen{i << 40});
      ASSERT_TRUE(recorder.rotate(kLong));
      EXPECT_LE(bytes_under(dir.path()), kBudget);
    }
    recorder.stop(kLong);
    EXPECT_LE(bytes_under(dir.path()), kBudget);
  }
}

TEST(Recorder, StopsByItsDeadlineThoughTheCollectorIsStuck) {
  std::promise<void> release;
  std::shared_future<void> is_released = release.get_future().share();
  std::promise<void> entered;
  auto [recorder, status] = Recorder::start(RecorderOptions::memory(4 << 20));
  ASSERT_TRUE(status.ok());
  std::atomic<bool> is_first{true};
  ASSERT_TRUE(add_source("stuck", std::chrono::milliseconds(1), [&, is_released] {
                if (is_first.exchange(false)) entered.set_value();
                is_released.wait();
              }).ok());
  entered.get_future().wait();
  const StopResult result = recorder.stop(std::chrono::milliseconds(20));
  EXPECT_FALSE(result.is_complete);
  EXPECT_NE(result.unfinished.find("deadline"), std::string::npos);
  EXPECT_FALSE(is_recording());
  release.set_value();
  remove_source("stuck");
  // And the next one works.
  auto [next, started] = Recorder::start(RecorderOptions::memory(4 << 20));
  EXPECT_TRUE(started.ok()) << started.message();
  record(Seen{5});
  ASSERT_TRUE(next.rotate(kLong));
  EXPECT_EQ(Trace::of(next.sealed_segments()).count("Seen"), 1U);
}

// Of the newest: one that a recorder before left behind may still be on its way out.
int priority_of_the_collector() {
  int newest = 0;
  for (const std::string& tid : list_files("/proc/self/task")) {
    std::ifstream comm("/proc/self/task/" + tid + "/comm");
    std::string name;
    if (std::getline(comm, name) && name == "dial9-collect") {
      newest = std::max(newest, std::stoi(tid));
    }
  }
  return ::getpriority(PRIO_PROCESS, static_cast<id_t>(newest));
}

TEST(Recorder, RunsItsCollectorAtTheHostsPriorityWhileItIsYoung) {
  std::atomic<std::uint64_t> now{kernel_now_ns()};
  CoreSeams seams;
  seams.clock.now_ns = [&now] { return now.load(); };
  seams.has_sources = false;
  Status status;
  const auto core = RecorderCore::start(RecorderOptions::memory(4 << 20), seams, &status);
  ASSERT_TRUE(status.ok()) << status.message();
  const int own = ::getpriority(PRIO_PROCESS, 0);
  ASSERT_TRUE(core->rotate(kLong));
  EXPECT_EQ(priority_of_the_collector(), own);
  now += 2 * kTestSecond;
  ASSERT_TRUE(core->rotate(kLong));
  EXPECT_EQ(priority_of_the_collector(), std::min(own + 10, 19));
  EXPECT_TRUE(core->stop(kLong).is_complete);
}

TEST(Recorder, ShowsItsStateInTheStatus) {
  SteppedRecorder recorder;
  EXPECT_EQ(recorder->status().last_event_age_ns, RecorderStatus::not_known);
  for (std::uint64_t i = 0; i < 5000; ++i) record(Seen{i});
  recorder.advance(2 * kTestSecond);
  recorder.step();
  recorder.advance(300 * kTestMs);
  const RecorderStatus status = recorder->status();
  EXPECT_TRUE(status.is_recording);
  EXPECT_EQ(status.reason, "");
  EXPECT_EQ(status.events_written, 5000U);
  EXPECT_DOUBLE_EQ(status.events_per_second, 2500);
  EXPECT_GT(status.bytes_per_second, 5000);
  EXPECT_EQ(status.last_event_age_ns, 300 * kTestMs);
  EXPECT_FALSE(status.clock.empty());
  EXPECT_EQ(status.events_dropped, 0U);
  EXPECT_TRUE(status.dropped_by_cause.empty());
}

TEST(Recorder, PutsMetadataIntoTheCurrentSegmentAndEveryLaterOne) {
  RecorderOptions options = RecorderOptions::memory(4 << 20);
  options.service_name = "shop";
  options.metadata = {{"zone", "b"}};
  SteppedRecorder recorder(options);
  record(Seen{1});
  recorder.advance(2 * kTestSecond);
  recorder.step();
  recorder->set_metadata("release", "41");
  recorder->set_metadata("release", "42");
  recorder.step();
  record(Seen{2});
  ASSERT_TRUE(recorder->rotate(kLong));
  record(Seen{3});
  ASSERT_TRUE(recorder->rotate(kLong));
  const auto segments = recorder->sealed_segments();
  ASSERT_EQ(segments.size(), 2U);
  for (const SegmentBytes& segment : segments) {
    const Trace trace = Trace::of(segment.bytes);
    EXPECT_EQ(trace.metadata("service"), "shop");
    EXPECT_EQ(trace.metadata("zone"), "b");
    EXPECT_EQ(trace.metadata("release"), "42");
  }
}

TEST(Recorder, DumpsItsMemoryRingToAFile) {
  const TempDir dir;
  SteppedRecorder recorder;
  EXPECT_FALSE(recorder->dump(dir.path() + "/empty").ok());
  record(Seen{7});
  ASSERT_TRUE(recorder->rotate(kLong));
  record(Seen{8});
  ASSERT_TRUE(recorder->rotate(kLong));
  ASSERT_TRUE(recorder->dump(dir.path() + "/all.bin").ok());
  EXPECT_EQ(list_files(dir.path()), std::vector<std::string>{"all.bin"});
  EXPECT_EQ(Trace::of(read_file(dir.path() + "/all.bin")).numbers("Seen", "number"),
            (std::vector<std::uint64_t>{7, 8}));
  EXPECT_FALSE(recorder->dump(dir.path() + "/none/all.bin").ok());
}

TEST(Recorder, IsSilentInTheChildOfAForkAndLetsItStartItsOwn) {
  const TempDir dir;
  auto [recorder, status] = Recorder::start(RecorderOptions::disk(dir.path()));
  ASSERT_TRUE(status.ok());
  record(Seen{1});
  const pid_t child = ::fork();
  if (child == 0) {
    record(Seen{2});
    if (is_recording() || recorder.is_running() || recorder.status().is_recording) ::_exit(1);
    recorder.stop();
#if defined(DIAL9_SANITIZED_THREAD)
    ::_exit(0);  // TSan can't start threads after a fork
#endif
    auto [own, started] = Recorder::start(RecorderOptions::memory(4 << 20));
    if (!started) ::_exit(2);
    record(Seen{3});
    if (!own.rotate(kLong) || Trace::of(own.sealed_segments()).count("Seen") != 1) ::_exit(3);
    ::_exit(own.stop(kLong).is_complete ? 0 : 4);
  }
  ASSERT_GT(child, 0);
  int exit_status = 0;
  ASSERT_EQ(::waitpid(child, &exit_status, 0), child);
  EXPECT_EQ(exit_status, 0) << "child's exit code " << WEXITSTATUS(exit_status);
  record(Seen{4});
  const std::string run = recorder.status().directory;
  EXPECT_TRUE(recorder.stop(kLong).is_complete);
  EXPECT_EQ(Trace::of_directory(run).numbers("Seen", "number"), (std::vector<std::uint64_t>{1, 4}));
}

TEST(Recorder, LeavesPublishedEventsInItsFileWhenTheProcessIsKilled) {
  const TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    CoreSeams seams;
    seams.has_thread = false;  // nobody drains: all there is lies in the mapping
    seams.boot_id = "kill-1";
    Status status;
    const auto core = RecorderCore::start(RecorderOptions::disk(dir.path()), seams, &status);
    for (std::uint64_t i = 0; i < 300; ++i) record(Seen{i});
    ::kill(::getpid(), SIGKILL);
  }
  int exit_status = 0;
  ASSERT_EQ(::waitpid(child, &exit_status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(exit_status));
  const auto file = read_file(dir.path() + "/kill-1/" + kArenaName);
  ASSERT_GT(file.size(), sizeof(ArenaHeader));
  ArenaHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  EXPECT_EQ(std::string(header.magic, sizeof header.magic),
            std::string(kArenaMagic, sizeof kArenaMagic));
  EXPECT_EQ(header.pid, static_cast<std::uint32_t>(child));
  EXPECT_STREQ(header.boot_id, "kill-1");
  std::uint64_t events = 0;
  for (std::uint32_t i = 0; i < header.chunk_count; ++i) {
    ChunkControl control;
    std::memcpy(&control, file.data() + header.control_offset + i * sizeof control, sizeof control);
    if (control.producer.state == kChunkFree) continue;
    const std::uint8_t* stream = file.data() + header.chunk_offset +
                                 std::uint64_t{header.chunk_bytes} * i + header.tables_bytes;
    const auto bytes = static_cast<std::uint32_t>(control.producer.committed);
    const Trace trace = Trace::of(std::vector<std::uint8_t>(stream, stream + bytes));
    EXPECT_EQ(trace.count("Seen"), control.producer.committed >> 32);
    events += trace.count("Seen");
  }
  EXPECT_EQ(events, 300U);
}

TEST(Recorder, RecordsAfterMainHasReturned) {
  const TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    CoreSeams seams;
    seams.boot_id = "exit-1";
    Status status;
    static auto core = RecorderCore::start(RecorderOptions::disk(dir.path()), seams, &status);
    struct AtExit {
      ~AtExit() {
        record(Seen{2});
        if (!core->stop(kLong).is_complete) ::_exit(5);
      }
    };
    static const AtExit at_exit;
    record(Seen{1});
    ::exit(0);
  }
  int exit_status = 0;
  ASSERT_EQ(::waitpid(child, &exit_status, 0), child);
  ASSERT_EQ(exit_status, 0);
  EXPECT_EQ(Trace::of_directory(dir.path() + "/exit-1").numbers("Seen", "number"),
            (std::vector<std::uint64_t>{1, 2}));
}

}  // namespace
}  // namespace dial9::internal
