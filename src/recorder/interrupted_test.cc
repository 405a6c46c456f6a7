// A signal at every single instruction: the processor's trap flag raises SIGTRAP after each one of
// a record call, of the exit of a thread, and so on, and the handler records too. Deterministic: no
// timing is involved. What holds: emitted = written + dropped, nothing torn, nothing doubled.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dial9/event.h"
#include "dial9/label.h"
#include "dial9/runtime.h"
#include "dial9/span.h"
#include "recorder/labels.h"
#include "recorder/recording_state.h"
#include "recorder/shedding.h"
#include "recorder/test_support.h"

#if defined(__x86_64__) && !defined(DIAL9_SANITIZED_ADDRESS) && !defined(DIAL9_SANITIZED_THREAD)
#define CAN_STEP 1
#else
#define CAN_STEP 0
#endif

namespace dial9::internal {
namespace {

DIAL9_EVENT(FromHandler, (std::uint64_t, number));
DIAL9_EVENT(Interrupted, (std::uint64_t, number), (interned, name));
DIAL9_EVENT(Long, (std::uint64_t, number), (text, words));
DIAL9_SPAN(Around, "around", DIAL9_FIELDS((std::uint64_t, number)));
DIAL9_SPAN(OfHandler, "of handler", DIAL9_FIELDS((std::uint64_t, number)));

// Of the one thread that is stepped.
std::uint64_t g_steps = 0;
std::uint64_t g_last_ns = 0;
std::uint64_t g_backward_steps = 0;

void on_step(int) {
  record(FromHandler{g_steps++});
  const std::uint64_t now = now_ns();
  if (now < g_last_ns) ++g_backward_steps;
  g_last_ns = now;
}

// What another thread does in between, at one of the steps.
void (*g_between)() = nullptr;
std::uint64_t g_between_at = 0;

void on_step_between(int) {
  if (g_steps++ == g_between_at) g_between();
}

// After each instruction of `work` the handler runs. It isn't stepped itself.
template <class Work>
void step_through(Work work) {
#if CAN_STEP
  asm volatile("pushfq; orq $0x100, (%%rsp); popfq" : : : "memory", "cc");
  work();
  asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" : : : "memory", "cc");
#else
  work();
#endif
}

class InterruptedAnywhere : public ::testing::Test {
 protected:
  InterruptedAnywhere() : recorder_(RecorderOptions::memory(std::uint64_t{64} << 20), false) {}

  void SetUp() override {
    if (!CAN_STEP) GTEST_SKIP() << "needs x86-64's trap flag, and no sanitizer in the handler";
    g_steps = g_last_ns = g_backward_steps = 0;
    ASSERT_EQ(::sigaction(SIGTRAP, nullptr, &before_), 0);
    call_at_each_step(on_step);
  }
  static void call_at_each_step(void (*handler)(int)) {
    struct sigaction action{};
    action.sa_handler = handler;
    ASSERT_EQ(::sigaction(SIGTRAP, &action, nullptr), 0);
  }
  void TearDown() override {
    if (CAN_STEP) ::sigaction(SIGTRAP, &before_, nullptr);
  }

  // `own`: events of that type that the interrupted code recorded.
  void expect_all_accounted_for(const std::string& type, std::uint64_t own) {
    ASSERT_GT(g_steps, 20U) << "nothing was stepped";
    const Trace trace = recorder_.read();
    const std::uint64_t dropped = recorder_->status().events_dropped;
    EXPECT_EQ(trace.count("FromHandler") + trace.count(type) + dropped, g_steps + own);
    EXPECT_EQ(trace.lost("nested"), dropped);
    EXPECT_GT(trace.count("FromHandler"), 0U);
    EXPECT_EQ(g_backward_steps, 0U);
    std::uint64_t next = 0;
    for (const std::uint64_t number : trace.numbers("FromHandler", "number")) {
      EXPECT_GE(number, next) << "twice, or out of order";
      next = number + 1;
    }
  }

  SteppedRecorder recorder_;

 private:
  struct sigaction before_{};
};

TEST_F(InterruptedAnywhere, ARecordCallLosesNothingUncounted) {
  record(FromHandler{0});
  recorder_.read();
  step_through([] {
    for (std::uint64_t i = 0; i < 3; ++i) record(Interrupted{i, "name"});
  });
  const Trace trace = recorder_.read();
  EXPECT_EQ(trace.numbers("Interrupted", "number"), (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(trace.texts("Interrupted", "name"), (std::vector<std::string>(3, "name")));
}

TEST_F(InterruptedAnywhere, AThreadsFirstRecordCallLosesNothingUncounted) {
  std::thread([] { step_through([] { record(Interrupted{1, "name"}); }); }).join();
  expect_all_accounted_for("Interrupted", 1);
}

TEST_F(InterruptedAnywhere, AThreadThatLeavesItsChunkLosesNothingUncounted) {
  std::thread([] {
    record(Interrupted{1, "name"});
    step_through([] { leave_chunk(t_buffer); });
  }).join();
  expect_all_accounted_for("Interrupted", 1);
}

TEST_F(InterruptedAnywhere, TheEndOfARecordingLosesNothingUncounted) {
  std::thread([&] {
    record(Interrupted{1, "name"});
    step_through([&] {
      recorder_->disable();
      recorder_->enable();
      record(Interrupted{2, "name"});
    });
  }).join();
  const Trace trace = recorder_.read();
  EXPECT_EQ(trace.numbers("Interrupted", "number"), (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(InterruptedAnywhere, AChangeOfChunkLosesNothingUncounted) {
  const std::string words(6'000, 'w');
  const auto fill = [&] {
    for (std::uint64_t i = 0; i < 4; ++i) record(Long{i, words});
  };
  std::thread([&] { step_through(fill); }).join();
  expect_all_accounted_for("Long", 4);
}

// Two lines a second apart, of a counter that counts half nanoseconds; their bases lie far from
// each other, so that halves of two lines are hours off.
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kBasesApart = 20'000 * kSecond;
constexpr std::uint64_t kSomeNs = 100'000 * kSecond;
ClockLine g_behind{};
ClockLine g_ahead{};
std::uint64_t g_off_lines = 0;

void make_lines() {
  const std::uint64_t ticks = read_ticks();
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
  g_behind = {ticks - kBasesApart, kSomeNs - kBasesApart / 2, kHalf};
  g_ahead = {ticks, kSomeNs + kSecond, kHalf};
  g_off_lines = 0;
}

void take_over(const ClockLine& line) {
  publish_clock(line);
  renew_epoch();
}

// A time of the thread, which is on one of the lines or between them.
std::uint64_t checked_now() {
  const std::uint64_t least = line_at(g_behind, read_ticks());
  const std::uint64_t now = now_ns();
  if (now < least || now > line_at(g_ahead, read_ticks())) ++g_off_lines;
  return now;
}

void check_clock() {
  // Inside a record call a handler reads the common line, which may lie behind the thread's own.
  if (t_buffer.ready_epoch == kBusyEpoch) {
    checked_now();
    return;
  }
  const std::uint64_t now = checked_now();
  if (now < g_last_ns) ++g_backward_steps;
  g_last_ns = now;
}

void on_step_with_new_lines(int) {
  record(FromHandler{g_steps++});
  check_clock();
  if (g_steps % 101 != 0) return;  // far enough apart for a look at the clock to come to an end
  take_over(g_steps % 2 == 0 ? g_ahead : g_behind);
  check_clock();
}

TEST_F(InterruptedAnywhere, ANewClockLineDoesntLeadBackwards) {
  call_at_each_step(on_step_with_new_lines);
  std::thread([] {
    make_lines();
    take_over(g_ahead);
    record(Interrupted{1, "name"});
    g_last_ns = now_ns();
    step_through([] {
      for (int i = 0; i < 40; ++i) {
        record(Interrupted{2, "name"});
        checked_now();
      }
    });
  }).join();
  EXPECT_GT(g_steps, 1'010U) << "there were ten new lines";
  EXPECT_EQ(g_off_lines, 0U);
  expect_all_accounted_for("Interrupted", 41);
}

// The thread has one line, and a handler takes the other one over at the step.
void expect_one_line(const ClockLine& before, const ClockLine& after) {
  static ClockLine next{};
  static std::uint64_t seen = 0;
  next = after;
  g_between = [] {
    take_over(next);
    (void)now_ns();
  };
  g_between_at = 0;
  do {
    t_buffer.base_ns = t_buffer.read_ns = 0;
    take_over(g_behind);
    (void)now_ns();
    t_buffer.clock = before;
    const std::uint64_t least = line_at(g_behind, read_ticks());
    g_steps = 0;
    step_through([] { seen = now_ns(); });
    EXPECT_GE(seen, least) << "at step " << g_between_at;
    EXPECT_LE(seen, line_at(g_ahead, read_ticks())) << "at step " << g_between_at;
    EXPECT_GE(now_ns(), seen) << "at step " << g_between_at;
  } while (++g_between_at < g_steps);
  EXPECT_GT(g_between_at, 20U) << "nothing was stepped";
}

TEST_F(InterruptedAnywhere, ALookAtTheClockIsOnOneLineAndLaterOnesAreBehindIt) {
  call_at_each_step(on_step_between);
  make_lines();
  record(Interrupted{1, "name"});
  expect_one_line(g_ahead, g_behind);
  expect_one_line(g_behind, g_ahead);
}

// All interleavings of two threads of which one does its part between two instructions of the
// other.
void expect_marked_whenever(void (*work)(), void (*between)()) {
  g_between = between;
  g_between_at = ~std::uint64_t{0};
  g_steps = 0;
  step_through([] {});
  const std::uint64_t steps_of_nothing = g_steps;
  g_between_at = 0;
  do {
    close_epoch();
    mark_epoch(0);
    g_steps = 0;
    step_through(work);
    ASSERT_NE(recording_epoch() & kSheddingBit, 0U) << "at step " << g_between_at;
  } while (++g_between_at < g_steps);
  ASSERT_GT(g_between_at, steps_of_nothing) << "nothing was stepped";
  mark_epoch(0);
  close_epoch();
}

TEST_F(InterruptedAnywhere, ARecordingThatIsEnabledMeanwhileIsMarkedAsTheCollectorSays) {
  call_at_each_step(on_step_between);
  const auto mark = [] { mark_epoch(kSheddingBit); };
  expect_marked_whenever(open_epoch, mark);
  expect_marked_whenever(mark, open_epoch);
}

// Recording goes off at each step of a record call. From the step on at which it has found
// recording on, the event is written or counted; before, it is neither.
void expect_counted_from_some_step_on(RecorderCore& core, bool is_warm, void (*between)()) {
  g_between = between;
  g_between_at = 0;
  bool was_emitted = false;
  do {
    publish_arena(&core.arena());
    open_epoch();
    if (is_warm) record(Interrupted{0, "name"});
    const std::uint64_t before = t_buffer.events() + core.status().events_dropped;
    g_steps = 0;
    step_through([] { record(Interrupted{1, "name"}); });
    close_epoch();
    const std::uint64_t found =
        t_buffer.events() + core.status().events_dropped + take_late_losses() - before;
    ASSERT_LE(found, 1U) << "at step " << g_between_at;
    ASSERT_TRUE(found == 1 || !was_emitted) << "lost without a count at step " << g_between_at;
    was_emitted = found == 1;
  } while (++g_between_at < g_steps);
  EXPECT_TRUE(was_emitted);
  EXPECT_GT(g_between_at, 20U) << "nothing was stepped";
}

TEST_F(InterruptedAnywhere, ARecordCallThatRecordingIsTurnedOffInIsWrittenOrCounted) {
  call_at_each_step(on_step_between);
  for (const bool is_warm : {false, true}) {
    expect_counted_from_some_step_on(recorder_.core(), is_warm, close_epoch);
  }
}

TEST_F(InterruptedAnywhere, ARecordCallThatTheRecorderStopsInIsWrittenOrCounted) {
  call_at_each_step(on_step_between);
  for (const bool is_warm : {false, true}) {
    expect_counted_from_some_step_on(recorder_.core(), is_warm, [] {
      close_epoch();
      publish_arena(nullptr);
    });
  }
}

TEST_F(InterruptedAnywhere, ASpanKeepsItsEnterAndExit) {
  std::thread([] { step_through([] { const span<Around> around({7}); }); }).join();
  ASSERT_GT(g_steps, 20U);
  const Trace trace = recorder_.read();
  EXPECT_EQ(trace.count(Around::Enter::text()), 1U);
  EXPECT_EQ(trace.count(Around::Exit::text()), 1U);
}

void on_step_with_a_span(int) { const span<OfHandler> inside({g_steps++}); }

TEST_F(InterruptedAnywhere, ASpanAndThoseOfAHandlerInsideHaveAnIdEach) {
  call_at_each_step(on_step_with_a_span);
  std::thread([] {
    for (int i = 0; i < 150; ++i) {  // past the end of a thread's block of ids
      step_through([] { const span<Around> around({7}); });
      EXPECT_EQ(current_span().id, 0U);
    }
  }).join();
  const Trace trace = recorder_.read();
  std::vector<std::uint64_t> ids = trace.numbers(Around::Enter::text(), "span_id");
  EXPECT_EQ(ids.size(), 150U);
  EXPECT_EQ(trace.numbers(Around::Exit::text(), "span_id"), ids);
  const auto of_handler = trace.numbers(OfHandler::Enter::text(), "span_id");
  EXPECT_EQ(trace.count(OfHandler::Exit::text()), of_handler.size());
  EXPECT_EQ(2 * of_handler.size() + recorder_->status().events_dropped, 2 * g_steps);
  ids.insert(ids.end(), of_handler.begin(), of_handler.end());
  std::ranges::sort(ids);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end()) << "two spans of one id";
}

// Tasks that share a bucket, of which two branches of one are at work at a time: the stepped thread
// is the one, the handler the other.
class LabelledAnywhere : public InterruptedAnywhere {
 protected:
  using Open = std::optional<label>;
  static constexpr std::uint64_t kTask = 4'711;

  void SetUp() override {
    InterruptedAnywhere::SetUp();
    if (IsSkipped()) return;
    call_at_each_step(on_step_between);
    for (std::uint64_t task = kTask + 1; neighbours_.size() < kLabelTasksPerBucket; ++task) {
      if (label_bucket(task) == label_bucket(kTask)) neighbours_.push_back(task);
    }
  }
  static void begin(Open& open, std::uint64_t task, const char* value) {
    const runtime::CurrentTask current({task, nullptr});
    open.emplace("n", value);
  }
  static std::string read(std::uint64_t task) {
    LabelText label;
    read_label(task, &label);
    return label.has_value() ? std::string(label.value()) : "";
  }
  // Calls `round` once for each step of `work`, which it steps through.
  template <class Round>
  void at_each_step(Round round) {
    g_between_at = 0;
    do {
      g_steps = 0;
      round();
      expect_room();
      if (HasFailure()) FAIL() << "at step " << g_between_at;
    } while (++g_between_at < g_steps);
    EXPECT_GT(g_between_at, 100U) << "nothing was stepped";
  }
  void expect_room() const {
    Open open[kLabelTasksPerBucket];
    for (std::size_t i = 0; i < neighbours_.size(); ++i) begin(open[i], neighbours_[i], "room");
    for (const std::uint64_t task : neighbours_) EXPECT_EQ(read(task), "room");
  }

  std::vector<std::uint64_t> neighbours_;
  static inline Open first_;
  static inline Open second_;
  static inline Open other_;
  static inline std::uint64_t other_task_ = 0;
};

TEST_F(LabelledAnywhere, ATaskNeverHasALabelOfTheTaskWhoseRoomItGot) {
  other_task_ = neighbours_[0];
  g_between = [] {
    first_.reset();
    begin(other_, other_task_, "other");
  };
  at_each_step([] {
    begin(first_, kTask, "first");
    step_through([] { begin(second_, kTask, "second"); });
    EXPECT_EQ(read(other_task_), "other");
    EXPECT_EQ(read(kTask), "second");
    other_.reset();
    EXPECT_EQ(read(other_task_), "");
    second_.reset();
    EXPECT_EQ(read(kTask), "");
  });
}

TEST_F(LabelledAnywhere, TwoBranchesThatBeginAtOnceLeaveTheirRoomToOthers) {
  g_between = [] { begin(first_, kTask, "first"); };
  at_each_step([] {
    step_through([] { begin(second_, kTask, "second"); });
    EXPECT_NE(read(kTask), "");
    second_.reset();
    first_.reset();
    EXPECT_EQ(read(kTask), "");
  });
}

}  // namespace
}  // namespace dial9::internal
