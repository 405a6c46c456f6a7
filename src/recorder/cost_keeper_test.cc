// The governor's books across a rotation, which ends between two of its steps.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/cost_keeper.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace dial9::internal
