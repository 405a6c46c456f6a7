// checkout_load: drives the checkout service at a rate that the service can't slow down, and
// reports latencies from the intended send times. It is not recorded. Exit: 0 all requests answered
// below 500, 1 some weren't, 2 wrong usage, 3 no connection.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "client.h"
#include "descriptor_limit.h"

namespace {

// Fills `options` from argv; returns the exit code if the process should end now, else -1.
int parse(int argc, char** argv, checkout::load::ClientOptions& options, bool& is_json) {
  std::string pattern = "poisson";
  unsigned timeout_ms = 5000;
  CLI::App app{"Open-loop load for the checkout service", "checkout_load"};
  app.add_option("--address", options.address, "Address of the service")->capture_default_str();
  app.add_option("--port", options.port, "Port of the service")->capture_default_str();
  app.add_option("--rate", options.rate_hz, "Requests a second")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  app.add_option("--duration", options.duration_s, "Length of the run, s")
      ->check(CLI::Range(0.01, 86400.0))
      ->capture_default_str();
  app.add_option("--connections", options.connections, "Kept connections")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--pattern", pattern, "Arrivals: constant, poisson, step or burst")
      ->capture_default_str();
  app.add_option("--checkout-share", options.checkout_share, "Orders among the requests, 0 to 1")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--timeout-ms", timeout_ms, "A request without answer fails after this, ms")
      ->check(CLI::Range(1, 600000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the schedule and the requests")->capture_default_str();
  app.add_flag("--json", is_json, "Print the results as one JSON object");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto parsed = checkout::load::parse_pattern(pattern);
  if (!parsed) {
    std::fprintf(stderr, "checkout_load: --pattern: %s\n", parsed.error().c_str());
    return 2;
  }
  options.pattern = *parsed;
  options.timeout = std::chrono::milliseconds(timeout_ms);
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  checkout::load::ClientOptions options;
  bool is_json = false;
  if (const int code = parse(argc, argv, options, is_json); code >= 0) return code;
  checkout::raise_descriptor_limit();
  try {
    const auto results = checkout::load::run_load(options);
    if (results.connections == 0) {
      std::fprintf(stderr, "checkout_load: no service that works at %s:%u\n",
                   options.address.c_str(), static_cast<unsigned>(options.port));
      return 3;
    }
    const std::string report = is_json ? to_json(results) : to_text(results);
    std::fputs(report.c_str(), stdout);
    return results.is_clean() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "checkout_load: %s\n", error.what());
    return 3;
  }
}
