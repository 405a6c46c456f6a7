// A flame tree as JSON. Strongest property: each node's function is there, whatever the most that
// are asked for; what is left out is counted. See flame.h. Spec: docs/spec/flame.md, "Forms".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/flame.h"
#include "analysis/flame_forms.h"
#include "analysis/json_text.h"

namespace dial9::analysis {
namespace {

std::string_view unit_name(FlameUnit unit) {
  return unit == FlameUnit::kNs ? "ns" : unit == FlameUnit::kBytes ? "bytes" : "count";
}

void append_numbers(std::string& out,
                    std::initializer_list<std::pair<const char*, std::uint64_t>> numbers) {
  for (const auto& [name, number] : numbers) {
    out += std::string(", \"") + name + "\": " + std::to_string(number);
  }
}

// Most have none.
void append_inlined(std::string& out, std::uint64_t inlined) {
  if (inlined != 0) {
    append_numbers(out, {{"inlined", inlined}});
  }
}

}  // namespace

void append_json_strings(std::string& out, const std::vector<std::string>& texts) {
  out += "[";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    out += i == 0 ? "" : ", ";
    append_json_string(out, texts[i]);
  }
  out += "]";
}

std::string json_heading(const FlameHeading& heading, FlameUnit unit, bool is_inverted) {
  std::string out = "{\"title\": ";
  append_json_string(out, heading.title);
  out += ", \"counts\": ";
  append_json_string(out, heading.noun);
  out += std::string(", \"unit\": \"") + std::string(unit_name(unit)) +
         "\", \"inverted\": " + (is_inverted ? "true" : "false") +
         ", \"by_line\": " + (heading.by_line ? "true" : "false") +
         ", \"uncertain\": " + (heading.is_uncertain ? "true" : "false") + ", \"notes\": ";
  append_json_strings(out, heading.notes);
  return out;
}

ShownFunctions shown_functions(const FlameTree& tree, const std::vector<FlameRow>& rows,
                               const std::vector<FrameId>& functions, std::uint32_t most) {
  std::vector<bool> is_needed;
  for (const FlameRow& row : rows) {
    const FrameId frame = tree.nodes()[row.node].frame;
    is_needed.resize(std::max<std::size_t>(is_needed.size(), frame + 1));
    is_needed[frame] = true;
  }
  ShownFunctions shown;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const FrameId frame = functions[i];
    if (i < most || (frame < is_needed.size() && is_needed[frame])) {
      shown.number.emplace(frame, shown.order.size());
      shown.order.push_back(i);
    }
  }
  shown.left_out = functions.size() - shown.order.size();
  return shown;
}

void append_function(std::string& out, const FlameTree& tree, FrameId frame) {
  out += "{\"name\": ";
  append_json_string(out, tree.name(frame));
  out += ", \"module\": ";
  append_json_string(out, tree.module(frame));
  if (tree.line(frame) != 0) {
    out += ", \"file\": ";
    append_json_string(out, tree.file(frame));
    append_numbers(out, {{"line", tree.line(frame)}});
  }
}

void append_place(std::string& out, const FlameTree& tree, const std::vector<FlameRow>& rows,
                  std::size_t row, const ShownFunctions& shown) {
  const auto function = shown.number.find(tree.nodes()[rows[row].node].frame);
  out += "{\"function\": ";
  out += function == shown.number.end() ? "null" : std::to_string(function->second);
  out += ", \"parent\": ";
  out += row == 0 ? "null" : std::to_string(rows[row].parent);
  append_numbers(out, {{"start", rows[row].start}});
}

std::string flame_json(const FlameTree& tree, const FlameHeading& heading, std::uint32_t max_nodes,
                       std::uint32_t max_functions, std::string_view more) {
  const std::vector<FlameRow> rows = flame_rows(tree, max_nodes);
  const std::vector<FlameFunction> functions = tree.functions();
  std::vector<FrameId> order;
  for (const FlameFunction& function : functions) {
    order.push_back(function.frame);
  }
  const ShownFunctions shown = shown_functions(tree, rows, order, max_functions);
  std::string out = json_heading(heading, tree.unit(), tree.is_inverted()) + ", \"order\": " +
                    (tree.order() == FlameOrder::kTime ? "\"time\"" : "\"heavy\"");
  if (heading.is_unknown) {
    out += ", \"total\": null, \"whole\": null";
  } else {
    append_numbers(out, {{"total", tree.total()}, {"whole", heading.whole.value_or(tree.total())}});
  }
  append_numbers(out, {{"count", tree.count()},
                       {"truncated", tree.truncated()},
                       {"left_out", tree.left_out()},
                       {"nodes_left_out", tree.nodes().size() - rows.size()},
                       {"functions_left_out", shown.left_out}});
  out += ", \"unwound\": " + unwound_json(tree.unwound());
  out += ",\n\"functions\": [";
  for (std::size_t i = 0; i < shown.order.size(); ++i) {
    const FlameFunction& function = functions[shown.order[i]];
    out += i == 0 ? "\n" : ",\n";
    append_function(out, tree, function.frame);
    append_numbers(out, {{"self", function.self}, {"total", function.total}});
    append_inlined(out, function.inlined);
    out += "}";
  }
  out += "\n],\n\"nodes\": [";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const FlameNode& node = tree.nodes()[rows[i].node];
    out += i == 0 ? "\n" : ",\n";
    append_place(out, tree, rows, i, shown);
    append_numbers(out,
                   {{"self", node.self}, {"total", node.total}, {"left_out", rows[i].left_out}});
    append_inlined(out, node.inlined);
    out += "}";
  }
  out += "\n]";
  out += more;
  return out + "}\n";
}

}  // namespace dial9::analysis
