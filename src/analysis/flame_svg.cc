// A flame tree as an SVG file: an icicle, the whole on top, with the full name, weight and percent
// of each frame as its tooltip. No script, so that it may be shown anywhere. See flame.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "analysis/flame.h"
#include "analysis/human.h"
#include "analysis/json_text.h"

namespace dial9::analysis {
namespace {

constexpr double kWidth = 1200;
constexpr double kMargin = 10;
constexpr double kRowHeight = 18;
constexpr double kTop = 56;
constexpr double kNoteHeight = 16;
constexpr double kLetterWidth = 7.0;
constexpr double kLeastWidth = 1.0 / 3;
constexpr std::uint32_t kMostRows = 20'000;
constexpr std::size_t kMostNotes = 20;

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

void append_frame(std::string& out, const FlameTree& tree, const FlameNode& node, double x,
                  double y, double width, bool by_line) {
  const std::string name = node.depth == 0 ? "all" : flame_name(tree, node.frame, by_line);
  std::string tip = name;
  if (!tree.module(node.frame).empty()) {
    tip += " [" + std::string(tree.module(node.frame)) + "]";
  }
  tip += ": " + flame_weight(tree.unit(), node.total) + ", " +
         percent_of(node.total, tree.total()) + " (itself " + percent_of(node.self, tree.total()) +
         (node.inlined == 0            ? ")"
          : node.inlined == node.total ? ", inlined)"
                                       : ", partly inlined)");
  out += "<g><title>" + xml_text(tip) + "</title><rect x=\"" + decimal(x) + "\" y=\"" + decimal(y) +
         "\" width=\"" + decimal(std::max(width, kLeastWidth)) + "\" height=\"" +
         decimal(kRowHeight - 1) + "\" fill=\"" +
         (node.depth == 0 ? "#bbb" : colour(tree, node.frame)) + "\"/>";
  const std::string label = fitting(name, width);
  if (!label.empty()) {
    out += "<text class=\"f\" x=\"" + decimal(x + 2) + "\" y=\"" + decimal(y + 13) + "\">" +
           xml_text(label) + "</text>";
  }
  out += "</g>\n";
}

}  // namespace

std::string flame_svg(const FlameTree& tree, const FlameHeading& heading) {
  const double scale =
      tree.total() == 0 ? 0 : (kWidth - 2 * kMargin) / static_cast<double>(tree.total());
  const std::size_t notes = std::min(heading.notes.size(), kMostNotes);
  const double top = kTop + kNoteHeight * static_cast<double>(notes);
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
    append_frame(frames, tree, node, kMargin + static_cast<double>(row.start) * scale,
                 top + kRowHeight * node.depth, width, heading.by_line);
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
  const std::string lines[] = {
      heading.title + ": " + flame_weight(tree.unit(), tree.total()) + " in " +
          counted(tree.count(), heading.noun) +
          (tree.is_inverted() ? ", from the leaf outwards" : ""),
      "percents are of this sum" +
          (hidden == 0 ? "" : "; " + counted(hidden, "frame") + " too thin to be drawn")};
  double y = 20;
  const auto line = [&](std::string_view text) {
    out += "<text x=\"" + decimal(kMargin) + "\" y=\"" + decimal(y) + "\">" + xml_text(text) +
           "</text>\n";
    y += kNoteHeight;
  };
  line(lines[0]);
  line(lines[1]);
  for (std::size_t i = 0; i < notes; ++i) {
    line(heading.notes[i]);
  }
  return out + frames + "</svg>\n";
}

}  // namespace dial9::analysis
