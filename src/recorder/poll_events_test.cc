// The events of polls and wakes, written by hand: the same bytes as by the general way.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/poll_events.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

constinit runtime::Place g_place{"a place"};
constexpr std::uint64_t kIds[] = {0,
                                  1,
                                  127,
                                  128,
                                  16'383,
                                  16'384,
                                  (1 << 21) - 1,
                                  1 << 21,
                                  kShortTasks - 1,
                                  kShortTasks,
                                  std::uint64_t{1} << 62};

// What the call appends to the thread's chunk; the stamp's three bytes are left out.
std::vector<std::uint8_t> written_by(const std::function<void()>& call) {
  const std::uint8_t* from = t_buffer.cursor();
  call();
  std::vector<std::uint8_t> bytes(from, static_cast<const std::uint8_t*>(t_buffer.cursor()));
  if (bytes.size() > 6) bytes.erase(bytes.begin() + 3, bytes.begin() + 6);
  return bytes;
}

// Everything is defined in the thread's chunk, and the short way is open.
void warm_up() {
  record_poll_start(1, 1, g_place, 0);
  record_poll_end(1, 0);
  record_wake(1, 1, 0);
  if (t_buffer.clock.mult == 0) GTEST_SKIP() << "the short way reads the time-stamp counter";
  ASSERT_LT(t_buffer.cursor(), t_buffer.poll_events_end);
}

TEST(PollEvents, HaveTheBytesOfTheGeneralWay) {
  SteppedRecorder recorder;
  warm_up();
  if (IsSkipped()) return;
  const std::uint32_t epoch = recording_epoch();
  for (const std::uint64_t id : kIds) {
    for (const std::uint32_t worker : {0U, 1U, 127U, 128U, 255U, 4095U}) {
      EXPECT_EQ(written_by([&] { write_poll_start(epoch, worker, id, g_place); }),
                written_by([&] { record_poll_start(worker, id, g_place, 0); }));
      EXPECT_EQ(written_by([&] { write_poll_end(epoch, worker); }),
                written_by([&] { record_poll_end(worker, 0); }));
      EXPECT_EQ(
          written_by([&] { write_poll_start(epoch, worker, id, g_place, t_buffer.base_ns + 1); }),
          written_by([&] { record_poll_start(worker, id, g_place, t_buffer.base_ns + 1); }));
      EXPECT_EQ(written_by([&] { write_poll_end(epoch, worker, t_buffer.base_ns + 1); }),
                written_by([&] { record_poll_end(worker, t_buffer.base_ns + 1); }));
    }
    EXPECT_EQ(written_by([&] { write_wake(epoch, id, 300, 0); }),
              written_by([&] { record_wake(id, 300, 0); }));
    EXPECT_EQ(written_by([&] { write_wake(epoch, 5, id, t_buffer.base_ns + 1); }),
              written_by([&] { record_wake(5, id, t_buffer.base_ns + 1); }));
  }
}

TEST(PollEvents, OfATaskThatWakesItselfHaveTheBytesOfTheGeneralWay) {
  SteppedRecorder recorder;
  warm_up();
  if (IsSkipped()) return;
  for (const std::uint64_t id : kIds) {
    if (id >= kShortTasks) continue;
    EXPECT_EQ(written_by([&] {
                ASSERT_TRUE(begin_poll_event(t_buffer, recording_epoch()));
                finish_own_wake(t_buffer, recording_epoch(), short_id(id));
              }),
              written_by([&] { record_wake(id, id, t_buffer.base_ns + 1); }));
  }
}

// A signal's handler may clone the process inside a record call, without the fork handlers: both go
// on in it, in the same chunk.
TEST(PollEvents, ThatAClonedChildFinishesTooAreOne) {
#if defined(DIAL9_SANITIZED_THREAD)
  GTEST_SKIP() << "ThreadSanitizer doesn't know such a child";
#endif
  SteppedRecorder recorder;
  warm_up();
  if (IsSkipped()) return;
  const std::uint32_t epoch = recording_epoch();
  const ThreadBuffer& buffer = t_buffer;
  const std::uint64_t before = buffer.control->producer.committed >> 32;
  ASSERT_TRUE(begin_poll_event(t_buffer, epoch));
  const long child = ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) {
    finish_own_wake(t_buffer, epoch, short_id(300));
    ::_exit(0);
  }
  int status = 0;
  const bool has_ended = ::waitpid(static_cast<pid_t>(child), &status, 0) == child;
  finish_own_wake(t_buffer, epoch, short_id(300));
  ASSERT_TRUE(has_ended && WIFEXITED(status));
  EXPECT_EQ((buffer.control->producer.committed >> 32) - before, 1U);
  EXPECT_EQ(recorder.read().count("WakeEventEvent"), 2U) << "one of warm_up()";
}

TEST(PollEvents, OfAStampInThePastHaveItExactly) {
  SteppedRecorder recorder;
  warm_up();
  if (IsSkipped()) return;
  const std::uint64_t past_ns = t_buffer.base_ns - 1'000'000'000;
  write_wake(recording_epoch(), 5, 77, past_ns);
  EXPECT_EQ(write_poll_start(recording_epoch(), 3, 77, g_place, past_ns + 1), past_ns + 1);
  EXPECT_EQ(write_poll_end(recording_epoch(), 3, past_ns + 2), past_ns + 2);
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.stamps("WakeEventEvent").back(), past_ns);
  EXPECT_EQ(trace.stamps("PollStartEvent").back(), past_ns + 1);
  EXPECT_EQ(trace.stamps("PollEndEvent").back(), past_ns + 2);
}

TEST(PollEvents, AreCompleteAcrossManyChunks) {
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  constexpr std::uint64_t kPolls = 20'000;
  for (std::uint64_t i = 0; i < kPolls; ++i) {
    write_wake(recording_epoch(), i, i + 1, 0);
    write_poll_start(recording_epoch(), 3, i + 1, g_place);
    write_poll_end(recording_epoch(), 3);
    if (i % 1000 == 0) recorder.step();
  }
  const Trace trace = recorder.read();
  std::vector<std::uint64_t> expected(kPolls);
  for (std::uint64_t i = 0; i < kPolls; ++i) expected[i] = i + 1;
  const auto sorted = [&](const char* event, const char* field) {  // chunks have no order
    std::vector<std::uint64_t> numbers = trace.numbers(event, field);
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  };
  EXPECT_EQ(sorted("PollStartEvent", "task_id"), expected);
  EXPECT_EQ(sorted("WakeEventEvent", "woken_task_id"), expected);
  EXPECT_EQ(trace.count("PollEndEvent"), kPolls);
  EXPECT_EQ(trace.texts("PollStartEvent", "spawn_loc").back(), "a place");
}

TEST(PollEvents, InsideARecordCallAreCountedAsNested) {
  SteppedRecorder recorder;
  warm_up();
  if (IsSkipped()) return;
  const std::uint32_t epoch = recording_epoch();
  ASSERT_TRUE(begin_poll_event(t_buffer, epoch));
  EXPECT_EQ(written_by([&] { write_wake(epoch, 1, 2, 0); }).size(), 0U);  // a signal handler's
  leave_poll_event(t_buffer, epoch);
  EXPECT_EQ(recorder.read().lost("nested"), 1U);
}

TEST(PollEvents, AreNothingWhileOff) {
  SteppedRecorder recorder;
  warm_up();
  if (IsSkipped()) return;
  recorder->disable();
  EXPECT_EQ(written_by([&] {
              write_poll_start(recording_epoch(), 1, 2, g_place);
              write_poll_end(recording_epoch(), 1);
              write_wake(recording_epoch(), 1, 2, 0);
            }).size(),
            0U);
}

}  // namespace
}  // namespace dial9::internal
