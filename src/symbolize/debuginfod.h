// Debug files from debuginfod servers, only where the user asked for them, by libdebuginfod in a
// process of its own. Strongest property: nobody is asked unless told; a file, the folder of files
// and the wait are bounded. Spec: docs/spec/flame.md, "Debuginfod".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbolize/worker_process.h"

namespace dial9::symbolize {

struct DebuginfodOptions {
  std::string urls;                  // as DEBUGINFOD_URLS has them; empty: nobody is asked
  std::vector<std::string> command;  // of the process; it calls run_dwarf_worker()
  std::string directory;             // where files are kept; made when it is needed
  std::uint64_t most_file_bytes = std::uint64_t{1} << 30;
  std::uint64_t most_bytes = std::uint64_t{4} << 30;  // of the folder, the newest file aside
  int fetch_ms = 120'000;
  bool shows_progress = false;  // on stderr
};

// Not thread-safe.
class Debuginfod {
 public:
  explicit Debuginfod(DebuginfodOptions options);

  bool is_on() const { return !options_.urls.empty(); }
  // Nobody is asked again: the last error is about the servers, not about one file.
  bool has_given_up() const { return !given_up_.empty(); }
  // The last fetch() failed since the system has no process for now; later it may.
  bool lacks_process() const { return process_.is_short(); }
  // The path of the debug file, from the folder or from a server. `name`: the module's, for the
  // progress. Errors: kNotFound (no server has it), kLimit (too large, too long), kUnsupported (no
  // libdebuginfod.so.1), kIo. After one that isn't kNotFound or kLimit for a file's size, nobody is
  // asked again, unless the process was lacking.
  Result<std::string> fetch(const std::string& build_id, const std::string& name);

 private:
  void shrink(const std::string& but_not) const;

  DebuginfodOptions options_;
  WorkerProcess process_;
  std::string given_up_;  // why; empty: not yet
};

// In the process: fetches by libdebuginfod, with what its environment says. `most_bytes`: of the
// file; errors as above.
Result<std::string> fetch_by_library(const std::string& build_id, const std::string& name,
                                     std::uint64_t most_bytes, bool shows_progress);

}  // namespace dial9::symbolize
