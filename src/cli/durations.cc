// SPDX-License-Identifier: Apache-2.0
#include "cli/durations.h"

#include <charconv>
#include <cmath>
#include <utility>

namespace dial9::cli {

std::optional<std::uint64_t> parse_duration(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || !std::isfinite(value) || value < 0) {
    return std::nullopt;
  }
  const std::string_view unit(after, static_cast<std::size_t>(end - after));
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1}, {"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}};
  for (const auto& [name, factor] : kUnits) {
    if (unit == name) {
      const double ns = std::round(value * factor);
      constexpr double kBeyond = 18446744073709551616.0;  // 2^64
      return ns < kBeyond ? std::optional(static_cast<std::uint64_t>(ns)) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::string check_duration(const std::string& text) {
  return parse_duration(text) ? std::string{}
                              : "'" + text + "' is no duration; write for instance 20ms or 1.5s";
}

std::string check_range(const std::string& from_name, const std::string& from,
                        const std::string& to_name, const std::string& to) {
  if (to.empty()) return "";
  const std::uint64_t from_ns = parse_duration(from).value_or(0);
  if (from_ns < parse_duration(to).value_or(0)) return "";
  if (from.empty()) return to_name + " " + to + ": nothing lies before the trace's start";
  return from_name + " " + from + " must be before " + to_name + " " + to;
}

}  // namespace dial9::cli
