// The flame tree: weighted stacks folded by the names of their frames, for CPU time, time off the
// CPU, bytes, counts alike, and what is written of it. Strongest property: every weight that is
// added is counted once, and a percent is always of their sum (percent_of); what a bound leaves out
// is a number of its own, never another frame's. Spec: docs/spec/flame.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/names.h"
#include "analysis/unwound_by.h"

namespace dial9::analysis {

using FrameId = std::uint32_t;
// Beside a frame's id in a stack: there it was inlined into the next outer one.
inline constexpr FrameId kInlinedFrame = FrameId{1} << 31;

// What a weight is.
enum class FlameUnit : std::uint8_t { kNs, kBytes, kCount };

// Where children stand, and what makes two stacks one.
enum class FlameOrder : std::uint8_t {
  kHeavy,  // equal paths are one, heavier children stand before lighter ones
  kTime,   // in the order in which stacks are added; only neighbours with equal paths are one
};

// The one definition of a percent: `part` of all that the tree was given, "12.5 %". Of nothing:
// "-".
std::string percent_of(std::uint64_t part, std::uint64_t total);

struct FlameLimits {
  std::uint32_t max_nodes = 1 << 20;
  std::uint32_t max_frames = 1 << 18;  // different names
  std::uint32_t max_depth = 2048;
  std::uint32_t max_name_bytes = 512;
};

// Names that stand for something else than a function.
inline constexpr std::string_view kNoStackName = "[no stack]";
inline constexpr std::string_view kTruncatedName = "[outer frames missing]";
inline constexpr std::string_view kLeftOutName = "[left out]";
// The module of the kernel's functions.
inline constexpr std::string_view kKernelModule = "kernel";

// In place of a group's frame: the stack is in none.
inline constexpr FrameId kNoGroup = 0;

// What is known of a stack beside its frames.
struct StackMarks {
  bool is_truncated = false;  // its outermost frames are missing
  UnwoundBy by = UnwoundBy::kUnknown;
  // A frame next to the root, whichever way the tree stands, that is no part of the stack.
  FrameId group = kNoGroup;
};

struct FlameNode {
  std::uint64_t total = 0;    // of the stacks that pass here
  std::uint64_t self = 0;     // of those that end here
  std::uint64_t cut = 0;      // of those of which the rest is left out
  std::uint64_t inlined = 0;  // of the total, where the frame was inlined into its caller
  FrameId frame = 0;
  std::uint32_t parent = 0;  // a lower number; of node 0, which is all: itself
  std::uint32_t depth = 0;
};

// A function over all stacks, wherever it is in them.
struct FlameFunction {
  FrameId frame = 0;
  std::uint64_t self = 0;     // of stacks of which it is the leaf
  std::uint64_t total = 0;    // of stacks that it is in, once each
  std::uint64_t inlined = 0;  // of the total, stacks in which it was inlined, if only once
};

// Not thread-safe. Memory: about 70 bytes a node, 100 and its name a frame, up to the limits.
class FlameTree {
 public:
  // `is_inverted`: from the leaf outwards, so who called it, instead of from the root inwards.
  explicit FlameTree(FlameUnit unit, bool is_inverted = false, FlameLimits limits = {},
                     FlameOrder order = FlameOrder::kHeavy);

  // The frame of a function by its name, its module ("" if that isn't known) and its place (line 0:
  // not known). Two functions of one name in two modules, or at two places, are two. A text that is
  // too long is cut and told apart by a hash.
  FrameId frame(std::string_view name, std::string_view module = {}, std::string_view file = {},
                std::uint32_t line = 0);

  // One stack, leaf first, that `count` samples (or allocations, or waits) had, together with this
  // weight. Ids may bear kInlinedFrame. Empty: kNoStackName. The deepest node that the stack has:
  // the same one after the same calls of another tree.
  std::uint32_t add(std::span<const FrameId> leaf_first, std::uint64_t weight,
                    std::uint64_t count = 1, const StackMarks& marks = {});
  // The same from the tree's root on; nothing is arranged, functions aren't counted.
  std::uint32_t add_path(std::span<const FrameId> path, std::uint64_t weight, std::uint64_t count);

  FlameUnit unit() const { return unit_; }
  bool is_inverted() const { return is_inverted_; }
  FlameOrder order() const { return order_; }
  std::uint64_t total() const { return nodes_.front().total; }
  std::uint64_t count() const { return count_; }
  // How the stacks were found, by weight; sums to total(), but for what add_path() added.
  const UnwoundSums& unwound() const { return unwound_; }
  std::uint64_t truncated() const { return unwound_.truncated; }  // weight
  std::uint64_t left_out() const { return left_out_; }            // weight of stacks that were cut
  const std::vector<FlameNode>& nodes() const { return nodes_; }
  // Of a tree in the order of time: the weight that was added before the node.
  std::uint64_t start(std::uint32_t node) const { return starts_[node]; }
  // By self, then total, then name; those without any weight left out.
  std::vector<FlameFunction> functions() const;
  // Of a frame, with or without kInlinedFrame.
  std::string_view name(FrameId frame) const { return names_.text(at(frame).name); }
  std::string_view module(FrameId frame) const { return names_.text(at(frame).module); }
  std::string_view file(FrameId frame) const { return names_.text(at(frame).file); }
  std::uint32_t line(FrameId frame) const { return at(frame).line; }  // 0: not known

 private:
  struct Frame {
    NameId name = kNoName;
    NameId module = kNoName;
    NameId file = kNoName;
    std::uint32_t line = 0;
    std::uint64_t self = 0;
    std::uint64_t total = 0;
    std::uint64_t inlined = 0;
    std::uint64_t last_stack = 0;    // that counted it
    std::uint64_t last_inlined = 0;  // the same, of `inlined`
    bool is_same_as(const Frame& other) const {
      return name == other.name && module == other.module && file == other.file &&
             line == other.line;
    }
  };
  const Frame& at(FrameId frame) const { return frames_[frame & ~kInlinedFrame]; }
  static std::uint64_t hash_of(const Frame& frame);
  bool has_name(std::string_view text) const;
  bool is_short(std::string_view text) const;
  NameId bounded(std::string_view text);
  std::uint32_t child(std::uint32_t parent, FrameId frame);
  std::uint32_t next_in_time(std::uint32_t parent, FrameId frame);
  std::size_t slot_of_child(std::uint32_t parent, FrameId frame) const;
  void arrange(std::span<const FrameId> leaf_first, const StackMarks& marks);
  void rehash();
  void count_functions(std::span<const FrameId> stack, std::size_t leaf, std::uint64_t weight);

  FlameUnit unit_;
  bool is_inverted_;
  FlameOrder order_;
  FlameLimits limits_;
  Names names_;
  std::vector<Frame> frames_;
  std::vector<FlameNode> nodes_;
  std::vector<std::uint32_t> node_table_;   // open addressing by (parent, frame); 0: free
  std::vector<std::uint32_t> frame_table_;  // by name, module and place; 0: free
  std::vector<FrameId> scratch_;
  std::vector<std::uint64_t> starts_;  // of kTime: of each node
  std::vector<std::uint32_t> newest_;  // of kTime: the nodes of the stack before
  std::vector<std::uint32_t> path_;    // of kTime: those of this one
  std::uint64_t stacks_ = 0;
  std::uint64_t count_ = 0;
  UnwoundSums unwound_;
  std::uint64_t left_out_ = 0;
  FrameId no_stack_ = 0;
  FrameId truncated_frame_ = 0;
  FrameId other_ = 0;
};

// A node as it is drawn: parents before children, heavier children before lighter ones.
struct FlameRow {
  std::uint32_t node = 0;
  std::uint32_t parent = 0;    // row; of row 0: itself
  std::uint64_t start = 0;     // weight to its left, from 0 to total
  std::uint64_t left_out = 0;  // of its total, children that have no row
};
// The heaviest `max_rows` nodes, the root first. At least one row.
std::vector<FlameRow> flame_rows(const FlameTree& tree, std::uint32_t max_rows);

// A frame as it is shown: its name, and with `by_line` the last part of its file and its line.
std::string flame_name(const FlameTree& tree, FrameId frame, bool by_line);

// A weight with its unit: "1.20 s", "4.00 MiB", "17".
std::string flame_weight(FlameUnit unit, std::uint64_t weight);

// What goes above a tree.
struct FlameHeading {
  std::string title;                    // "CPU time"
  std::string noun = "sample";          // what is counted
  bool by_line = false;                 // frames are lines, and shown with them
  std::vector<std::string> notes = {};  // what a reader should know, a line each
  bool is_uncertain = false;            // a note says what the weights lack, or have too much
  // Of a tree that is a part of one: the weight of all, which the JSON's percents are of.
  std::optional<std::uint64_t> whole = {};
  bool is_unknown = false;  // nothing of it was recorded (a note says so): its sum isn't zero
};

// Behind the sum, wherever it is written as text: ", uncertain"; empty where it isn't.
std::string_view uncertain_text(const FlameHeading& heading);

// The line above any form of it as text: "CPU time: 2 s in 200 samples", "CPU time: unknown".
std::string sum_text(const FlameTree& tree, const FlameHeading& heading);

// Adds what a reader should know where many stacks may lack callers, with the cure.
void add_unwound_notes(const FlameTree& tree, FlameHeading& heading);

// A table of functions, self and total with percents. `limit`: functions; `by_total`: sorted by it.
std::string flame_text(const FlameTree& tree, const FlameHeading& heading, std::uint64_t limit,
                       bool by_total = false);
// A line a stack, "root;...;leaf weight", as flame graph programs take it (inverted: leaf first).
// ';' in a name becomes ':'. At most 64 MiB; the rest is one line, kLeftOutName.
std::string flame_folded(const FlameTree& tree, bool by_line = false);
// Whole file. The heaviest 20,000 nodes; those thinner than a third of a pixel are left out.
std::string flame_svg(const FlameTree& tree, const FlameHeading& heading);
// Functions and the heaviest `max_nodes` nodes. `more`: members of the object, each with a comma
// before it. Format: docs/spec/flame.md.
std::string flame_json(const FlameTree& tree, const FlameHeading& heading,
                       std::uint32_t max_nodes = 100'000, std::uint32_t max_functions = 100'000,
                       std::string_view more = {});

}  // namespace dial9::analysis
