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

struct Scanned {
  Module module;
  std::string name;                 // what others need it as
  std::vector<std::string> needed;
  std::vector<std::int32_t> index;
};

const std::uint8_t* at(std::uint64_t address) {
  return std::bit_cast<const std::uint8_t*>(address);
}

// Is [address, address + bytes) inside one readable segment?
bool is_mapped(const dl_phdr_info& info, std::uint64_t address, std::uint64_t bytes) {
  for (const ElfW(Phdr)& header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
    const std::uint64_t begin = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && (header.p_flags & PF_R) != 0 && address >= begin &&
        bytes <= header.p_memsz && address - begin <= header.p_memsz - bytes) {
      return true;
    }
  }
  return false;
}

void scan_ranges(const dl_phdr_info& info, Scanned& out) {
  std::uint64_t begin = ~std::uint64_t{0};
  for (const ElfW(Phdr)& header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
    const std::uint64_t from = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD) {
      begin = std::min(begin, from);
      out.module.end = std::max(out.module.end, from + header.p_memsz);
    } else if (header.p_type == PT_GNU_EH_FRAME && is_mapped(info, from, 12)) {
      out.module.eh_frame_hdr = from;
    } else if (header.p_type == PT_NOTE && is_mapped(info, from, header.p_memsz)) {
      add_notes(out.module, from, header.p_memsz);
    }
  }
  out.module.begin = out.module.end == 0 ? 0 : begin;
}

void scan_search_table(const dl_phdr_info& info, Scanned& out) {
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
  for (std::uint64_t i = 0; i < count; i += kIndexStride) {
    out.index.push_back(static_cast<std::int32_t>(load_le<std::uint32_t>(bytes + 12 + 8 * i)));
  }
}

// A string of the dynamic string table, or empty where it isn't mapped.
std::string dynamic_string(const dl_phdr_info& info, std::uint64_t table, std::uint64_t offset) {
  std::string text;
  const std::uint64_t begin = table + offset;
  while (text.size() < 256 && is_mapped(info, begin + text.size(), 1)) {
    const char letter = static_cast<char>(*at(begin + text.size()));
    if (letter == '\0') {
      break;
    }
    text.push_back(letter);
  }
  return text;
}

void scan_names(const dl_phdr_info& info, Scanned& out) {
  const ElfW(Phdr)* dynamic = nullptr;
  for (const ElfW(Phdr)& header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
    dynamic = header.p_type == PT_DYNAMIC ? &header : dynamic;
  }
  const std::string_view path = info.dlpi_name == nullptr ? "" : info.dlpi_name;
  out.name = path.substr(path.rfind('/') + 1);
  if (dynamic == nullptr ||
      !is_mapped(info, info.dlpi_addr + dynamic->p_vaddr, dynamic->p_memsz)) {
    return;
  }
  const auto* const entries = std::bit_cast<const ElfW(Dyn)*>(info.dlpi_addr + dynamic->p_vaddr);
  const std::span all(entries, dynamic->p_memsz / sizeof(ElfW(Dyn)));
  std::uint64_t strings = 0;
  for (const ElfW(Dyn)& entry : all) {
    if (entry.d_tag == DT_STRTAB) {  // glibc relocates it in place, other loaders don't
      strings = entry.d_un.d_ptr < info.dlpi_addr ? info.dlpi_addr + entry.d_un.d_ptr
                                                  : entry.d_un.d_ptr;
    }
  }
  for (const ElfW(Dyn)& entry : all) {
    if (entry.d_tag == DT_NULL) {
      break;
    }
    if (entry.d_tag == DT_NEEDED) {
      out.needed.push_back(dynamic_string(info, strings, entry.d_un.d_val));
    } else if (entry.d_tag == DT_SONAME) {
      out.name = dynamic_string(info, strings, entry.d_un.d_val);
    }
  }
}

int scan_module(dl_phdr_info* info, std::size_t, void* data) {
  Scanned scanned;
  scan_ranges(*info, scanned);
  scan_search_table(*info, scanned);
  scan_names(*info, scanned);
  static_cast<std::vector<Scanned>*>(data)->push_back(std::move(scanned));
  return 0;
}

// The executable (which comes first), all that it needs in turn, and the kernel's own page.
void mark_permanent(std::vector<Scanned>& all) {
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
    const std::size_t user = todo.back();
    todo.pop_back();
    for (const std::string& name : all[user].needed) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (!seen[i] && all[i].name == name) {
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

int read_counts(dl_phdr_info* info, std::size_t size, void* data) {
  if (size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
    *static_cast<LoaderCounts*>(data) = {info->dlpi_adds, info->dlpi_subs};
  }
  return 1;  // the first module knows
}

}  // namespace

LoaderCounts loader_counts() noexcept {
  LoaderCounts counts;
  dl_iterate_phdr(read_counts, &counts);
  return counts;
}

ModuleTable scan_modules() {
  std::vector<Scanned> all;
  dl_iterate_phdr(scan_module, &all);
  mark_permanent(all);
  std::sort(all.begin(), all.end(), [](const Scanned& a, const Scanned& b) {
    return a.module.begin < b.module.begin;
  });
  ModuleTable table;
  for (Scanned& scanned : all) {
    if (scanned.module.stamp != 0) {
      scanned.index.clear();  // another module may be there by the time that it is used
    }
    scanned.module.index_begin = static_cast<std::uint32_t>(table.index.size());
    scanned.module.index_size = static_cast<std::uint32_t>(scanned.index.size());
    table.index.insert(table.index.end(), scanned.index.begin(), scanned.index.end());
    table.modules.push_back(scanned.module);
  }
  return table;
}

}  // namespace dial9::unwind
