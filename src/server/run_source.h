// Where runs come from, as the server needs it: a list, and the bytes of one run's files in order.
// Kept apart from any file system so that routes and the store are tested on memory.
// Spec: docs/spec/http_api.md, "Runs".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dial9::server {

struct RunFile {
  std::string name;  // for people
  std::string path;  // for the source that made it
  std::uint64_t bytes = 0;
};

struct RunInfo {
  std::string id;    // unique in a list; what a URL names. Never used as a path
  std::string name;  // for people
  std::uint64_t bytes = 0;
  std::int64_t modified_ms = 0;  // since 1970, of the newest file
  bool is_live = false;          // a segment of it is active: a recorder writes it, or has died
  // All its segments are sealed. None: not known, of a file that isn't named as a segment.
  std::optional<bool> is_sealed;
  bool is_base = false;        // to compare with: not under the root; see base_runs.h
  std::vector<RunFile> files;  // in order of time
};

class RunSource {
 public:
  virtual ~RunSource() = default;
  // A short text for people that says where the runs lie.
  virtual std::string root() const = 0;
  // All runs, newest first. Any thread.
  virtual Result<std::vector<RunInfo>> list() = 0;
  // The bytes of file `file` of `run` in chunks, as they lie there; stops early when `take` returns
  // false. Errors of the world only (the file is gone, is unreadable). Any thread.
  virtual Result<void> read(const RunInfo& run, std::size_t file,
                            const std::function<bool(std::span<const std::uint8_t>)>& take) = 0;
};

}  // namespace dial9::server
