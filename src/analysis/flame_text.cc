// What is written of a flame tree as text, folded stacks and JSON. See flame.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <unordered_map>

#include "analysis/flame.h"
#include "analysis/human.h"
#include "analysis/json_text.h"
#include "base/stable_sort.h"

namespace dial9::analysis {
namespace {

constexpr std::size_t kMostFoldedBytes = std::size_t{64} << 20;

std::string function_text(const FlameTree& tree, const FlameFunction& function, bool by_line) {
  std::string text = to_printable(flame_name(tree, function.frame, by_line));
  if (!tree.module(function.frame).empty()) {
    text += "  [" + to_printable(tree.module(function.frame)) + "]";
  }
  if (function.inlined != 0) {
    text += function.inlined == function.total ? "  (inlined)" : "  (partly inlined)";
  }
  return text;
}

// As flame graph programs take it: no separator, no end of a line within a name.
std::string folded_name(const FlameTree& tree, FrameId frame, bool by_line) {
  std::string text = to_printable(flame_name(tree, frame, by_line));
  std::replace(text.begin(), text.end(), ';', ':');
  return text;
}

std::string_view unit_name(FlameUnit unit) {
  return unit == FlameUnit::kNs ? "ns" : unit == FlameUnit::kBytes ? "bytes" : "count";
}

// Of a function or a node; most have none.
std::string inlined_member(const auto& of) {
  return of.inlined == 0 ? "" : ", \"inlined\": " + std::to_string(of.inlined);
}

void append_texts(std::string& out, const std::vector<std::string>& texts) {
  bool is_first = true;
  for (const std::string& text : texts) {
    out += is_first ? "" : ", ";
    is_first = false;
    append_json_string(out, text);
  }
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

std::string flame_text(const FlameTree& tree, const FlameHeading& heading, std::uint64_t limit,
                       bool by_total) {
  constexpr std::size_t kWeightWidth = 11;
  constexpr std::size_t kPercentWidth = 13;
  std::string out = heading.title + ": " + flame_weight(tree.unit(), tree.total()) + " in " +
                    counted(tree.count(), heading.noun) + "\n";
  for (const std::string& note : heading.notes) {
    out += to_printable(note) + "\n";
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
           function_text(tree, function, heading.by_line) + "\n";
  }
  if (functions.size() > limit) {
    out += "and " + counted(functions.size() - limit, "function") + " with less (--limit)\n";
  }
  return out;
}

std::string flame_folded(const FlameTree& tree, bool by_line) {
  std::string out;
  std::uint64_t left_out = 0;
  std::string path;
  std::vector<std::size_t> ends;  // of the path's names
  const auto write = [&](std::string_view tail, std::uint64_t weight) {
    const std::size_t bytes = path.size() + tail.size() + 24;
    if (weight == 0) {
      return;
    }
    if (out.size() + bytes > kMostFoldedBytes) {
      left_out += weight;
      return;
    }
    out += path;
    out += path.empty() || tail.empty() ? "" : ";";
    out += tail;
    out += " " + std::to_string(weight) + "\n";
  };
  for (const FlameRow& row : flame_rows(tree, ~std::uint32_t{0})) {
    const FlameNode& node = tree.nodes()[row.node];
    if (node.depth != 0) {
      ends.resize(node.depth - 1);
      path.resize(ends.empty() ? 0 : ends.back());
      path += path.empty() ? "" : ";";
      path += folded_name(tree, node.frame, by_line);
      ends.push_back(path.size());
    }
    write("", node.self);
    write(kLeftOutName, node.cut);
  }
  if (left_out != 0) {
    out += std::string(kLeftOutName) + " " + std::to_string(left_out) + "\n";
  }
  return out;
}

std::string flame_json(const FlameTree& tree, const FlameHeading& heading, std::uint32_t max_nodes,
                       std::uint32_t max_functions) {
  const std::vector<FlameRow> rows = flame_rows(tree, max_nodes);
  std::vector<FlameFunction> functions = tree.functions();
  std::unordered_map<FrameId, std::size_t> number_of;
  // Those of the nodes are there in any case.
  std::vector<bool> is_needed;
  for (const FlameRow& row : rows) {
    const FrameId frame = tree.nodes()[row.node].frame;
    is_needed.resize(std::max<std::size_t>(is_needed.size(), frame + 1));
    is_needed[frame] = true;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const FrameId frame = functions[i].frame;
    if (i < max_functions || (frame < is_needed.size() && is_needed[frame])) {
      functions[kept++] = functions[i];
    }
  }
  const std::size_t functions_left_out = functions.size() - kept;
  functions.resize(kept);
  std::string out = "{\"title\": ";
  append_json_string(out, heading.title);
  out += ", \"counts\": ";
  append_json_string(out, heading.noun);
  out += std::string(", \"unit\": \"") + std::string(unit_name(tree.unit())) +
         "\", \"inverted\": " + (tree.is_inverted() ? "true" : "false") +
         ", \"by_line\": " + (heading.by_line ? "true" : "false") +
         ", \"total\": " + std::to_string(tree.total()) +
         ", \"count\": " + std::to_string(tree.count()) +
         ", \"truncated\": " + std::to_string(tree.truncated()) +
         ", \"left_out\": " + std::to_string(tree.left_out()) +
         ", \"nodes_left_out\": " + std::to_string(tree.nodes().size() - rows.size()) +
         ", \"functions_left_out\": " + std::to_string(functions_left_out) + ", \"notes\": [";
  append_texts(out, heading.notes);
  out += "],\n\"functions\": [";
  for (std::size_t i = 0; i < functions.size(); ++i) {
    number_of.emplace(functions[i].frame, i);
    out += i == 0 ? "\n{\"name\": " : ",\n{\"name\": ";
    append_json_string(out, tree.name(functions[i].frame));
    out += ", \"module\": ";
    append_json_string(out, tree.module(functions[i].frame));
    if (tree.line(functions[i].frame) != 0) {
      out += ", \"file\": ";
      append_json_string(out, tree.file(functions[i].frame));
      out += ", \"line\": " + std::to_string(tree.line(functions[i].frame));
    }
    out += ", \"self\": " + std::to_string(functions[i].self) +
           ", \"total\": " + std::to_string(functions[i].total) + inlined_member(functions[i]) +
           "}";
  }
  out += "\n],\n\"nodes\": [";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const FlameNode& node = tree.nodes()[rows[i].node];
    const auto function = number_of.find(node.frame);
    out += i == 0 ? "\n{\"function\": " : ",\n{\"function\": ";
    out += function == number_of.end() ? "null" : std::to_string(function->second);
    out += ", \"parent\": ";
    out += i == 0 ? "null" : std::to_string(rows[i].parent);
    out += ", \"self\": " + std::to_string(node.self) +
           ", \"total\": " + std::to_string(node.total) +
           ", \"left_out\": " + std::to_string(rows[i].left_out) + inlined_member(node) + "}";
  }
  return out + "\n]}\n";
}

}  // namespace dial9::analysis
