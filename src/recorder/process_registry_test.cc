// Sources: on time, isolated, counted.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/process_registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <stdexcept>
#include <thread>

#include "dial9/event.h"
#include "dial9/source.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

DIAL9_EVENT(Sampled, (std::uint64_t, number));
using std::chrono::milliseconds;

class Sources : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"a", "b", "c", "good", "idle", "broken", "late", "many"}) {
      remove_source(name);
    }
  }
};

TEST_F(Sources, AreSampledWhenTheyAreDue) {
  SteppedRecorder recorder;
  std::uint64_t calls = 0;
  ASSERT_TRUE(add_source("a", milliseconds(100), [&] { record(Sampled{calls++}); }).ok());
  recorder.step();
  EXPECT_EQ(calls, 1U);
  recorder.advance(99 * kTestMs);
  recorder.step();
  EXPECT_EQ(calls, 1U);
  recorder.advance(1 * kTestMs);
  recorder.step();
  EXPECT_EQ(calls, 2U);
  recorder.advance(10 * kTestSecond);
  recorder.step();
  EXPECT_EQ(calls, 3U) << "missed periods are not made up for";
  EXPECT_EQ(recorder.read().count("Sampled"), 3U);
}

TEST_F(Sources, WakeTheCollectorOnTimeAlsoWhenItIsIdle) {
  SteppedRecorder recorder;
  for (int i = 0; i < 20; ++i) {
    recorder.advance(kTestSecond);
    recorder.step();
  }
  recorder.advance(kTestSecond);
  EXPECT_EQ(recorder->step(), 250 * kTestMs) << "nothing to do: four times a second";
  ASSERT_TRUE(add_source("a", milliseconds(20), [] {}).ok());
  EXPECT_EQ(recorder->step(), 20 * kTestMs);
}

TEST_F(Sources, ThatAreQuietDoNotWakeAnIdleCollector) {
  SteppedRecorder recorder;
  ASSERT_TRUE(add_paced_source("a", milliseconds(20), SourcePace::kWhileBusy, [] {}).ok());
  for (int i = 0; i < 20; ++i) {
    recorder.advance(kTestSecond);
    recorder.step();
  }
  recorder.advance(kTestSecond);
  EXPECT_EQ(recorder->step(), 250 * kTestMs);
  std::thread([] { record(Sampled{1}); }).join();
  EXPECT_LE(recorder->step(), 5 * kTestMs) << "the host records: soon again";
}

TEST_F(Sources, ThatThrowAreCountedAndSlowedDown) {
  SteppedRecorder recorder;
  const std::uint64_t before = recorder->status().source_failures;
  std::uint64_t good = 0;
  std::uint64_t bad = 0;
  ASSERT_TRUE(add_source("a", milliseconds(10), [&] {
                ++bad;
                throw std::runtime_error("broken");
              }).ok());
  ASSERT_TRUE(add_source("b", milliseconds(10), [&] { ++good; }).ok());
  for (int i = 0; i < 1000; ++i) {
    recorder.advance(10 * kTestMs);
    recorder.step();
  }
  EXPECT_EQ(good, 1000U) << "the other one is not held up";
  EXPECT_LT(bad, 100U);
  EXPECT_GT(bad, 20U);
  EXPECT_EQ(recorder->status().source_failures - before, bad);
}

TEST_F(Sources, ThatMakeNothingAreNamedWithTheReasonAlsoAtTheEnd) {
  SteppedRecorder recorder;
  ASSERT_TRUE(add_source("good", milliseconds(10), [] { record(Sampled{1}); }).ok());
  ASSERT_TRUE(add_source("idle", milliseconds(10), [] {}).ok());
  ASSERT_TRUE(add_source("broken", milliseconds(10), [] {
                throw std::runtime_error("no such file");
              }).ok());
  for (int i = 0; i < 5; ++i) {
    recorder.advance(10 * kTestMs);
    recorder.step();
  }
  ASSERT_TRUE(add_source("late", milliseconds(10), [] {}).ok());
  const auto expect_all = [](const std::vector<SourceStatus>& sources) {
    std::map<std::string, SourceStatus> by_name;
    for (const SourceStatus& source : sources) by_name[source.name] = source;
    EXPECT_EQ(by_name["good"].events, 5U);
    EXPECT_EQ(by_name["good"].reason, "");
    EXPECT_EQ(by_name["idle"].events, 0U);
    EXPECT_NE(by_name["idle"].reason.find("called 5 times"), std::string::npos);
    EXPECT_NE(by_name["broken"].reason.find("no such file"), std::string::npos);
    EXPECT_NE(by_name["late"].reason.find("not called yet"), std::string::npos);
  };
  expect_all(recorder->status().sources);
  const StopResult result = recorder->stop(std::chrono::seconds(10));
  expect_all(result.sources);
  EXPECT_NE(result.report().find("recorded 5 events, dropped 0\n"), std::string::npos)
      << result.report();
  EXPECT_NE(result.report().find("broken: 0 events: its callback threw: no such file, 5 times"),
            std::string::npos)
      << result.report();
  EXPECT_EQ(result.report().find("good"), std::string::npos);
}

TEST_F(Sources, CountTheirEventsAcrossChunksAndFromEachStartOn) {
  ASSERT_TRUE(add_source("many", milliseconds(10), [] {
                for (int i = 0; i < 20'000; ++i) record(Sampled{1});
              }).ok());
  for (std::uint64_t round = 1; round <= 2; ++round) {
    SteppedRecorder recorder;
    recorder.advance(round * kTestSecond);  // past its period on either's clock
    recorder.step();
    const std::uint64_t dropped = recorder->status().events_dropped;
    EXPECT_EQ(recorder->status().sources.at(0).events + dropped, 20'000U);
    EXPECT_GT(recorder->status().sources.at(0).events, 10'000U) << "more than a chunk holds";
  }
}

TEST_F(Sources, AreRefusedWithAReason) {
  EXPECT_FALSE(add_source("", milliseconds(10), [] {}).ok());
  EXPECT_FALSE(add_source("a", milliseconds(10), nullptr).ok());
  EXPECT_FALSE(add_source("a", std::chrono::microseconds(10), [] {}).ok());
  ASSERT_TRUE(add_source("a", milliseconds(10), [] {}).ok());
  const Status twice = add_source("a", milliseconds(10), [] {});
  EXPECT_NE(twice.message().find("'a'"), std::string::npos);
  EXPECT_TRUE(remove_source("a"));
  EXPECT_FALSE(remove_source("a"));
}

TEST_F(Sources, AreNotRunningOnceRemoved) {
  Status status;
  const auto core = RecorderCore::start(RecorderOptions::memory(4 << 20), {}, &status);
  ASSERT_TRUE(status.ok());
  std::promise<void> entered;
  std::promise<void> release;
  std::atomic<bool> is_first{true};
  std::atomic<bool> has_left{false};
  ASSERT_TRUE(add_source("a", milliseconds(1), [&] {
                if (!is_first.exchange(false)) return;
                entered.set_value();
                release.get_future().wait();
                has_left = true;
              }).ok());
  entered.get_future().wait();
  std::thread remover([&] {
    EXPECT_TRUE(remove_source("a"));
    EXPECT_TRUE(has_left.load());
  });
  release.set_value();
  remover.join();
  core->stop(std::chrono::seconds(60));
}

TEST_F(Sources, MayRemoveThemselves) {
  SteppedRecorder recorder;
  int calls = 0;
  ASSERT_TRUE(add_source("a", milliseconds(1), [&] {
                ++calls;
                EXPECT_TRUE(remove_source("a"));
              }).ok());
  for (int i = 0; i < 3; ++i) {
    recorder.advance(kTestSecond);
    recorder.step();
  }
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace dial9::internal
