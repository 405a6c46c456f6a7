// SPDX-License-Identifier: Apache-2.0
#include "sources/kernel_numbers.h"

#include <algorithm>
#include <charconv>

namespace dial9::internal {
namespace {

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text;
}

// The number that the text begins with.
MaybeNumber leading_number(std::string_view text) {
  text = without_blanks(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

// What follows `key` on the line that begins with it and a blank; none: no such line.
std::optional<std::string_view> line_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(key) && line.size() > key.size() &&
        (line[key.size()] == ' ' || line[key.size()] == '\t')) {
      return line.substr(key.size());
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

// The number at `index` of those that blanks divide; absent where one before it isn't a number.
MaybeNumber number_at(std::string_view text, int index) {
  for (int at = 0;; ++at) {
    text = without_blanks(text);
    const MaybeNumber number = leading_number(text);
    if (!number || at == index) return number;
    text.remove_prefix(std::min(text.size(), text.find(' ')));
  }
}

MaybeNumber total_of(std::string_view text, std::string_view kind) {
  const auto line = line_of(text, kind);
  constexpr std::string_view kTotal = " total=";
  const std::size_t at = line ? line->find(kTotal) : std::string_view::npos;
  if (at == std::string_view::npos) return std::nullopt;
  return leading_number(line->substr(at + kTotal.size()));
}

}  // namespace

MaybeNumber parse_number(std::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

MaybeNumber find_number(std::string_view text, std::string_view key) {
  const auto line = line_of(text, key);
  return line ? leading_number(*line) : std::nullopt;
}

Pressure parse_pressure(std::string_view text) {
  return {total_of(text, "some"), total_of(text, "full")};
}

Pages parse_statm(std::string_view statm) {
  // size resident shared text lib data dt
  return {number_at(statm, 1), number_at(statm, 2)};
}

MaybeNumber parse_steal_ticks(std::string_view proc_stat) {
  // cpu user nice system idle iowait irq softirq steal guest guest_nice
  constexpr int kSteal = 7;
  const auto line = line_of(proc_stat, "cpu");
  return line ? number_at(*line, kSteal) : std::nullopt;
}

}  // namespace dial9::internal
