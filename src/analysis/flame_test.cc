// SPDX-License-Identifier: Apache-2.0
#include "analysis/flame.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace dial9::analysis {
namespace {

class Stacks {
 public:
  explicit Stacks(FlameTree& tree) : tree_(tree) {}
  void add(const std::vector<std::string>& root_first, std::uint64_t weight,
           std::uint64_t count = 1) {
    std::vector<FrameId> frames;
    for (auto name = root_first.rbegin(); name != root_first.rend(); ++name) {
      frames.push_back(tree_.frame(*name, "app"));
    }
    tree_.add(frames, weight, count);
  }

 private:
  FlameTree& tree_;
};

std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> table(const FlameTree& tree) {
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> by_name;
  for (const FlameFunction& function : tree.functions()) {
    by_name[std::string(tree.name(function.frame))] = {function.self, function.total};
  }
  return by_name;
}

TEST(FlameTree, FoldsStacksByTheirWeightsRootFirst) {
  FlameTree tree(FlameUnit::kCount);
  Stacks stacks(tree);
  stacks.add({"main", "run", "hash"}, 1);
  stacks.add({"main", "run", "hash"}, 4);
  stacks.add({"main", "run"}, 2);
  EXPECT_EQ(tree.total(), 7U);
  EXPECT_EQ(tree.count(), 3U);
  EXPECT_EQ(flame_folded(tree), "main;run 2\nmain;run;hash 5\n");
}

TEST(FlameTree, InvertedGoesFromTheLeafToItsCallers) {
  FlameTree tree(FlameUnit::kCount, true);
  Stacks stacks(tree);
  stacks.add({"main", "a", "hash"}, 1);
  stacks.add({"main", "b", "hash"}, 4);
  EXPECT_EQ(flame_folded(tree), "hash;b;main 4\nhash;a;main 1\n");
  EXPECT_EQ(table(tree)["hash"], (std::pair<std::uint64_t, std::uint64_t>{5, 5}));
  EXPECT_EQ(table(tree)["b"], (std::pair<std::uint64_t, std::uint64_t>{0, 4}))
      << "self is the leaf's, whichever way the tree stands";
}

TEST(FlameTree, CountsAFunctionThatCallsItselfOnceAStack) {
  FlameTree tree(FlameUnit::kNs);
  Stacks stacks(tree);
  stacks.add({"main", "walk", "walk", "walk"}, 3);
  EXPECT_EQ(table(tree)["walk"], (std::pair<std::uint64_t, std::uint64_t>{3, 3}));
  EXPECT_EQ(table(tree)["main"], (std::pair<std::uint64_t, std::uint64_t>{0, 3}));
}

TEST(FlameTree, KeepsFunctionsOfOneNameInTwoModulesApart) {
  FlameTree tree(FlameUnit::kCount);
  const FrameId one = tree.frame("init", "liba.so");
  const FrameId other = tree.frame("init", "libb.so");
  EXPECT_NE(one, other);
  EXPECT_EQ(tree.frame("init", "liba.so"), one);
}

TEST(FlameTree, ShowsStacksWithoutFramesAndWithoutOuterFramesAsSuch) {
  FlameTree tree(FlameUnit::kCount);
  tree.add({}, 2);
  const FrameId leaf = tree.frame("hash");
  tree.add(std::span(&leaf, 1), 3, 1, {.is_truncated = true});
  EXPECT_EQ(flame_folded(tree), "[outer frames missing];hash 3\n[no stack] 2\n");
  EXPECT_EQ(tree.truncated(), 3U);
  EXPECT_NE(flame_text(tree, {.title = "CPU"}, 10).find("60.0 % in stacks whose outer frames"),
            std::string::npos);
}

// The slow reference: every stack by itself.
TEST(FlameTree, AgreesWithCountingEachStackByItself) {
  std::minstd_rand random(7);
  FlameTree tree(FlameUnit::kCount);
  Stacks stacks(tree);
  std::map<std::string, std::uint64_t> folded;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> functions;
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::string> stack;
    std::string path;
    for (auto depth = 1 + random() % 6; depth != 0; --depth) {
      stack.push_back("f" + std::to_string(random() % 5));
      path += (path.empty() ? "" : ";") + stack.back();
    }
    const std::uint64_t weight = random() % 9 + 1;
    stacks.add(stack, weight);
    folded[path] += weight;
    functions[stack.back()].first += weight;
    for (const std::string& name : std::set<std::string>(stack.begin(), stack.end())) {
      functions[name].second += weight;
    }
  }
  EXPECT_EQ(table(tree), functions);
  std::map<std::string, std::uint64_t> found;
  const std::string text = flame_folded(tree);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::size_t space = text.rfind(' ', end);
    found[text.substr(at, space - at)] = std::stoull(text.substr(space + 1, end - space - 1));
    at = end + 1;
  }
  EXPECT_EQ(found, folded);
}

TEST(FlameTree, CountsWhatItsBoundsLeaveOut) {
  FlameTree tree(FlameUnit::kCount, false, {.max_nodes = 4, .max_frames = 3});
  Stacks stacks(tree);
  for (int i = 0; i < 10; ++i) {
    stacks.add({"main", "f" + std::to_string(i)}, 1);
  }
  EXPECT_EQ(tree.total(), 10U);
  EXPECT_LE(tree.nodes().size(), 4U);
  EXPECT_EQ(flame_folded(tree), "main;[left out] 8\nmain;f0 1\nmain;f1 1\n")
      << "a name or a node that has no room is nobody else's";
  std::uint64_t self = 0;
  for (const FlameFunction& function : tree.functions()) {
    self += function.self;
  }
  EXPECT_EQ(self, 10U);
}

TEST(FlameTree, BoundsTheDepthAndSaysWhatIsBelow) {
  FlameTree tree(FlameUnit::kCount, false, {.max_depth = 3});
  const FrameId frame = tree.frame("walk");
  tree.add(std::vector<FrameId>(100'000, frame), 5);
  EXPECT_EQ(tree.nodes().size(), 4U);
  EXPECT_EQ(tree.left_out(), 5U);
  EXPECT_EQ(flame_folded(tree), "walk;walk;walk;[left out] 5\n");
}

TEST(FlameTree, AGroupStandsNextToTheRootWhicheverWayTheTreeStands) {
  for (const bool is_inverted : {false, true}) {
    FlameTree tree(FlameUnit::kCount, is_inverted);
    const FrameId main = tree.frame("main");
    const FrameId read = tree.frame("read");
    const FrameId group = tree.frame("[socket]");
    const FrameId stack[] = {read, main};
    tree.add(stack, 3, 1, {.is_truncated = true, .group = group});
    EXPECT_EQ(flame_folded(tree), is_inverted ? "[socket];read;main;[outer frames missing] 3\n"
                                              : "[socket];[outer frames missing];main;read 3\n");
    EXPECT_EQ(table(tree)["read"].first, 3U) << "the leaf is the stack's";
    EXPECT_EQ(table(tree)["[socket]"], (std::pair<std::uint64_t, std::uint64_t>{0, 3}));
  }
}

// Slow reference: each stack's place is the sum of those before it.
TEST(FlameTree, InTheOrderOfTimeOnlyNeighboursAreOne) {
  FlameTree tree(FlameUnit::kNs, false, {}, FlameOrder::kTime);
  Stacks stacks(tree);
  stacks.add({"main", "a", "x"}, 2);
  stacks.add({"main", "a", "x"}, 1);
  stacks.add({"main", "b"}, 4);
  stacks.add({"main", "a", "x"}, 8);
  stacks.add({"main", "a"}, 16);
  stacks.add({"main", "a", "x"}, 32);
  std::string text;
  for (const FlameRow& row : flame_rows(tree, 100)) {
    const FlameNode& node = tree.nodes()[row.node];
    text += std::string(node.depth, ' ') + std::string(tree.name(node.frame)) + " " +
            std::to_string(row.start) + "+" + std::to_string(node.total) + "\n";
  }
  EXPECT_EQ(text,
            " 0+63\n"
            " main 0+63\n"
            "  a 0+3\n"
            "   x 0+3\n"
            "  b 3+4\n"
            "  a 7+56\n"
            "   x 7+8\n"
            "   x 31+32\n");
  EXPECT_EQ(table(tree)["x"], (std::pair<std::uint64_t, std::uint64_t>{43, 43}));
}

TEST(FlameTree, InTheOrderOfTimeKeepsItsBoundsAndItsSum) {
  FlameTree tree(FlameUnit::kCount, false, {.max_nodes = 5, .max_depth = 3}, FlameOrder::kTime);
  Stacks stacks(tree);
  for (int i = 0; i < 10; ++i) {
    stacks.add({"main", i % 2 == 0 ? "a" : "b", "c", "d"}, 1);
  }
  EXPECT_LE(tree.nodes().size(), 5U);
  EXPECT_EQ(tree.total(), 10U);
  EXPECT_EQ(tree.left_out(), 10U) << "none is whole";
}

TEST(FlameTree, ANameThatATreeHasCutIsNotCutAgain) {
  FlameTree tree(FlameUnit::kCount, false, {.max_name_bytes = 16});
  const FrameId cut = tree.frame(std::string(100, 'x'));
  EXPECT_EQ(tree.frame(tree.name(cut)), cut);
}

TEST(FlameTree, CutsLongNamesAndStillTellsThemApart) {
  FlameTree tree(FlameUnit::kCount, false, {.max_name_bytes = 16});
  const std::string begin(100'000, 'x');
  const FrameId one = tree.frame(begin + "1");
  const FrameId other = tree.frame(begin + "2");
  EXPECT_NE(one, other);
  EXPECT_LT(tree.name(one).size(), 64U);
  EXPECT_EQ(tree.frame(begin + "1"), one);
}

TEST(FlameTree, StopsAtTheLargestSum) {
  FlameTree tree(FlameUnit::kBytes);
  Stacks stacks(tree);
  stacks.add({"a"}, ~std::uint64_t{0} - 1);
  stacks.add({"b"}, ~std::uint64_t{0});
  EXPECT_EQ(tree.total(), ~std::uint64_t{0});
  EXPECT_EQ(table(tree)["b"].first, 1U);
}

TEST(FlameRows, KeepsTheHeaviestAndSaysWhatIsLeftOut) {
  FlameTree tree(FlameUnit::kCount);
  Stacks stacks(tree);
  stacks.add({"main", "heavy", "leaf"}, 10);
  stacks.add({"main", "light"}, 2);
  stacks.add({"main", "feather"}, 1);
  const auto rows = flame_rows(tree, 4);  // all, main, heavy, leaf
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(tree.name(tree.nodes()[rows[2].node].frame), "heavy");
  EXPECT_EQ(rows[1].left_out, 3U);
  const auto all = flame_rows(tree, 100);
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[4].start, 10U) << "right of the heavy one";
  EXPECT_EQ(all[5].start, 12U);
  EXPECT_EQ(all[5].parent, 1U);
}

TEST(FlameText, ShowsSelfAndTotalOfTheWholeWithPercents) {
  FlameTree tree(FlameUnit::kNs);
  Stacks stacks(tree);
  stacks.add({"main", "hash"}, 3'000'000, 3);
  stacks.add({"main"}, 1'000'000, 1);
  EXPECT_EQ(flame_text(tree, {.title = "CPU time", .notes = {"a note"}}, 10),
            "CPU time: 4.00 ms in 4 samples\n"
            "a note\n"
            "how the stacks were found isn't recorded\n"
            "\n"
            "       self                   total               function\n"
            "    3.00 ms       75.0 %    3.00 ms       75.0 %  hash  [app]\n"
            "    1.00 ms       25.0 %    4.00 ms        100 %  main  [app]\n");
  EXPECT_NE(flame_text(tree, {}, 1).find("and 1 function with less"), std::string::npos);
  EXPECT_LT(flame_text(tree, {}, 10, true).find("main"),
            flame_text(tree, {}, 10, true).find("hash"));
}

TEST(FlameText, LetsNoNameForgeALineOrAStack) {
  FlameTree tree(FlameUnit::kCount);
  Stacks stacks(tree);
  stacks.add({"evil\n;name 99", "<script>&\x1b[2J\xff"}, 1);
  const std::string folded = flame_folded(tree);
  EXPECT_EQ(std::count(folded.begin(), folded.end(), '\n'), 1);
  EXPECT_EQ(std::count(folded.begin(), folded.end(), ';'), 1);
  const std::string svg = flame_svg(tree, {.title = "CPU <time>"});
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_EQ(svg.find('\x1b'), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;&amp;"), std::string::npos);
}

TEST(FlameSvg, DrawsFramesInProportionAndSaysHowManyItDoesNot) {
  FlameTree tree(FlameUnit::kCount);
  Stacks stacks(tree);
  stacks.add({"main", "heavy"}, 1'000'000);
  stacks.add({"main", "thin"}, 1);
  const std::string svg = flame_svg(tree, {.title = "CPU time"});
  EXPECT_NE(svg.find("<title>heavy [app]: 1,000,000, 100 % (itself 100 %)"), std::string::npos)
      << svg;
  EXPECT_EQ(svg.find("thin [app]"), std::string::npos);
  EXPECT_NE(svg.find("1 frame too thin to be drawn"), std::string::npos);
}

TEST(FlameJson, HasFunctionsAndNodesAndWhatIsLeftOut) {
  FlameTree tree(FlameUnit::kBytes);
  Stacks stacks(tree);
  stacks.add({"main", "a"}, 10);
  stacks.add({"main", "b"}, 4);
  const std::string json = flame_json(tree, {.title = "Heap", .noun = "allocation"}, 3, 1);
  EXPECT_NE(json.find("\"unit\": \"bytes\""), std::string::npos);
  EXPECT_NE(json.find("\"nodes_left_out\": 1"), std::string::npos);
  EXPECT_NE(json.find("\"functions_left_out\": 1"), std::string::npos) << json;
  EXPECT_NE(json.find("{\"function\": 1, \"parent\": 0, \"start\": 0, \"self\": 0, \"total\": 14, "
                      "\"left_out\": 4}"),
            std::string::npos)
      << json;
}

TEST(FlameTree, TellsInlinedFramesFromCalledOnesOfTheSameFunction) {
  for (const bool is_inverted : {false, true}) {
    FlameTree tree(FlameUnit::kCount, is_inverted);
    const FrameId main = tree.frame("main");
    const FrameId add = tree.frame("add", "", "/src/add.h", 4);
    const std::vector<FrameId> inlined{add | kInlinedFrame, main};
    const std::vector<FrameId> called{add, main};
    const std::uint32_t there = tree.add(inlined, 5);
    EXPECT_EQ(tree.add(called, 2), there);
    EXPECT_EQ(tree.nodes().size(), 3U) << "one function";
    const std::uint32_t node = is_inverted ? 1 : 2;
    EXPECT_EQ(tree.nodes()[node].total, 7U);
    EXPECT_EQ(tree.nodes()[node].inlined, 5U);
    EXPECT_EQ(tree.functions()[0].self, 7U);
    EXPECT_EQ(tree.functions()[0].inlined, 5U);
    EXPECT_EQ(tree.functions()[1].inlined, 0U);
  }
}

TEST(FlameTree, CountsAStackOnceInWhichAFunctionWasInlinedTwice) {
  FlameTree tree(FlameUnit::kCount);
  const FrameId walk = tree.frame("walk");
  tree.add(std::vector<FrameId>{walk | kInlinedFrame, walk | kInlinedFrame, walk}, 3);
  EXPECT_EQ(tree.functions()[0].inlined, 3U);
  EXPECT_EQ(tree.functions()[0].total, 3U);
}

TEST(FlameTree, KeepsFunctionsOfOneNameAtTwoPlacesApart) {
  FlameTree tree(FlameUnit::kCount);
  const FrameId one = tree.frame("compare", "app", "/src/a.c", 3);
  EXPECT_EQ(tree.frame("compare", "app", "/src/a.c", 3), one);
  EXPECT_NE(tree.frame("compare", "app", "/src/b.c", 3), one);
  EXPECT_NE(tree.frame("compare", "app", "/src/a.c", 4), one);
  EXPECT_NE(tree.frame("compare", "app"), one);
  for (int i = 0; i < 5'000; ++i) tree.frame("compare", "app", "/src/c.c", 1 + i);
  EXPECT_EQ(tree.frame("compare", "app", "/src/a.c", 3), one);
}

TEST(FlameText, MarksInlinedFunctionsAndShowsLinesWhereFramesAreLines) {
  FlameTree tree(FlameUnit::kCount);
  const FrameId main = tree.frame("main", "app", "/src/main.cc", 10);
  const FrameId add = tree.frame("add", "app", "/src/add.h", 4);
  const FrameId mixed = tree.frame("mixed", "app");
  tree.add(std::vector<FrameId>{add | kInlinedFrame, main}, 5);
  tree.add(std::vector<FrameId>{mixed | kInlinedFrame, main}, 1);
  tree.add(std::vector<FrameId>{mixed, main}, 1);
  const std::string functions = flame_text(tree, {.title = "CPU time"}, 5);
  EXPECT_NE(functions.find("  add  [app]  (inlined)\n"), std::string::npos) << functions;
  EXPECT_NE(functions.find("  mixed  [app]  (partly inlined)\n"), std::string::npos) << functions;
  EXPECT_NE(functions.find("  main  [app]\n"), std::string::npos) << functions;
  const std::string lines = flame_text(tree, {.title = "CPU time", .by_line = true}, 5);
  EXPECT_NE(lines.find("  add (add.h:4)  [app]  (inlined)\n"), std::string::npos) << lines;
  EXPECT_EQ(flame_folded(tree, true),
            "main (main.cc:10);add (add.h:4) 5\nmain (main.cc:10);mixed 2\n");
  EXPECT_NE(flame_svg(tree, {.title = "CPU time"}).find(", inlined)"), std::string::npos);
}

TEST(FlameJson, SaysWhereAFunctionIsWrittenAndHowMuchOfItWasInlined) {
  FlameTree tree(FlameUnit::kCount);
  const FrameId main = tree.frame("main", "app");
  const FrameId add = tree.frame("add", "app", "/src/add.h", 4);
  tree.add(std::vector<FrameId>{add | kInlinedFrame, main}, 5);
  const std::string json = flame_json(tree, {.title = "CPU time"});
  EXPECT_NE(json.find("{\"name\": \"add\", \"module\": \"app\", \"file\": \"/src/add.h\", "
                      "\"line\": 4, \"self\": 5, \"total\": 5, \"inlined\": 5}"),
            std::string::npos)
      << json;
  EXPECT_NE(json.find("\"by_line\": false"), std::string::npos);
  EXPECT_NE(json.find("\"total\": 5, \"left_out\": 0, \"inlined\": 5}"), std::string::npos) << json;
}

TEST(FlameTree, OfNothingHasNoPercents) {
  const FlameTree tree(FlameUnit::kNs);
  EXPECT_EQ(percent_of(0, tree.total()), "-");
  EXPECT_EQ(flame_folded(tree), "");
  EXPECT_EQ(flame_text(tree, {.title = "CPU time"}, 5), "CPU time: 0 ns in 0 samples\n");
  EXPECT_NE(flame_svg(tree, {}).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace dial9::analysis
