// Labels as events: each change tells what holds from then on, nothing is told unless someone asks,
// and the teller lists what holds without what it can't be sure of.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/label_changes.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dial9/label.h"
#include "dial9/runtime.h"
#include "recorder/label_teller.h"
#include "recorder/labels.h"
#include "recorder/recording_state.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

// Of a task, or of a thread where that is 0, in order of time: "-" none, "?" not known.
std::string changes(const Trace& trace, std::uint32_t tid, std::uint64_t task) {
  const auto stamps = trace.stamps("LabelChangeEvent");
  const auto tids = trace.numbers("LabelChangeEvent", "tid");
  const auto tasks = trace.numbers("LabelChangeEvent", "task_id");
  const auto known = trace.numbers("LabelChangeEvent", "known");
  const auto values = trace.texts("LabelChangeEvent", "label_value");
  std::multimap<std::uint64_t, std::string> by_time;
  for (std::size_t i = 0; i < tids.size(); ++i) {
    if (tasks[i] != task || (task == 0 && tids[i] != tid)) continue;
    by_time.emplace(stamps[i], known[i] == 0 ? "?" : values[i].empty() ? "-" : values[i]);
  }
  std::string text;
  for (const auto& [at_ns, value] : by_time) text += (text.empty() ? "" : " ") + value;
  return text;
}

class LabelChanges : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(watch_labels(LabelWatcher::kSwitches)); }
  void TearDown() override { unwatch_labels(LabelWatcher::kSwitches); }
  std::string of_thread(std::uint32_t tid = this_tid()) {
    return changes(recorder_.read(), tid, 0);
  }
  SteppedRecorder recorder_{RecorderOptions::memory(kTestBudget), false};
};

std::uint64_t g_now_ns = 0;
std::uint64_t made_now() noexcept { return g_now_ns; }

class LabelTelling : public LabelChanges {
 protected:
  // Once what it tells counts.
  void begin() {
    g_now_ns = 1'000'000'000;
    teller_.attend(0);
    g_now_ns += LabelTeller::kGraceNs;
    teller_.attend(0);
  }
  Trace told() {
    const auto streams = teller_.take();
    return streams.empty() ? Trace::of(std::vector<std::uint8_t>{}) : Trace::of(streams[0].bytes);
  }
  LabelTeller teller_{made_now};
};

// The first of all: after a label that ended astray no thread's is listed as known.
TEST_F(LabelTelling, ListsTheLabelOfAThreadThatHasOne) {
  const label scope("tenant", "acme");
  begin();
  const Trace trace = Trace::of(teller_.opening());
  EXPECT_EQ(changes(trace, this_tid(), 0), "acme");
  EXPECT_EQ(trace.numbers("LabelCoverageEvent", "lists_threads").at(0), 1U);
}

TEST_F(LabelTelling, TriesAListThatFailedEverMoreSeldom) {
  unwatch_labels(LabelWatcher::kSwitches);
  const label unwatched("tenant", "acme");
  ASSERT_TRUE(watch_labels(LabelWatcher::kSwitches));
  begin();
  EXPECT_EQ(told().numbers("LabelCoverageEvent", "lists_threads").at(0), 0U);
  g_now_ns += 999'999'999;
  EXPECT_TRUE(teller_.take().empty());
  g_now_ns += 1;
  EXPECT_EQ(told().numbers("LabelCoverageEvent", "lists_tasks").at(0), 1U);
  g_now_ns += 1'999'999'999;
  EXPECT_TRUE(teller_.take().empty());
  g_now_ns += 1;
  EXPECT_EQ(told().numbers("LabelCoverageEvent", "lists_tasks").at(0), 1U);
}

TEST_F(LabelChanges, TellWhatHoldsAfterEachBeginAndEnd) {
  {
    const label outer("tenant", "acme");
    const label inner("tenant", "bolt");
  }
  EXPECT_EQ(of_thread(), "acme bolt acme -");
}

TEST_F(LabelChanges, OfATaskAreToldAsTheTasksOnWhicheverThread) {
  const runtime::CurrentTask task({81, nullptr});
  auto outer = std::make_unique<label>("tenant", "acme");
  auto inner = std::make_unique<label>("tenant", "bolt");
  std::thread([&] { inner.reset(); }).join();
  outer.reset();
  const Trace trace = recorder_.read();
  EXPECT_EQ(changes(trace, 0, 81), "acme bolt acme -");
  EXPECT_EQ(changes(trace, this_tid(), 0), "");
}

TEST_F(LabelChanges, ThatEndOutOfOrderTellWhatIsLeft) {
  const runtime::CurrentTask task({82, nullptr});
  auto first = std::make_unique<label>("n", "first");
  auto second = std::make_unique<label>("n", "second");
  first.reset();
  second.reset();
  EXPECT_EQ(changes(recorder_.read(), 0, 82), "first second second -");
}

TEST_F(LabelChanges, OfAThreadThatEndElsewhereLeaveItsLabelUnknown) {
  auto made = std::make_unique<label>("n", "here");
  std::thread([&] { made.reset(); }).join();
  EXPECT_EQ(of_thread(), "here ?");
  const label next("n", "next");
  EXPECT_EQ(of_thread(), "here ? next");
}

TEST_F(LabelChanges, AThreadThatEndsHasNoLabelForTheNextOneOfItsId) {
  std::unique_ptr<label> left;
  std::uint32_t tid = 0;
  std::thread([&] {
    tid = this_tid();
    left = std::make_unique<label>("n", "left");
  }).join();
  left.reset();
  EXPECT_EQ(of_thread(tid), "left -");
}

TEST_F(LabelChanges, AreToldOnlyWhileSomeoneWatches) {
  unwatch_labels(LabelWatcher::kSwitches);
  {
    const label silent("n", "silent");
  }
  ASSERT_TRUE(watch_labels(LabelWatcher::kSwitches));
  {
    const label told("n", "told");
  }
  EXPECT_EQ(of_thread(), "told -");
}

TEST_F(LabelTelling, SaysNothingBeforeWhatWasUnderWayIsOver) {
  g_now_ns = 1'000'000'000;
  teller_.attend(0);
  EXPECT_TRUE(teller_.take().empty());
  EXPECT_TRUE(teller_.opening().empty());
  EXPECT_FALSE(teller_.drained(g_now_ns, true));
  g_now_ns += LabelTeller::kGraceNs;
  teller_.attend(0);
  EXPECT_EQ(told().numbers("LabelCoverageEvent", "since_ns").at(0), g_now_ns);
}

TEST_F(LabelTelling, ListsTasksLabelsThatHoldAndThatThereAreNoOthers) {
  const runtime::CurrentTask task({83, nullptr});
  const label outer("tenant", "acme");
  const label inner("tenant", "bolt");
  begin();
  const Trace trace = Trace::of(teller_.opening());
  EXPECT_EQ(changes(trace, 0, 83), "bolt");
  EXPECT_EQ(trace.numbers("LabelCoverageEvent", "lists_tasks").at(0), 1U);
  EXPECT_EQ(trace.stamps("LabelChangeEvent").at(0), trace.stamps("LabelCoverageEvent").at(0));
}

TEST_F(LabelTelling, DoesNotListThreadsWhileOneHasALabelThatBeganUnwatched) {
  unwatch_labels(LabelWatcher::kSwitches);
  auto unwatched = std::make_unique<label>("tenant", "acme");
  ASSERT_TRUE(watch_labels(LabelWatcher::kSwitches));
  begin();
  EXPECT_EQ(Trace::of(teller_.opening()).numbers("LabelCoverageEvent", "lists_threads").at(0), 0U);
  unwatched.reset();
  EXPECT_EQ(Trace::of(teller_.opening()).numbers("LabelCoverageEvent", "lists_threads").at(0), 1U);
}

TEST_F(LabelTelling, OfAThreadWithSeveralOpenLabelsItSaysThatOneHoldsAndNotWhich) {
  const label outer("tenant", "acme");
  const label inner("tenant", "bolt");
  begin();
  EXPECT_EQ(changes(Trace::of(teller_.opening()), this_tid(), 0), "?");
}

TEST_F(LabelTelling, TellsHowFarTheTraceReachesOnceASecondAndAtTheEndOfASegment) {
  {
    const label any("tenant", "acme");
  }
  begin();
  EXPECT_EQ(told().count("LabelCoverageEvent"), 1U);
  const std::uint64_t since_ns = g_now_ns;
  EXPECT_TRUE(teller_.drained(since_ns + 999'000'000, false));
  EXPECT_TRUE(teller_.take().empty());
  EXPECT_TRUE(teller_.drained(since_ns + 1'000'000'000, false));
  EXPECT_EQ(told().numbers("LabelCoverageEvent", "until_ns").at(0), since_ns + 1'000'000'000);
  EXPECT_TRUE(teller_.drained(since_ns + 1'000'000'001, true));
  EXPECT_EQ(told().numbers("LabelCoverageEvent", "until_ns").at(0), since_ns + 1'000'000'001);
}

TEST_F(LabelTelling, BeginsAnewAfterAPauseInWhichNothingWasTold) {
  begin();
  const std::uint64_t since_ns = g_now_ns;
  teller_.rest();
  EXPECT_TRUE(teller_.drained(since_ns + 1, true)) << "what was told before counts to its end";
  g_now_ns += 1'000;
  teller_.attend(0);
  EXPECT_TRUE(teller_.take().empty());
  g_now_ns += LabelTeller::kGraceNs;
  teller_.attend(0);
  EXPECT_EQ(told().numbers("LabelCoverageEvent", "since_ns").at(0), g_now_ns);
  unwatch_labels(LabelWatcher::kSwitches);  // and again, between two looks
  ASSERT_TRUE(watch_labels(LabelWatcher::kSwitches));
  teller_.attend(0);
  EXPECT_TRUE(teller_.take().empty());
}

TEST_F(LabelTelling, TellsHowFarItReachesAsTheLastWatcherLeaves) {
  ASSERT_TRUE(watch_labels(LabelWatcher::kCpuSamples));
  {
    const label any("tenant", "acme");
  }
  begin();
  told();
  unwatch_labels(LabelWatcher::kCpuSamples);
  EXPECT_TRUE(teller_.drained(g_now_ns + 1, false));
  teller_.attend(0);
  EXPECT_TRUE(teller_.take().empty()) << "another one watches on";
  unwatch_labels(LabelWatcher::kSwitches);
  const std::uint64_t left_ns = labels_unwatched_ns(label_watch().number - 1);
  teller_.attend(0);
  EXPECT_TRUE(teller_.drained(left_ns - LabelTeller::kGraceNs - 1, false));
  told();
  teller_.attend(0);
  EXPECT_TRUE(teller_.drained(left_ns + 1, false)) << "before the next second is over";
  const Trace end = told();
  EXPECT_EQ(end.numbers("LabelCoverageEvent", "until_ns").at(0), left_ns - LabelTeller::kGraceNs);
  EXPECT_EQ(end.numbers("LabelCoverageEvent", "lists_tasks").at(0), 0U);
  teller_.attend(0);
  EXPECT_FALSE(teller_.drained(left_ns + 2, true));
  EXPECT_TRUE(teller_.opening().empty());
}

TEST_F(LabelTelling, ReachesNoFurtherThanTheLastWatcherWhoeverComesBeforeTheNextPass) {
  begin();
  unwatch_labels(LabelWatcher::kSwitches);
  const std::uint64_t left_ns = labels_unwatched_ns(label_watch().number - 1);
  {
    const label untold("tenant", "acme");
  }
  ASSERT_TRUE(watch_labels(LabelWatcher::kSwitches));
  EXPECT_TRUE(teller_.drained(left_ns + 1, true));
  EXPECT_EQ(told().numbers("LabelCoverageEvent", "until_ns").at(0),
            left_ns - LabelTeller::kGraceNs);
  unwatch_labels(LabelWatcher::kSwitches);
  ASSERT_TRUE(watch_labels(LabelWatcher::kSwitches));
  EXPECT_FALSE(teller_.drained(left_ns + 2, true)) << "two have left: when the first did is lost";
}

// One thread watches and leaves over and over, and says after each leave when that was at the
// latest; `looks` is asked all the while.
template <typename Looks>
void while_watchers_come_and_go(std::vector<std::atomic<std::uint64_t>>& left_by_ns,
                                std::atomic<std::uint32_t>& leaves, const Looks& looks) {
  std::thread watcher([&] {
    for (std::size_t i = 0; i < left_by_ns.size(); ++i) {
      (void)watch_labels(LabelWatcher::kSwitches);
      unwatch_labels(LabelWatcher::kSwitches);
      left_by_ns[i].store(now_ns());
      leaves.store(static_cast<std::uint32_t>(i) + 1);
    }
  });
  while (leaves.load() != left_by_ns.size()) looks();
  watcher.join();
}

TEST(LabelWatches, AreSeenWithTheirOwnNumberAndTheTimeOfTheirOwnEnd) {
  std::vector<std::atomic<std::uint64_t>> left_by_ns(100'000);
  std::atomic<std::uint32_t> leaves{0};
  const std::uint32_t first = label_watch().number;
  int others_number = 0;
  int others_time = 0;
  while_watchers_come_and_go(left_by_ns, leaves, [&] {
    const std::uint32_t before = leaves.load();
    const LabelWatch watch = label_watch();
    if (watch.is_on && leaves.load() == before && watch.number - first != before) ++others_number;
    if (before == 0) return;
    const std::uint64_t at_ns = labels_unwatched_ns(first + before - 1);
    if (at_ns > left_by_ns[before - 1].load()) ++others_time;
  });
  EXPECT_EQ(others_number, 0) << "of watchers that are leaving, with the number of the next ones";
  EXPECT_EQ(others_time, 0) << "of a later end than was asked for";
  EXPECT_EQ(label_watch().number - first, left_by_ns.size());
}

// In the child of a fork the labels of its parent's threads lie about as if they were open.
TEST_F(LabelTelling, OfAForksChildNoThreadsAreListedWhileOneMayBeItsParents) {
  auto inherited = std::make_unique<label>("tenant", "acme");
  begin();
  const pid_t child = ::fork();
  if (child == 0) {
    begin();
    const Trace before = Trace::of(teller_.opening());
    inherited.reset();
    const Trace after = Trace::of(teller_.opening());
    const auto lists = [](const Trace& trace) {
      return trace.numbers("LabelCoverageEvent", "lists_threads").at(0) != 0;
    };
    const bool is_silent = changes(before, this_tid(), 0).empty() &&
                           before.count("LabelChangeEvent") == 0 && !lists(before);
    ::_exit(!is_silent ? 1 : !lists(after) ? 2 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: it was told of; 2: its end was not seen";
}

// Nobody would see the thread's end: where all keys are taken, or the first 32 of them. Those of a
// process are taken at its first recorder, so this is one of its own: the same test, begun anew.
TEST(LabelsOfUnwatchedThreads, AreToldAsUnknownAndTheirTasksLabelsAreNot) {
  constexpr const char* kMark = "DIAL9_TEST_TAKES_KEYS";
  if (::getenv(kMark) == nullptr) {
    const std::string own = std::filesystem::read_symlink("/proc/self/exe");
    const std::string command =
        std::string(kMark) + "=1 '" + own + "' --gtest_filter='LabelsOfUnwatchedThreads.*'";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return;
  }
  for (pthread_key_t key = 0; ::pthread_key_create(&key, nullptr) == 0;) {
  }
  SteppedRecorder recorder(RecorderOptions::memory(kTestBudget), false);
  ASSERT_TRUE(watch_labels(LabelWatcher::kSwitches));
  std::uint32_t tid = 0;
  std::vector<OpenLabel> listed;
  std::thread([&] {
    tid = this_tid();
    const label of_thread("n", "thread");
    {
      const runtime::CurrentTask task({84, nullptr});
      const label of_task("n", "task");
    }
    EXPECT_TRUE(list_thread_labels(
        [](void* to, const OpenLabel& open) {
          static_cast<std::vector<OpenLabel>*>(to)->push_back(open);
          return true;
        },
        &listed));
  }).join();
  unwatch_labels(LabelWatcher::kSwitches);
  const Trace trace = recorder.read();
  EXPECT_EQ(changes(trace, tid, 0), "? ?");
  EXPECT_EQ(changes(trace, 0, 84), "task -");
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_FALSE(listed[0].is_known);
}

}  // namespace
}  // namespace dial9::internal
