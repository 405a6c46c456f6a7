// Walks the loaded modules under the loader's lock and keeps what an unwinder needs. Strongest
// property: while that lock is held nothing is allocated and no other lock is taken, so that no
// allocator, unwinder or constructor of the host's can wait in a circle. Locks: never in a signal
// handler.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
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

// How much of each a walk has room for, or needs.
struct WalkRoom {
  std::size_t modules = 128;
  std::size_t letters = 16 << 10;
  std::size_t needed = 1024;
  std::size_t index = 32 << 10;
  bool holds(const WalkRoom& other) const;
};

// What the loader's callback fills.
class ModuleWalk {
 public:
  explicit ModuleWalk(const WalkRoom& room);  // allocates all that note() uses

  // For each module, under the loader's lock. What has no room is only counted.
  void note(const dl_phdr_info& info) noexcept;

  // Everything had room; else this much is needed.
  bool is_whole() const { return room_.holds(used_); }
  const WalkRoom& used() const { return used_; }
  // Only of a whole one. Allocates.
  ModuleTable table();

 private:
  struct Text {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
  };
  struct Scanned {
    Module module;
    Text name;                       // what others need it as
    std::uint32_t needed_begin = 0;  // in needed_
    std::uint32_t needed_size = 0;
    std::uint32_t index_begin = 0;  // in index_
    std::uint32_t index_size = 0;
  };

  void scan_search_table(const dl_phdr_info& info, Scanned& out) noexcept;
  void scan_names(const dl_phdr_info& info, Scanned& out) noexcept;
  Text keep(std::string_view text) noexcept;
  Text keep_dynamic(const dl_phdr_info& info, std::uint64_t begin) noexcept;
  std::string_view view(const Text& text) const {
    return {letters_.data() + text.begin, text.size};
  }
  void mark_permanent();

  const WalkRoom room_;
  WalkRoom used_{0, 0, 0, 0};
  std::vector<Scanned> modules_;
  std::vector<char> letters_;
  std::vector<Text> needed_;
  std::vector<std::int32_t> index_;
};

// Throws std::bad_alloc.
ModuleTable scan_modules();

}  // namespace dial9::unwind
