// What a load run measured, and how it is printed. Every request that was intended is counted once:
// intended = answered (by status class) + errors (by kind) + unsent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "histogram.h"

namespace checkout::load {

struct Results {
  std::uint64_t intended = 0;               // requests that the schedule asked for
  std::array<std::uint64_t, 6> by_class{};  // answers; [2] = 2xx
  std::uint64_t timeouts = 0;               // sent, but not answered in time
  std::uint64_t closed = 0;                 // sent, but the connection ended first
  std::uint64_t bad_responses = 0;          // answered with what isn't HTTP
  std::uint64_t unsent = 0;                 // no connection was free before the run ended
  std::uint64_t failed_connects = 0;        // attempts, not requests
  std::uint64_t body_bytes = 0;
  std::size_t connections = 0;  // that were open when the run began
  double rate_hz = 0;           // as asked for
  double duration_s = 0;        // from the first intended send to the last answer
  Histogram latency_ns;         // of answers, from the intended send time

  std::uint64_t answered() const;
  // True if every intended request was answered with a status below 500.
  bool is_clean() const;
};

std::string to_text(const Results& results);
std::string to_json(const Results& results);

}  // namespace checkout::load
