// SPDX-License-Identifier: Apache-2.0
#include "analysis/human.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

namespace dial9::analysis {
namespace {

std::string with_digits(double value, const char* unit) {
  std::array<char, 48> text;
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::snprintf(text.data(), text.size(), "%.*f %s", digits, value, unit);
  return text.data();
}

}  // namespace

std::string human_duration(std::uint64_t ns) {
  constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
  const auto value = static_cast<double>(ns);
  if (ns == kUnknown) {
    return "unknown";
  }
  if (ns < 1'000) {
    return std::to_string(ns) + " ns";
  }
  if (ns < 1'000'000) {
    return with_digits(value / 1e3, "µs");
  }
  return ns < 1'000'000'000 ? with_digits(value / 1e6, "ms") : with_digits(value / 1e9, "s");
}

std::string human_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return human_count(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string counted(std::uint64_t count, std::string_view noun, std::string_view one,
                    std::string_view many) {
  return counted(count, noun) + " " + std::string(count == 1 ? one : many);
}

std::string in_what_was_read(bool is_truncated) {
  return is_truncated ? "in what was read of this trace" : "in this trace";
}

std::string more_are(std::uint64_t count) {
  return human_count(count) + (count == 1 ? " more is" : " more are");
}

std::string human_share(double share) {
  constexpr double kLeast = 0.00005;  // would read "0.00 %", which is what none at all reads
  return share > 0 && share < kLeast ? "under 0.01 %" : with_digits(share * 100, "%");
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? std::to_string(bytes) + " B" : with_digits(value, kUnits[unit]);
}

std::string right_aligned(std::string_view text, std::size_t width) {
  const auto letters = static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
  return std::string(letters < width ? width - letters : 1, ' ') + std::string(text);
}

std::string iso_time(std::uint64_t realtime_ns) {
  constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
  constexpr std::uint64_t kSecondsPerDay = 86'400;
  const std::uint64_t seconds = realtime_ns / kNsPerSecond;
  const auto of_day = static_cast<unsigned>(seconds % kSecondsPerDay);
  const std::chrono::year_month_day date{
      std::chrono::sys_days(std::chrono::days(static_cast<int>(seconds / kSecondsPerDay)))};
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02u:%02u:%02u.%09uZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), of_day / 3600, of_day / 60 % 60, of_day % 60,
                static_cast<unsigned>(realtime_ns % kNsPerSecond));
  return text.data();
}

std::string lost_text(std::uint64_t counted_events, bool has_unknown) {
  if (!has_unknown) {
    return counted(counted_events, "event");
  }
  return counted_events == 0 ? "an unknown number of events"
                             : "unknown, at least " + counted(counted_events, "event");
}

}  // namespace dial9::analysis
