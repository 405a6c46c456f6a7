// See flame_diff.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/flame_diff.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "analysis/counts.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Puts both trees into one.
class Union {
 public:
  Union(FlameDiff& diff, FlameMatch match) : diff_(diff), match_(match) {}

  void add(const FlameTree& tree, std::uint64_t FlameSides::* side) {
    diff_.whole.*side = tree.total();
    diff_.count.*side = tree.count();
    frames_.clear();
    const std::vector<FlameNode>& nodes = tree.nodes();
    for (std::uint32_t node = 1; node < nodes.size(); ++node) {
      add_stack(tree, node, nodes[node].self, false, side);
      add_stack(tree, node, nodes[node].cut, true, side);
    }
    add_stack(tree, 0, nodes[0].cut, true, side);
    std::unordered_set<FrameId> seen;
    for (const FlameFunction& function : tree.functions()) {
      const FrameId frame = frame_of(tree, function.frame);
      FlameDiffFunction& both = functions_[frame];
      both.self.*side += function.self;
      both.total.*side += function.total;
      if (!seen.insert(frame).second) {
        merged_.insert(frame);  // a stack that has both is in the sum of their totals twice
      }
    }
  }

  void finish() {
    const std::vector<FlameNode>& nodes = diff_.tree.nodes();
    diff_.self.resize(nodes.size());
    diff_.total = diff_.self;
    for (std::size_t node = nodes.size(); node-- > 1;) {  // parents have lower numbers
      FlameSides& above = diff_.total[nodes[node].parent];
      above.before += diff_.total[node].before;
      above.after += diff_.total[node].after;
    }
    count_again();
    for (const auto& [frame, both] : functions_) {
      diff_.functions.push_back(both);
      diff_.functions.back().frame = frame;
    }
    const FlameTree& tree = diff_.tree;
    const auto change = [&](const FlameSides& sides) {
      return std::abs(share_change(sides, diff_.whole));
    };
    std::sort(diff_.functions.begin(), diff_.functions.end(),
              [&](const FlameDiffFunction& a, const FlameDiffFunction& b) {
                if (change(a.self) != change(b.self)) {
                  return change(a.self) > change(b.self);
                }
                if (change(a.total) != change(b.total)) {
                  return change(a.total) > change(b.total);
                }
                const int order = tree.name(a.frame).compare(tree.name(b.frame));
                return order != 0 ? order < 0 : a.frame < b.frame;
              });
  }

 private:
  FrameId frame_of(const FlameTree& tree, FrameId frame) {
    const auto [at, is_new] = frames_.try_emplace(frame);
    if (is_new) {
      at->second = match_ == FlameMatch::kName
                       ? diff_.tree.frame(tree.name(frame), tree.module(frame))
                       : diff_.tree.frame(tree.name(frame), tree.module(frame), tree.file(frame),
                                          tree.line(frame));
    }
    return at->second;
  }

  void add_stack(const FlameTree& tree, std::uint32_t node, std::uint64_t weight, bool is_cut,
                 std::uint64_t FlameSides::* side) {
    if (weight == 0) {
      return;
    }
    path_.clear();
    if (is_cut) {
      path_.push_back(diff_.tree.frame(kLeftOutName));
      functions_.try_emplace(path_.back());  // that it is self of, the function it was cut from has
      merged_.insert(path_.back());
    }
    for (std::uint32_t at = node; at != 0; at = tree.nodes()[at].parent) {
      path_.push_back(frame_of(tree, tree.nodes()[at].frame));
    }
    std::reverse(path_.begin(), path_.end());
    const auto scaled =
        count_of(share_of(weight, tree.total()) * static_cast<double>(kDiffSide) + 0.5);
    const std::uint32_t there = diff_.tree.add_path(path_, scaled, 0);
    diff_.self.resize(std::max<std::size_t>(diff_.self.size(), there + 1));
    diff_.self[there].*side += weight;
  }

  // The totals of those in merged_, by the nodes of the tree: each stack once, by the outermost
  // place that the function has in it.
  void count_again() {
    for (const FrameId frame : merged_) {
      functions_[frame].total = {};
    }
    const std::vector<FlameNode>& nodes = diff_.tree.nodes();
    std::vector<std::uint32_t> first(nodes.size());  // child; 0: none
    std::vector<std::uint32_t> next(nodes.size());   // child of the same parent
    for (std::size_t node = nodes.size(); node-- > 1;) {
      next[node] = std::exchange(first[nodes[node].parent], static_cast<std::uint32_t>(node));
    }
    std::unordered_map<FrameId, std::uint32_t> above;  // how often it is on the way to a node
    const auto enter = [&](std::uint32_t node) {
      const FrameId frame = nodes[node].frame;
      if (merged_.contains(frame) && above[frame]++ == 0) {
        FlameSides& total = functions_[frame].total;
        total.before += diff_.total[node].before;
        total.after += diff_.total[node].after;
      }
    };
    const auto leave = [&](std::uint32_t node) {
      if (merged_.contains(nodes[node].frame)) {
        --above[nodes[node].frame];
      }
    };
    for (std::uint32_t node = merged_.empty() ? 0 : first[0]; node != 0;) {
      enter(node);
      if (first[node] != 0) {
        node = first[node];
        continue;
      }
      leave(node);
      while (next[node] == 0 && nodes[node].parent != 0) {
        node = nodes[node].parent;
        leave(node);
      }
      node = next[node];
    }
  }

  FlameDiff& diff_;
  const FlameMatch match_;
  std::unordered_map<FrameId, FrameId> frames_;  // of the tree that is added
  std::unordered_set<FrameId> merged_;           // of several functions of one side
  std::unordered_map<FrameId, FlameDiffFunction> functions_;
  std::vector<FrameId> path_;
};

}  // namespace

double share_change(const FlameSides& sides, const FlameSides& whole) {
  return share_of(sides.after, whole.after) - share_of(sides.before, whole.before);
}

FlameDiff flame_diff(const FlameTree& before, const FlameTree& after, FlameMatch match) {
  constexpr FlameLimits kSide;
  // Room for both, so that nothing is left out that they have.
  const FlameLimits limits{.max_nodes = kSide.max_nodes * 4,
                           .max_frames = kSide.max_frames * 2 + 8,
                           .max_depth = kSide.max_depth + 1};
  FlameDiff diff{.tree = FlameTree(FlameUnit::kCount, after.is_inverted(), limits),
                 .unit = after.count() != 0 ? after.unit() : before.unit()};
  Union both(diff, match);
  both.add(before, &FlameSides::before);
  both.add(after, &FlameSides::after);
  both.finish();
  return diff;
}

}  // namespace dial9::analysis
