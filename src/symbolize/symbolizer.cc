// See symbolizer.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbolizer.h"

#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/unique_fd.h"
#include "symbolize/demangle.h"
#include "symbolize/elf_file.h"
#include "symbolize/elf_symbols.h"

namespace dial9::symbolize {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr std::size_t kMostModules = 8192;
constexpr std::size_t kMostNotes = 1000;
constexpr std::uint64_t kVdsoBytes = 64 << 10;  // more than any has; its pages end before that

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}
std::string directory_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash));
}

// Lower-case hexadecimal digits alone: it becomes part of a path.
bool is_build_id(std::string_view text) {
  return text.size() > 2 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

FileReader reader_of(int fd) {
  return [fd](std::uint64_t offset, std::span<std::uint8_t> to) {
    std::size_t done = 0;
    while (done < to.size()) {
      const ssize_t n =
          ::pread(fd, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
      if (n <= 0) return false;
      done += static_cast<std::size_t>(n);
    }
    return true;
  };
}

// What one file has of a module.
struct Found {
  std::string build_id;
  std::string debug_link;
  ElfSymbols symbols;
};

std::optional<Found> read_elf(const FileReader& reader, std::uint64_t bytes,
                              std::string_view wanted_build_id) {
  const auto file = ElfFile::open(reader, bytes);
  if (!file) return std::nullopt;
  Found found{file->build_id(), file->debug_link(), {}};
  if (found.build_id == wanted_build_id) found.symbols = ElfSymbols::read(*file);
  return found;
}

// nullopt: there is no such ELF file.
std::optional<Found> read_file(const std::string& path, std::string_view wanted_build_id) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat facts{};
  if (!fd || ::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  return read_elf(reader_of(fd.get()), static_cast<std::uint64_t>(facts.st_size), wanted_build_id);
}

// The kernel's own library has no file; ours is the same where its build id is.
std::optional<Found> read_own_vdso(std::string_view wanted_build_id) {
  const std::uint64_t base = ::getauxval(AT_SYSINFO_EHDR);
  if (base == 0) return std::nullopt;
  // What the section table says lies in its pages; they are read by the kernel, so that a wrong
  // size is a short answer and no fault.
  const UniqueFd memory(::open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  if (!memory) return std::nullopt;
  const FileReader in_memory = reader_of(memory.get());
  return read_elf([&](std::uint64_t offset,
                      std::span<std::uint8_t> to) { return in_memory(base + offset, to); },
                  kVdsoBytes, wanted_build_id);
}

}  // namespace

struct Symbolizer::State {
  struct Module {
    std::optional<ElfSymbols> symbols;
    std::unordered_map<const char*, std::vector<std::string>> by_function;  // by its name
  };

  SymbolizerOptions options;
  std::map<std::pair<std::string, std::string>, Module> modules;  // path, build id
  std::vector<std::string> notes;
  std::size_t bytes = 0;

  void note(std::string text);
  std::vector<std::string> candidates(const std::string& path, const std::string& build_id,
                                      const std::string& debug_link) const;
  void take(Module& module, std::optional<Found>& found, const std::string& build_id);
  void load(Module& module, const std::string& path, const std::string& build_id);
};

void Symbolizer::State::note(std::string text) {
  if (notes.size() < kMostNotes && std::find(notes.begin(), notes.end(), text) == notes.end()) {
    notes.push_back(std::move(text));
  }
}

// Where the module's whole table may be, the likeliest first; its own file last.
std::vector<std::string> Symbolizer::State::candidates(const std::string& path,
                                                       const std::string& build_id,
                                                       const std::string& debug_link) const {
  const std::string by_id =
      "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug";
  std::vector<std::string> paths;
  for (const std::string& directory : options.directories) {
    paths.push_back(directory + "/" + file_name(path));
    paths.push_back(directory + "/" + file_name(path) + ".debug");
    paths.push_back(directory + by_id);
  }
  paths.push_back(options.debug_root + by_id);
  const std::string link = file_name(debug_link);
  if (!link.empty() && link != "." && link != "..") {
    const std::string directory = directory_of(path);
    paths.push_back(directory + "/.debug/" + link);
    paths.push_back(options.debug_root + directory + "/" + link);
    if (directory + "/" + link != path) paths.push_back(directory + "/" + link);
  }
  return paths;
}

// Whole tables are better than dynamic ones.
void Symbolizer::State::take(Module& module, std::optional<Found>& found,
                             const std::string& build_id) {
  if (!found || found->build_id != build_id || found->symbols.size() == 0) return;
  const bool is_better =
      !module.symbols || (module.symbols->is_dynamic_only() && !found->symbols.is_dynamic_only());
  if (is_better && bytes + found->symbols.bytes() <= kMostBytes) {
    bytes += found->symbols.bytes();
    module.symbols = std::move(found->symbols);
  }
}

void Symbolizer::State::load(Module& module, const std::string& path, const std::string& build_id) {
  if (!is_build_id(build_id)) {
    note(file_name(path) +
         " has no build id, so no file can be told to be it: its functions have " +
         "no names; link it with -Wl,--build-id");
    return;
  }
  if (!path.starts_with('/')) {  // the vdso, or a path that was relative to who knows what
    std::optional<Found> vdso = read_own_vdso(build_id);
    take(module, vdso, build_id);
  }
  std::optional<Found> own;
  if (path.starts_with('/')) own = read_file(path, build_id);
  const auto refuse = [&](const std::string& file, const std::string& other) {
    note("binary at " + file + " has build id " + (other.empty() ? "none" : other) +
         ", the trace says " + build_id + ": not used; give --symbol-path");
  };
  const std::string link = own && own->build_id == build_id ? own->debug_link : "";
  bool is_there = own && own->build_id == build_id;
  for (const std::string& candidate : candidates(path, build_id, link)) {
    if (module.symbols && !module.symbols->is_dynamic_only()) break;
    std::optional<Found> found = read_file(candidate, build_id);
    if (!found) continue;
    is_there = is_there || found->build_id == build_id;
    if (found->build_id != build_id) refuse(candidate, found->build_id);
    take(module, found, build_id);
  }
  if (own && own->build_id != build_id) refuse(path, own->build_id);
  take(module, own, build_id);
  if (bytes > kMostBytes / 2 && !module.symbols) {
    note("symbols of " + path + " are left out: too many for the memory");
  } else if (!is_there && !own && !module.symbols && path.starts_with('/')) {
    note("no binary at " + path + ": its functions have no names; give --symbol-path");
  }
}

Symbolizer::Symbolizer(SymbolizerOptions options)
    : state_(std::make_unique<State>(State{std::move(options), {}, {}, 0})) {}
Symbolizer::~Symbolizer() = default;

const std::vector<std::string>& Symbolizer::notes() const { return state_->notes; }

std::vector<std::string> Symbolizer::names(std::string_view path, std::string_view build_id,
                                           std::uint64_t address, bool is_return) {
  State& state = *state_;
  const std::pair key{std::string(path), std::string(build_id)};
  auto at = state.modules.find(key);
  if (at == state.modules.end()) {
    if (state.modules.size() >= kMostModules) return {};
    at = state.modules.try_emplace(key).first;
    state.load(at->second, key.first, key.second);
  }
  State::Module& module = at->second;
  if (!module.symbols) return {};
  // A call may be its function's last instruction: what it returns to is the next function's. But
  // the kernel makes handlers of signals return to the first instruction of one.
  ElfSymbols::Function function;
  if (is_return) {
    function = module.symbols->find(address);
    if (function.begin != address || function.name != "__restore_rt") {
      function = module.symbols->find(address - 1);
    }
  } else {
    function = module.symbols->find(address);
  }
  if (function.name.empty()) return {};
  const auto [known, is_new] = module.by_function.try_emplace(function.name.data());
  if (is_new) known->second = {demangle(function.name)};
  return known->second;
}

}  // namespace dial9::symbolize
