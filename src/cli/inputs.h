// What the user named on the command line: files, runs, directories of runs, or - for the standard
// input. Reads them in chunks, in constant memory, with progress on a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/decoder.h"

namespace dial9::cli {

struct Input {
  std::string name;  // the path, or "standard input"
  bool is_stdin = false;
  std::uint64_t size_bytes = 0;  // 0: not known
};

class Verb;
// The argument PATH of a verb that reads traces: see expand_inputs().
void add_paths(Verb& verb, std::vector<std::string>& paths);

// The most that --memory takes: 16 TiB.
inline constexpr std::uint64_t kMostMemoryMib = std::uint64_t{1} << 24;

// The files that the paths stand for, in recording order; says on stderr which runs of a directory
// were not taken. Errors: a path that isn't there or holds no trace; - named twice.
Result<std::vector<Input>> expand_inputs(const std::vector<std::string>& paths);

// One line on stderr, rewritten at most ten times a second and removed at the end; nothing if
// stderr is no terminal, or before half a second has passed.
class Progress {
 public:
  Progress(const char* what, const std::vector<Input>& inputs);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void add(std::uint64_t bytes);

 private:
  const char* what_;
  std::uint64_t total_bytes_ = 0;
  std::uint64_t done_bytes_ = 0;
  std::uint64_t next_ns_ = 0;
  bool is_shown_ = false;
  bool is_enabled_;
};

using ByteSink = std::function<Result<void>(std::span<const std::uint8_t>)>;
// Gives the input's bytes to `sink` to the end, or to the sink's error, which is returned.
Result<void> read_input(const Input& input, const ByteSink& sink, Progress& progress);

// Reads and decodes one input (gzip or not) into `visitor`. `started` is called with its decoder
// before the first byte. `events` counts what was kept, also where an error is returned.
Result<void> decode_input(const Input& input, format::Visitor& visitor,
                          const std::function<void(const format::Decoder&)>& started,
                          Progress& progress, std::uint64_t& events);

// Says on stderr what went wrong with an input, where, and what helps.
void report_error(const std::string& name, const Error& error);

// Says on stderr what is wrong with a verb's command line. kUsage.
int report_usage(const std::string& verb, const std::string& what);

// The exit code of a verb that has read inputs.
class Outcome {
 public:
  // `events` that were kept of it.
  void add(const std::string& name, const Result<void>& result, std::uint64_t events);
  int exit_code() const;
  bool is_complete() const { return failed_ == 0; }

 private:
  std::uint64_t failed_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace dial9::cli
