// The checkout service's command line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "fault_names.h"

namespace checkout {

struct Options {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any free one
  unsigned workers = 4;
  std::string kv_address = "127.0.0.1";
  std::uint16_t kv_port = 8081;
  std::size_t kv_connections = 32;
  std::size_t max_connections = 10000;
  std::string audit_path = "checkout-audit.jsonl";
  bool is_audit_synced = false;
  std::uint32_t drain_ms = 5000;  // longest wait for busy connections at shutdown
  FaultSet faults;
  std::string trace_dir;              // record into this directory; empty: see is_memory_ring
  bool is_memory_ring = false;        // record into memory, nothing on disk
  bool has_all_sources = true;        // else runtime events and spans alone
  std::uint32_t rotation_ms = 10000;  // a segment of the recording is sealed at this age
  std::string dump_path;              // memory ring: where SIGUSR1 writes it to
};

// Reads argv. Returns nothing if the process should end now with *exit_code: after --help,
// --list-faults, or a mistake that has been explained on stderr.
std::optional<Options> parse_options(int argc, char** argv, int* exit_code);

}  // namespace checkout
