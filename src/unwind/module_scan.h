// Walks the loaded modules under the loader's lock and keeps what an unwinder needs. Allocates and
// locks: never in a signal handler.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unwind/modules.h"

namespace dial9::unwind {

// One entry of .eh_frame_hdr's search table: both relative to the header.
struct SearchEntry {
  std::int32_t code;
  std::int32_t entry;
};
static_assert(sizeof(SearchEntry) == 8);

// Every so many entries of a search table have one in the coarse index.
inline constexpr std::uint32_t kIndexStride = 32;

struct ModuleTable {
  std::uint64_t generation = 0;     // how many tables there were before
  std::vector<Module> modules;      // by `begin`
  std::vector<std::int32_t> index;  // `code` of every kIndexStride-th entry; permanent modules only
};

// Counts of loads and unloads since the process began; equal counts mean an equal set of modules.
struct LoaderCounts {
  std::uint64_t adds = 0;
  std::uint64_t subs = 0;
  bool operator==(const LoaderCounts&) const = default;
};
LoaderCounts loader_counts() noexcept;

// Throws std::bad_alloc.
ModuleTable scan_modules();

}  // namespace dial9::unwind
