// See flame.h.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/flame.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "analysis/counts.h"
#include "analysis/human.h"
#include "base/cut_text.h"

namespace dial9::analysis {
namespace {

constexpr std::size_t kFirstSlots = 1024;

std::uint64_t mix(std::uint64_t hash) {
  hash *= 0xff51afd7ed558ccdU;
  hash ^= hash >> 33;
  hash *= 0xc4ceb9fe1a85ec53U;
  return hash ^ (hash >> 29);
}

std::uint64_t hash_pair(std::uint32_t a, std::uint32_t b) {
  return mix((std::uint64_t{a} << 32) | b);
}

// The slot that holds what `is_it` knows, or the free one where it belongs.
template <class IsIt>
std::size_t slot_of(const std::vector<std::uint32_t>& table, std::uint64_t hash, IsIt is_it) {
  std::size_t slot = hash & (table.size() - 1);
  while (table[slot] != 0 && !is_it(table[slot])) {
    slot = (slot + 1) & (table.size() - 1);
  }
  return slot;
}

}  // namespace

std::string percent_of(std::uint64_t part, std::uint64_t total) {
  return total == 0 ? "-" : human_share(static_cast<double>(part) / static_cast<double>(total));
}

FlameTree::FlameTree(FlameUnit unit, bool is_inverted, FlameLimits limits, FlameOrder order)
    : unit_(unit),
      is_inverted_(is_inverted),
      order_(order),
      limits_(limits),
      frames_(1),  // frame 0 is the root's
      nodes_(1),
      node_table_(kFirstSlots),
      frame_table_(kFirstSlots),
      starts_(order == FlameOrder::kTime ? 1 : 0) {
  limits_.max_frames += 4;  // the ones below
  limits_.max_frames = std::max(limits_.max_frames, std::uint32_t{4});
  limits_.max_nodes = std::max(limits_.max_nodes, std::uint32_t{1});
  no_stack_ = frame(kNoStackName);
  truncated_frame_ = frame(kTruncatedName);
  other_ = frame(kLeftOutName);
}

// One that was cut by a tree with the same limits stays as it is.
bool FlameTree::is_short(std::string_view text) const {
  return text.size() <= limits_.max_name_bytes ||
         (text.size() <= limits_.max_name_bytes + kCutTailBytes && text.size() > kCutTailBytes &&
          text.substr(text.size() - kCutTailBytes).starts_with(kCutMark));
}

// Two long names that begin alike stay two.
NameId FlameTree::bounded(std::string_view text) {
  if (is_short(text)) {
    return names_.intern(text);
  }
  return names_.intern(cut_text(text, limits_.max_name_bytes));
}

std::uint64_t FlameTree::hash_of(const Frame& frame) {
  return hash_pair(frame.name, frame.module) ^ mix(hash_pair(frame.file, frame.line));
}

// As it is, so not of one that is to be cut.
bool FlameTree::has_name(std::string_view text) const {
  return text.empty() || (is_short(text) && names_.find(text) != kNoName);
}

FrameId FlameTree::frame(std::string_view name, std::string_view module, std::string_view file,
                         std::uint32_t line) {
  if (frames_.size() >= limits_.max_frames &&
      !(has_name(name) && has_name(module) && has_name(file))) {
    return other_;  // known ones are found all the same; no new name is kept
  }
  Frame wanted;
  wanted.name = bounded(name);
  wanted.module = bounded(module);
  wanted.file = bounded(file);
  wanted.line = line;
  const std::size_t slot = slot_of(frame_table_, hash_of(wanted), [&](std::uint32_t id) {
    return frames_[id].is_same_as(wanted);
  });
  if (frame_table_[slot] != 0) {
    return frame_table_[slot];
  }
  if (frames_.size() >= limits_.max_frames) {
    return other_;
  }
  const auto id = static_cast<FrameId>(frames_.size());
  frames_.push_back(wanted);
  frame_table_[slot] = id;
  if (frames_.size() * 2 > frame_table_.size()) {
    rehash();
  }
  return id;
}

void FlameTree::rehash() {
  frame_table_.assign(frame_table_.size() * 2, 0);
  for (FrameId id = 1; id < frames_.size(); ++id) {
    frame_table_[slot_of(frame_table_, hash_of(frames_[id]), [](std::uint32_t) { return false; })] =
        id;
  }
}

std::size_t FlameTree::slot_of_child(std::uint32_t parent, FrameId frame) const {
  return slot_of(node_table_, hash_pair(parent, frame), [&](std::uint32_t node) {
    return nodes_[node].parent == parent && nodes_[node].frame == frame;
  });
}

// 0: there is no room for it.
std::uint32_t FlameTree::child(std::uint32_t parent, FrameId frame) {
  const std::size_t slot = slot_of_child(parent, frame);
  if (node_table_[slot] != 0 || nodes_.size() >= limits_.max_nodes ||
      nodes_[parent].depth >= limits_.max_depth) {
    return node_table_[slot];
  }
  const auto number = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({.frame = frame, .parent = parent, .depth = nodes_[parent].depth + 1});
  node_table_[slot] = number;
  if (nodes_.size() * 2 > node_table_.size()) {
    node_table_.assign(node_table_.size() * 2, 0);
    for (std::uint32_t node = 1; node < nodes_.size(); ++node) {
      const std::uint64_t hash = hash_pair(nodes_[node].parent, nodes_[node].frame);
      node_table_[slot_of(node_table_, hash, [](std::uint32_t) { return false; })] = node;
    }
  }
  return number;
}

// The stack before had it in the same place, below the same frames: it goes on.
std::uint32_t FlameTree::next_in_time(std::uint32_t parent, FrameId frame) {
  const std::size_t depth = path_.size();
  if (depth < newest_.size() && nodes_[newest_[depth]].frame == frame &&
      nodes_[newest_[depth]].parent == parent) {
    path_.push_back(newest_[depth]);
    return newest_[depth];
  }
  if (nodes_.size() >= limits_.max_nodes || depth >= limits_.max_depth) {
    return 0;
  }
  const auto number = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({.frame = frame, .parent = parent, .depth = nodes_[parent].depth + 1});
  path_.push_back(number);
  return number;
}

// `leaf`: its position in the stack.
void FlameTree::count_functions(std::span<const FrameId> stack, std::size_t leaf,
                                std::uint64_t weight) {
  ++stacks_;
  Frame& inner = frames_[stack[leaf] & ~kInlinedFrame];
  inner.self = sum_of(inner.self, weight);
  for (const FrameId id : stack) {
    Frame& frame = frames_[id & ~kInlinedFrame];
    if (frame.last_stack != stacks_) {
      frame.last_stack = stacks_;
      frame.total = sum_of(frame.total, weight);
    }
    if ((id & kInlinedFrame) != 0 && frame.last_inlined != stacks_) {
      frame.last_inlined = stacks_;
      frame.inlined = sum_of(frame.inlined, weight);
    }
  }
}

// Into scratch_, from the tree's root on.
void FlameTree::arrange(std::span<const FrameId> leaf_first, const StackMarks& marks) {
  scratch_.assign(leaf_first.begin(), leaf_first.end());
  if (scratch_.empty()) {
    scratch_.push_back(no_stack_);
  }
  if (marks.is_truncated) {
    scratch_.push_back(truncated_frame_);
  }
  if (!is_inverted_) {
    std::reverse(scratch_.begin(), scratch_.end());
  }
  if (marks.group != kNoGroup) {
    scratch_.insert(scratch_.begin(), marks.group);
  }
}

std::uint32_t FlameTree::add(std::span<const FrameId> leaf_first, std::uint64_t weight,
                             std::uint64_t count, const StackMarks& marks) {
  weight = std::min(weight, kMostCount - total());
  arrange(leaf_first, marks);
  unwound_.add(leaf_first.empty() ? UnwoundBy::kNoStack : marks.by, marks.is_truncated, weight);
  const std::size_t first = marks.group == kNoGroup ? 0 : 1;
  count_functions(scratch_, is_inverted_ ? first : scratch_.size() - 1, weight);
  return add_path(scratch_, weight, count);
}

std::uint32_t FlameTree::add_path(std::span<const FrameId> path, std::uint64_t weight,
                                  std::uint64_t count) {
  const bool is_in_time = order_ == FlameOrder::kTime;
  // The sum is what percents are of: beyond its largest value nothing more is taken.
  weight = std::min(weight, kMostCount - total());
  count_ = sum_of(count_, count);
  const std::uint64_t start = total();
  std::uint32_t node = 0;
  bool is_whole = true;
  nodes_[0].total += weight;
  path_.clear();
  for (const FrameId id : path) {
    const FrameId frame = id & ~kInlinedFrame;
    const std::uint32_t next = is_in_time ? next_in_time(node, frame) : child(node, frame);
    if (next == 0) {
      nodes_[node].cut += weight;
      left_out_ += weight;
      is_whole = false;
      break;
    }
    node = next;
    nodes_[node].total += weight;
    nodes_[node].inlined += (id & kInlinedFrame) != 0 ? weight : 0;
  }
  nodes_[node].self += is_whole ? weight : 0;
  if (is_in_time) {
    starts_.resize(nodes_.size(), start);
    newest_.swap(path_);
  }
  return node;
}

std::vector<FlameFunction> FlameTree::functions() const {
  std::vector<FlameFunction> functions;
  for (FrameId id = 1; id < frames_.size(); ++id) {
    if (frames_[id].total != 0) {
      functions.push_back({id, frames_[id].self, frames_[id].total, frames_[id].inlined});
    }
  }
  std::sort(functions.begin(), functions.end(),
            [&](const FlameFunction& a, const FlameFunction& b) {
              if (a.self != b.self) {
                return a.self > b.self;
              }
              if (a.total != b.total) {
                return a.total > b.total;
              }
              const auto key = [this](FrameId id) {
                return std::tuple(name(id), module(id), file(id), line(id));
              };
              return key(a.frame) < key(b.frame);
            });
  return functions;
}

std::vector<FlameRow> flame_rows(const FlameTree& tree, std::uint32_t max_rows) {
  const std::vector<FlameNode>& nodes = tree.nodes();
  const bool is_in_time = tree.order() == FlameOrder::kTime;
  // Children of each node, in the tree's order.
  std::vector<std::uint32_t> order(nodes.size() - 1);
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    order[i] = i + 1;
  }
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (nodes[a].parent != nodes[b].parent) {
      return nodes[a].parent < nodes[b].parent;
    }
    if (is_in_time) {
      return a < b;
    }
    if (nodes[a].total != nodes[b].total) {
      return nodes[a].total > nodes[b].total;
    }
    const int by_name = tree.name(nodes[a].frame).compare(tree.name(nodes[b].frame));
    return by_name != 0 ? by_name < 0 : nodes[a].frame < nodes[b].frame;
  });
  std::vector<std::uint32_t> first_child(nodes.size() + 1, 0);  // of a node, in `order`
  for (std::uint32_t node = 0, at = 0; node <= nodes.size(); ++node) {
    while (at < order.size() && nodes[order[at]].parent < node) {
      ++at;
    }
    first_child[node] = at;
  }
  // The heaviest ones: a parent is no lighter than its children.
  std::vector<bool> is_kept(nodes.size(), false);
  using Candidate = std::pair<std::uint64_t, std::uint32_t>;  // total, and the lower number first
  std::priority_queue<Candidate> next;
  next.emplace(nodes[0].total, ~std::uint32_t{0});
  for (std::uint32_t kept = 0; !next.empty() && kept < std::max(max_rows, std::uint32_t{1});
       ++kept) {
    const std::uint32_t node = ~next.top().second;
    next.pop();
    is_kept[node] = true;
    for (std::uint32_t i = first_child[node]; i < first_child[node + 1]; ++i) {
      next.emplace(nodes[order[i]].total, ~order[i]);
    }
  }
  std::vector<FlameRow> rows;
  std::vector<FlameRow> open{FlameRow{}};
  while (!open.empty()) {
    const FlameRow row = open.back();
    open.pop_back();
    const auto number = static_cast<std::uint32_t>(rows.size());
    rows.push_back(row);
    rows.back().left_out = nodes[row.node].cut;
    std::uint64_t start = row.start;
    const std::size_t from = open.size();
    for (std::uint32_t i = first_child[row.node]; i < first_child[row.node + 1]; ++i) {
      const std::uint32_t node = order[i];
      if (is_kept[node]) {
        open.push_back({node, number, is_in_time ? tree.start(node) : start, 0});
        start += nodes[node].total;
      } else {
        rows.back().left_out += nodes[node].total;
      }
    }
    std::reverse(open.begin() + static_cast<std::ptrdiff_t>(from), open.end());
  }
  return rows;
}

}  // namespace dial9::analysis
