// Makes a Trace of the bytes of one or many segment files. Takes any mix of records: ours, the
// ecosystem's, older and newer dialects, missing and additional fields, any order of files and
// records. Strongest property: it never refuses a trace for what is in it; what can't be read is
// counted and named, what was read before stays.
//
// No threads, files, clocks or exceptions: the caller feeds bytes. Fields are resolved by name once
// a schema. O(n log n). Spec: docs/spec/events.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "analysis/trace.h"
#include "base/result.h"

namespace dial9::analysis {

struct LoadOptions {
  // The load stops, and the trace says so, when its columns have about so many bytes. The peak
  // while finish() sorts is up to Loader::kFinishPeak times this.
  std::uint64_t max_memory_bytes = std::uint64_t{4} << 30;
};

// Usage: for each file begin_input, feed..., end_input; then finish. One thread.
class Loader {
 public:
  explicit Loader(LoadOptions options = {});
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next bytes are those of another file (or object). `name` is for the reader only.
  void begin_input(std::string_view name);
  // Chunks of any size, plain or gzip. An error is also kept in Trace::inputs; the caller goes on
  // with the next file. kLimit: the memory bound is reached, feed nothing more.
  Result<void> feed(std::span<const std::uint8_t> bytes);
  // The file's end. Error: it ends inside a frame or was empty (kept likewise).
  Result<void> end_input();

  // Events so far, for progress.
  std::uint64_t events() const;
  // What the columns take so far, about. finish() takes up to kFinishPeak times that.
  std::uint64_t bytes() const;
  static constexpr double kFinishPeak = 1.6;

  // Sorts, pairs and indexes. The loader is spent. Cost: about 0.3 s a million polls at most.
  Trace finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// All of that for buffers in memory, for tests and small tools.
Trace load(std::span<const std::span<const std::uint8_t>> files, LoadOptions options = {});
Trace load(std::span<const std::uint8_t> file, LoadOptions options = {});

}  // namespace dial9::analysis
