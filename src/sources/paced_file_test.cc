// SPDX-License-Identifier: Apache-2.0
#include "sources/paced_file.h"

#include <gtest/gtest.h>

#include "sources/testing/file_tree.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kUs = 1'000;
constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(Pace, WhatIsDearTwiceInARowIsDueSoSeldomThatItTakesAHundredThousandthOfTheTime) {
  Pace pace(kSecond);
  EXPECT_TRUE(pace.is_due(0)) << "at the start";
  pace.note(0, 300 * kUs);
  pace.note(10 * kSecond, 200 * kUs);
  EXPECT_FALSE(pace.is_due(30 * kSecond - 1));
  EXPECT_TRUE(pace.is_due(30 * kSecond));
}

TEST(Pace, OneInterruptionCountsForTenSecondsAndNotForHours) {
  Pace pace(kSecond);
  pace.note(0, 5 * kUs);
  pace.note(kSecond, 100'000 * kUs);
  EXPECT_FALSE(pace.is_due(11 * kSecond - 1));
  EXPECT_TRUE(pace.is_due(11 * kSecond));
  pace.note(11 * kSecond, 5 * kUs);
  EXPECT_TRUE(pace.is_due(12 * kSecond)) << "and is forgotten";
}

TEST(Pace, WhoLooksOnceAPeriodMayLookALittleEarly) {
  Pace pace(kSecond);
  pace.note(10 * kSecond, 0);
  EXPECT_FALSE(pace.is_due(10 * kSecond + kSecond / 2));
  EXPECT_TRUE(pace.is_due(11 * kSecond - kSecond / 100));
}

class PacedFileTest : public ::testing::Test {
 protected:
  void TearDown() override { close_kept_files(); }

  testing::FileTree tree_;
  const std::function<std::uint64_t()> clock_ = [] { return std::uint64_t{0}; };
};

TEST_F(PacedFileTest, OneThatIsNotThereIsLookedForEveryTenSecondsOnly) {
  PacedFile file(tree_.root() + "/a", kSecond);
  EXPECT_EQ(file.read_if_due(kSecond, clock_), "");
  tree_.write("/a", "5\n");
  EXPECT_FALSE(file.is_due(10 * kSecond));
  EXPECT_EQ(file.read_if_due(12 * kSecond, clock_), "5\n");
  EXPECT_EQ(file.read_if_due(13 * kSecond, clock_), "5\n") << "from then on each second";
}

TEST_F(PacedFileTest, OneWithoutAPathIsNeverDue) {
  EXPECT_FALSE(PacedFile("", kSecond).is_due(100 * kSecond));
}

TEST_F(PacedFileTest, OnlyWhatIsReadOftenKeepsADescriptor) {
  tree_.write("/a", "5\n");
  PacedFile file(tree_.root() + "/a", kSecond);
  EXPECT_EQ(file.read_if_due(kSecond, clock_), "5\n");
  EXPECT_EQ(kept_files_open(), 1U);
  file.set_period(PacedFile::kSeldomNs);
  EXPECT_EQ(file.read_if_due(2 * kSecond, clock_), "5\n");
  EXPECT_EQ(kept_files_open(), 0U);
  EXPECT_FALSE(file.is_due(11 * kSecond));
  EXPECT_TRUE(file.is_due(12 * kSecond));
  file.hurry();
  EXPECT_TRUE(file.is_due(3 * kSecond));
}

}  // namespace
}  // namespace dial9::internal
