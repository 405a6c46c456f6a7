// The load generator's engine: an open-loop schedule over many kept connections, on one thread.
// Latency counts from the time at which a request should have been sent, also while it waits for a
// free connection, so a stalled service can't hide behind the generator (coordinated omission).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "arrivals.h"
#include "results.h"

namespace checkout::load {

struct ClientOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8080;
  std::size_t connections = 64;
  double rate_hz = 500;
  double duration_s = 10;
  Pattern pattern = Pattern::kPoisson;
  double checkout_share = 0.3;  // the rest reads carts
  unsigned carts = 256;         // that exist; written before the run begins
  std::chrono::milliseconds timeout{5000};
  std::uint64_t seed = 1;
};

// Connects, writes the carts, runs the schedule, waits for the last answers (at most the time-out).
// Results.connections is 0 if the service can't be reached or the carts can't be written; then
// nothing was run.
Results run_load(const ClientOptions& options);

}  // namespace checkout::load
