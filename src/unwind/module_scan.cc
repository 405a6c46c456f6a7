// See module_scan.h. Everything that is read here is held in place by dl_iterate_phdr's lock.
// SPDX-License-Identifier: Apache-2.0
#include "unwind/module_scan.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/bytes.h"

namespace dial9::unwind {
namespace {

constexpr std::uint8_t kHeaderVersion = 1;
constexpr std::uint8_t kCountEncoding = 0x03;  // udata4
constexpr std::uint8_t kTableEncoding = 0x3b;  // data-relative sdata4
constexpr std::size_t kMostNameBytes = 256;

const std::uint8_t* at(std::uint64_t address) {
  return std::bit_cast<const std::uint8_t*>(address);
}

// Is [address, address + bytes) inside one readable segment?
bool is_mapped(const dl_phdr_info& info, std::uint64_t address, std::uint64_t bytes) {
  for (const ElfW(Phdr) & header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
    const std::uint64_t begin = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && (header.p_flags & PF_R) != 0 && address >= begin &&
        bytes <= header.p_memsz && address - begin <= header.p_memsz - bytes) {
      return true;
    }
  }
  return false;
}

void scan_ranges(const dl_phdr_info& info, Module& module) {
  std::uint64_t begin = ~std::uint64_t{0};
  for (const ElfW(Phdr) & header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
    const std::uint64_t from = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD) {
      begin = std::min(begin, from);
      module.end = std::max(module.end, from + header.p_memsz);
    } else if (header.p_type == PT_GNU_EH_FRAME && is_mapped(info, from, 12)) {
      module.eh_frame_hdr = from;
    } else if (header.p_type == PT_NOTE && is_mapped(info, from, header.p_memsz)) {
      add_notes(module, from, header.p_memsz);
    }
  }
  module.begin = module.end == 0 ? 0 : begin;
}

int note_module(dl_phdr_info* info, std::size_t, void* walk) {
  static_cast<ModuleWalk*>(walk)->note(*info);
  return 0;
}

int read_counts(dl_phdr_info* info, std::size_t size, void* data) {
  if (size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
    *static_cast<LoaderCounts*>(data) = {info->dlpi_adds, info->dlpi_subs};
  }
  return 1;  // the first module knows
}

}  // namespace

bool WalkRoom::holds(const WalkRoom& other) const {
  return modules >= other.modules && letters >= other.letters && needed >= other.needed &&
         index >= other.index;
}

ModuleWalk::ModuleWalk(const WalkRoom& room)
    : room_(room),
      modules_(room.modules),
      letters_(room.letters),
      needed_(room.needed),
      index_(room.index) {}

void ModuleWalk::note(const dl_phdr_info& info) noexcept {
  Scanned scanned;
  scan_ranges(info, scanned.module);
  scan_search_table(info, scanned);
  scan_names(info, scanned);
  if (used_.modules < room_.modules) modules_[used_.modules] = scanned;
  ++used_.modules;
}

void ModuleWalk::scan_search_table(const dl_phdr_info& info, Scanned& out) noexcept {
  const std::uint64_t header = out.module.eh_frame_hdr;
  if (header == 0) {
    return;
  }
  const std::uint8_t* const bytes = at(header);
  const std::uint8_t format = bytes[1] & 0x0f;
  const bool is_known = bytes[0] == kHeaderVersion && bytes[2] == kCountEncoding &&
                        bytes[3] == kTableEncoding && (format == 0x03 || format == 0x0b);
  if (!is_known) {
    return;
  }
  const std::uint32_t count = load_le<std::uint32_t>(bytes + 8);
  if (!is_mapped(info, header + 12, std::uint64_t{count} * sizeof(SearchEntry))) {
    return;
  }
  out.module.search_table = header + 12;
  out.module.entry_count = count;
  out.index_begin = static_cast<std::uint32_t>(used_.index);
  out.index_size = (count + kIndexStride - 1) / kIndexStride;
  used_.index += out.index_size;
  if (used_.index > room_.index) {
    return;
  }
  for (std::uint64_t i = 0; i < out.index_size; ++i) {
    index_[out.index_begin + i] =
        static_cast<std::int32_t>(load_le<std::uint32_t>(bytes + 12 + 8 * kIndexStride * i));
  }
}

ModuleWalk::Text ModuleWalk::keep(std::string_view text) noexcept {
  const Text kept{static_cast<std::uint32_t>(used_.letters),
                  static_cast<std::uint32_t>(text.size())};
  used_.letters += text.size();
  if (used_.letters <= room_.letters) std::ranges::copy(text, letters_.begin() + kept.begin);
  return kept;
}

// A string of the dynamic string table, or empty where it isn't mapped.
ModuleWalk::Text ModuleWalk::keep_dynamic(const dl_phdr_info& info, std::uint64_t begin) noexcept {
  std::size_t size = 0;
  while (size < kMostNameBytes && is_mapped(info, begin + size, 1) && *at(begin + size) != 0) {
    ++size;
  }
  return size == 0 ? Text{} : keep({std::bit_cast<const char*>(begin), size});
}

void ModuleWalk::scan_names(const dl_phdr_info& info, Scanned& out) noexcept {
  const ElfW(Phdr)* dynamic = nullptr;
  for (const ElfW(Phdr) & header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
    dynamic = header.p_type == PT_DYNAMIC ? &header : dynamic;
  }
  const std::string_view path = info.dlpi_name == nullptr ? "" : info.dlpi_name;
  out.name = keep(path.substr(path.rfind('/') + 1));
  if (dynamic == nullptr || !is_mapped(info, info.dlpi_addr + dynamic->p_vaddr, dynamic->p_memsz)) {
    return;
  }
  const auto* const entries = std::bit_cast<const ElfW(Dyn)*>(info.dlpi_addr + dynamic->p_vaddr);
  const std::span all(entries, dynamic->p_memsz / sizeof(ElfW(Dyn)));
  std::uint64_t strings = 0;
  for (const ElfW(Dyn) & entry : all) {
    if (entry.d_tag == DT_STRTAB) {  // glibc relocates it in place, other loaders don't
      strings =
          entry.d_un.d_ptr < info.dlpi_addr ? info.dlpi_addr + entry.d_un.d_ptr : entry.d_un.d_ptr;
    }
  }
  out.needed_begin = static_cast<std::uint32_t>(used_.needed);
  for (const ElfW(Dyn) & entry : all) {
    if (entry.d_tag == DT_NULL) {
      break;
    }
    if (entry.d_tag == DT_NEEDED) {
      const Text name = keep_dynamic(info, strings + entry.d_un.d_val);
      if (used_.needed < room_.needed) needed_[used_.needed] = name;
      ++used_.needed;
      ++out.needed_size;
    } else if (entry.d_tag == DT_SONAME) {
      out.name = keep_dynamic(info, strings + entry.d_un.d_val);
    }
  }
}

// The executable (which comes first), all that it needs in turn, and the kernel's own page.
void ModuleWalk::mark_permanent() {
  const std::span all(modules_.data(), used_.modules);
  std::vector<std::size_t> todo;
  std::vector<bool> seen(all.size(), false);
  const std::uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
  for (std::size_t i = 0; i < all.size(); ++i) {
    seen[i] = i == 0 || (vdso != 0 && all[i].module.holds(vdso));
    if (seen[i]) {
      todo.push_back(i);
    }
  }
  while (!todo.empty()) {
    const Scanned& user = all[todo.back()];
    todo.pop_back();
    for (const Text& name : std::span(needed_).subspan(user.needed_begin, user.needed_size)) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (!seen[i] && view(all[i].name) == view(name)) {
          seen[i] = true;
          todo.push_back(i);
        }
      }
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].module.stamp = seen[i] ? 0 : 1;  // 1: to be made at each look
  }
}

ModuleTable ModuleWalk::table() {
  mark_permanent();
  const std::span all(modules_.data(), used_.modules);
  std::ranges::sort(all, {}, [](const Scanned& scanned) { return scanned.module.begin; });
  ModuleTable table;
  for (Scanned& scanned : all) {
    if (scanned.module.stamp != 0) {
      scanned.index_size = 0;  // another module may be there by the time that it is used
    }
    scanned.module.index_begin = static_cast<std::uint32_t>(table.index.size());
    scanned.module.index_size = scanned.index_size;
    const auto index = std::span(index_).subspan(scanned.index_begin, scanned.index_size);
    table.index.insert(table.index.end(), index.begin(), index.end());
    table.modules.push_back(scanned.module);
  }
  return table;
}

LoaderCounts loader_counts() noexcept {
  LoaderCounts counts;
  dl_iterate_phdr(read_counts, &counts);
  return counts;
}

ModuleTable scan_modules() {
  for (WalkRoom room;;) {
    ModuleWalk walk(room);
    dl_iterate_phdr(note_module, &walk);
    if (walk.is_whole()) {
      return walk.table();
    }
    // More than was needed: others may be loaded meanwhile.
    const WalkRoom& used = walk.used();
    room = {std::max(room.modules, 2 * used.modules), std::max(room.letters, 2 * used.letters),
            std::max(room.needed, 2 * used.needed), std::max(room.index, 2 * used.index)};
  }
}

}  // namespace dial9::unwind
