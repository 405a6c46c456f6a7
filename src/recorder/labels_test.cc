// SPDX-License-Identifier: Apache-2.0
#include "recorder/labels.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dial9/runtime.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

std::string read(std::uint64_t task) {
  LabelText label;
  read_label(task, &label);
  if (!label.has_value()) return "";
  return std::string(label.name()) + "=" + std::string(label.value());
}

class Labels : public ::testing::Test {
 protected:
  SteppedRecorder recorder_;
};

TEST_F(Labels, AreThoseOfTheScopeTheInnermostFirst) {
  EXPECT_EQ(read(0), "");
  {
    const label outer("tenant", "acme");
    EXPECT_EQ(read(0), "tenant=acme");
    {
      const label inner("route", "/buy");
      EXPECT_EQ(read(0), "route=/buy");
    }
    EXPECT_EQ(read(0), "tenant=acme");
  }
  EXPECT_EQ(read(0), "");
}

TEST_F(Labels, BelongToTheTaskAndGoWithItToAnotherThread) {
  const runtime::CurrentTask task({71, nullptr});
  std::optional<label> open;
  open.emplace("tenant", "acme");
  EXPECT_EQ(read(71), "tenant=acme");
  EXPECT_EQ(read(72), "") << "another task of this thread";
  EXPECT_EQ(read(0), "") << "this thread outside tasks";
  std::thread([&] {
    EXPECT_EQ(read(71), "tenant=acme");
    open.reset();
  }).join();
  EXPECT_EQ(read(71), "");
}

TEST_F(Labels, OfAThreadHoldForItsTasksThatHaveNone) {
  const label of_thread("service", "checkout");
  const runtime::CurrentTask task({73, nullptr});
  EXPECT_EQ(read(73), "service=checkout");
  {
    const label of_task("tenant", "acme");
    EXPECT_EQ(read(73), "tenant=acme");
  }
  EXPECT_EQ(read(73), "service=checkout");
  std::thread([] { EXPECT_EQ(read(73), "") << "not this thread's"; }).join();
}

TEST_F(Labels, ThatEndOutOfOrderLeaveNoneRatherThanAWrongOne) {
  const runtime::CurrentTask task({74, nullptr});
  auto first = std::make_unique<label>("n", "first");
  auto second = std::make_unique<label>("n", "second");
  first.reset();
  EXPECT_EQ(read(74), "n=second");
  second.reset();
  EXPECT_EQ(read(74), "");
  const label third("n", "third");
  EXPECT_EQ(read(74), "n=third");
}

TEST_F(Labels, OfAThreadThatEndOnAnotherOneAreGone) {
  auto made = std::make_unique<label>("n", "here");
  std::thread([&] { made.reset(); }).join();
  EXPECT_EQ(read(0), "");
  const label next("n", "next");
  EXPECT_EQ(read(0), "n=next");
}

TEST_F(Labels, AreCutAtTheEndOfACharacter) {
  const std::string name(40, 'n');
  std::string value(78, 'v');
  value += "\xC3\xA4";  // two bytes, of which one would fit
  const label long_one(name, value);
  EXPECT_EQ(read(0), std::string(31, 'n') + "=" + std::string(78, 'v'));
}

TEST_F(Labels, WithoutANameAreNone) {
  const label none("", "x");
  EXPECT_EQ(read(0), "");
}

TEST_F(Labels, AreInertWhileRecordingIsOff) {
  recorder_->disable();
  const label off("tenant", "acme");
  EXPECT_EQ(read(0), "");
  recorder_->enable();
  EXPECT_EQ(read(0), "");
}

TEST_F(Labels, BeyondTheMostThatMayBeOpenAreCountedAndTheOthersStay) {
  const std::uint64_t before = labels_dropped();
  std::vector<std::unique_ptr<label>> open;
  for (std::size_t i = 0; i < kMaxOpenLabels + 1'000; ++i) {
    open.push_back(std::make_unique<label>("n", std::to_string(i)));
  }
  EXPECT_GE(labels_dropped() - before, 1'000U);
  while (!open.empty()) open.pop_back();
  const label next("n", "next");
  EXPECT_EQ(read(0), "n=next");
}

TEST_F(Labels, OfOneThreadFindRoomAcrossTheEndOfThePlaces) {
  for (int i = 0; i < 8; ++i) {  // every thread begins its search somewhere else
    const std::uint64_t before = labels_dropped();
    std::thread([] {
      std::vector<std::unique_ptr<label>> open;
      for (std::size_t n = 0; n < kMaxOpenLabels - 500; ++n) {
        open.push_back(std::make_unique<label>("n", "v"));
      }
    }).join();
    EXPECT_EQ(labels_dropped(), before);
  }
}

TEST_F(Labels, OfManyTasksAtATimeAreEachTheirOwnAndLeaveRoomForTheNext) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<label>> open;
    for (std::uint64_t i = 0; i < 2'000; ++i) {
      const runtime::CurrentTask task({1'000'000 + round * 2'000 + i, nullptr});
      open.push_back(std::make_unique<label>("task", std::to_string(i)));
    }
    for (std::uint64_t i = 0; i < 2'000; ++i) {
      EXPECT_EQ(read(1'000'000 + round * 2'000 + i), "task=" + std::to_string(i));
    }
  }
}

TEST_F(Labels, ReadWhileTheyChangeAreWholeOrNone) {
  std::atomic<bool> is_over{false};
  std::thread changer([&] {
    const runtime::CurrentTask task({75, nullptr});
    for (int i = 0; i < 50'000; ++i) {
      const label one(i % 2 == 0 ? "aaaa" : "bbbbbb", std::string(70, i % 2 == 0 ? 'a' : 'b'));
    }
    is_over = true;
  });
  while (!is_over) {
    const std::string seen = read(75);
    if (seen.empty()) continue;
    const bool is_a = seen == "aaaa=" + std::string(70, 'a');
    const bool is_b = seen == "bbbbbb=" + std::string(70, 'b');
    EXPECT_TRUE(is_a || is_b) << seen;
  }
  changer.join();
}

}  // namespace
}  // namespace dial9::internal
