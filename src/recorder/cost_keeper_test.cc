// The governor's books across a rotation, which ends between two of its steps.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/cost_keeper.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "recorder/shedding.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

constexpr GovernorBudget kBudget{0, 1e6};

// A keeper on a clock of its own; every event takes 100 bytes.
class Books {
 public:
  Books() : keeper_(kBudget, {}, [this] { return reading_.now_ns; }, raises_) {
    reading_.now_ns = kTestSecond;
    keeper_.step(reading_);
  }
  void work(std::uint64_t events) {
    for (std::uint64_t i = 0; i < events; ++i) {
      const bool keeps = !is_shedding() || keeps_unit(ShedClass::kEvents, 0);
      reading_.events += keeps ? 1 : 0;
      reading_.bytes += keeps ? 100 : 0;
    }
    reading_.now_ns += kGovernorPeriodNs;
  }
  void step() { keeper_.step(reading_); }
  void rotate() { keeper_.finish(reading_); }
  void take(std::uint64_t& kept, std::uint64_t& shed) {
    const Trace trace = Trace::of(keeper_.take_report());
    for (const std::uint64_t n : trace.numbers("RecorderShedEvent", "kept")) kept += n;
    for (const std::uint64_t n : trace.numbers("RecorderShedEvent", "shed")) shed += n;
  }
  CostBill bill() const { return keeper_.bill(); }
  // As a thread does whose chunk is full.
  void raise(double keep_one_in) {
    KeepOneIn keep = kKeepAll;
    keep[0] = keep_one_in;
    raises_.list[raises_.count++] = {reading_.now_ns, keep, shed_counts()};
    publish_shedding(keep, true);
  }
  // From when to when rates of events are told: by the keeper since the last call, and by what a
  // kill would leave in the arena. Told twice alike is once.
  std::set<std::pair<std::uint64_t, std::uint64_t>> windows() {
    std::set<std::pair<std::uint64_t, std::uint64_t>> found;
    const Trace trace = Trace::of(keeper_.take_report());
    const auto since = trace.numbers("RecorderShedEvent", "since_ns");
    const auto at = trace.stamps("RecorderShedEvent");
    const auto classes = trace.texts("RecorderShedEvent", "class");
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (classes[i] == "events") found.emplace(since[i], at[i]);
    }
    for (const ShedRate& rate : rates_of(raises_)) {
      if (rate.shed_class == 0) found.emplace(rate.since_ns, rate.at_ns);
    }
    return found;
  }

 private:
  // Shedding marks an open epoch; this one's collector has no books of its own.
  SteppedRecorder recorder_{RecorderOptions::memory(kTestBudget), false};
  CostReading reading_;
  ShedRaises raises_;
  CostKeeper keeper_;
};

// Ten times the budget.
constexpr std::uint64_t kLoad = 10'000;

TEST(CostKeeper, TellsOfEveryUnitOnceWhereARotationFallsBetweenTwoSteps) {
  Books books;
  const ShedCounts before = shed_counts();
  std::uint64_t kept = 0;
  std::uint64_t shed = 0;
  for (int period = 0; period < 20; ++period) {
    books.work(kLoad);
    if (period % 3 == 1) books.rotate();
    books.take(kept, shed);
    books.step();
    books.take(kept, shed);
  }
  books.rotate();
  books.take(kept, shed);
  const ShedCounts all = shed_counts().since(before);
  EXPECT_GT(all.shed[0], 0U);
  EXPECT_EQ(kept, all.kept[0]);
  EXPECT_EQ(shed, all.shed[0]);
  publish_shedding(kKeepAll, false);
}

TEST(CostKeeper, DecidesByAllThatHappenedSinceItsLastStepWhateverIsRotatedMeanwhile) {
  const auto rate_after = [](bool rotates) {
    Books books;
    for (int period = 0; period < 30; ++period) {
      books.work(kLoad);
      if (rotates) books.rotate();
      books.step();
    }
    const double rate = books.bill().keep_one_in[0];
    publish_shedding(kKeepAll, false);
    return rate;
  };
  const double undisturbed = rate_after(false);
  EXPECT_GT(undisturbed, 2);
  // Which units are kept is drawn anew in each run.
  EXPECT_NEAR(rate_after(true), undisturbed, undisturbed / 10);
}

void expect_no_overlap(const std::set<std::pair<std::uint64_t, std::uint64_t>>& windows) {
  std::uint64_t end_ns = 0;
  for (const auto& [since_ns, at_ns] : windows) {
    EXPECT_GE(since_ns, end_ns);
    end_ns = at_ns;
  }
}

TEST(CostKeeper, WhatThreadsTellFollowsWhatItHasToldItself) {
  Books books;
  for (int period = 0; period < 5; ++period) {
    books.work(kLoad);
    books.step();
  }
  books.windows();
  books.work(kLoad);
  books.rotate();  // no step of its own
  books.work(kLoad);
  books.raise(64);
  const auto after_rotation = books.windows();
  EXPECT_EQ(after_rotation.size(), 2U);
  expect_no_overlap(after_rotation);
  books.work(kLoad);
  books.step();  // the raise that it takes is still in the arena
  books.work(kLoad);
  books.raise(128);
  const auto after_step = books.windows();
  EXPECT_EQ(after_step.size(), 3U);
  expect_no_overlap(after_step);
  publish_shedding(kKeepAll, false);
}

}  // namespace
}  // namespace dial9::internal
