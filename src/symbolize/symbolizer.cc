// See symbolizer.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbolizer.h"

#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/unique_fd.h"
#include "symbolize/demangle.h"
#include "symbolize/dwarf_file.h"
#include "symbolize/elf_file.h"
#include "symbolize/elf_symbols.h"

namespace dial9::symbolize {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr std::size_t kMostModules = 8192;
constexpr std::size_t kMostNotes = 1000;
constexpr std::size_t kMostKnown = 1'000'000;   // addresses of which lines are held
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

// What one file has of a module.
struct Found {
  std::string build_id;
  std::string debug_link;
  bool has_dwarf = false;
  ElfSymbols symbols;
};

std::optional<Found> read_elf(const FileReader& reader, std::uint64_t bytes,
                              std::string_view wanted_build_id) {
  const auto file = ElfFile::open(reader, bytes);
  if (!file) return std::nullopt;
  Found found{file->build_id(), file->debug_link(), false, {}};
  if (found.build_id != wanted_build_id) return found;
  found.symbols = ElfSymbols::read(*file);
  for (const ElfFile::Section& section : file->sections()) {
    const bool is_dwarf = section.name == ".debug_info" || section.name == ".zdebug_info";
    found.has_dwarf = found.has_dwarf || (is_dwarf && section.header.sh_type != SHT_NOBITS);
  }
  return found;
}

// nullopt: there is no such ELF file.
std::optional<Found> read_file(const std::string& path, std::string_view wanted_build_id) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  const auto bytes = fd ? regular_file_bytes(fd.get()) : std::nullopt;
  if (!bytes) return std::nullopt;
  return read_elf(reader_of(fd.get()), *bytes, wanted_build_id);
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
    std::string path;
    std::string build_id;
    std::optional<ElfSymbols> symbols;
    std::unordered_map<const char*, std::string> demangled;
    std::string dwarf_path;  // the file with its debug information; empty: none, or not used
    std::optional<std::uint32_t> dwarf;  // the worker's number of it
    FramesByAddress known;               // what its debug information says
    bool has_new = false;                // that the cache on disk doesn't have
  };

  explicit State(SymbolizerOptions given)
      : options(std::move(given)),
        worker(options.dwarf),
        cache(options.cache),
        debuginfod(options.debuginfod) {}

  SymbolizerOptions options;
  DwarfWorker worker;
  FrameCache cache;
  Debuginfod debuginfod;
  std::map<std::pair<std::string, std::string>, Module> modules;  // path, build id
  std::optional<Result<KernelSymbols>> kernel;                    // once it was asked for
  std::vector<std::string> notes;
  std::size_t bytes = 0;
  std::size_t known = 0;         // over the modules
  std::vector<Frame> looked_up;  // of the last address

  void note(std::string text);
  std::vector<std::string> candidates(const std::string& path, const std::string& build_id,
                                      const std::string& debug_link) const;
  void take(Module& module, const std::string& path, std::optional<Found>& found);
  void load(Module& module);
  void load_files(Module& module);
  bool fetch(Module& module);
  void refuse(const Module& module, const std::string& file, const std::string& other);
  ElfSymbols::Function function_at(const Module& module, std::uint64_t address,
                                   bool is_return) const;
  std::vector<Frame> look(Module& module, std::uint64_t code);
  bool from_dwarf(Module& module, std::span<const std::uint64_t> codes);
  Module* module_of(std::string_view path, std::string_view build_id);
};

void Symbolizer::State::note(std::string text) {
  if (notes.size() < kMostNotes && std::find(notes.begin(), notes.end(), text) == notes.end()) {
    notes.push_back(std::move(text));
  }
}

// Where the module's whole table and its debug information may be, the likeliest first; its own
// file isn't among them.
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
void Symbolizer::State::take(Module& module, const std::string& path, std::optional<Found>& found) {
  if (!found || found->build_id != module.build_id) return;
  if (module.dwarf_path.empty() && found->has_dwarf) module.dwarf_path = path;
  if (found->symbols.size() == 0) return;
  const bool is_better =
      !module.symbols || (module.symbols->is_dynamic_only() && !found->symbols.is_dynamic_only());
  if (is_better && bytes + found->symbols.bytes() <= kMostBytes) {
    bytes += found->symbols.bytes();
    module.symbols = std::move(found->symbols);
  }
}

void Symbolizer::State::refuse(const Module& module, const std::string& file,
                               const std::string& other) {
  note("binary at " + file + " has build id " + (other.empty() ? "none" : other) +
       ", the trace says " + module.build_id + ": not used; give --symbol-path");
}

// From a server, where that was asked for and something lacks. Whether there was a file.
bool Symbolizer::State::fetch(Module& module) {
  const bool is_whole =
      module.symbols && !module.symbols->is_dynamic_only() && !module.dwarf_path.empty();
  if (is_whole || !debuginfod.is_on() || !module.path.starts_with('/')) return false;
  const auto path = debuginfod.fetch(module.build_id, file_name(module.path));
  if (!path) {
    const bool is_about_file =
        path.error().code == ErrorCode::kNotFound || path.error().code == ErrorCode::kLimit;
    const std::string of =
        is_about_file && !debuginfod.has_given_up() ? " has no debug file of " + module.path : "";
    note("debuginfod" + of + ": " + path.error().message);
    return false;
  }
  std::optional<Found> found = read_file(*path, module.build_id);
  if (!found) return false;
  if (found->build_id != module.build_id) refuse(module, *path, found->build_id);
  take(module, *path, found);
  return found->build_id == module.build_id;
}

void Symbolizer::State::load_files(Module& module) {
  const std::string& path = module.path;
  if (!path.starts_with('/')) {  // the vdso, or a path that was relative to who knows what
    std::optional<Found> vdso = read_own_vdso(module.build_id);
    if (vdso) vdso->has_dwarf = false;
    take(module, "", vdso);
  }
  std::optional<Found> own;
  if (path.starts_with('/')) own = read_file(path, module.build_id);
  const bool is_own = own && own->build_id == module.build_id;
  bool is_there = is_own;
  for (const std::string& candidate :
       candidates(path, module.build_id, is_own ? own->debug_link : "")) {
    if (module.symbols && !module.symbols->is_dynamic_only() && !module.dwarf_path.empty()) break;
    std::optional<Found> found = read_file(candidate, module.build_id);
    if (!found) continue;
    is_there = is_there || found->build_id == module.build_id;
    if (found->build_id != module.build_id) refuse(module, candidate, found->build_id);
    take(module, candidate, found);
  }
  if (own && !is_own) refuse(module, path, own->build_id);
  take(module, path, own);
  is_there = fetch(module) || is_there;
  if (bytes > kMostBytes / 2 && !module.symbols) {
    note("symbols of " + path + " are left out: too many for the memory");
  } else if (!is_there && !own && !module.symbols && module.known.empty() &&
             path.starts_with('/')) {
    note("no binary at " + path + ": its functions have no names; give --symbol-path");
  }
}

void Symbolizer::State::load(Module& module) {
  if (!is_build_id(module.build_id)) {
    note(file_name(module.path) +
         " has no build id, so no file can be told to be it: its functions have " +
         "no names; link it with -Wl,--build-id");
    return;
  }
  module.known = cache.load(module.build_id);
  known += module.known.size();
  load_files(module);
  if (options.dwarf.command.empty()) {
    module.dwarf_path.clear();
  } else if (!DwarfFile::is_supported() && (!module.dwarf_path.empty() || options.wants_lines)) {
    note("no line numbers: built without libdw");
    module.dwarf_path.clear();
  } else if (module.dwarf_path.empty() && options.wants_lines && module.symbols &&
             module.path.starts_with('/')) {
    note("no debug information of " + module.path +
         ": its functions have no lines; build it with -g, or give its debug file by "
         "--symbol-path");
  }
}

// A call may be its function's last instruction: what it returns to is the next function's. But the
// kernel makes handlers of signals return to the first instruction of one.
ElfSymbols::Function Symbolizer::State::function_at(const Module& module, std::uint64_t address,
                                                    bool is_return) const {
  if (!module.symbols) return {};
  if (is_return) {
    const ElfSymbols::Function function = module.symbols->find(address);
    if (function.begin == address && function.name == "__restore_rt") return function;
    return module.symbols->find(address - 1);
  }
  return module.symbols->find(address);
}

// Into `known`, and of one address into `looked_up` even where that is full. False: no more than
// before is known.
bool Symbolizer::State::from_dwarf(Module& module, std::span<const std::uint64_t> codes) {
  const auto give_up = [&](const Error& error) {
    note("no lines from " + module.dwarf_path + ": " + error.message);
    module.dwarf_path.clear();
    return false;
  };
  if (!module.dwarf) {
    const Result<std::uint32_t> opened = worker.open(module.dwarf_path, module.build_id);
    if (!opened) return give_up(opened.error());
    module.dwarf = *opened;
  }
  auto found = worker.frames(*module.dwarf, codes);
  if (!found) return give_up(found.error());
  for (std::size_t i = 0; i < codes.size() && known < kMostKnown; ++i) {
    known += module.known.try_emplace(codes[i], (*found)[i]).second ? 1 : 0;
    module.has_new = true;
  }
  looked_up = std::move(found->back());
  return true;
}

// What debug information says.
std::vector<Frame> Symbolizer::State::look(Module& module, std::uint64_t code) {
  if (const auto at = module.known.find(code); at != module.known.end()) return at->second;
  if (module.dwarf_path.empty() || !from_dwarf(module, {&code, 1})) return {};
  return std::move(looked_up);
}

// Null: there are too many.
Symbolizer::State::Module* Symbolizer::State::module_of(std::string_view path,
                                                        std::string_view build_id) {
  const std::pair key{std::string(path), std::string(build_id)};
  auto at = modules.find(key);
  if (at == modules.end()) {
    if (modules.size() >= kMostModules) return nullptr;
    at = modules.try_emplace(key).first;
    at->second.path = key.first;
    at->second.build_id = key.second;
    load(at->second);
  }
  return &at->second;
}

void Symbolizer::expect(std::string_view path, std::string_view build_id,
                        std::span<const std::uint64_t> addresses) {
  State& state = *state_;
  State::Module* const module = state.module_of(path, build_id);
  if (module == nullptr) return;
  std::vector<std::uint64_t> codes;
  for (const std::uint64_t address : addresses) {
    if (!module->known.contains(address)) codes.push_back(address);
  }
  std::sort(codes.begin(), codes.end());  // unit by unit
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  for (std::span<const std::uint64_t> rest = codes;
       !rest.empty() && !module->dwarf_path.empty() && state.known < kMostKnown;) {
    const std::size_t count = std::min(rest.size(), DwarfWorker::kMostAddresses);
    (void)state.from_dwarf(*module, rest.first(count));
    rest = rest.subspan(count);
  }
}

Symbolizer::Symbolizer(SymbolizerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
Symbolizer::~Symbolizer() { save(); }

std::vector<Frame> Symbolizer::kernel_frames(std::string_view boot_id, std::uint64_t address,
                                             bool is_return) {
  State& state = *state_;
  const std::string nameless = "functions of the kernel have no names: ";
  if (boot_id.empty() || state.options.boot_id.empty()) {
    state.note(nameless + "it isn't known on which boot of which machine the trace was recorded");
    return {};
  }
  if (boot_id != state.options.boot_id) {
    state.note(nameless +
               "the trace is of another machine, or of an earlier boot of this one; "
               "read it on the machine that recorded it, before that restarts");
    return {};
  }
  if (!state.kernel) state.kernel = KernelSymbols::read(state.options.kernel_list);
  if (!*state.kernel) {
    const Error& error = state.kernel->error();
    state.note(nameless + error.message +
               (error.code == ErrorCode::kPermission
                    ? " from this user; run dial9 as root, or sysctl kernel.kptr_restrict=0"
                    : ""));
    return {};
  }
  const std::string_view name = (*state.kernel)->name(is_return ? address - 1 : address);
  if (name.empty()) return {};
  return {Frame{.name = std::string(name)}};
}

void Symbolizer::save() {
  for (auto& [key, module] : state_->modules) {
    if (module.has_new) state_->cache.save(module.build_id, module.known);
    module.has_new = false;
  }
}

const std::vector<std::string>& Symbolizer::notes() const { return state_->notes; }

std::vector<Frame> Symbolizer::frames(std::string_view path, std::string_view build_id,
                                      std::uint64_t address, bool is_return) {
  State& state = *state_;
  State::Module* const of = state.module_of(path, build_id);
  if (of == nullptr) return {};
  State::Module& module = *of;
  const ElfSymbols::Function function = state.function_at(module, address, is_return);
  const bool is_first = is_return && function.begin == address;  // of a handler's return
  std::vector<Frame> frames = state.look(module, is_return && !is_first ? address - 1 : address);
  if (!function.name.empty()) {
    const auto [known, is_new] = module.demangled.try_emplace(function.name.data());
    // "name@@VERSION" where a library has several of it.
    if (is_new) known->second = demangle(function.name.substr(0, function.name.find('@')));
    if (frames.empty()) frames.emplace_back();
    frames.back().name = known->second;
  }
  while (!frames.empty() && frames.back().name.empty()) frames.pop_back();
  return frames;
}

}  // namespace dial9::symbolize
