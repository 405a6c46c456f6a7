// Thread buffers: nothing torn, nothing lost without being counted, whatever threads and signals
// do.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "dial9/event.h"
#include "recorder/recording_state.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_EVENT(Numbered, (std::uint64_t, thread), (std::uint64_t, number));
DIAL9_EVENT(Named, (interned, name), (std::uint64_t, number));
DIAL9_EVENT(Big, (text, words));

std::uint64_t dropped(const RecorderCore& core) { return core.status().events_dropped; }

TEST(ThreadBuffer, KeepsEveryEventOfEveryThreadOrCountsIt) {
  RecorderOptions options = RecorderOptions::memory(std::uint64_t{64} << 20);
  options.arena_bytes = std::uint64_t{1} << 20;  // small enough that some are dropped
  Status status;
  CoreSeams seams;
  seams.has_sources = false;  // every loss is one of ours
  const auto core = RecorderCore::start(options, seams, &status);
  ASSERT_TRUE(status.ok());
  constexpr std::uint64_t kThreads = 8;
  constexpr std::uint64_t kEach = 60'000;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (std::uint64_t i = 0; i < kEach; ++i) record(Numbered{t, i});
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(core->rotate(std::chrono::seconds(60)));
  const Trace trace = Trace::of(core->sealed_segments());
  const std::uint64_t lost = dropped(*core);
  const StopResult result = core->stop(std::chrono::seconds(60));
  EXPECT_TRUE(result.is_complete);

  EXPECT_EQ(trace.count("Numbered") + lost, kThreads * kEach);
  std::uint64_t told = 0;
  for (const LossRecord& loss : trace.losses()) {
    told += loss.count;
    EXPECT_LE(loss.first_ns, loss.last_ns);
  }
  EXPECT_EQ(told, lost);
  // Within a thread: in order, none twice, time never backwards.
  const auto thread = trace.numbers("Numbered", "thread");
  const auto number = trace.numbers("Numbered", "number");
  const auto stamp = trace.stamps("Numbered");
  std::map<std::uint64_t, std::map<std::uint64_t, std::uint64_t>> by_thread;
  for (std::size_t i = 0; i < thread.size(); ++i) {
    EXPECT_TRUE(by_thread[thread[i]].emplace(number[i], stamp[i]).second) << "recorded twice";
  }
  for (const auto& [id, events] : by_thread) {
    std::uint64_t last = 0;
    for (const auto& [n, ns] : events) {
      ASSERT_GE(ns, last) << "thread " << id << " event " << n;
      last = ns;
    }
  }
}

TEST(ThreadBuffer, CountsAnEventThatASignalHandlerRecordsInsideARecordCall) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  record(Numbered{0, 0});
  // What a handler finds that interrupts this thread between its first and last store.
  const std::uint32_t epoch = t_buffer.ready_epoch;
  t_buffer.ready_epoch = kBusyEpoch;
  record(Numbered{0, 1});
  record_at(Numbered{0, 2}, 5);
  t_buffer.ready_epoch = epoch;
  record(Numbered{0, 3});
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.numbers("Numbered", "number"), (std::vector<std::uint64_t>{0, 3}));
  EXPECT_EQ(trace.lost("nested"), 2U);
}

std::atomic<std::uint64_t> g_from_handler{0};
void record_in_handler(int) {
  record(Numbered{1, g_from_handler.fetch_add(1, std::memory_order_relaxed)});
}

TEST(ThreadBuffer, IsNeverTornByAHandlerThatRecords) {
  RecorderOptions options = RecorderOptions::memory(std::uint64_t{512} << 20);
  SteppedRecorder recorder(options, false);
  g_from_handler = 0;
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = record_in_handler;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  const pthread_t target = ::pthread_self();
  std::atomic<bool> is_done{false};
  std::thread sender([&] {
    while (!is_done.load()) {
      const std::uint64_t handled = g_from_handler.load();
      ::pthread_kill(target, SIGUSR1);
      while (!is_done.load() && g_from_handler.load() == handled) std::this_thread::yield();
    }
  });
  std::uint64_t recorded = 0;
  while (g_from_handler.load() < 300 || recorded < 20'000) {
    record(Numbered{0, recorded++});
    if (recorded % 1'000 == 0) {
      recorder.step();
      ::sched_yield();  // to the sender
    }
  }
  is_done = true;
  sender.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.count("Numbered") + dropped(recorder.core()), recorded + g_from_handler.load());
  std::uint64_t next = 0;
  const auto thread = trace.numbers("Numbered", "thread");
  const auto number = trace.numbers("Numbered", "number");
  for (std::size_t i = 0; i < thread.size(); ++i) {
    if (thread[i] != 0) continue;
    ASSERT_GE(number[i], next);
    next = number[i] + 1;
  }
}

TEST(ThreadBuffer, DropsAndCountsWhatDoesNotFitIntoAChunk) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  const std::string just_fits(14'000, 'a');
  const std::string too_long(kChunkBytes, 'b');
  record(Big{just_fits});
  record(Big{too_long});
  record(Big{just_fits});
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.texts("Big", "words"), (std::vector<std::string>{just_fits, just_fits}));
  EXPECT_EQ(trace.lost("too_large"), 1U);
}

TEST(ThreadBuffer, DefinesAStringOnceAChunkAndNeverMixesTwoUp) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  static Symbol gold{"gold"};
  std::vector<std::string> expected;
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    // One buffer with changing text, as a caller's stack would have it.
    char text[16];
    std::snprintf(text, sizeof text, "name-%llu", static_cast<unsigned long long>(i % 97));
    record(Named{text, i});
    record(Named{gold, i});
    expected.emplace_back(text);
    expected.emplace_back("gold");
  }
  EXPECT_EQ(recorder.read().texts("Named", "name"), expected);
}

TEST(ThreadBuffer, IsDrainedWhenItsThreadIsIdle) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  record(Numbered{0, 1});
  recorder.step();
  EXPECT_EQ(recorder->status().events_written, 0U) << "a full pass a second is enough";
  recorder.advance(kPartialDrainNs + kTestSecond);
  recorder.step();
  EXPECT_EQ(recorder->status().events_written, 1U);
  record(Numbered{0, 2});
  recorder.advance(kPartialDrainNs + kTestSecond);
  recorder.step();
  record(Numbered{0, 3});
  EXPECT_EQ(recorder.read().numbers("Numbered", "number"), (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(ThreadBuffer, GivesItsChunkBackWhenItsThreadEnds) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  for (std::uint64_t i = 0; i < 2'000; ++i) {
    std::thread([i] { record(Numbered{i, i}); }).join();
    if (i % 100 == 0) recorder.step();
  }
  recorder.step();
  EXPECT_EQ(recorder->status().chunks_in_use, 0U);
  EXPECT_EQ(recorder.read().count("Numbered"), 2'000U);
  EXPECT_EQ(dropped(recorder.core()), 0U);
}

TEST(ThreadBuffer, IsTakenBackFromAThreadThatDiedWithoutAWord) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  std::thread([&] {
    record(Numbered{0, 1});
    t_buffer = ThreadBuffer{};  // as if its exit hook had never run
  }).join();
  recorder.step();
  EXPECT_EQ(recorder->status().chunks_in_use, 1U);
  for (int i = 0; i < 4; ++i) {
    recorder.advance(kPartialDrainNs + kTestSecond);
    recorder.step();
  }
  EXPECT_EQ(recorder->status().chunks_in_use, 0U);
  EXPECT_EQ(recorder.read().count("Numbered"), 1U);
}

// A line by which it is `ns` now, of a counter that counts half nanoseconds.
ClockLine line_at_now(std::uint64_t ns) { return {read_ticks(), ns, std::uint64_t{1} << 63}; }
constexpr std::uint64_t kHour = 3'600 * kTestSecond;

class ThreadClock : public ::testing::Test {
 protected:
  void SetUp() override {
    if (read_ticks() == 0) GTEST_SKIP() << "no time-stamp counter on this machine";
  }
  // As the collector does it.
  static void recalibrate(const ClockLine& line) {
    publish_clock(line);
    renew_epoch();
  }
  std::uint64_t last_stamp() {
    const auto stamps = recorder_.read().stamps("Numbered");
    return stamps.empty() ? 0 : stamps.back();
  }
  SteppedRecorder recorder_{RecorderOptions::memory(kTestBudget), false};
};

TEST_F(ThreadClock, IsTheCurrentOneForAThreadThatWasIdleWhileItsOldOneDriftedOff) {
  recalibrate(line_at_now(kHour));
  record(Numbered{0, 1});
  t_buffer.clock.ns_base += 2 * kTestSecond;  // two seconds off, as after hours at a steered rate
  recalibrate(line_at_now(2 * kHour));
  record(Numbered{0, 2});
  const std::uint64_t stamp = last_stamp();
  EXPECT_GE(stamp, 2 * kHour);
  recalibrate(line_at_now(3 * kHour));
  t_buffer.clock.ns_base += 2 * kHour;
  EXPECT_LT(now_ns(), 3 * kHour + 60 * kTestSecond) << "a time that is only read, neither";
}

TEST_F(ThreadClock, DoesntStayAheadBecauseAnOldLineWas) {
  recalibrate(line_at_now(kHour));
  record(Numbered{0, 1});
  t_buffer.clock.ns_base += 2 * kHour;
  recalibrate(line_at_now(2 * kHour));
  record(Numbered{0, 2});
  EXPECT_LT(last_stamp(), 2 * kHour + 60 * kTestSecond);
}

TEST_F(ThreadClock, NeverGoesBackBehindAStampThatItGaveOut) {
  recalibrate(line_at_now(2 * kHour));
  record(Numbered{0, 1});
  const std::uint64_t recorded = last_stamp();
  recalibrate(line_at_now(2 * kHour - kTestMs));
  EXPECT_GE(now_ns(), recorded);
  const std::uint64_t read = now_ns();
  recalibrate(line_at_now(2 * kHour - 2 * kTestMs));
  record(Numbered{0, 2});
  EXPECT_GE(last_stamp(), read);
}

pthread_key_t g_key;
struct RecordsAtExit {
  ~RecordsAtExit() { record(Numbered{7, 1}); }
};
thread_local RecordsAtExit t_records_at_exit;

TEST(ThreadBuffer, WorksInDestructorsOfThreadLocalsAndKeys) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer's own state of a thread goes before the last of its keys";
#endif
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  ASSERT_EQ(::pthread_key_create(&g_key,
                                 [](void* round) {
                                   record(Numbered{8, reinterpret_cast<std::uintptr_t>(round)});
                                   const auto next = reinterpret_cast<std::uintptr_t>(round) + 1;
                                   if (next < 4)
                                     ::pthread_setspecific(g_key, reinterpret_cast<void*>(next));
                                 }),
            0);
  std::thread([] {
    static_cast<void>(&t_records_at_exit);
    asm volatile("" : : "r"(&t_records_at_exit) : "memory");
    ::pthread_setspecific(g_key, reinterpret_cast<void*>(std::uintptr_t{1}));
    record(Numbered{6, 0});
  }).join();
  ::pthread_key_delete(g_key);
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.numbers("Numbered", "thread"), (std::vector<std::uint64_t>{6, 7, 8, 8, 8}));
  recorder.step();
  EXPECT_EQ(recorder->status().chunks_in_use, 0U);
}

TEST(ThreadBuffer, SurvivesCancellation) {
#if defined(DIAL9_SANITIZED_ADDRESS)
  GTEST_SKIP() << "ASan takes the frames that a cancelled thread left for live ones";
#endif
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  std::atomic<std::uint64_t> emitted{0};
  std::thread thread([&] {
    for (std::uint64_t i = 0;; ++i) {
      record(Numbered{0, i});
      emitted = i + 1;
      ::pthread_testcancel();
    }
  });
  while (emitted == 0) std::this_thread::yield();
  ::pthread_cancel(thread.native_handle());
  thread.join();
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.count("Numbered") + dropped(recorder.core()), emitted);
  record(Numbered{1, 1});
  EXPECT_EQ(recorder.read().numbers("Numbered", "thread").back(), 1U);
}

TEST(ThreadBuffer, HoldsBackABurstOnlyWhereTheArenaIsNearlyFull) {
  RecorderOptions options = RecorderOptions::memory(std::uint64_t{64} << 20);
  options.arena_bytes = 64 * kChunkBytes;
  options.thread_bytes = 4 * kChunkBytes;
  SteppedRecorder recorder(options, false);
  std::uint64_t recorded = 0;
  while (dropped(recorder.core()) == 0) record(Numbered{0, recorded++});
  // A quarter of the arena is kept for threads within their share.
  EXPECT_EQ(recorder->status().chunks_in_use, 48U);
  // Shares are kept by thread id modulo kHeldSlots: a thread whose slot isn't this one's.
  const std::uint32_t slot = this_tid() % kHeldSlots;
  for (bool has_recorded = false; !has_recorded;) {
    std::thread([&] {
      if (this_tid() % kHeldSlots == slot) return;
      record(Numbered{1, 1});
      has_recorded = true;
    }).join();
  }
  EXPECT_EQ(dropped(recorder.core()), 1U);
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.lost("thread_share"), 1U);
  EXPECT_EQ(trace.count("Numbered"), recorded);
}

TEST(ThreadBuffer, StaysInsideTheArenaWithTenThousandThreads) {
  RecorderOptions options = RecorderOptions::memory(std::uint64_t{64} << 20);
  options.arena_bytes = std::uint64_t{2} << 20;
  Status status;
  CoreSeams seams;
  seams.has_sources = false;  // every loss is one of ours
  const auto core = RecorderCore::start(options, seams, &status);
  ASSERT_TRUE(status.ok());
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    threads.emplace_back([i] { record(Numbered{i, 1}); });
    if (threads.size() == 50) {
      for (std::thread& thread : threads) thread.join();
      threads.clear();
    }
  }
  ASSERT_TRUE(core->rotate(std::chrono::seconds(60)));
  const Trace trace = Trace::of(core->sealed_segments());
  EXPECT_EQ(trace.count("Numbered") + dropped(*core), 10'000U);
  EXPECT_EQ(core->status().chunks_total, 128U);
  core->stop(std::chrono::seconds(60));
}

}  // namespace
}  // namespace dial9::internal
