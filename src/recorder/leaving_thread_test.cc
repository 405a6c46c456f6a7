// Spans that are open while their thread is unwound to its end (pthread_cancel, pthread_exit).
// Strongest property: a span that a destructor opens and ends meanwhile is told from those that the
// unwinding ends.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <thread>

#include "dial9/runtime.h"
#include "dial9/span.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_SPAN(Request, "request", DIAL9_FIELDS((std::uint64_t, number)));

// Such an unwinding is no exception in flight.
class LeavingThread : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(DIAL9_SANITIZED_ADDRESS)
    GTEST_SKIP() << "ASan takes the frames that a cancelled thread left for live ones";
#endif
  }
};

// Opens and ends a span of its own in its destructor; by its number.
struct Cleaner {
  ~Cleaner() {
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    const span<Request> cleaning({number});
  }
  std::uint64_t number;
};

// What the exits say, by the spans' numbers.
std::map<std::uint64_t, std::uint64_t> completed_by_number(const Trace& trace) {
  std::map<std::uint64_t, std::uint64_t> numbers;
  const auto enter_ids = trace.numbers(Request::Enter::text(), "span_id");
  const auto enters = trace.numbers(Request::Enter::text(), "number");
  for (std::size_t i = 0; i < enters.size(); ++i) numbers[enter_ids[i]] = enters[i];
  std::map<std::uint64_t, std::uint64_t> completed;
  const auto exit_ids = trace.numbers(Request::Exit::text(), "span_id");
  const auto exits = trace.numbers(Request::Exit::text(), "completed");
  for (std::size_t i = 0; i < exits.size(); ++i) completed[numbers[exit_ids[i]]] = exits[i];
  return completed;
}

// Spans 2 and 4 are open as the thread leaves by `leave`; 1 has ended, 3 and 5 are cleaners'.
void leave_with_open_spans(void (*leave)()) {
  {
    const span<Request> ended({1});
  }
  const span<Request> outer({2});
  const Cleaner after_inner{3};
  const span<Request> inner({4});
  const Cleaner first{5};
  void (*volatile unknown)() = leave;  // a call that may throw, to the compiler
  unknown();
}
const std::map<std::uint64_t, std::uint64_t> kOnlyTheOpenAreNot{
    {1, 1}, {2, 0}, {3, 1}, {4, 0}, {5, 1}};

TEST_F(LeavingThread, LeavesItsSpansUncompletedWhereItIsCancelled) {
  SteppedRecorder recorder;
  std::thread([] {
    leave_with_open_spans([] {
      ::pthread_cancel(::pthread_self());
      ::pthread_testcancel();
    });
  }).join();
  EXPECT_EQ(completed_by_number(recorder.read()), kOnlyTheOpenAreNot);
}

int g_is_ready = 0;  // atomic; without std::atomic, whose functions may be instrumented calls

// Cancellable at any instruction from the first time that it says that it is ready. None of them is
// TSan's: its runtime takes locks, which a thread that is cancelled there never gives back.
#if defined(__clang__)
[[clang::disable_sanitizer_instrumentation]]
#endif
void spin_until_cancelled() {
  ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  for (;;) __atomic_store_n(&g_is_ready, 1, __ATOMIC_RELAXED);
}

TEST_F(LeavingThread, LeavesItsSpansUncompletedWhereItIsCancelledAtAnyInstruction) {
  SteppedRecorder recorder;
  g_is_ready = 0;
  const auto run = [](void*) -> void* {
    leave_with_open_spans(spin_until_cancelled);
    return nullptr;
  };
  pthread_t thread{};
  ASSERT_EQ(::pthread_create(&thread, nullptr, run, nullptr), 0);
  while (__atomic_load_n(&g_is_ready, __ATOMIC_RELAXED) == 0) std::this_thread::yield();
  ::pthread_cancel(thread);
  ::pthread_join(thread, nullptr);
  EXPECT_EQ(completed_by_number(recorder.read()), kOnlyTheOpenAreNot);
}

TEST_F(LeavingThread, LeavesItsSpansUncompletedByPthreadExit) {
  SteppedRecorder recorder;
  std::thread([] { leave_with_open_spans([] { ::pthread_exit(nullptr); }); }).join();
  EXPECT_EQ(completed_by_number(recorder.read()), kOnlyTheOpenAreNot);
}

TEST_F(LeavingThread, LeavesTheSpansOfTheTaskThatItRunsUncompleted) {
  SteppedRecorder recorder;
  std::thread([] {
    static runtime::Place place{"test"};
    const runtime::PollScope poll(runtime::register_runtime("leaving"),
                                  {runtime::new_task_id(), &place});
    leave_with_open_spans([] { ::pthread_exit(nullptr); });
  }).join();
  EXPECT_EQ(completed_by_number(recorder.read()), kOnlyTheOpenAreNot);
}

// A request to cancel that finds no place, and the destructors of thread-local objects.
TEST_F(LeavingThread, ThatReturnsCompletesAllOfThem) {
  SteppedRecorder recorder;
  std::thread([] {
    struct Late {
      ~Late() { leave_with_open_spans([] {}); }
    };
    static thread_local const Late late;
    static_cast<void>(&late);
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    ::pthread_cancel(::pthread_self());
  }).join();
  const std::map<std::uint64_t, std::uint64_t> all{{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}};
  EXPECT_EQ(completed_by_number(recorder.read()), all);
}

}  // namespace
}  // namespace dial9::internal
