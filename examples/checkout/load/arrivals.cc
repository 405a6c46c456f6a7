// The four arrival schedules of the load generator.
// SPDX-License-Identifier: Apache-2.0
#include "arrivals.h"

#include <algorithm>
#include <cmath>

namespace checkout::load {
namespace {
constexpr double kNsPerSecond = 1e9;
constexpr double kStepFactor = 3;
}  // namespace

std::expected<Pattern, std::string> parse_pattern(std::string_view name) {
  if (name == "constant") return Pattern::kConstant;
  if (name == "poisson") return Pattern::kPoisson;
  if (name == "step") return Pattern::kStep;
  if (name == "burst") return Pattern::kBurst;
  return std::unexpected("no arrival pattern is named '" + std::string(name) +
                         "'; there are: constant, poisson, step, burst");
}

Arrivals::Arrivals(Pattern pattern, double rate_hz, std::uint64_t duration_ns, std::uint64_t seed)
    : pattern_(pattern), rate_hz_(rate_hz), duration_ns_(duration_ns), random_(seed) {}

std::uint64_t Arrivals::exponential_gap_ns(double rate_hz) {
  return static_cast<std::uint64_t>(std::exponential_distribution<double>(rate_hz)(random_) *
                                    kNsPerSecond);
}

std::uint64_t Arrivals::next_ns() {
  const std::uint64_t index = index_++;
  switch (pattern_) {
    case Pattern::kConstant:
      return static_cast<std::uint64_t>(static_cast<double>(index) * kNsPerSecond / rate_hz_);
    case Pattern::kBurst: {
      const auto batch = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(rate_hz_));
      return index / batch * static_cast<std::uint64_t>(kNsPerSecond);
    }
    case Pattern::kPoisson:
      now_ns_ += exponential_gap_ns(rate_hz_);
      return now_ns_;
    case Pattern::kStep: {
      const std::uint64_t third = duration_ns_ / 3;
      const bool is_middle = now_ns_ >= third && now_ns_ < 2 * third;
      now_ns_ += exponential_gap_ns(is_middle ? rate_hz_ * kStepFactor : rate_hz_);
      return now_ns_;
    }
  }
  return now_ns_;
}

}  // namespace checkout::load
