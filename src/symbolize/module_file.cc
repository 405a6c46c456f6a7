// See module_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/module_file.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "base/unique_fd.h"
#include "symbolize/retry_pause.h"

namespace dial9::symbolize {
namespace {

constexpr std::uint64_t kVdsoBytes = 64 << 10;  // more than any has; its pages end before that

ModuleFile changed(const std::string& build_id) {
  ModuleFile file;
  file.build_id = build_id;
  file.was_changed = true;
  return file;
}

std::string directory_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash));
}

}  // namespace

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::vector<std::string> module_files(const std::vector<std::string>& directories,
                                      const std::string& debug_root, const std::string& path,
                                      const std::string& build_id, const std::string& debug_link) {
  const std::string by_id =
      "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug";
  std::vector<std::string> paths;
  for (const std::string& directory : directories) {
    paths.push_back(directory + "/" + file_name(path));
    paths.push_back(directory + "/" + file_name(path) + ".debug");
    paths.push_back(directory + by_id);
  }
  paths.push_back(debug_root + by_id);
  const std::string link = file_name(debug_link);
  if (!link.empty() && link != "." && link != "..") {
    const std::string directory = directory_of(path);
    paths.push_back(directory + "/.debug/" + link);
    paths.push_back(debug_root + directory + "/" + link);
    if (directory + "/" + link != path) paths.push_back(directory + "/" + link);
  }
  return paths;
}

std::optional<ModuleFile> read_module(const FileReader& reader, std::uint64_t bytes,
                                      std::string_view wanted_build_id) {
  const auto elf = ElfFile::open(reader, bytes);
  if (!elf) return std::nullopt;
  ModuleFile file;
  file.build_id = elf->build_id();
  if (file.build_id != wanted_build_id) return file;
  file.debug_link = elf->debug_link();
  file.symbols = ElfSymbols::read(*elf);
  for (const ElfFile::Section& section : elf->sections()) {
    const bool is_dwarf = section.name == ".debug_info" || section.name == ".zdebug_info";
    file.has_dwarf = file.has_dwarf || (is_dwarf && section.header.sh_type != SHT_NOBITS);
  }
  const auto again = ElfFile::open(reader, bytes);
  if (!again || again->build_id() != file.build_id) return changed(file.build_id);
  return file;
}

std::optional<ModuleFile> read_module_file(const std::string& path,
                                           std::string_view wanted_build_id, bool& is_short) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) is_short = is_short || is_shortage(errno);
  const auto stamp = fd ? stamp_of(fd.get()) : std::nullopt;
  if (!stamp) return std::nullopt;
  auto file = read_module(reader_of(fd.get()), stamp->bytes, wanted_build_id);
  if (file && stamp_of(fd.get()) != stamp) return changed(file->build_id);
  return file;
}

std::optional<ModuleFile> read_own_vdso(std::string_view wanted_build_id, bool& is_short) {
  const std::uint64_t base = ::getauxval(AT_SYSINFO_EHDR);
  if (base == 0) return std::nullopt;
  // What the section table says lies in its pages; they are read by the kernel, so that a wrong
  // size is a short answer and no fault.
  const UniqueFd memory(::open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  if (!memory) {
    is_short = is_short || is_shortage(errno);
    return std::nullopt;
  }
  const FileReader in_memory = reader_of(memory.get());
  return read_module([&](std::uint64_t offset,
                         std::span<std::uint8_t> to) { return in_memory(base + offset, to); },
                     kVdsoBytes, wanted_build_id);
}

}  // namespace dial9::symbolize
