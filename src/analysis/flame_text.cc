// What is written of a flame tree as text and as folded stacks. See flame.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "analysis/counts.h"
#include "analysis/flame.h"
#include "analysis/flame_forms.h"
#include "analysis/human.h"
#include "analysis/json_text.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

constexpr std::size_t kMostFoldedBytes = std::size_t{64} << 20;

// As flame graph programs take it: no separator, no end of a line within a name.
std::string folded_name(const FlameTree& tree, FrameId frame, bool by_line) {
  std::string text = to_printable(flame_name(tree, frame, by_line));
  std::replace(text.begin(), text.end(), ';', ':');
  return text;
}

// Where most stacks that are cut short end: "in libfoo.so"; empty: in no one module.
std::string truncated_end(const FlameTree& tree) {
  std::map<std::string_view, std::uint64_t> by_module;
  const std::vector<FlameNode>& nodes = tree.nodes();
  const auto is_cut = [&](std::uint32_t node) {
    return node != 0 && tree.name(nodes[node].frame) == kTruncatedName;
  };
  for (std::uint32_t node = 1; node < nodes.size(); ++node) {
    const std::uint32_t other = nodes[node].parent;
    const std::uint32_t outermost = tree.is_inverted() ? other : node;
    if (outermost != 0 && is_cut(tree.is_inverted() ? node : other)) {
      std::uint64_t& sum = by_module[tree.module(nodes[outermost].frame)];
      sum = sum_of(sum, nodes[node].total);
    }
  }
  for (const auto& [module, weight] : by_module) {
    if (weight > tree.truncated() / 2) {
      return module.empty() ? "in code whose file isn't known" : "in " + std::string(module);
    }
  }
  return {};
}

}  // namespace

std::string flame_name(const FlameTree& tree, FrameId frame, bool by_line) {
  std::string text(tree.name(frame));
  if (by_line && tree.line(frame) != 0) {
    const std::string_view file = tree.file(frame);
    text += " (" + std::string(file.substr(file.rfind('/') + 1)) + ":" +
            std::to_string(tree.line(frame)) + ")";
  }
  return text;
}

std::string function_text(const FlameTree& tree, FrameId frame, bool by_line) {
  std::string text = to_printable(flame_name(tree, frame, by_line));
  if (!tree.module(frame).empty()) {
    text += "  [" + to_printable(tree.module(frame)) + "]";
  }
  return text;
}

void add_unwound_notes(const FlameTree& tree, FlameHeading& heading) {
  const std::uint64_t whole = heading.whole.value_or(tree.total());
  for (std::string& cure : unwound_cures(tree.unwound(), whole, truncated_end(tree))) {
    heading.notes.push_back(std::move(cure));
  }
}

std::string_view uncertain_text(const FlameHeading& heading) {
  return heading.is_uncertain ? ", uncertain" : "";
}

std::string flame_weight(FlameUnit unit, std::uint64_t weight) {
  switch (unit) {
    case FlameUnit::kNs:
      return human_duration(weight);
    case FlameUnit::kBytes:
      return human_bytes(weight);
    case FlameUnit::kCount:
      break;
  }
  return human_count(weight);
}

std::string sum_text(const FlameTree& tree, const FlameHeading& heading) {
  if (heading.is_unknown) {
    return heading.title + ": unknown";
  }
  return heading.title + ": " + flame_weight(tree.unit(), tree.total()) + " in " +
         counted(tree.count(), heading.noun) + std::string(uncertain_text(heading));
}

std::string flame_text(const FlameTree& tree, const FlameHeading& heading, std::uint64_t limit,
                       bool by_total) {
  constexpr std::size_t kWeightWidth = 11;
  constexpr std::size_t kPercentWidth = 13;
  std::string out = sum_text(tree, heading) + "\n";
  for (const std::string& note : heading.notes) {
    out += to_printable(note) + "\n";
  }
  if (const std::string text = unwound_text(tree.unwound(), tree.total()); !text.empty()) {
    out += text + "\n";
  }
  if (tree.truncated() != 0) {
    out +=
        percent_of(tree.truncated(), tree.total()) + " in stacks whose outer frames are missing\n";
  }
  std::vector<FlameFunction> functions = tree.functions();
  if (by_total) {
    dial9::stable_sort(
        functions.begin(), functions.end(),
        [](const FlameFunction& a, const FlameFunction& b) { return a.total > b.total; });
  }
  if (functions.empty()) {
    return out;
  }
  out += "\n" + right_aligned("self", kWeightWidth) + right_aligned("", kPercentWidth) +
         right_aligned("total", kWeightWidth) + right_aligned("", kPercentWidth) + "  function\n";
  for (std::size_t i = 0; i < functions.size() && i < limit; ++i) {
    const FlameFunction& function = functions[i];
    out += right_aligned(flame_weight(tree.unit(), function.self), kWeightWidth) +
           right_aligned(percent_of(function.self, tree.total()), kPercentWidth) +
           right_aligned(flame_weight(tree.unit(), function.total), kWeightWidth) +
           right_aligned(percent_of(function.total, tree.total()), kPercentWidth) + "  " +
           function_text(tree, function.frame, heading.by_line) +
           (function.inlined == 0                ? "\n"
            : function.inlined == function.total ? "  (inlined)\n"
                                                 : "  (partly inlined)\n");
  }
  if (functions.size() > limit) {
    out += "and " + counted(functions.size() - limit, "function") + " with less (--limit)\n";
  }
  return out;
}

void for_each_path(const FlameTree& tree, bool by_line,
                   const std::function<void(const std::string& path, std::uint32_t node)>& use) {
  std::string path;
  std::vector<std::size_t> ends;  // of the path's names
  for (const FlameRow& row : flame_rows(tree, ~std::uint32_t{0})) {
    const FlameNode& node = tree.nodes()[row.node];
    if (node.depth != 0) {
      ends.resize(node.depth - 1);
      path.resize(ends.empty() ? 0 : ends.back());
      path += path.empty() ? "" : ";";
      path += folded_name(tree, node.frame, by_line);
      ends.push_back(path.size());
    }
    use(path, row.node);
  }
}

bool append_folded(std::string& out, const std::string& path, std::string_view tail,
                   const std::string& numbers) {
  if (out.size() + path.size() + tail.size() + numbers.size() + 3 > kMostFoldedBytes) {
    return false;
  }
  out += path;
  out += path.empty() || tail.empty() ? "" : ";";
  out += tail;
  out += " " + numbers + "\n";
  return true;
}

std::string flame_folded(const FlameTree& tree, bool by_line) {
  std::string out;
  std::uint64_t left_out = 0;
  for_each_path(tree, by_line, [&](const std::string& path, std::uint32_t node) {
    const auto write = [&](std::string_view tail, std::uint64_t weight) {
      if (weight != 0 && !append_folded(out, path, tail, std::to_string(weight))) {
        left_out += weight;
      }
    };
    write("", tree.nodes()[node].self);
    write(kLeftOutName, tree.nodes()[node].cut);
  });
  if (left_out != 0) {
    out += std::string(kLeftOutName) + " " + std::to_string(left_out) + "\n";
  }
  return out;
}

}  // namespace dial9::analysis
