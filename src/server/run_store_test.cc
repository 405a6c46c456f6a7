// SPDX-License-Identifier: Apache-2.0
#include "server/run_store.h"

#include <gtest/gtest.h>

#include <future>
#include <new>

#include "server/testing/sample_runs.h"

namespace dial9::server {
namespace {

using testing::MemoryRuns;
using testing::sample_trace;

// A store over runs "a", "b" and "c", with the source still at hand.
struct Stored {
  explicit Stored(std::size_t budget_bytes = std::size_t{1} << 30) {
    auto source = std::make_unique<MemoryRuns>();
    runs = source.get();
    for (const char* id : {"a", "b", "c"}) source->add(id, sample_trace());
    store = std::make_unique<RunStore>(std::move(source), StoreOptions{budget_bytes});
  }
  RunState load(const std::string& id) {
    EXPECT_TRUE(store->open(id));
    store->wait_idle();
    return store->status(id)->state;
  }
  MemoryRuns* runs;
  std::unique_ptr<RunStore> store;
};

TEST(RunStore, LoadsARunAndTellsHowFarItWas) {
  Stored stored;
  EXPECT_EQ(stored.store->status("a")->state, RunState::kClosed);
  EXPECT_EQ(stored.load("a"), RunState::kReady);
  const auto status = *stored.store->status("a");
  EXPECT_EQ(status.bytes_done, status.bytes_total);
  EXPECT_GT(status.events, 0u);
  ASSERT_TRUE(stored.store->get("a"));
  EXPECT_EQ(stored.store->get("a")->generation(), status.generation);
}

TEST(RunStore, KnowsOnlyRunsOfItsList) {
  Stored stored;
  for (const char* id : {"d", "", "../a", "a/../b", "/etc/passwd"}) {
    EXPECT_EQ(stored.store->open(id).error().code, ErrorCode::kNotFound) << id;
    EXPECT_EQ(stored.store->status(id).error().code, ErrorCode::kNotFound) << id;
    EXPECT_EQ(stored.store->close(id).error().code, ErrorCode::kNotFound) << id;
  }
}

TEST(RunStore, OpensAnOpenRunOnlyOnce) {
  Stored stored;
  stored.load("a");
  const auto generation = stored.store->get("a")->generation();
  EXPECT_EQ(stored.load("a"), RunState::kReady);
  EXPECT_EQ(stored.store->get("a")->generation(), generation);
}

TEST(RunStore, LoadsAnewWhatHasGrown) {
  Stored stored;
  stored.load("a");
  const auto generation = stored.store->get("a")->generation();
  auto more = sample_trace();
  const auto again = sample_trace();
  more.insert(more.end(), again.begin(), again.end());
  stored.runs->add("a", more);
  EXPECT_EQ(stored.load("a"), RunState::kReady);
  EXPECT_GT(stored.store->get("a")->generation(), generation);
}

TEST(RunStore, CancelsALoadInTheMiddle) {
  Stored stored;
  std::promise<void> started;
  std::promise<void> go_on;
  bool is_first = true;
  stored.runs->before_chunk = [&] {
    if (!std::exchange(is_first, false)) return;
    started.set_value();
    go_on.get_future().wait();
  };
  ASSERT_TRUE(stored.store->open("a"));
  started.get_future().wait();
  EXPECT_EQ(stored.store->status("a")->state, RunState::kLoading);
  EXPECT_EQ(stored.store->get("a"), nullptr);
  EXPECT_EQ(stored.store->close("a")->state, RunState::kCancelled);
  go_on.set_value();
  stored.store->wait_idle();
  EXPECT_EQ(stored.store->status("a")->state, RunState::kCancelled);
  EXPECT_EQ(stored.store->get("a"), nullptr);
  EXPECT_EQ(stored.load("a"), RunState::kReady);
}

TEST(RunStore, EndsWhileALoadIsUnderWay) {
  Stored stored;
  std::promise<void> started;
  bool is_first = true;
  stored.runs->before_chunk = [&] {
    if (std::exchange(is_first, false)) started.set_value();
  };
  ASSERT_TRUE(stored.store->open("a"));
  ASSERT_TRUE(stored.store->open("b"));
  started.get_future().wait();
  stored.store.reset();
}

TEST(RunStore, SaysWhyARunCannotBeRead) {
  Stored stored;
  stored.runs->break_run("a", "the disk is gone");
  EXPECT_EQ(stored.load("a"), RunState::kFailed);
  EXPECT_EQ(stored.store->status("a")->error, "the disk is gone");
}

TEST(RunStore, SurvivesALoadThatFindsNoMemory) {
  Stored stored;
  stored.runs->before_chunk = [] { throw std::bad_alloc(); };
  EXPECT_EQ(stored.load("a"), RunState::kFailed);
  EXPECT_NE(stored.store->status("a")->error.find("out of memory"), std::string::npos);
  stored.runs->before_chunk = nullptr;
  EXPECT_EQ(stored.load("b"), RunState::kReady);
}

TEST(RunStore, SaysSoWhenAFileIsNoTrace) {
  Stored stored;
  stored.runs->add("a", {'n', 'o', 't', ' ', 'a', ' ', 't', 'r', 'a', 'c', 'e'});
  EXPECT_EQ(stored.load("a"), RunState::kFailed);
  EXPECT_NE(stored.store->status("a")->error.find("a.bin"), std::string::npos);
}

TEST(RunStore, KeepsWhatATruncatedRunHeld) {
  Stored stored;
  auto bytes = sample_trace();
  bytes.erase(bytes.end() - 3, bytes.end());
  stored.runs->add("a", bytes);
  EXPECT_EQ(stored.load("a"), RunState::kReady);
  EXPECT_TRUE(stored.store->get("a")->trace().is_truncated());
}

TEST(RunStore, ForgetsTheLeastRecentlyUsedRunOverItsBudget) {
  Stored measure;
  measure.load("a");
  const std::size_t one = measure.store->get("a")->bytes();
  Stored stored(one * 5 / 2);
  stored.load("a");
  stored.load("b");
  ASSERT_TRUE(stored.store->get("a"));  // now "b" is the one that was used least recently
  EXPECT_EQ(stored.load("c"), RunState::kReady);
  EXPECT_EQ(stored.store->status("b")->state, RunState::kClosed);
  EXPECT_TRUE(stored.store->get("a"));
  EXPECT_EQ(stored.load("b"), RunState::kReady);
}

TEST(RunStore, ForgetsRunsWhileAnotherIsLoadedAndNotAfterIt) {
  const auto bytes = testing::dense_trace(20'000);
  const std::size_t one = testing::load_run(bytes)->bytes();
  Stored stored(one * 3);
  for (const char* name : {"a", "b", "c"}) stored.runs->add(name, bytes);
  stored.load("a");
  stored.load("b");
  ASSERT_EQ(stored.store->state("a"), RunState::kReady);
  ASSERT_EQ(stored.store->state("b"), RunState::kReady);
  int ready = 2;
  stored.runs->before_chunk = [&] {
    ready = (stored.store->state("a") == RunState::kReady ? 1 : 0) +
            (stored.store->state("b") == RunState::kReady ? 1 : 0);
  };
  EXPECT_EQ(stored.load("c"), RunState::kReady);
  EXPECT_LE(ready, 1);  // at the last chunk
}

TEST(RunStore, LeavesARunAliveForWhoStillHoldsIt) {
  Stored stored;
  stored.load("a");
  const auto held = stored.store->get("a");
  EXPECT_EQ(stored.store->close("a")->state, RunState::kClosed);
  EXPECT_EQ(stored.store->get("a"), nullptr);
  EXPECT_GT(held->trace().events, 0u);
}

}  // namespace
}  // namespace dial9::server
