// Two flame trees as one: each side by its own sum, nothing of either left out.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/flame_diff.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace dial9::analysis {
namespace {

void add(FlameTree& tree, const std::vector<std::string>& root_first, std::uint64_t weight) {
  std::vector<FrameId> frames;
  for (auto name = root_first.rbegin(); name != root_first.rend(); ++name) {
    frames.push_back(tree.frame(*name));
  }
  tree.add(frames, weight);
}

TEST(FlameDiff, ALongerStretchIsNoDifference) {
  FlameTree before(FlameUnit::kNs);
  FlameTree after(FlameUnit::kNs);
  for (const auto& [tree, factor] : {std::pair{&before, 1U}, std::pair{&after, 10U}}) {
    add(*tree, {"main", "a"}, 3 * factor);
    add(*tree, {"main", "b"}, factor);
  }
  const FlameDiff diff = flame_diff(before, after);
  for (const FlameDiffFunction& function : diff.functions) {
    EXPECT_EQ(share_change(function.self, diff.whole), 0);
    EXPECT_EQ(share_change(function.total, diff.whole), 0);
  }
  EXPECT_EQ(diff.whole.before, 4U);
  EXPECT_EQ(diff.whole.after, 40U);
}

TEST(FlameDiff, ATreeWithoutSamplesHasTheOthersUnit) {
  FlameTree before(FlameUnit::kNs);
  add(before, {"main"}, 40);
  EXPECT_EQ(flame_diff(before, FlameTree(FlameUnit::kCount)).unit, FlameUnit::kNs);
  EXPECT_EQ(flame_diff(FlameTree(FlameUnit::kCount), before).unit, FlameUnit::kNs);
}

TEST(FlameDiff, WhatIsNewAndWhatIsGoneBothHaveTheirWidth) {
  FlameTree before(FlameUnit::kNs);
  add(before, {"main", "old"}, 100);
  add(before, {"main", "same"}, 100);
  FlameTree after(FlameUnit::kNs);
  add(after, {"main", "same"}, 10);
  add(after, {"main", "new"}, 30);
  const FlameDiff diff = flame_diff(before, after);
  EXPECT_EQ(flame_diff_folded(diff), "main;new 0 30\nmain;same 100 10\nmain;old 100 0\n");
  std::map<std::string, double> width;
  for (const FlameNode& node : diff.tree.nodes()) {
    width[std::string(diff.tree.name(node.frame))] =
        static_cast<double>(node.total) / static_cast<double>(2 * kDiffSide);
  }
  EXPECT_NEAR(width["old"], 0.25, 1e-9);
  EXPECT_NEAR(width["same"], 0.375, 1e-9);
  EXPECT_NEAR(width["new"], 0.375, 1e-9);
  EXPECT_NEAR(width["main"], 1, 1e-9);
  EXPECT_EQ(diff.tree.name(diff.functions[0].frame), "new") << "the largest change first";
}

// Slow reference: each side's tree by itself.
TEST(FlameDiff, EachSideIsWhatItsOwnTreeTells) {
  std::minstd_rand random(5);
  FlameTree trees[] = {FlameTree(FlameUnit::kCount), FlameTree(FlameUnit::kCount)};
  for (int i = 0; i < 2'000; ++i) {
    std::vector<std::string> stack;
    for (auto depth = 1 + random() % 5; depth != 0; --depth) {
      stack.push_back("f" + std::to_string(random() % 4));
    }
    add(trees[random() % 2], stack, random() % 9 + 1);
  }
  const FlameDiff diff = flame_diff(trees[0], trees[1]);
  for (std::size_t side = 0; side < 2; ++side) {
    const auto of = side == 0 ? &FlameSides::before : &FlameSides::after;
    std::map<std::string, std::uint64_t> own;
    for (const FlameFunction& function : trees[side].functions()) {
      own[std::string(trees[side].name(function.frame))] = function.total;
    }
    for (const FlameDiffFunction& function : diff.functions) {
      EXPECT_EQ(function.total.*of, own[std::string(diff.tree.name(function.frame))]);
    }
    EXPECT_EQ(diff.total[0].*of, trees[side].total());
    std::uint64_t self = 0;
    for (const FlameSides& sides : diff.self) self += sides.*of;
    EXPECT_EQ(self, trees[side].total());
  }
}

TEST(FlameDiff, KeepsWhatABoundLeftOutOfASide) {
  FlameTree before(FlameUnit::kCount, false, {.max_nodes = 2});
  add(before, {"main", "a"}, 5);
  FlameTree after(FlameUnit::kCount);
  add(after, {"main", "a"}, 5);
  EXPECT_EQ(flame_diff_folded(flame_diff(before, after)), "main;[left out] 5 0\nmain;a 0 5\n");
}

TEST(FlameDiff, NamesTheNodesOfWhatABoundLeftOut) {
  FlameTree before(FlameUnit::kCount, false, {.max_nodes = 2});
  add(before, {"main", "a"}, 5);
  add(before, {"other"}, 2);
  FlameTree after(FlameUnit::kCount);
  add(after, {"main", "a"}, 5);
  const FlameDiff diff = flame_diff(before, after);
  const std::string json = flame_diff_json(diff, {});
  EXPECT_EQ(json.find("\"function\": null"), json.rfind("\"function\": null"))
      << "only all has no function\n"
      << json;
  EXPECT_NE(json.find("\"name\": \"[left out]\", \"module\": \"\", \"self\": [0, 0], "
                      "\"total\": [7, 0]"),
            std::string::npos)
      << json;
  std::uint64_t self = 0;
  for (const FlameDiffFunction& function : diff.functions) self += function.self.before;
  EXPECT_EQ(self, diff.whole.before) << "nothing twice";
}

TEST(FlameDiff, OfTwoBuildsAFunctionIsTheSameWhereverItIsWritten) {
  FlameTree before(FlameUnit::kCount);
  before.add(std::vector{before.frame("pay", "shop", "pay.cc", 10), before.frame("main", "shop")},
             4);
  FlameTree after(FlameUnit::kCount);
  after.add(std::vector{after.frame("pay", "shop", "pay.cc", 12), after.frame("main", "shop")}, 4);
  const std::string by_place = flame_diff_folded(flame_diff(before, after));
  EXPECT_NE(by_place.find("main;pay 4 0\n"), std::string::npos) << by_place;
  EXPECT_NE(by_place.find("main;pay 0 4\n"), std::string::npos) << by_place;
  EXPECT_EQ(flame_diff_folded(flame_diff(before, after, FlameMatch::kName)), "main;pay 4 4\n");
}

TEST(FlameDiff, FunctionsThatAreTakenTogetherCountAStackOfBothOnce) {
  FlameTree trees[] = {FlameTree(FlameUnit::kCount), FlameTree(FlameUnit::kCount)};
  for (FlameTree& tree : trees) {
    const FrameId one = tree.frame("operator()", "shop", "a.cc", 1);
    const FrameId two = tree.frame("operator()", "shop", "a.cc", 2);
    const FrameId main = tree.frame("main", "shop");
    tree.add(std::vector{two, one, main}, 5);
    tree.add(std::vector{two, main}, 3);
    tree.add(std::vector{main}, 2);
  }
  const FlameDiff diff = flame_diff(trees[0], trees[1], FlameMatch::kName);
  for (const FlameDiffFunction& function : diff.functions) {
    if (diff.tree.name(function.frame) != "operator()") continue;
    EXPECT_EQ(function.self.after, 8U);
    EXPECT_EQ(function.total.after, 8U) << "not 13";
    EXPECT_EQ(function.total.before, 8U);
  }
  EXPECT_EQ(diff.functions.size(), 2U);
}

TEST(FlameDiff, IsUncertainWhereEitherSideIs) {
  FlameTree tree(FlameUnit::kCount);
  add(tree, {"main"}, 1);
  FlameDiffHeading heading;
  EXPECT_NE(flame_diff_json(flame_diff(tree, tree), heading).find("\"uncertain\": false"),
            std::string::npos);
  heading.before.is_uncertain = true;
  EXPECT_NE(flame_diff_json(flame_diff(tree, tree), heading).find("\"uncertain\": true"),
            std::string::npos);
}

TEST(FlameDiff, OfNothingHasNoShares) {
  FlameTree before(FlameUnit::kNs);
  FlameTree after(FlameUnit::kNs);
  add(after, {"main"}, 7);
  const FlameDiff diff = flame_diff(before, after);
  EXPECT_EQ(flame_diff_folded(diff), "main 0 7\n");
  EXPECT_NE(flame_diff_text(diff, {}, 10).find("+100 %            -        100 %"),
            std::string::npos)
      << flame_diff_text(diff, {}, 10);
  EXPECT_EQ(flame_diff_folded(flame_diff(before, before)), "");
}

TEST(FlameDiff, SaysWhatItComparesInEachForm) {
  FlameTree before(FlameUnit::kNs);
  add(before, {"main", "a"}, 1'000'000);
  FlameTree after(FlameUnit::kNs);
  add(after, {"main", "a"}, 1'000'000);
  add(after, {"main", "b"}, 3'000'000);
  const FlameDiff diff = flame_diff(before, after);
  const FlameDiffHeading heading{{.title = "CPU time", .notes = {"a note"}},
                                 {.title = "CPU time", .notes = {"another"}},
                                 "old.bin",
                                 {"of both"}};
  EXPECT_EQ(flame_diff_text(diff, heading, 1),
            "CPU time: 4.00 ms in 2 samples; before, old.bin: 1.00 ms in 1 sample\n"
            "percents are of each side's own sum\n"
            "of both\n"
            "a note\n"
            "before: another\n"
            "\n"
            "         self       before          now        total       before          now"
            "  function\n"
            "      -75.0 %        100 %       25.0 %      -75.0 %        100 %       25.0 %  a\n"
            "and 2 functions that changed less (--limit)\n");
  const std::string json = flame_diff_json(diff, heading);
  EXPECT_NE(json.find("\"whole\": [1000000, 4000000]"), std::string::npos) << json;
  EXPECT_NE(json.find("\"name\": \"b\", \"module\": \"\", \"self\": [0, 3000000]"),
            std::string::npos)
      << json;
  EXPECT_NE(json.find("\"notes_compared\": [\"of both\"]"), std::string::npos) << json;
  const std::string svg = flame_diff_svg(diff, heading);
  EXPECT_NE(svg.find("a: before 1.00 ms, 100 %; now 1.00 ms, 25.0 %"), std::string::npos) << svg;
  EXPECT_NE(svg.find("red grew, blue shrank"), std::string::npos);
}

}  // namespace
}  // namespace dial9::analysis
