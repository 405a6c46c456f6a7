// See loaded_modules.h. The loader is asked with room made beforehand; where that didn't do, again
// with more.
// SPDX-License-Identifier: Apache-2.0
#include "sources/loaded_modules.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

namespace dial9::internal {
namespace {

constexpr std::size_t kMostBuildIdBytes = 64;
constexpr std::size_t kFirstModules = 128;
constexpr std::size_t kFirstNameBytes = 16 << 10;
constexpr std::size_t kMostNameBytes = 4096;

struct Raw {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t bias = 0;
  std::uint32_t name = 0;  // in Walk::names
  std::uint32_t name_bytes = 0;
  std::uint32_t build_id_bytes = 0;
  std::uint8_t build_id[kMostBuildIdBytes] = {};
};

// What the callback fills. Its vectors have all the room they get beforehand.
struct Walk {
  std::vector<Raw> modules;
  std::vector<char> names;
  std::size_t module_count = 0;  // that there are
  std::size_t name_bytes = 0;
  LoadCounts counts;
};

std::size_t padded(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

void find_build_id(Raw& module, const std::uint8_t* notes, std::size_t size) {
  std::size_t at = 0;
  while (size - at >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof note);
    const std::size_t name = at + sizeof note;
    const std::size_t body = name + padded(note.n_namesz);
    if (body > size || note.n_descsz > size - body) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + name, "GNU", 4) == 0) {
      // One that is cut would be another's: none is better.
      if (note.n_descsz > kMostBuildIdBytes) return;
      std::memcpy(module.build_id, notes + body, note.n_descsz);
      module.build_id_bytes = note.n_descsz;
      return;
    }
    at = std::min(size, body + padded(note.n_descsz));
  }
}

using Headers = std::span<const ElfW(Phdr)>;

// Notes are read where they lie within what the loader maps readable from the file.
bool is_readable(Headers headers, const ElfW(Phdr) & part) {
  return std::any_of(headers.begin(), headers.end(), [&](const ElfW(Phdr) & load) {
    return load.p_type == PT_LOAD && (load.p_flags & PF_R) != 0 && part.p_vaddr >= load.p_vaddr &&
           part.p_vaddr - load.p_vaddr <= load.p_filesz &&
           part.p_filesz <= load.p_filesz - (part.p_vaddr - load.p_vaddr);
  });
}

Raw read_module(const dl_phdr_info& info) {
  const Headers headers(info.dlpi_phdr, info.dlpi_phnum);
  Raw module;
  module.bias = info.dlpi_addr;
  module.begin = ~std::uint64_t{0};
  for (const ElfW(Phdr) & header : headers) {
    if (header.p_type != PT_LOAD || header.p_memsz == 0) continue;
    const std::uint64_t begin = info.dlpi_addr + header.p_vaddr;
    module.begin = std::min(module.begin, begin);
    module.end = std::max(module.end, begin + header.p_memsz);
  }
  for (const ElfW(Phdr) & header : headers) {
    if (header.p_type == PT_NOTE && module.build_id_bytes == 0 && is_readable(headers, header)) {
      find_build_id(module, reinterpret_cast<const std::uint8_t*>(info.dlpi_addr + header.p_vaddr),
                    header.p_filesz);
    }
  }
  return module;
}

int note_module(dl_phdr_info* info, std::size_t size, void* data) {
  auto& walk = *static_cast<Walk*>(data);
  if (size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
    walk.counts = {info->dlpi_adds, info->dlpi_subs};
  }
  const char* name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const std::size_t name_bytes = ::strnlen(name, kMostNameBytes);
  const bool has_room =
      walk.module_count < walk.modules.size() &&
      name_bytes <= walk.names.size() - std::min(walk.names.size(), walk.name_bytes);
  if (has_room) {
    Raw& module = walk.modules[walk.module_count];
    module = read_module(*info);
    module.name = static_cast<std::uint32_t>(walk.name_bytes);
    module.name_bytes = static_cast<std::uint32_t>(name_bytes);
    std::copy_n(name, name_bytes, walk.names.data() + walk.name_bytes);
  }
  ++walk.module_count;
  walk.name_bytes += name_bytes;
  return 0;
}

int note_counts(dl_phdr_info* info, std::size_t size, void* data) {
  if (size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
    *static_cast<LoadCounts*>(data) = {info->dlpi_adds, info->dlpi_subs};
  }
  return 1;  // the first module knows
}

// The program's file as it was named when it was started, also where it is deleted now.
std::string own_path() {
  constexpr std::string_view kDeleted = " (deleted)";
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  std::string_view text(path.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  if (text.ends_with(kDeleted)) text.remove_suffix(kDeleted.size());
  return std::string(text);
}

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace

LoadCounts load_counts() noexcept {
  LoadCounts counts;
  ::dl_iterate_phdr(note_counts, &counts);
  return counts;
}

LoadedModules loaded_modules() {
  Walk walk;
  std::size_t modules = kFirstModules;
  std::size_t name_bytes = kFirstNameBytes;
  do {
    walk = {};
    walk.modules.resize(modules);
    walk.names.resize(name_bytes);
    ::dl_iterate_phdr(note_module, &walk);
    modules = 2 * walk.module_count;
    name_bytes = 2 * walk.name_bytes;
  } while (walk.module_count > walk.modules.size() || walk.name_bytes > walk.names.size());
  LoadedModules loaded;
  loaded.counts = walk.counts;
  for (std::size_t i = 0; i < walk.module_count; ++i) {
    const Raw& raw = walk.modules[i];
    if (raw.begin >= raw.end) continue;
    ModuleRecord module;
    module.path.assign(walk.names.data() + raw.name, raw.name_bytes);
    if (i == 0 && module.path.empty()) module.path = own_path();  // the program is first
    module.build_id = hex({raw.build_id, raw.build_id_bytes});
    module.begin = raw.begin;
    module.end = raw.end;
    module.bias = raw.bias;
    loaded.modules.push_back(std::move(module));
  }
  std::sort(loaded.modules.begin(), loaded.modules.end(),
            [](const ModuleRecord& a, const ModuleRecord& b) { return a.begin < b.begin; });
  return loaded;
}

}  // namespace dial9::internal
