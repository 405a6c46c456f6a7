// A process of its own that reads debug information, and the side that asks it. Strongest property:
// whatever a file makes libdw do (crash, run for ever, take all memory), the asker loses lines and
// inlined functions of that file, never its life, and gets its answer within a bound of time. The
// worker's answers are not trusted either. Spec: docs/spec/flame.md, "Debug information".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbolize/frame_table.h"
#include "symbolize/worker_process.h"

namespace dial9::symbolize {

struct DwarfWorkerOptions {
  // The program and its arguments; it calls run_dwarf_worker(). Empty: no debug information is
  // read.
  std::vector<std::string> command;
  int open_ms = 30'000;  // until a file is open
  int look_ms = 10'000;  // until addresses are answered
  int retry_ms = RetryPause::kFirstMs;  // the first pause after the system had no process for it
};

// Not thread-safe. Starts the worker at the first open().
class DwarfWorker {
 public:
  static constexpr std::size_t kMostAddresses = 1024;  // at a time

  explicit DwarfWorker(const DwarfWorkerOptions& options)
      : options_(options), process_(options.command, {}, options.retry_ms) {}

  // What frames() takes. Errors: kNotFound, kCorrupt, kUnsupported and others of the file; kLimit
  // (too long), kIo (the worker ended).
  Result<std::uint32_t> open(const std::string& path, const std::string& build_id);
  // Of the first of the addresses, as DwarfFile::frames() has them: at least of one; not of those
  // whose answer would be too large for one message, which may be asked for again. At most
  // kMostAddresses, each once. Errors: kCorrupt (the file was written to, or is another one now),
  // kLimit, kIo.
  Result<FrameTable> frames(std::uint32_t file, std::span<const std::uint64_t> addresses);
  // The same in two steps, so that several workers look at a time: the answer to a question that
  // was sent is taken before anything else is asked.
  Result<void> ask(std::uint32_t file, std::span<const std::uint64_t> addresses);
  Result<FrameTable> answer(std::span<const std::uint64_t> asked);
  // open() or ask() failed since the system has no process for now; later it may.
  bool lacks_process() const { return process_.is_short(); }
  // Which of the addresses it was looking up when the process ended, after answer() failed;
  // nothing: none, or that isn't known.
  std::optional<std::size_t> culprit() const { return culprit_; }

 private:
  struct File {
    std::string path;
    std::string build_id;
    int process = 0;  // the one that has it open
    std::uint32_t number = 0;
  };
  Result<std::uint32_t> open_in_worker(const File& file);

  DwarfWorkerOptions options_;
  std::vector<File> files_;
  WorkerProcess process_;
  std::optional<std::size_t> culprit_;
};

// The worker: answers on descriptor 0, a stream socket, until the other end closes it. Closes all
// descriptors but the first three, and sets limits on its own memory, CPU time and files.
// `most_answer_bytes`: addresses behind it are left for another question. `before_address`, for
// tests: called before each is looked up. Returns the exit code.
int run_dwarf_worker(std::size_t most_answer_bytes = 8 << 20,
                     const std::function<void(std::uint64_t)>& before_address = {});

}  // namespace dial9::symbolize
