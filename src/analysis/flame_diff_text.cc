// Two flame trees as text, folded stacks and JSON. See flame_diff.h.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string_view>

#include "analysis/flame_diff.h"
#include "analysis/flame_forms.h"
#include "analysis/human.h"
#include "analysis/json_text.h"

namespace dial9::analysis {
namespace {

std::string side_text(const FlameDiff& diff, const FlameHeading& heading, std::uint64_t weight,
                      std::uint64_t count) {
  if (heading.is_unknown) {
    return "unknown";
  }
  return flame_weight(diff.unit, weight) + " in " + counted(count, heading.noun) +
         std::string(uncertain_text(heading));
}

std::string points(double change) {
  return (change < 0 ? "-" : change > 0 ? "+" : "") + human_share(std::abs(change));
}

void append_sides(std::string& out, std::string_view name, const FlameSides& sides) {
  out += ", \"" + std::string(name) + "\": [" + std::to_string(sides.before) + ", " +
         std::to_string(sides.after) + "]";
}

}  // namespace

std::vector<std::string> flame_diff_lines(const FlameDiff& diff, const FlameDiffHeading& heading) {
  std::vector<std::string> lines = {
      heading.after.title + ": " +
          side_text(diff, heading.after, diff.whole.after, diff.count.after) + "; before, " +
          heading.before_name + ": " +
          side_text(diff, heading.before, diff.whole.before, diff.count.before),
      "percents are of each side's own sum"};
  lines.insert(lines.end(), heading.notes.begin(), heading.notes.end());
  lines.insert(lines.end(), heading.after.notes.begin(), heading.after.notes.end());
  for (const std::string& note : heading.before.notes) {
    lines.push_back("before: " + note);
  }
  return lines;
}

std::string flame_diff_text(const FlameDiff& diff, const FlameDiffHeading& heading,
                            std::uint64_t limit) {
  constexpr std::size_t kWidth = 13;
  std::string out;
  for (const std::string& line : flame_diff_lines(diff, heading)) {
    out += to_printable(line) + "\n";
  }
  if (diff.functions.empty()) {
    return out;
  }
  out += "\n" + right_aligned("self", kWidth) + right_aligned("before", kWidth) +
         right_aligned("now", kWidth) + right_aligned("total", kWidth) +
         right_aligned("before", kWidth) + right_aligned("now", kWidth) + "  function\n";
  for (std::size_t i = 0; i < diff.functions.size() && i < limit; ++i) {
    const FlameDiffFunction& function = diff.functions[i];
    for (const FlameSides& sides : {function.self, function.total}) {
      out += right_aligned(points(share_change(sides, diff.whole)), kWidth) +
             right_aligned(percent_of(sides.before, diff.whole.before), kWidth) +
             right_aligned(percent_of(sides.after, diff.whole.after), kWidth);
    }
    out += "  " + function_text(diff.tree, function.frame, heading.after.by_line) + "\n";
  }
  if (diff.functions.size() > limit) {
    out += "and " + counted(diff.functions.size() - limit, "function") +
           " that changed less (--limit)\n";
  }
  return out;
}

std::string flame_diff_folded(const FlameDiff& diff, bool by_line) {
  std::string out;
  FlameSides left_out;
  const auto numbers = [](const FlameSides& sides) {
    return std::to_string(sides.before) + " " + std::to_string(sides.after);
  };
  for_each_path(diff.tree, by_line, [&](const std::string& path, std::uint32_t node) {
    const FlameSides& self = diff.self[node];
    if ((self.before != 0 || self.after != 0) && !append_folded(out, path, "", numbers(self))) {
      left_out.before += self.before;
      left_out.after += self.after;
    }
  });
  if (left_out.before != 0 || left_out.after != 0) {
    out += std::string(kLeftOutName) + " " + numbers(left_out) + "\n";
  }
  return out;
}

std::string flame_diff_json(const FlameDiff& diff, const FlameDiffHeading& heading,
                            std::uint32_t max_nodes, std::uint32_t max_functions) {
  const std::vector<FlameRow> rows = flame_rows(diff.tree, max_nodes);
  std::vector<FrameId> order;
  for (const FlameDiffFunction& function : diff.functions) {
    order.push_back(function.frame);
  }
  const ShownFunctions shown = shown_functions(diff.tree, rows, order, max_functions);
  FlameHeading both = heading.after;
  both.is_uncertain = both.is_uncertain || heading.before.is_uncertain;
  std::string out = json_heading(both, diff.unit, diff.tree.is_inverted());
  const auto whole = [](const FlameHeading& of, std::uint64_t weight) {
    return of.is_unknown ? "null" : std::to_string(weight);
  };
  out += ", \"whole\": [" + whole(heading.before, diff.whole.before) + ", " +
         whole(heading.after, diff.whole.after) + "]";
  append_sides(out, "count", diff.count);
  out += ", \"width\": " + std::to_string(diff.tree.total()) +
         ", \"nodes_left_out\": " + std::to_string(diff.tree.nodes().size() - rows.size()) +
         ", \"functions_left_out\": " + std::to_string(shown.left_out) + ", \"before\": ";
  append_json_string(out, heading.before_name);
  out += ", \"notes_before\": ";
  append_json_strings(out, heading.before.notes);
  out += ", \"notes_compared\": ";
  append_json_strings(out, heading.notes);
  out += ",\n\"functions\": [";
  for (std::size_t i = 0; i < shown.order.size(); ++i) {
    const FlameDiffFunction& function = diff.functions[shown.order[i]];
    out += i == 0 ? "\n" : ",\n";
    append_function(out, diff.tree, function.frame);
    append_sides(out, "self", function.self);
    append_sides(out, "total", function.total);
    out += "}";
  }
  out += "\n],\n\"nodes\": [";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out += i == 0 ? "\n" : ",\n";
    append_place(out, diff.tree, rows, i, shown);
    append_sides(out, "self", diff.self[rows[i].node]);
    append_sides(out, "total", diff.total[rows[i].node]);
    out += ", \"width\": " + std::to_string(diff.tree.nodes()[rows[i].node].total) + "}";
  }
  return out + "\n]}\n";
}

}  // namespace dial9::analysis
