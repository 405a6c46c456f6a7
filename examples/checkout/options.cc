// The checkout service's command line, by CLI11.
// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <thread>

namespace checkout {

std::optional<Options> parse_options(int argc, char** argv, int* exit_code) {
  Options options;
  options.workers = std::max(2U, std::thread::hardware_concurrency());
  std::string faults;
  bool lists_faults = false;

  CLI::App app{"A shop's checkout service, recorded by dial9", "checkout"};
  app.add_option("--address", options.address, "Address to listen on")->capture_default_str();
  app.add_option("--port", options.port, "Port to listen on; 0: any free one, printed")
      ->capture_default_str();
  app.add_option("--workers", options.workers, "Threads that serve requests")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--kv-address", options.kv_address, "Address of checkout_kv")
      ->capture_default_str();
  app.add_option("--kv-port", options.kv_port, "Port of checkout_kv")->capture_default_str();
  app.add_option("--kv-connections", options.kv_connections, "Most connections to checkout_kv")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--max-connections", options.max_connections, "Most clients at once")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--audit", options.audit_path, "File that gets a line for each order")
      ->capture_default_str();
  app.add_flag("--audit-sync", options.is_audit_synced, "Sync it before an order is confirmed");
  app.add_option("--drain-ms", options.drain_ms, "Longest wait for busy clients at shutdown, ms")
      ->capture_default_str();
  app.add_option("--fault", faults, "Switch on faults: NAME[,NAME...]; see --list-faults");
  app.add_flag("--list-faults", lists_faults, "Describe the faults and end");
  auto* dir = app.add_option("--trace-dir", options.trace_dir, "Record into this directory");
  auto* ring = app.add_flag("--memory-ring", options.is_memory_ring, "Record into memory only");
  ring->excludes(dir);
  std::string sources = "all";
  app.add_option("--sources", sources,
                 "runtime: events of the runtime and spans alone; all: also the samples of the "
                 "process and its threads")
      ->check(CLI::IsMember({"runtime", "all"}))
      ->capture_default_str();
  app.add_option("--rotation-ms", options.rotation_ms, "Longest time in one segment, ms")
      ->check(CLI::Range(10, 3600000))
      ->capture_default_str();
  app.add_option("--dump", options.dump_path, "Write the memory ring to this file on SIGUSR1")
      ->needs(ring);
  app.footer("Without --trace-dir and --memory-ring, the DIAL9_ environment variables decide.");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  if (lists_faults) {
    std::fputs(describe_faults().c_str(), stdout);
    *exit_code = 0;
    return std::nullopt;
  }
  const auto set = parse_faults(faults);
  if (!set) {
    std::fprintf(stderr, "checkout: --fault: %s\n", set.error().c_str());
    *exit_code = 2;
    return std::nullopt;
  }
  options.faults = *set;
  options.has_all_sources = sources == "all";
  return options;
}

}  // namespace checkout
