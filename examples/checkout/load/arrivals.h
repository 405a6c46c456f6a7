// When requests should be sent: an open-loop schedule that doesn't ask whether the service keeps
// up. A pure function of its seed and options; the load generator holds the clock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <random>
#include <string>
#include <string_view>

namespace checkout::load {

enum class Pattern : std::uint8_t {
  kConstant,  // equal gaps
  kPoisson,   // independent arrivals: exponential gaps
  kStep,      // Poisson; three times the rate in the middle third of the run
  kBurst,     // a second's requests at once, every second
};

// The pattern named "constant", "poisson", "step" or "burst", or one line that says so.
std::expected<Pattern, std::string> parse_pattern(std::string_view name);

class Arrivals {
 public:
  // `rate_hz` > 0: mean arrivals a second (of the outer thirds for kStep). `duration_ns`: length of
  // the run, which kStep divides by three.
  Arrivals(Pattern pattern, double rate_hz, std::uint64_t duration_ns, std::uint64_t seed);

  // The next intended send time, in ns from the start of the run; never decreases.
  std::uint64_t next_ns();

 private:
  std::uint64_t exponential_gap_ns(double rate_hz);

  Pattern pattern_;
  double rate_hz_;
  std::uint64_t duration_ns_;
  std::uint64_t index_ = 0;
  std::uint64_t now_ns_ = 0;
  std::mt19937_64 random_;
};

}  // namespace checkout::load
