// See modules.h.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/modules.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "unwind/module_scan.h"

namespace dial9::unwind {
namespace {

// glibc's struct dl_find_object, declared here since older headers lack it (its layout is ABI).
struct FoundObject {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  void* link_map;
  void* eh_frame_hdr;
  unsigned long long reserved[7];
};
using FindObject = int (*)(void* address, FoundObject* result);

// Reader: count up, then load the table. Writer: exchange the table, then look at the count. Both
// sequentially consistent, so that a writer who sees 0 knows that every later reader sees the new.
std::atomic<const ModuleTable*> g_table{nullptr};
std::atomic<std::uint32_t> g_readers{0};
// Resolved outside handlers: a first call through a lazy PLT slot isn't signal-safe. Release, with
// the readers' acquire, though it guards nothing but itself.
std::atomic<FindObject> g_find_object{nullptr};
std::atomic<bool> g_may_find_object{true};

// What only refresh_modules() touches, under the caller's lock.
struct Refresher {
  LoaderCounts counts;
  std::uint64_t generation = 0;
  std::vector<std::unique_ptr<const ModuleTable>> retired;
};

FindObject find_object() noexcept {
  return g_may_find_object.load(std::memory_order_relaxed)
             ? g_find_object.load(std::memory_order_acquire)
             : nullptr;
}

constexpr std::uint64_t kMaxNotesBytes = 256;
constexpr unsigned kMaxHeaders = 32;
constexpr std::uint64_t kPageMask = 4095;

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  return (std::rotl(hash, 5) ^ word) * 0x9e37'79b9'7f4a'7c15u;
}

// Finds the notes of a module that isn't in the published table, by its ELF header in memory.
void find_notes(Module& module, TableSource& tables) {
  ElfW(Ehdr) file{};
  if (!tables.read(module.begin, &file, sizeof file) ||
      std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_phnum > kMaxHeaders ||
      file.e_phentsize != sizeof(ElfW(Phdr))) {
    return;
  }
  Module found;  // by addresses of the file
  std::uint64_t first_load = ~std::uint64_t{0};
  for (unsigned i = 0; i < file.e_phnum; ++i) {
    ElfW(Phdr) header{};
    if (!tables.read(module.begin + file.e_phoff + i * sizeof header, &header, sizeof header)) {
      return;
    }
    if (header.p_type == PT_NOTE) {
      add_notes(found, header.p_vaddr, header.p_memsz);
    } else if (header.p_type == PT_LOAD) {
      first_load = std::min<std::uint64_t>(first_load, header.p_vaddr & ~kPageMask);
    }
  }
  if (found.notes_bytes != 0) {
    add_notes(module, module.begin + found.notes - first_load, found.notes_bytes);
  }
}

// The last entry of `entries` that begins at or below `relative`, or `count` if there is none.
std::uint64_t last_at_or_below(const SearchEntry* entries, std::uint64_t count,
                               std::int64_t relative) {
  const auto* const after = std::upper_bound(
      entries, entries + count, relative,
      [](std::int64_t value, const SearchEntry& entry) { return value < entry.code; });
  return after == entries ? count : static_cast<std::uint64_t>(after - entries - 1);
}

// Narrows [first, last) of a search table that has no index to at most kIndexStride entries.
bool narrow_by_probes(TableSource& tables, std::uint64_t table, std::int64_t relative,
                      std::uint64_t& first, std::uint64_t& last) {
  while (last - first > kIndexStride) {
    const std::uint64_t middle = first + (last - first) / 2;
    SearchEntry entry;
    if (!tables.read(table + middle * sizeof entry, &entry, sizeof entry)) {
      return false;
    }
    (entry.code <= relative ? first : last) = middle;
  }
  return true;
}

// Fills in the search table of a module that isn't in the published table.
bool read_header(TableSource& tables, Module& module) {
  std::array<std::uint8_t, 12> header{};
  if (!tables.read(module.eh_frame_hdr, header.data(), header.size())) {
    return false;
  }
  const std::uint8_t format = header[1] & 0x0f;
  if (header[0] != 1 || header[2] != 0x03 || header[3] != 0x3b || (format != 3 && format != 0x0b)) {
    return true;  // no search table
  }
  module.search_table = module.eh_frame_hdr + header.size();
  module.entry_count = std::bit_cast<std::uint32_t>(
      std::array<std::uint8_t, 4>{header[8], header[9], header[10], header[11]});
  return true;
}

}  // namespace

void add_notes(Module& module, std::uint64_t begin, std::uint64_t bytes) noexcept {
  if (module.notes == 0) {
    module.notes = begin;
    module.notes_bytes = bytes;
    return;
  }
  const std::uint64_t end = std::max(begin + bytes, module.notes + module.notes_bytes);
  module.notes = std::min(begin, module.notes);
  module.notes_bytes = end - module.notes;
}

bool refresh_modules() noexcept {
  static constinit Refresher* refresher = nullptr;
  if (refresher == nullptr) {
    refresher = new (std::nothrow) Refresher;  // kept for the process's life
    if (refresher == nullptr) {
      return false;
    }
    g_find_object.store(std::bit_cast<FindObject>(dlsym(RTLD_DEFAULT, "_dl_find_object")),
                        std::memory_order_release);
  }
  try {
    const LoaderCounts counts = loader_counts();
    if (g_table.load(std::memory_order_relaxed) == nullptr || counts != refresher->counts) {
      auto fresh = std::make_unique<ModuleTable>(scan_modules());
      fresh->generation = ++refresher->generation;
      refresher->retired.reserve(refresher->retired.size() + 1);
      refresher->counts = counts;
      refresher->retired.emplace_back(g_table.exchange(fresh.release()));
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (g_readers.load() == 0) {
    refresher->retired.clear();
  }
  return true;
}

ModuleReader::ModuleReader() noexcept {
  g_readers.fetch_add(1);
  table_ = g_table.load();
}

ModuleReader::~ModuleReader() { g_readers.fetch_sub(1); }

// 0: the module has no tables, or went while we looked.
std::uint64_t ModuleReader::make_stamp(const Module& module, TableSource& tables) const {
  std::array<std::uint64_t, 8> words{};
  if (module.eh_frame_hdr == 0 || !tables.read(module.eh_frame_hdr, words.data(), sizeof words)) {
    return 0;
  }
  std::uint64_t hash = mix(module.begin, module.eh_frame_hdr);
  for (const std::uint64_t word : words) {
    hash = mix(hash, word);
  }
  const std::uint64_t notes_bytes = std::min(module.notes_bytes, kMaxNotesBytes);
  for (std::uint64_t done = 0; done < notes_bytes; done += sizeof words) {
    words.fill(0);
    const std::uint64_t part = std::min<std::uint64_t>(sizeof words, notes_bytes - done);
    if (!tables.read(module.notes + done, words.data(), part)) {
      return 0;
    }
    for (const std::uint64_t word : words) {
      hash = mix(hash, word);
    }
  }
  return mix(hash, table_ == nullptr ? 0 : table_->generation) | 1;
}

std::optional<Module> ModuleReader::find(std::uint64_t address, TableSource& tables) const {
  const Module* known = nullptr;
  if (table_ != nullptr) {
    const auto after = std::upper_bound(
        table_->modules.begin(), table_->modules.end(), address,
        [](std::uint64_t value, const Module& module) { return value < module.begin; });
    if (after != table_->modules.begin() && after[-1].holds(address)) {
      known = &after[-1];
    }
  }
  if (known != nullptr && known->stamp == 0) {
    return *known;
  }
  Module result;
  if (const FindObject look_up = find_object(); look_up != nullptr) {
    FoundObject found{};
    if (look_up(std::bit_cast<void*>(address), &found) != 0) {
      return std::nullopt;
    }
    result = Module{.begin = std::bit_cast<std::uint64_t>(found.map_start),
                    .end = std::bit_cast<std::uint64_t>(found.map_end),
                    .eh_frame_hdr = std::bit_cast<std::uint64_t>(found.eh_frame_hdr)};
  } else if (known != nullptr) {
    result = Module{.begin = known->begin, .end = known->end, .eh_frame_hdr = known->eh_frame_hdr};
  } else {
    return std::nullopt;
  }
  if (known != nullptr && known->begin == result.begin &&
      known->eh_frame_hdr == result.eh_frame_hdr) {
    result.notes = known->notes;
    result.notes_bytes = known->notes_bytes;
  } else {
    find_notes(result, tables);
  }
  result.stamp = make_stamp(result, tables);
  return result.stamp == 0 ? std::nullopt : std::optional(result);
}

std::uint64_t ModuleReader::find_entry(const Module& module, std::uint64_t pc, TableSource& tables,
                                       TableError& error) const {
  const auto fail = [&] {
    error = tables.is_exhausted() ? TableError::kBudget : TableError::kUnreadable;
    return std::uint64_t{0};
  };
  error = TableError::kNone;
  Module view = module;
  if (view.search_table == 0 && view.eh_frame_hdr != 0 && !read_header(tables, view)) {
    return fail();
  }
  const auto relative = static_cast<std::int64_t>(pc - view.eh_frame_hdr);
  std::uint64_t first = 0;
  std::uint64_t last = view.entry_count;
  if (view.index_size != 0) {
    const auto begin = table_->index.begin() + view.index_begin;
    const auto after = std::upper_bound(begin, begin + view.index_size, relative);
    if (after == begin) {
      return 0;
    }
    first = static_cast<std::uint64_t>(after - begin - 1) * kIndexStride;
    last = std::min<std::uint64_t>(first + kIndexStride, last);
  } else if (!narrow_by_probes(tables, view.search_table, relative, first, last)) {
    return fail();
  }
  std::array<SearchEntry, kIndexStride> chunk;
  if (first == last) {
    return 0;
  }
  if (!tables.read(view.search_table + first * sizeof(SearchEntry), chunk.data(),
                   (last - first) * sizeof(SearchEntry))) {
    return fail();
  }
  const std::uint64_t hit = last_at_or_below(chunk.data(), last - first, relative);
  if (hit == last - first) {
    return 0;
  }
  const std::uint64_t entry =
      view.eh_frame_hdr + static_cast<std::uint64_t>(std::int64_t{chunk[hit].entry});
  if (!view.holds(entry)) {
    error = TableError::kCorrupt;
    return 0;
  }
  return entry;
}

void use_dl_find_object(bool allowed) noexcept {
  g_may_find_object.store(allowed, std::memory_order_relaxed);
}

}  // namespace dial9::unwind
