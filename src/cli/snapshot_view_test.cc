// The trace, the page and the JSON that are made of a look at another process.
// SPDX-License-Identifier: Apache-2.0
#include "cli/snapshot_view.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <nlohmann/json.hpp>

#include "analysis/loader.h"
#include "analysis/testing/trace_builder.h"
#include "cli/snapshot_text.h"

namespace dial9::cli {
namespace {

using analysis::testing::TraceBuilder;
using internal::KernelThread;
using internal::TargetLook;
using nlohmann::json;

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMs;

TargetLook hung_look() {
  TraceBuilder builder;
  builder.metadata(1 * kSecond, "runtime.http", "0,1");
  builder.spawn(1 * kSecond, 5, "starved.cc:3");
  builder.poll(1'001 * kMs, 1'002 * kMs, 0, 5, "starved.cc:3");
  builder.wake(1'500 * kMs, 5);
  builder.park(1'600 * kMs, 0, 71);
  builder.unpark(1'601 * kMs, 0, TraceBuilder::kNoWait, 71);
  builder.poll_start(2 * kSecond, 0, 6, "hang.cc:7");
  builder.park(3 * kSecond, 1, 72);
  builder.metrics(1'900 * kMs, "http", 4, 2);
  TargetLook look;
  look.kernel.pid = 70;
  look.kernel.name = "service";
  KernelThread worker;
  worker.tid = worker.inner_tid = 71;
  worker.name = "worker";
  worker.state = 'S';
  worker.wchan = "futex_wait_queue";
  worker.syscall = SYS_futex;
  KernelThread other;
  other.tid = other.inner_tid = 72;
  other.name = "worker";
  other.state = 'R';
  KernelThread main;
  main.tid = main.inner_tid = 70;
  main.name = "service";
  main.state = 'S';
  look.kernel.threads = {main, worker, other};
  look.boot_id = "abcd-70";
  look.run_directory = "/traces/abcd-70";
  look.recorder_started_ns = 500 * kMs;
  look.now_ns = 12 * kSecond;
  look.realtime_ns = 1'790'000'000 * kSecond;
  look.parts.push_back({"chunk", builder.take()});
  look.chunks_in_use = 2;
  look.chunks_total = 1'024;
  return look;
}

TEST(SnapshotText, SaysWhatEachWorkerIsInSinceWhenAndWhoWaits) {
  const std::string text = snapshot_text(make_view(hung_look(), 10), "out.bin");
  EXPECT_EQ(text,
            "process   70 service, 3 threads, at 2026-09-21T14:13:20.000000000Z\n"
            "recorder  run abcd-70, segments in /traces/abcd-70; 2 of 1,024 chunks in use\n"
            "history   whole since the recorder's start, 11.5 s ago\n"
            "lost      0 events\n"
            "trace     out.bin\n"
            "\n"
            "workers\n"
            "  worker 0 of http: IN A POLL for 10.0 s: task 6 hang.cc:7\n"
            "      thread 71 worker, sleeping in futex (futex_wait_queue)\n"
            "  worker 1 of http: parked for 9.00 s\n"
            "      thread 72 worker, running\n"
            "\n"
            "ready, but not run, the longest first: 1 task\n"
            "  10.5 s  task 5 starved.cc:3\n"
            "\n"
            "suspended, the longest first: 0 tasks\n"
            "\n"
            "queues\n"
            "  http: 4 queued, 2 tasks alive, 10.1 s ago\n"
            "\n"
            "other threads\n"
            "  service: sleeping\n");
}

TEST(SnapshotJson, HasTheSameFacts) {
  const json parsed = json::parse(snapshot_json(make_view(hung_look(), 10), "out.bin"));
  EXPECT_EQ(parsed["pid"], 70);
  EXPECT_EQ(parsed["workers"][0]["doing"], "polling");
  EXPECT_EQ(parsed["workers"][0]["for_ns"], 10 * kSecond);
  EXPECT_EQ(parsed["workers"][0]["thread"]["syscall"], "futex");
  EXPECT_FALSE(parsed["workers"][1]["thread"].contains("wchan"));
  EXPECT_EQ(parsed["ready"][0]["task"], "5");
  EXPECT_EQ(parsed["ready"][0]["for_ns"], 10'500 * kMs);
  EXPECT_EQ(parsed["slowest_handlers"][0]["is_running"], true);
  EXPECT_EQ(parsed["history_ns"], 11'500 * kMs);
}

TEST(SnapshotTrace, HoldsTheKernelsViewOfEachThreadWithTheUnknownAbsent) {
  const auto bytes = encode_look(hung_look());
  const analysis::Trace trace = analysis::load(bytes);
  ASSERT_EQ(trace.custom.size(), 1U);
  const analysis::EventTable& table = trace.custom[0];
  EXPECT_EQ(trace.names.text(table.name), "ThreadStateEvent");
  ASSERT_EQ(table.size(), 3U);
  const auto text = [&](std::size_t row, std::size_t field) {
    const analysis::Cell cell = table.cell(row, field);
    return cell.type == analysis::CellType::kAbsent
               ? std::string("absent")
               : std::string(trace.names.text(static_cast<analysis::NameId>(cell.bits)));
  };
  EXPECT_EQ(text(1, 3), "futex_wait_queue");
  EXPECT_EQ(text(1, 4), "futex");
  EXPECT_EQ(text(2, 2), "R");
  EXPECT_EQ(text(2, 3), "absent");
  EXPECT_EQ(trace.metadata_value("snapshot.run_directory"), "/traces/abcd-70");
}

TEST(SnapshotView, ALossOfUnknownTimeLetsNoWaitBeClaimed) {
  TargetLook look = hung_look();
  look.losses.push_back({"arena_full", 3, 0, 0});
  const ProcessView view = make_view(std::move(look), 10);
  EXPECT_EQ(view.now.ready_count, 0U);
  EXPECT_EQ(view.now.uncertain_tasks, 1U);
  EXPECT_EQ(view.trace.lost_events(), 3U);
  EXPECT_NE(snapshot_text(view, "").find("history   not whole"), std::string::npos);
}

TEST(SnapshotView, ARecorderThatMayLeaveOutPollsLetsNoWaitBeClaimed) {
  TargetLook look = hung_look();
  TraceBuilder metadata;
  metadata.metadata(1 * kSecond, "dial9.governed", "true");
  look.parts.push_back({"metadata", metadata.take()});
  const ProcessView view = make_view(std::move(look), 10);
  EXPECT_EQ(view.now.ready_count, 0U);
  EXPECT_EQ(view.look.notes.size(), 1U);
}

std::string note_of(char state, const char* wchan = nullptr) {
  TargetLook look = hung_look();
  for (KernelThread& thread : look.kernel.threads) {
    thread.state = state;
    if (wchan != nullptr) thread.wchan = wchan;
  }
  const ProcessView view = make_view(std::move(look), 10);
  return view.look.notes.empty() ? "" : view.look.notes.front();
}

TEST(SnapshotView, AProcessThatSomebodyHaltedIsCalledThatWithTheCure) {
  EXPECT_NE(note_of('T').find("`kill -CONT 70`"), std::string::npos);
  EXPECT_NE(note_of('t').find("/proc/70/status"), std::string::npos);
  EXPECT_NE(note_of('S', "do_freezer_trap").find("frozen by its cgroup"), std::string::npos);
  EXPECT_EQ(note_of('S'), "");
}

TEST(SnapshotView, AWorkerBetweenPollsIsUncertainWhereABudgetMayLeaveOutPolls) {
  TraceBuilder builder;
  builder.poll(1 * kSecond, 2 * kSecond, 0, 5);
  builder.poll_start(3 * kSecond, 1, 6);
  TargetLook look = hung_look();
  look.parts = {{"chunk", builder.take()}};
  EXPECT_FALSE(make_view(look, 10).now.workers[0].is_uncertain);
  builder.metadata(1 * kSecond, "dial9.governed", "true");
  look.parts.push_back({"metadata", builder.take()});
  const ProcessView view = make_view(look, 10);
  EXPECT_TRUE(view.now.workers[0].is_uncertain);
  EXPECT_FALSE(view.now.workers[1].is_uncertain) << "a poll that is kept has its end, too";
}

TEST(SnapshotView, ARecorderThatWasStoppedIsCalledThatAndOnlyThat) {
  TargetLook look = hung_look();
  look.stopped_ns = look.off_since_ns = 7 * kSecond;
  const ProcessView view = make_view(std::move(look), 10);
  ASSERT_EQ(view.look.notes.size(), 1U);
  EXPECT_EQ(view.look.notes[0].find("its recorder was stopped 5.00 s ago"), 0U)
      << view.look.notes[0];
}

TEST(SnapshotText, NamesTheCausesOfLosses) {
  TargetLook look = hung_look();
  look.losses.push_back({"arena_full", 3, 5 * kSecond, 6 * kSecond});
  look.losses.push_back({"nested", 1'200, 5 * kSecond, 6 * kSecond});
  const std::string text = snapshot_text(make_view(std::move(look), 10), "");
  EXPECT_NE(text.find("lost      1,203 events (arena_full 3, nested 1,200)\n"), std::string::npos)
      << text;
}

TEST(SnapshotView, AWaitIsClaimedOnlySinceTheChunksAreWhole) {
  TargetLook look = hung_look();
  look.chunks_complete_since_ns = 1'501 * kMs;
  EXPECT_EQ(make_view(look, 10).now.ready_count, 0U);
  look.chunks_complete_since_ns = 1'499 * kMs;
  EXPECT_EQ(make_view(look, 10).now.ready_count, 1U);
}

TEST(SnapshotView, WithSegmentsTheHistoryIsWholeSinceTheOldestOnesClockPair) {
  TargetLook look = hung_look();
  TraceBuilder segment;
  segment.clock_sync(1'400 * kMs, 1'790'000'000 * kSecond);
  look.parts.insert(look.parts.begin(), {"trace.7.bin", segment.take()});
  look.has_segments = true;
  look.chunks_complete_since_ns = 11 * kSecond;
  const ProcessView view = make_view(look, 10);
  EXPECT_EQ(view.complete_since_ns, 1'400 * kMs);
  EXPECT_EQ(view.now.ready_count, 1U);
}

TEST(SnapshotView, BytesThatCannotBeReadAreNamed) {
  TargetLook look = hung_look();
  look.parts.push_back({"chunk 9", {1, 2, 3, 4, 5, 6, 7}});
  const ProcessView view = make_view(std::move(look), 10);
  ASSERT_EQ(view.look.notes.size(), 1U);
  EXPECT_EQ(view.look.notes[0].rfind("chunk 9: ", 0), 0U);
}

TEST(SnapshotText, NamesOfOthersCannotDriveTheTerminal) {
  TargetLook look = hung_look();
  look.kernel.name = "a\033[2Jb\xff\xC2\x9B";  // C1's CSI, too
  const std::string text = snapshot_text(make_view(std::move(look), 10), "");
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_EQ(text.find("\xC2\x9B"), std::string::npos);
  EXPECT_NE(text.find("a\xEF\xBF\xBD[2Jb\xEF\xBF\xBD\xEF\xBF\xBD"), std::string::npos);
}

}  // namespace
}  // namespace dial9::cli
