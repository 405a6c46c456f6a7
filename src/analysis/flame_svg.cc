// A flame tree as an SVG file: an icicle, the whole on top, with the full name, weight and percent
// of each frame as its tooltip. No script, so that it may be shown anywhere. See flame.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <utility>

#include "analysis/flame.h"
#include "analysis/flame_diff.h"
#include "analysis/human.h"
#include "analysis/json_text.h"

namespace dial9::analysis {
namespace {

constexpr double kWidth = 1200;
constexpr double kMargin = 10;
constexpr double kRowHeight = 18;
constexpr double kTop = 24;
constexpr double kNoteHeight = 16;
constexpr double kLetterWidth = 7.0;
constexpr double kLeastWidth = 1.0 / 3;
constexpr std::uint32_t kMostRows = 20'000;
constexpr std::size_t kMostLines = 22;

// Text of an XML document: printable, so valid, UTF-8 in, nothing that XML 1.0 forbids out.
std::string xml_text(std::string_view text) {
  std::string out;
  const std::string printable = to_printable(text);
  for (std::size_t i = 0; i < printable.size(); ++i) {
    const char c = printable[i];
    if (printable.compare(i, 3, "\xEF\xBF\xBE") == 0 ||
        printable.compare(i, 3, "\xEF\xBF\xBF") == 0) {
      out += "\xEF\xBF\xBD";
      i += 2;
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string decimal(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

// As many letters as fit; empty where fewer than three do.
std::string fitting(std::string_view name, double width) {
  const auto room = static_cast<std::size_t>(std::max(0.0, (width - 4) / kLetterWidth));
  const std::string text = to_printable(name);
  std::size_t letters = 0;
  std::size_t cut = 0;  // behind the last letter but one that fits
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) {
      continue;
    }
    cut = letters + 1 == room ? i : cut;
    ++letters;
  }
  if (room < 3) {
    return {};
  }
  return letters <= room ? text : text.substr(0, cut) + "…";
}

// Warm colours; functions of one module are of one hue.
std::string colour(const FlameTree& tree, FrameId frame) {
  const auto hash = [](std::string_view text) {
    std::uint32_t sum = 2166136261U;
    for (const char c : text) {
      sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
    }
    return sum ^ (sum >> 15);
  };
  const std::uint32_t hue = hash(tree.module(frame)) % 55;
  const std::uint32_t light = 62 + hash(tree.name(frame)) % 14;
  return "hsl(" + std::to_string(hue) + ",75%," + std::to_string(light) + "%)";
}

std::string full_name(const FlameTree& tree, const FlameNode& node, bool by_line) {
  std::string name = node.depth == 0 ? "all" : flame_name(tree, node.frame, by_line);
  if (!tree.module(node.frame).empty()) {
    name += " [" + std::string(tree.module(node.frame)) + "]";
  }
  return name;
}

// What differs between pictures.
struct Style {
  std::function<std::string(std::uint32_t node)> tip;
  std::function<std::string(std::uint32_t node)> colour;
  std::vector<std::string> lines;  // above it
  bool by_line = false;
};

void append_frame(std::string& out, const FlameTree& tree, const Style& style, std::uint32_t number,
                  double x, double y, double width) {
  const FlameNode& node = tree.nodes()[number];
  out += "<g><title>" + xml_text(style.tip(number)) + "</title><rect x=\"" + decimal(x) +
         "\" y=\"" + decimal(y) + "\" width=\"" + decimal(std::max(width, kLeastWidth)) +
         "\" height=\"" + decimal(kRowHeight - 1) + "\" fill=\"" +
         (node.depth == 0 ? "#bbb" : style.colour(number)) + "\"/>";
  const std::string label =
      fitting(node.depth == 0 ? "all" : flame_name(tree, node.frame, style.by_line), width);
  if (!label.empty()) {
    out += "<text class=\"f\" x=\"" + decimal(x + 2) + "\" y=\"" + decimal(y + 13) + "\">" +
           xml_text(label) + "</text>";
  }
  out += "</g>\n";
}

std::string picture(const FlameTree& tree, Style style) {
  const double scale =
      tree.total() == 0 ? 0 : (kWidth - 2 * kMargin) / static_cast<double>(tree.total());
  style.lines.resize(std::min(style.lines.size(), kMostLines));
  const double top = kTop + kNoteHeight * static_cast<double>(style.lines.size());
  std::string frames;
  std::uint32_t deepest = 0;
  std::uint64_t shown = 0;
  for (const FlameRow& row : flame_rows(tree, kMostRows)) {
    const FlameNode& node = tree.nodes()[row.node];
    const double width = static_cast<double>(node.total) * scale;
    if (width < kLeastWidth && node.depth != 0) {
      continue;
    }
    ++shown;
    deepest = std::max(deepest, node.depth);
    append_frame(frames, tree, style, row.node, kMargin + static_cast<double>(row.start) * scale,
                 top + kRowHeight * node.depth, width);
  }
  const double height = top + kRowHeight * (deepest + 1) + kMargin;
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
      "width=\"" +
      decimal(kWidth) + "\" height=\"" + decimal(height) + "\" viewBox=\"0 0 " + decimal(kWidth) +
      " " + decimal(height) +
      "\">\n<style>text{font:12px monospace;fill:#222}.b{fill:#fff}.f{fill:#111}"
      "@media(prefers-color-scheme:dark){text{fill:#ddd}.b{fill:#1b1b1b}.f{fill:#111}}"
      "rect:hover{stroke:#000}</style>\n<rect class=\"b\" width=\"100%\" height=\"100%\"/>\n";
  const std::uint64_t hidden = tree.nodes().size() - shown;
  if (hidden != 0) {
    style.lines[1] += "; " + counted(hidden, "frame") + " too thin to be drawn";
  }
  double y = 20;
  for (const std::string& line : style.lines) {
    out += "<text x=\"" + decimal(kMargin) + "\" y=\"" + decimal(y) + "\">" + xml_text(line) +
           "</text>\n";
    y += kNoteHeight;
  }
  return out + frames + "</svg>\n";
}

// Red: its share grew, blue: it shrank; the stronger, the more of it is new or gone.
std::string change_colour(const FlameDiff& diff, std::uint32_t node) {
  const FlameSides& total = diff.total[node];
  const double sum = static_cast<double>(diff.tree.nodes()[node].total);
  const double change = share_change(total, diff.whole) * static_cast<double>(kDiffSide) / sum;
  const double strength = sum == 0 ? 0 : std::min(std::abs(change), 1.0);
  return std::string("hsl(") + (change < 0 ? "215" : "5") + ",75%," + decimal(90 - 35 * strength) +
         "%)";
}

}  // namespace

std::string flame_svg(const FlameTree& tree, const FlameHeading& heading) {
  Style style;
  style.tip = [&](std::uint32_t number) {
    const FlameNode& node = tree.nodes()[number];
    return full_name(tree, node, heading.by_line) + ": " + flame_weight(tree.unit(), node.total) +
           ", " + percent_of(node.total, tree.total()) + " (itself " +
           percent_of(node.self, tree.total()) +
           (node.inlined == 0            ? ")"
            : node.inlined == node.total ? ", inlined)"
                                         : ", partly inlined)");
  };
  style.by_line = heading.by_line;
  style.colour = [&](std::uint32_t node) { return colour(tree, tree.nodes()[node].frame); };
  style.lines = {sum_text(tree, heading) + (tree.is_inverted() ? ", from the leaf outwards" : ""),
                 "percents are of this sum"};
  style.lines.insert(style.lines.end(), heading.notes.begin(), heading.notes.end());
  return picture(tree, std::move(style));
}

std::string flame_diff_svg(const FlameDiff& diff, const FlameDiffHeading& heading) {
  const auto side = [&](std::uint64_t weight, std::uint64_t whole) {
    return flame_weight(diff.unit, weight) + ", " + percent_of(weight, whole);
  };
  Style style;
  style.by_line = heading.after.by_line;
  style.tip = [&](std::uint32_t node) {
    const FlameSides& total = diff.total[node];
    return full_name(diff.tree, diff.tree.nodes()[node], style.by_line) + ": before " +
           side(total.before, diff.whole.before) + "; now " + side(total.after, diff.whole.after);
  };
  style.colour = [&](std::uint32_t node) { return change_colour(diff, node); };
  style.lines = flame_diff_lines(diff, heading);
  style.lines[1] += "; width: the mean of both shares; red grew, blue shrank";
  return picture(diff.tree, std::move(style));
}

}  // namespace dial9::analysis
