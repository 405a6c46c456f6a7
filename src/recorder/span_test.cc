// Spans: identity, parents, and time that is charged only while the task runs.
// SPDX-License-Identifier: Apache-2.0
#include "dial9/span.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "dial9/runtime.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_SPAN(Outer, "outer");
DIAL9_SPAN(Request, "request", DIAL9_FIELDS((std::uint64_t, order_id), (interned, tier)),
           DIAL9_FIELDS((std::uint32_t, http_status), (text, note)));

constexpr std::uint64_t kTopBit = std::uint64_t{1} << 63;

// The names of a kind's events.
template <class Kind>
std::string enter_name() {
  return Kind::Enter::text();
}
template <class Kind>
std::string exit_name() {
  return Kind::Exit::text();
}

// A poll of `task` on this thread, with stamps of the test's choice.
class PolledAs {
 public:
  explicit PolledAs(runtime::TaskId task) { runtime::poll_start(poll_, 0, {task, &place_}); }
  ~PolledAs() { runtime::poll_end(poll_); }
  runtime::Poll& poll() const { return poll_; }

 private:
  runtime::Place place_{"test"};
  mutable runtime::Poll poll_;
};

TEST(Span, IsOneEnterAndOneExitWithItsFields) {
  SteppedRecorder recorder;
  std::thread([] {  // that no runtime knows
    span<Request> request({17, "gold"});
    request.late.http_status = 200U;
  })
      .join();
  const Trace trace = recorder.read();
  EXPECT_EQ(enter_name<Request>().rfind("SpanEnter:", 0), 0U);
  EXPECT_NE(enter_name<Request>().find("span_test.cc:"), std::string::npos);
  ASSERT_EQ(trace.count(enter_name<Request>()), 1U);
  ASSERT_EQ(trace.count(exit_name<Request>()), 1U);
  const std::uint64_t id = trace.numbers(enter_name<Request>(), "span_id")[0];
  EXPECT_NE(id & kTopBit, 0U);
  EXPECT_EQ(trace.numbers(exit_name<Request>(), "span_id")[0], id);
  EXPECT_EQ(trace.texts(enter_name<Request>(), "span_name")[0], "request");
  EXPECT_EQ(trace.numbers(enter_name<Request>(), "order_id")[0], 17U);
  EXPECT_EQ(trace.texts(enter_name<Request>(), "tier")[0], "gold");
  EXPECT_EQ(trace.numbers(enter_name<Request>(), "worker_id")[0], ~std::uint64_t{0});
  EXPECT_EQ(trace.numbers(exit_name<Request>(), "http_status")[0], 200U);
  EXPECT_EQ(trace.numbers(exit_name<Request>(), "completed")[0], 1U);
  EXPECT_EQ(trace.numbers(exit_name<Request>(), "poll_count")[0], 1U);
  EXPECT_EQ(trace.numbers(exit_name<Request>(), "idle_ns")[0], 0U) << "a plain scope never idles";
  EXPECT_EQ(trace.numbers(exit_name<Request>(), "active_ns")[0],
            trace.stamps(exit_name<Request>())[0] - trace.stamps(enter_name<Request>())[0]);
}

TEST(Span, LeavesALateFieldAbsentThatWasNeverSet) {
  SteppedRecorder recorder;
  {
    const span<Request> request({1, "a"});
  }
  const Trace trace = recorder.read();
  for (const auto& event : trace.raw().events) {
    if (trace.raw().schemas[event.schema].name != exit_name<Request>()) continue;
    EXPECT_FALSE(trace.raw().field(event, "http_status")->is_present);
    EXPECT_FALSE(trace.raw().field(event, "note")->is_present);
  }
}

TEST(Span, HasTheSpanAroundItAsItsParent) {
  SteppedRecorder recorder;
  span_parent given;
  {
    const span<Outer> outer;
    given = outer.as_parent();
    EXPECT_EQ(current_span().id, given.id);
    const span<Request> inner({1, "a"});
    EXPECT_EQ(current_span().id, inner.as_parent().id);
  }
  EXPECT_EQ(current_span().id, 0U);
  std::thread([&] { const span<Request> elsewhere({2, "b"}, given); }).join();
  const Trace trace = recorder.read();
  const auto parents = trace.numbers(enter_name<Request>(), "parent_span_id");
  EXPECT_EQ(parents, (std::vector<std::uint64_t>{given.id, given.id}));
}

TEST(Span, HasItsParentWhicheverThatIs) {
  SteppedRecorder recorder;
  std::vector<std::uint64_t> expected;
  {
    const span<Outer> outer;
    for (int i = 0; i < 300; ++i) {  // beyond a thread's block of ids
      const span<Request> inner({1, "a"});
      expected.push_back(outer.as_parent().id);
    }
    // Of another recorder, or made up: whatever the number, it is written as it is.
    for (int bits = 0; bits < 64; ++bits) {
      const span_parent given{(std::uint64_t{1} << bits) | 1};
      const span<Request> inner({2, "b"}, given);
      expected.push_back(given.id);
    }
  }
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.numbers(enter_name<Request>(), "parent_span_id"), expected);
  EXPECT_EQ(trace.numbers(exit_name<Request>(), "parent_span_id"), expected);
}

TEST(Span, IsRecordedByTheKernelsClockToo) {
  RecorderOptions options = RecorderOptions::memory(kTestBudget);
  options.clock = ClockChoice::kKernel;
  SteppedRecorder recorder(options);
  const std::uint64_t before = kernel_now_ns();
  for (int i = 0; i < 3; ++i) {
    const span<Outer> outer;
    const span<Request> inner({1, "a"});
  }
  const std::uint64_t after = kernel_now_ns();
  const Trace trace = recorder.read();
  for (const std::string& name : {enter_name<Request>(), exit_name<Outer>()}) {
    const std::vector<std::uint64_t> stamps = trace.stamps(name);
    ASSERT_EQ(stamps.size(), 3U);
    EXPECT_GE(stamps.front(), before);
    EXPECT_LE(stamps.back(), after);
    EXPECT_LT(stamps.front(), stamps.back());
  }
  EXPECT_TRUE(trace.losses().empty());
}

TEST(Span, IsChargedOnlyWhileItsTaskRunsOnWhicheverThread) {
  SteppedRecorder recorder;
  std::unique_ptr<span<Request>> request;  // stands for a coroutine's frame
  const runtime::TaskId task = runtime::new_task_id();
  const runtime::TaskId other = runtime::new_task_id();
  const auto poll = [&](auto work) {
    std::thread([&] {
      const PolledAs polled(task);
      work();
    }).join();
  };
  poll([&] { request = std::make_unique<span<Request>>(Request::Fields{1, "a"}); });
  {
    const PolledAs polled(other);
    EXPECT_EQ(current_span().id, 0U) << "another task is not inside it";
    const span<Outer> unrelated;
  }
  poll([&] { EXPECT_EQ(current_span().id, request->as_parent().id); });
  poll([&] { request.reset(); });
  const Trace trace = recorder.read();
  ASSERT_EQ(trace.count(enter_name<Request>()), 1U);
  ASSERT_EQ(trace.count(exit_name<Request>()), 1U);
  EXPECT_EQ(trace.numbers(exit_name<Request>(), "poll_count")[0], 3U);
  EXPECT_EQ(trace.numbers(exit_name<Request>(), "completed")[0], 1U);
  const std::uint64_t elapsed =
      trace.stamps(exit_name<Request>())[0] - trace.stamps(enter_name<Request>())[0];
  const std::uint64_t active = trace.numbers(exit_name<Request>(), "active_ns")[0];
  const std::uint64_t idle = trace.numbers(exit_name<Request>(), "idle_ns")[0];
  EXPECT_EQ(active + idle, elapsed);
  EXPECT_GT(idle, 0U);
  EXPECT_GT(active, 0U);
  for (const std::uint64_t parent : trace.numbers(enter_name<Outer>(), "parent_span_id")) {
    EXPECT_EQ(parent, 0U);
  }
}

// As if its enter event had been written at `ns`.
void begin_at(SpanCore& core, std::uint64_t ns) {
  const WriteEnter enter = [](SpanCore& span, const void* at) noexcept {
    span_entered(span, *static_cast<const std::uint64_t*>(at));
  };
  span_begin(core, 0, &ns, enter);
  ASSERT_NE(core.id, 0U);
}
// The times of an exit event at `ns`.
SpanTimes end_at(SpanCore& core, std::uint64_t ns) {
  bool is_completed = false;
  const WriteExit exit = [](const SpanCore&, const void* to, bool completed) noexcept {
    **static_cast<bool* const*>(to) = completed;
  };
  bool* const at = &is_completed;
  span_end(core, &at, exit);
  EXPECT_TRUE(is_completed);
  return span_times(core, ns);
}

TEST(Span, AddsUpExactlyTheTimesOfThePolls) {
  SteppedRecorder recorder;
  SpanCore core;
  const PolledAs polled(runtime::new_task_id());
  begin_at(core, 1000);
  runtime::Poll& poll = polled.poll();
  span_poll_end(poll, 1100);
  span_poll_start(poll, 5000);
  span_poll_end(poll, 5250);
  span_poll_start(poll, 9000);
  const SpanTimes times = end_at(core, 9050);
  EXPECT_EQ(times.active_ns, 100U + 250U + 50U);
  EXPECT_EQ(times.idle_ns, 8050U - 400U);
  EXPECT_EQ(times.poll_count, 3U);
}

TEST(Span, LeavesOutWhatItsFirstPollDidBeforeItAndItsLastOneAfterIt) {
  SteppedRecorder recorder;
  const PolledAs polled(runtime::new_task_id());
  runtime::Poll& poll = polled.poll();
  SpanCore around;
  begin_at(around, 1000);
  SpanCore inside;
  begin_at(inside, 1600);
  span_poll_end(poll, 1700);
  span_poll_start(poll, 4000);
  const SpanTimes of_inside = end_at(inside, 4010);
  EXPECT_EQ(of_inside.active_ns, 100U + 10U);
  EXPECT_EQ(of_inside.poll_count, 2U);
  span_poll_end(poll, 4500);
  EXPECT_EQ(end_at(around, 9000).active_ns, 700U + 500U);
}

TEST(Span, MayOpenAndCloseWhileAnotherThreadPollsItsTask) {
  SteppedRecorder recorder;
  const runtime::TaskId task = runtime::new_task_id();
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over.load(std::memory_order_relaxed)) const PolledAs polled(task);
  });
  constexpr int kSpans = 2000;
  for (int i = 0; i < kSpans; ++i) {
    const PolledAs polled(task);
    const span<Outer> around;
    const span<Request> inside({1, "a"});
    if (i % 100 == 0) recorder.step();
  }
  is_over.store(true, std::memory_order_relaxed);
  other.join();
  const Trace trace = recorder.read();
  std::map<std::uint64_t, std::uint64_t> entered;  // some events may have been dropped
  const auto enters = trace.stamps(enter_name<Outer>());
  const auto enter_ids = trace.numbers(enter_name<Outer>(), "span_id");
  for (std::size_t i = 0; i < enters.size(); ++i) entered[enter_ids[i]] = enters[i];
  const auto active = trace.numbers(exit_name<Outer>(), "active_ns");
  const auto idle = trace.numbers(exit_name<Outer>(), "idle_ns");
  const auto exits = trace.stamps(exit_name<Outer>());
  const auto exit_ids = trace.numbers(exit_name<Outer>(), "span_id");
  std::size_t matched = 0;
  for (std::size_t i = 0; i < exits.size(); ++i) {
    const auto enter = entered.find(exit_ids[i]);
    if (enter == entered.end()) continue;
    ++matched;
    EXPECT_EQ(active[i] + idle[i], exits[i] - enter->second);
    EXPECT_GT(active[i], 0U);
  }
  EXPECT_GT(matched, 0U);
}

TEST(Span, SaysThatCancelledAndThrowingWorkDidNotComplete) {
  SteppedRecorder recorder;
  std::unique_ptr<span<Request>> suspended;
  {
    const PolledAs polled(runtime::new_task_id());
    suspended = std::make_unique<span<Request>>(Request::Fields{1, "cancelled"});
  }
  suspended.reset();  // the frame is destroyed while it waits
  try {
    const span<Request> throwing({2, "throws"});
    throw 1;
  } catch (int) {
    const span<Request> handled({3, "handles"});
  }
  EXPECT_EQ(recorder.read().numbers(exit_name<Request>(), "completed"),
            (std::vector<std::uint64_t>{0, 0, 1}));
}

TEST(Span, EndsInAnyOrder) {
  SteppedRecorder recorder;
  const PolledAs polled(runtime::new_task_id());
  auto a = std::make_unique<span<Outer>>();
  auto b = std::make_unique<span<Outer>>();
  auto c = std::make_unique<span<Outer>>();
  b.reset();
  EXPECT_EQ(current_span().id, c->as_parent().id);
  c.reset();
  EXPECT_EQ(current_span().id, a->as_parent().id);
  a.reset();
  EXPECT_EQ(current_span().id, 0U);
}

TEST(Span, IsHeldByManyTasksAtATime) {
  SteppedRecorder recorder;
  constexpr std::size_t kTasks = 20'000;
  std::vector<std::unique_ptr<span<Outer>>> spans;
  const std::uint64_t before = recorder->status().events_dropped;
  for (std::size_t i = 0; i < kTasks; ++i) {
    const PolledAs polled(runtime::new_task_id());
    spans.push_back(std::make_unique<span<Outer>>());
    if (i % 1000 == 0) recorder.step();
  }
  recorder.step();
  const std::uint64_t lost = recorder->status().events_dropped - before;
  EXPECT_LT(lost, kTasks / 100) << "the table holds them";
  spans.clear();
  const Trace trace = recorder.read();
  EXPECT_EQ(2 * trace.count(enter_name<Outer>()) + trace.lost("span_table"), 2 * kTasks);
  EXPECT_EQ(trace.count(exit_name<Outer>()), trace.count(enter_name<Outer>()));
}

TEST(Span, ThatCouldNotBeEnteredIsTwoLosses) {
  RecorderOptions options = RecorderOptions::memory(kTestBudget);
  options.arena_bytes = std::uint64_t{1} << 20;
  SteppedRecorder recorder(options, false);
  std::uint64_t emitted = 0;
  const auto make_spans = [&](int count) {
    for (; count > 0; --count, emitted += 2) const span<Request> request({1, "a"});
  };
  while (recorder->status().events_dropped == 0) make_spans(10);
  make_spans(1000);
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.count(enter_name<Request>()) + trace.count(exit_name<Request>()) +
                recorder->status().events_dropped,
            emitted);
}

TEST(Span, IsNotChargedForAPollOfATaskThatHadItsPlaceBefore) {
  SteppedRecorder recorder;
  std::uint64_t poll_began_ns = 0;
  std::vector<std::unique_ptr<span<Outer>>> spans;
  {
    const PolledAs polled(runtime::new_task_id());
    poll_began_ns = now_ns();
    {
      const span<Request> gone({1, "a"});
    }
    std::thread([&] {  // takes every place of the table
      for (int i = 0; i < 60'000; ++i) {
        const PolledAs other(runtime::new_task_id());
        spans.push_back(std::make_unique<span<Outer>>());
        if (i % 1000 == 0) recorder.step();
      }
    })
        .join();
  }
  const std::uint64_t poll_ns = now_ns() - poll_began_ns;
  recorder.step();
  for (std::size_t i = 0; i < spans.size(); ++i) {
    spans[i].reset();
    if (i % 1000 == 0) recorder.step();
  }
  const Trace trace = recorder.read();
  const auto active = trace.numbers(exit_name<Outer>(), "active_ns");
  ASSERT_GT(active.size(), 40'000U);
  std::size_t whole_polls = 0;
  for (const std::uint64_t ns : active) whole_polls += ns >= poll_ns / 2;
  EXPECT_EQ(whole_polls, 0U);
}

runtime::RuntimeId runtime_named(const char* name) { return runtime::register_runtime(name); }

std::uint64_t worker_of_a_span(SteppedRecorder& recorder) {
  {
    const span<Outer> now;
  }
  return recorder.read().numbers(enter_name<Outer>(), "worker_id").back();
}

TEST(Span, IsOfTheWorkerWhoseRuntimePollsAlsoAfterAPollOfAnotherInside) {
  SteppedRecorder recorder;
  const runtime::RuntimeId outer = runtime_named("outer");
  const runtime::RuntimeId inner = runtime_named("inner");
  static runtime::Place place{"test"};
  std::thread([&] {
    {
      const runtime::PollScope around(outer, {runtime::new_task_id(), &place});
      const std::uint64_t before = worker_of_a_span(recorder);
      std::uint64_t inside = before;
      {
        const runtime::PollScope poll(inner, {runtime::new_task_id(), &place});
        inside = worker_of_a_span(recorder);
      }
      EXPECT_NE(inside, before);
      EXPECT_EQ(worker_of_a_span(recorder), before);
      {
        const runtime::PollScope poll(inner, {runtime::new_task_id(), &place});
      }
    }
    const runtime::PollScope next(inner, {runtime::new_task_id(), &place});
    const std::uint64_t inside = worker_of_a_span(recorder);
    EXPECT_EQ(inside, runtime::current_worker());
  }).join();
}

TEST(Span, ThatEndedOnAnotherThreadIsNoParentOfWhatComes) {
  SteppedRecorder recorder;
  std::thread([] {
    for (int i = 0; i < 200; ++i) {  // more than a thread's list has room for
      auto away = std::make_unique<span<Request>>(Request::Fields{1, "a"});
      std::thread([&] { away.reset(); }).join();
      EXPECT_EQ(span<Outer>().as_parent().id & kTopBit, kTopBit);
    }
    const span<Outer> last;
    EXPECT_EQ(current_span().id, last.as_parent().id);
  }).join();
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.count(exit_name<Request>()), 200U);
  EXPECT_EQ(trace.numbers(enter_name<Outer>(), "parent_span_id"),
            std::vector<std::uint64_t>(201, 0));
}

TEST(Span, BegunInAPollThatBeganUnrecordedIsChargedFromItsBegin) {
  SteppedRecorder recorder;
  recorder->disable();
  {
    const PolledAs polled(runtime::new_task_id());
    recorder->enable();
    const span<Request> request({1, "a"});
  }
  auto kept = std::unique_ptr<span<Request>>();
  const runtime::TaskId task = runtime::new_task_id();
  recorder->disable();
  {
    const PolledAs polled(task);
    recorder->enable();
    kept = std::make_unique<span<Request>>(Request::Fields{2, "b"});
  }
  {
    const PolledAs polled(task);
    kept.reset();
  }
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.numbers(exit_name<Request>(), "poll_count"), (std::vector<std::uint64_t>{1, 2}));
  const auto active = trace.numbers(exit_name<Request>(), "active_ns");
  EXPECT_GT(active.at(0), 0U);
  EXPECT_EQ(trace.numbers(exit_name<Request>(), "idle_ns").at(0), 0U);
  EXPECT_GT(active.at(1), 0U);
  EXPECT_GT(trace.numbers(exit_name<Request>(), "idle_ns").at(1), 0U);
}

TEST(Span, ThatOutlivesItsRecordingIsNoPartOfTheNext) {
  auto outer = std::unique_ptr<span<Outer>>();
  auto in_task = std::unique_ptr<span<Request>>();
  const runtime::TaskId task = runtime::new_task_id();
  {
    SteppedRecorder recorder;
    outer = std::make_unique<span<Outer>>();
    const PolledAs polled(task);
    in_task = std::make_unique<span<Request>>(Request::Fields{1, "a"});
  }
  SteppedRecorder recorder;
  {
    const PolledAs polled(task);
    in_task.reset();
  }
  outer.reset();
  EXPECT_EQ(current_span().id, 0U);
  {
    const span<Outer> next;
  }
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.count(exit_name<Request>()), 0U);
  EXPECT_EQ(trace.count(enter_name<Outer>()), 1U);
  EXPECT_EQ(trace.count(exit_name<Outer>()), 1U);
  EXPECT_EQ(recorder->status().events_dropped, 0U);
}

TEST(Span, IsInertWhileNothingIsRecorded) {
  SteppedRecorder recorder;
  recorder->disable();
  {
    const span<Request> off({1, "off"});
    EXPECT_EQ(off.as_parent().id, 0U);
    recorder->enable();
  }
  const Trace trace = recorder.read();
  EXPECT_EQ(trace.count(exit_name<Request>()), 0U) << "no exit without an enter";
}

}  // namespace
}  // namespace dial9::internal
