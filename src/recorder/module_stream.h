// The loaded modules as a stream of ModuleEvents, so that a reader can name addresses offline.
// Spec: docs/spec/modules.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "recorder/stream_source.h"

namespace dial9::internal {

// A module that is loaded at [begin, end).
struct ModuleRecord {
  std::string path;
  std::string build_id;  // in hexadecimal; empty: none
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t bias = 0;  // an address of the file is one of the process less this
  bool operator==(const ModuleRecord&) const = default;
};

// A set of modules that held from `since_ns` on, as of `at_ns`. The one before it did until
// `before_held_ns` at least; 0: it is the first. `only_added`: nothing was unloaded in between.
struct ModuleSetTimes {
  std::uint64_t epoch = 1;  // the set's number, from 1
  std::uint64_t at_ns = 0;
  std::uint64_t since_ns = 0;
  std::uint64_t before_held_ns = 0;
  bool only_added = true;
};

// A ModuleEvent each. Empty for no modules.
SourceStream encode_modules(std::span<const ModuleRecord> modules, const ModuleSetTimes& times);

}  // namespace dial9::internal
