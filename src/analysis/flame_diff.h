// Two flame trees as one: what grew and what shrank. Strongest property: each side is measured by
// its own sum, so a longer stretch or a busier run is no difference by itself; nothing of either
// side is left out of the picture. Spec: docs/spec/flame.md, "Differences".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/flame.h"

namespace dial9::analysis {

// A weight on both sides, in the trees' unit.
struct FlameSides {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};

// What makes a function of one side and one of the other the same.
enum class FlameMatch : std::uint8_t {
  kPlace,  // name, module and the place where it is written
  kName,   // name and module: in another build the place of a function that is the same may differ
};

struct FlameDiffFunction {
  FrameId frame = 0;  // of FlameDiff::tree
  FlameSides self;
  FlameSides total;
};

struct FlameDiff {
  // Each node's weight is the sum of its shares of both sides, so all of one side is kDiffSide.
  FlameTree tree;
  std::vector<FlameSides> self = {};              // by node
  std::vector<FlameSides> total = {};             // by node
  std::vector<FlameDiffFunction> functions = {};  // the largest change of the share of self first
  FlameSides whole = {};
  FlameSides count = {};  // samples, waits, allocations
  FlameUnit unit = FlameUnit::kNs;
};
inline constexpr std::uint64_t kDiffSide = std::uint64_t{1} << 40;

// Trees of one unit that stand the same way. A side without weight has no shares: all of the other
// is new, or gone. By kName those of one name at several places of a module are one function.
FlameDiff flame_diff(const FlameTree& before, const FlameTree& after,
                     FlameMatch match = FlameMatch::kPlace);

// after's share less before's, -1 to 1. A side without weight counts as 0.
double share_change(const FlameSides& sides, const FlameSides& whole);

// What goes above both.
struct FlameDiffHeading {
  FlameHeading after;
  FlameHeading before;
  std::string before_name;              // "the trace old.bin", "from 1 s to 2 s"
  std::vector<std::string> notes = {};  // of both beside each other
};

// Lines above any form of it: the sums of both sides, what percents are of, the notes.
std::vector<std::string> flame_diff_lines(const FlameDiff& diff, const FlameDiffHeading& heading);

// Functions by the change of their share of self, at most `limit`.
std::string flame_diff_text(const FlameDiff& diff, const FlameDiffHeading& heading,
                            std::uint64_t limit);
// "root;...;leaf BEFORE AFTER" a line a stack, in the trees' unit, as difffolded takes it.
std::string flame_diff_folded(const FlameDiff& diff, bool by_line = false);
// An icicle as flame_svg() draws it, coloured by the change.
std::string flame_diff_svg(const FlameDiff& diff, const FlameDiffHeading& heading);
// As flame_json(), with both sides of each node and function. Format: docs/spec/flame.md.
std::string flame_diff_json(const FlameDiff& diff, const FlameDiffHeading& heading,
                            std::uint32_t max_nodes = 100'000,
                            std::uint32_t max_functions = 100'000);

}  // namespace dial9::analysis
