// Which module an address belongs to while modules come and go, and where it isn't known.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/modules.h"

#include <gtest/gtest.h>

namespace dial9::analysis {
namespace {

constexpr NameId kRun = 1;
constexpr NameId kApp = 10;
constexpr NameId kOld = 11;
constexpr NameId kNew = 12;

class Table {
 public:
  // A set of the program and a library at 5,000.
  void set(const ModuleSetTimes& times, NameId library, NameId run = kRun) {
    modules.add(run, times, {1'000, 2'000, 1'000, kApp, 20});
    if (library != kNoName) modules.add(run, times, {5'000, 6'000, 5'000, library, 20});
  }
  // 0: in none, or not known.
  NameId at(std::uint64_t at_ns, std::uint64_t address, NameId run = kRun) const {
    const auto module = modules.at(run, at_ns, address);
    return module ? module->path : kNoName;
  }
  Modules modules;
};

ModuleSetTimes times(std::uint64_t epoch, std::uint64_t since_ns, std::uint64_t before_held_ns,
                     std::uint64_t seen_ns, bool only_added = false) {
  return {epoch, since_ns, before_held_ns, seen_ns, only_added};
}

TEST(Modules, TakesTheSetOfTheMoment) {
  Table table;
  table.set(times(1, 100, 0, 100), kOld);
  table.set(times(2, 300, 200, 300), kNew);
  table.modules.sort();
  EXPECT_EQ(table.at(50, 5'500), kOld) << "before the first look";
  EXPECT_EQ(table.at(150, 5'500), kOld);
  EXPECT_EQ(table.at(200, 5'500), kOld);
  EXPECT_EQ(table.at(300, 5'500), kNew);
  EXPECT_EQ(table.at(9'000, 5'500), kNew);
  EXPECT_EQ(table.at(300, 6'000), kNoName) << "beyond its end";
  EXPECT_EQ(table.at(300, 10), kNoName);
}

TEST(Modules, HasNoneWhereItMayBeOneOrTheOther) {
  Table table;
  table.set(times(1, 100, 0, 100), kOld);
  table.set(times(2, 300, 200, 300), kNew);
  table.modules.sort();
  EXPECT_EQ(table.at(250, 5'500), kNoName);
  EXPECT_EQ(table.at(250, 1'500), kApp) << "both say so";
}

TEST(Modules, TakesTheLaterSetAtOnceWhereNothingWasUnloaded) {
  Table table;
  table.set(times(1, 100, 0, 100), kNoName);
  table.set(times(2, 300, 200, 300, true), kNew);
  table.modules.sort();
  EXPECT_EQ(table.at(250, 5'500), kNew);
  EXPECT_EQ(table.at(200, 5'500), kNoName) << "the set before held then";
}

TEST(Modules, HasNoneWhereASetIsMissingInBetween) {
  Table table;
  table.set(times(1, 100, 0, 150), kOld);
  table.set(times(3, 300, 200, 300), kNew);
  table.modules.sort();
  EXPECT_EQ(table.at(150, 5'500), kOld) << "seen then";
  EXPECT_EQ(table.at(160, 5'500), kNoName);
  EXPECT_EQ(table.at(250, 1'500), kNoName);
  EXPECT_EQ(table.at(300, 5'500), kNew);
}

TEST(Modules, DoesNotGuessWhatCameBeforeTheFirstSetOfTheTrace) {
  Table table;
  table.set(times(7, 300, 200, 300), kNew);
  table.modules.sort();
  EXPECT_EQ(table.at(250, 5'500), kNoName);
  EXPECT_EQ(table.at(100, 1'500), kNoName);
  EXPECT_EQ(table.at(300, 5'500), kNew);
}

TEST(Modules, JoinsASetThatIsToldAgainAtEachSegment) {
  Table table;
  table.set(times(1, 100, 0, 100), kOld);
  table.set(times(1, 100, 0, 180), kOld);
  table.set(times(4, 300, 290, 300), kNew);
  table.modules.sort();
  EXPECT_EQ(table.at(180, 5'500), kOld);
  EXPECT_EQ(table.at(190, 5'500), kNoName);
}

TEST(Modules, KeepsProcessesApart) {
  Table table;
  table.set(times(1, 100, 0, 100), kOld, 1);
  table.set(times(1, 100, 0, 100), kNew, 2);
  table.modules.sort();
  EXPECT_EQ(table.at(150, 5'500, 1), kOld);
  EXPECT_EQ(table.at(150, 5'500, 2), kNew);
  EXPECT_EQ(table.at(150, 5'500, 3), kNoName);
}

TEST(Modules, AnswersAlikeWithinAStretch) {
  Table table;
  table.set(times(1, 100, 0, 150), kOld);
  table.set(times(2, 300, 200, 300), kNew);
  table.set(times(5, 700, 600, 700, true), kOld);
  table.modules.sort();
  for (std::uint64_t at_ns = 0; at_ns < 900; ++at_ns) {
    if (table.modules.stretch(kRun, at_ns) == table.modules.stretch(kRun, at_ns + 1)) {
      EXPECT_EQ(table.at(at_ns, 5'500), table.at(at_ns + 1, 5'500)) << at_ns;
    }
  }
}

}  // namespace
}  // namespace dial9::analysis
