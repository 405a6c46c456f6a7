// What was found out about addresses of a module, kept on disk by build id, so that the next reader
// needn't look again, nor have the file. Strongest property: the folder stays within its bound, the
// least lately used goes first; what isn't whole, or somebody else's, isn't read.
// Spec: docs/spec/flame.md, "Debug information".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "symbolize/frame_table.h"

namespace dial9::symbolize {

struct FrameCacheOptions {
  std::string directory;  // made when something is saved; empty: no cache
  std::uint64_t most_bytes = std::uint64_t{128} << 20;
};

// Several processes may use a folder at a time: the last to save a module wins.
class FrameCache {
 public:
  static constexpr std::uint64_t kMostModuleBytes = 32 << 20;

  explicit FrameCache(FrameCacheOptions options) : options_(std::move(options)) {}

  // `build_id` consists of hexadecimal digits. Empty: nothing is known.
  FrameTable load(const std::string& build_id) const;
  // Replaces what was there; more than kMostModuleBytes isn't kept. What fails is left out.
  void save(const std::string& build_id, const FrameTable& frames) const;

 private:
  std::string path_of(const std::string& build_id) const;
  void shrink() const;

  FrameCacheOptions options_;
};

}  // namespace dial9::symbolize
