// A process of its own that reads debug information, and the side that asks it. Strongest property:
// whatever a file makes libdw do (crash, run for ever, take all memory), the asker loses lines and
// inlined functions of that file, never its life, and gets its answer within a bound of time. The
// worker's answers are not trusted either. Spec: docs/spec/flame.md, "Debug information".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "symbolize/frame.h"

namespace dial9::symbolize {

struct DwarfWorkerOptions {
  // The program and its arguments; it calls run_dwarf_worker(). Empty: no debug information is
  // read.
  std::vector<std::string> command;
  int open_ms = 30'000;  // until a file is open
  int look_ms = 10'000;  // until addresses are answered
};

// Not thread-safe. Starts the worker at the first open(); a worker that failed is replaced, at most
// kMostWorkers times in all.
class DwarfWorker {
 public:
  static constexpr int kMostWorkers = 16;
  static constexpr std::size_t kMostAddresses = 1024;  // at a time

  explicit DwarfWorker(DwarfWorkerOptions options) : options_(std::move(options)) {}
  ~DwarfWorker() { stop(); }
  DwarfWorker(const DwarfWorker&) = delete;
  DwarfWorker& operator=(const DwarfWorker&) = delete;

  // What frames() takes. Errors: kNotFound, kCorrupt, kUnsupported and others of the file; kLimit
  // (too long), kIo (the worker ended).
  Result<std::uint32_t> open(const std::string& path, const std::string& build_id);
  // Of each address as DwarfFile::frames() has them; at most kMostAddresses. Errors: kLimit, kIo.
  Result<std::vector<std::vector<Frame>>> frames(std::uint32_t file,
                                                 std::span<const std::uint64_t> addresses);

 private:
  struct File {
    std::string path;
    std::string build_id;
    int worker = 0;  // which of them has it open
    std::uint32_t number = 0;
  };
  Result<std::uint32_t> open_in_worker(const File& file);
  Result<void> start();
  void stop();
  // A request and its answer.
  Result<std::vector<std::uint8_t>> ask(std::span<const std::uint8_t> request, int within_ms);

  DwarfWorkerOptions options_;
  std::vector<File> files_;
  int workers_ = 0;  // started so far
  pid_t pid_ = 0;    // 0: none runs
  UniqueFd socket_;
};

// The worker: answers on descriptor 0, a stream socket, until the other end closes it. Closes all
// descriptors but the first three, and sets limits on its own memory and CPU time. Returns the exit
// code.
int run_dwarf_worker();

}  // namespace dial9::symbolize
