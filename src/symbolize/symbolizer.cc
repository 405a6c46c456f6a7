// See symbolizer.h.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbolizer.h"

#include <algorithm>
#include <array>
#include <map>
#include <new>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "symbolize/demangle.h"
#include "symbolize/dwarf_file.h"
#include "symbolize/elf_symbols.h"
#include "symbolize/frame_table.h"
#include "symbolize/module_file.h"
#include "symbolize/retry_pause.h"

namespace dial9::symbolize {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr std::size_t kMostModules = 8192;
constexpr std::size_t kMostReaders = 2;
constexpr std::size_t kMostNotes = 1000;
// A file may end its reader so often; one that has to be waited for counts for four. After so many
// ends of all files each further file may only once: the starts of readers are left to others.
constexpr unsigned kMostEnds = 8;
constexpr unsigned kMostEndsOfAll = 16;
constexpr unsigned kEndsOfALateOne = 4;
constexpr std::size_t kTextCost = 96;  // what a text of its own takes beside its bytes

// Lower-case hexadecimal digits alone: it becomes part of a path.
bool is_build_id(std::string_view text) {
  return text.size() > 2 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// What was counted counts no more, but for what is kept: there was no memory to go on.
class Undo {
 public:
  explicit Undo(std::size_t& number) : number_(number), before_(number) {}
  ~Undo() {
    if (!is_kept_) number_ = before_;
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  void keep() { is_kept_ = true; }

 private:
  std::size_t& number_;
  std::size_t before_;
  bool is_kept_ = false;
};

}  // namespace

struct Symbolizer::State {
  struct Module {
    std::string path;
    std::string build_id;
    std::optional<ElfSymbols> symbols;
    std::unordered_map<const char*, std::string> demangled;
    std::string dwarf_path;  // the file with its debug information; empty: none, or not used
    std::array<std::optional<std::uint32_t>, kMostReaders> dwarf;  // each worker's number of it
    FrameTable known;                          // what its debug information says
    bool has_new = false;                      // that the cache on disk doesn't have
    unsigned ends = 0;                         // of readers
    std::size_t skipped_together = 0;          // the last time, and
    std::uint64_t behind_skipped = 0;          // the address after these; 0: none
    std::unordered_set<std::uint64_t> unread;  // addresses that were asked for in vain
    std::string trouble;                       // why; empty: nothing was
    // Asked for while no reader could be started for now, and not again since; and why.
    std::unordered_set<std::uint64_t> postponed;
    std::string shortage;
    bool is_short = false;  // files of it couldn't be opened for now: it is loaded again
    RetryPause pause;
  };
  using Key = std::pair<std::string, std::string>;  // path, build id
  struct Note {
    Key of;
    std::string text;
    bool is_of_lines;  // of no interest to who shows none
  };

  explicit State(SymbolizerOptions given)
      : options(std::move(given)),
        workers{DwarfWorker(options.dwarf), DwarfWorker(options.dwarf)},
        cache(options.cache),
        debuginfod(options.debuginfod),
        kernel_pause(options.dwarf.retry_ms) {}

  SymbolizerOptions options;
  std::array<DwarfWorker, kMostReaders> workers;
  FrameCache cache;
  Debuginfod debuginfod;
  std::map<Key, Module> modules;
  std::optional<Result<KernelSymbols>> kernel;  // once it was asked for
  RetryPause kernel_pause;
  std::vector<Note> notes;
  unsigned ends = 0;             // of readers, by all files
  std::uint64_t shortages = 0;
  std::size_t bytes = 0;         // of symbols
  std::size_t known_bytes = 0;   // of what is known of addresses, and of names
  std::vector<Frame> looked_up;  // of the last address

  void note(const Key& of, std::string text, bool is_of_lines = false);
  void note(const Module& module, std::string text, bool is_of_lines = false) {
    note(Key{module.path, module.build_id}, std::move(text), is_of_lines);
  }
  void forget_notes(const Key& of) {
    std::erase_if(notes, [&](const Note& known) { return known.of == of; });
  }
  void take(Module& module, const std::string& path, std::optional<ModuleFile>& found);
  void load(Module& module);
  void load_again(Module& module);
  void read_kernel(std::string_view boot_id);
  void load_files(Module& module);
  bool fetch(Module& module);
  void refuse(const Module& module, const std::string& path, const ModuleFile& file);
  ElfSymbols::Function function_at(const Module& module, std::uint64_t address,
                                   bool is_return) const;
  bool has_room() const { return known_bytes < options.most_known_bytes; }
  std::string demangled(Module& module, std::string_view name);
  std::vector<Frame> look(Module& module, std::uint64_t code);
  void keep(Module& module, const FrameTable& found);
  void give_up(Module& module, const Error& error);
  void answered(Module& module, std::span<const std::uint64_t> codes);
  bool skip(Module& module, std::size_t reader, std::span<const std::uint64_t> rest,
            const Error& error);
  static std::size_t next_question(const Module& module, std::span<const std::uint64_t>& rest);
  std::vector<Note> all_notes() const;
  Result<void> ask(Module& module, std::size_t reader, std::span<const std::uint64_t> codes);
  Result<std::size_t> answer(Module& module, std::size_t reader, std::size_t count,
                             std::span<const std::uint64_t> rest);
  void look_together(Module& module, std::span<const std::uint64_t> codes);
  Module* module_of(std::string_view path, std::string_view build_id);
};

void Symbolizer::State::note(const Key& of, std::string text, bool is_of_lines) {
  const auto is_same = [&](const Note& known) { return known.of == of && known.text == text; };
  if (notes.size() < kMostNotes && std::none_of(notes.begin(), notes.end(), is_same)) {
    notes.push_back({of, std::move(text), is_of_lines});
  }
}

// Whole tables are better than dynamic ones.
void Symbolizer::State::take(Module& module, const std::string& path,
                             std::optional<ModuleFile>& found) {
  if (!found || found->was_changed || found->build_id != module.build_id) return;
  if (module.dwarf_path.empty() && found->has_dwarf) module.dwarf_path = path;
  if (found->symbols.size() == 0) return;
  const bool is_better =
      !module.symbols || (module.symbols->is_dynamic_only() && !found->symbols.is_dynamic_only());
  if (is_better && bytes + found->symbols.bytes() <= kMostBytes) {
    bytes += found->symbols.bytes();
    module.symbols = std::move(found->symbols);
  }
}

// Where the file isn't the module's, or wasn't all the time.
void Symbolizer::State::refuse(const Module& module, const std::string& path,
                               const ModuleFile& file) {
  if (file.build_id != module.build_id) {
    note(module, "binary at " + path + " has build id " +
                     (file.build_id.empty() ? "none" : file.build_id) + ", the trace says " +
                     module.build_id + ": not used; give --symbol-path");
  } else if (file.was_changed) {
    note(module, "binary at " + path + " was overwritten while it was read: not used; read the " +
                     "trace again, or give --symbol-path");
  }
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
    note(module, "debuginfod" + of + ": " + path.error().message);
    module.is_short = module.is_short || debuginfod.lacks_process();
    return false;
  }
  std::optional<ModuleFile> found = read_module_file(*path, module.build_id, module.is_short);
  if (!found) return false;
  refuse(module, *path, *found);
  take(module, *path, found);
  return found->build_id == module.build_id;
}

void Symbolizer::State::load_files(Module& module) {
  const std::string& path = module.path;
  if (!path.starts_with('/')) {  // the vdso, or a path that was relative to who knows what
    std::optional<ModuleFile> vdso = read_own_vdso(module.build_id, module.is_short);
    if (vdso) vdso->has_dwarf = false;
    take(module, "", vdso);
  }
  std::optional<ModuleFile> own;
  if (path.starts_with('/')) own = read_module_file(path, module.build_id, module.is_short);
  const bool is_own = own && own->build_id == module.build_id;
  bool is_there = is_own;
  for (const std::string& candidate :
       module_files(options.directories, options.debug_root, path, module.build_id,
                    is_own ? own->debug_link : "")) {
    if (module.symbols && !module.symbols->is_dynamic_only() && !module.dwarf_path.empty()) break;
    std::optional<ModuleFile> found =
        read_module_file(candidate, module.build_id, module.is_short);
    if (!found) continue;
    is_there = is_there || found->build_id == module.build_id;
    refuse(module, candidate, *found);
    take(module, candidate, found);
  }
  if (own) refuse(module, path, *own);
  take(module, path, own);
  is_there = fetch(module) || is_there;
  if (bytes > kMostBytes / 2 && !module.symbols) {
    note(module, "symbols of " + path + " are left out: too many for the memory");
  } else if (module.is_short) {
    note(module, "not all files of " + path + " could be opened: the system has too little memory, "
                     "or too few descriptors or processes; it is tried again later");
  } else if (!is_there && !own && !module.symbols && module.known.empty() &&
             path.starts_with('/')) {
    note(module,
         "no binary at " + path +
             ": its functions have no lines, and no names but the trace's own; give --symbol-path");
  }
}

void Symbolizer::State::load(Module& module) {
  if (!is_build_id(module.build_id)) {
    note(module, file_name(module.path) +
                     " has no build id, so no file can be told to be it: its functions have " +
                     "no names; link it with -Wl,--build-id");
    return;
  }
  module.known = cache.load(module.build_id);
  known_bytes += module.known.bytes();
  load_files(module);
  if (options.dwarf.command.empty()) {
    module.dwarf_path.clear();
  } else if (!DwarfFile::is_supported()) {
    note(module, "no line numbers: built without libdw", module.dwarf_path.empty());
    module.dwarf_path.clear();
  } else if (module.dwarf_path.empty() && module.symbols && !module.is_short &&
             module.path.starts_with('/')) {
    note(module,
         "no debug information of " + module.path +
             ": its functions have no lines; build it with -g, or give its debug file by "
             "--symbol-path",
         true);
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

std::string Symbolizer::State::demangled(Module& module, std::string_view name) {
  const auto at = module.demangled.find(name.data());
  if (at != module.demangled.end()) return at->second;
  // "name@@VERSION" where a library has several of it.
  std::string text = bounded_text(readable_name(name.substr(0, name.find('@'))));
  if (has_room()) {
    module.demangled.emplace(name.data(), text);
    known_bytes += text.size() + kTextCost;
  }
  return text;
}

void Symbolizer::State::keep(Module& module, const FrameTable& found) {
  if (!has_room()) return;
  struct Counted {  // also what there was memory for
    ~Counted() { total += table.bytes() - before; }
    std::size_t& total;
    const FrameTable& table;
    std::size_t before;
  };
  const Counted counted{known_bytes, module.known, module.known.bytes()};
  module.has_new = true;
  module.known.take(found);
}

void Symbolizer::State::give_up(Module& module, const Error& error) {
  module.trouble = (module.known.empty() ? "no lines from " : "not all lines from ") +
                   module.dwarf_path + ": " + error.message;
  module.dwarf_path.clear();
}

// These aren't lacking any more.
void Symbolizer::State::answered(Module& module, std::span<const std::uint64_t> codes) {
  if (module.postponed.empty()) return;
  for (const std::uint64_t code : codes) module.postponed.erase(code);
}

// Where the reader ended at one of these addresses: that one is left out. What can't be read is
// mostly a unit, so where the next one ends it, too, twice as many are. False: it isn't known at
// which, or too many did.
bool Symbolizer::State::skip(Module& module, std::size_t reader,
                             std::span<const std::uint64_t> rest, const Error& error) {
  const std::optional<std::size_t> at = workers[reader].culprit();
  const unsigned more = error.code == ErrorCode::kLimit ? kEndsOfALateOne : 1;
  module.ends += more;
  ends += more;
  const bool are_too_many = module.ends > kMostEnds || ends > kMostEndsOfAll;
  if (!at || *at >= rest.size() || are_too_many) return false;
  const bool is_next = module.behind_skipped != 0 && rest[*at] == module.behind_skipped;
  const auto from = rest.subspan(*at);
  const std::size_t count = std::min(is_next ? 2 * module.skipped_together : 1, from.size());
  module.trouble = "not all lines from " + module.dwarf_path +  // before there is any, for notes
                   ": the process that reads them ended at some addresses";
  module.unread.insert(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
  module.skipped_together = count;
  module.behind_skipped = count < from.size() ? from[count] : 0;
  return true;
}

// Leaves out what is to be skipped at the front. Of how many addresses the next question is.
std::size_t Symbolizer::State::next_question(const Module& module,
                                             std::span<const std::uint64_t>& rest) {
  const auto is_skipped = [&](std::uint64_t code) { return module.unread.contains(code); };
  rest = rest.subspan(
      static_cast<std::size_t>(std::ranges::find_if_not(rest, is_skipped) - rest.begin()));
  const auto most = rest.first(std::min(rest.size(), DwarfWorker::kMostAddresses));
  return static_cast<std::size_t>(std::ranges::find_if(most, is_skipped) - most.begin());
}

Result<void> Symbolizer::State::ask(Module& module, std::size_t reader,
                                    std::span<const std::uint64_t> codes) {
  std::optional<std::uint32_t>& number = module.dwarf[reader];
  if (!number) {
    const Result<std::uint32_t> opened = workers[reader].open(module.dwarf_path, module.build_id);
    if (!opened) return std::unexpected(opened.error());
    number = *opened;
  }
  return workers[reader].ask(*number, codes);
}

// To the question about the first `count` of `rest`: into `known` while there is room, and of the
// first address into `looked_up`. Of how many of the addresses, from the first on.
Result<std::size_t> Symbolizer::State::answer(Module& module, std::size_t reader, std::size_t count,
                                              std::span<const std::uint64_t> rest) {
  looked_up.clear();
  const Result<FrameTable> found = workers[reader].answer(rest.first(count));
  if (!found && skip(module, reader, rest, found.error())) return 0;
  if (!found) return std::unexpected(found.error());
  keep(module, *found);
  answered(module, rest.first(found->size()));
  looked_up = found->frames(rest.front());
  return found->size();
}

// Two readers have a half each where that is worth a second process: each unit is then read by one
// of them, but for one.
void Symbolizer::State::look_together(Module& module, std::span<const std::uint64_t> codes) {
  const bool are_two = codes.size() > DwarfWorker::kMostAddresses && options.readers > 1;
  const std::size_t first = are_two ? codes.size() / 2 : codes.size();
  std::array<std::span<const std::uint64_t>, kMostReaders> rest{codes.first(first),
                                                                codes.subspan(first)};
  while (!module.dwarf_path.empty() && has_room() && !(rest[0].empty() && rest[1].empty())) {
    std::array<std::size_t, kMostReaders> asked{};
    std::optional<Error> failed;
    for (std::size_t i = 0; i < kMostReaders; ++i) {
      const std::size_t next = next_question(module, rest[i]);
      const Result<void> sent = next == 0 ? Result<void>() : ask(module, i, rest[i].first(next));
      if (sent) asked[i] = next;
      if (sent) continue;
      if (workers[i].lacks_process()) {  // what is left is looked up one by one
        rest[i] = {};
      } else {
        failed = sent.error();
      }
    }
    for (std::size_t i = 0; i < kMostReaders; ++i) {
      if (asked[i] == 0) continue;
      const Result<std::size_t> answered = answer(module, i, asked[i], rest[i]);
      if (answered) rest[i] = rest[i].subspan(*answered);
      if (!answered) failed = answered.error();
    }
    if (failed) give_up(module, *failed);  // behind all answers: these count
  }
}

// What debug information says.
std::vector<Frame> Symbolizer::State::look(Module& module, std::uint64_t code) {
  if (module.known.contains(code)) return module.known.frames(code);
  const std::span<const std::uint64_t> one(&code, 1);
  if (!module.dwarf_path.empty() && !module.unread.contains(code)) {
    const Result<void> sent = ask(module, 0, one);
    if (!sent && workers[0].lacks_process()) {
      module.shortage = sent.error().message;
      module.postponed.insert(code);
      ++shortages;
      return {};
    }
    const Result<std::size_t> answered =
        sent ? answer(module, 0, 1, one) : std::unexpected(sent.error());
    if (!answered) give_up(module, answered.error());
    if (answered && *answered != 0) return std::move(looked_up);
  }
  if (!module.trouble.empty()) module.unread.insert(code);
  return {};
}

// What its files have, in the place of what some of them had.
void Symbolizer::State::load_again(Module& module) {
  forget_notes({module.path, module.build_id});
  module.pause.begin();
  Module fresh;
  fresh.path = module.path;
  fresh.build_id = module.build_id;
  Undo of_symbols(bytes);
  {
    Undo of_known(known_bytes);  // what was known before has what the cache has
    load(fresh);
  }
  of_symbols.keep();
  if (module.symbols) bytes -= module.symbols->bytes();
  for (const auto& [name, text] : module.demangled) known_bytes -= text.size() + kTextCost;
  module.demangled.clear();  // by names of those symbols
  module.symbols = std::move(fresh.symbols);
  if (module.trouble.empty()) module.dwarf_path = std::move(fresh.dwarf_path);
  module.is_short = fresh.is_short;
}

// Null: there are too many.
Symbolizer::State::Module* Symbolizer::State::module_of(std::string_view path,
                                                        std::string_view build_id) {
  Key key{std::string(path), std::string(build_id)};
  if (const auto at = modules.find(key); at != modules.end()) {
    if (at->second.is_short && at->second.pause.is_over()) load_again(at->second);
    return &at->second;
  }
  if (modules.size() >= kMostModules) return nullptr;
  // Among the others once it is whole: half of one would stay so.
  Module module;
  module.path = key.first;
  module.build_id = key.second;
  Undo of_symbols(bytes);
  Undo of_known(known_bytes);
  module.pause = RetryPause(options.dwarf.retry_ms);
  load(module);
  if (module.is_short) module.pause.begin();
  Module& held = modules.try_emplace(std::move(key), std::move(module)).first->second;
  of_symbols.keep();
  of_known.keep();
  return &held;
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
  state.look_together(*module, codes);
}

Symbolizer::Symbolizer(SymbolizerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
Symbolizer::~Symbolizer() {
  try {
    save();
  } catch (const std::bad_alloc&) {  // the next one looks it up again
  }
}

// Once, and where its list couldn't be read for now again.
void Symbolizer::State::read_kernel(std::string_view boot_id) {
  const auto is_short = [&] { return !*kernel && kernel->error().code == ErrorCode::kIo; };
  if (kernel && !(is_short() && kernel_pause.is_over())) return;
  forget_notes({std::string(kKernelNotes), std::string(boot_id)});
  kernel.reset();
  kernel.emplace(KernelSymbols::read(options.kernel_list));
  if (is_short()) kernel_pause.begin();
}

std::vector<Frame> Symbolizer::kernel_frames(std::string_view boot_id, std::uint64_t address,
                                             bool is_return) {
  State& state = *state_;
  const auto nameless = [&](const std::string& why) {
    state.note(State::Key{std::string(kKernelNotes), std::string(boot_id)},
               "functions of the kernel have no names: " + why);
    return std::vector<Frame>();
  };
  if (boot_id.empty() || state.options.boot_id.empty()) {
    return nameless("it isn't known on which boot of which machine the trace was recorded");
  }
  if (boot_id != state.options.boot_id) {
    return nameless(
        "the trace is of another machine, or of an earlier boot of this one; read it on the "
        "machine that recorded it, before that restarts");
  }
  state.read_kernel(boot_id);
  if (!*state.kernel) {
    const Error& error = state.kernel->error();
    if (error.code == ErrorCode::kIo) ++state.shortages;
    return nameless(error.message +
                    (error.code == ErrorCode::kPermission
                         ? " from this user; run dial9 as root, or sysctl kernel.kptr_restrict=0"
                         : ""));
  }
  const std::string_view name = (*state.kernel)->name(is_return ? address - 1 : address);
  if (name.empty()) return {};
  return {Frame{.name = std::string(name)}};
}

std::uint64_t Symbolizer::shortages() const { return state_->shortages; }

void Symbolizer::save() {
  for (auto& [key, module] : state_->modules) {
    if (module.has_new) state_->cache.save(module.build_id, module.known);
    module.has_new = false;
  }
}

// Where debug information couldn't be read, with the number of addresses by now.
std::vector<Symbolizer::State::Note> Symbolizer::State::all_notes() const {
  std::vector<Note> all = notes;
  for (const auto& [key, module] : modules) {
    const auto count_of = [](std::size_t count) {
      return std::to_string(count) + (count == 1 ? " address has" : " addresses have") + " none";
    };
    const std::size_t count = module.unread.size();
    if (!module.trouble.empty()) {
      const std::string none = count == 0 ? "" : " (" + count_of(count) + ")";
      all.push_back({key, module.trouble + none, false});
    }
    if (module.postponed.empty()) continue;
    all.push_back({key,
                   "not all lines from " + module.dwarf_path + ": " + module.shortage + " (" +
                       count_of(module.postponed.size()) + ")",
                   false});
  }
  return all;
}

std::vector<std::string> Symbolizer::notes() const {
  std::vector<std::string> texts;
  for (const State::Note& note : state_->all_notes()) {
    const bool is_wanted = state_->options.wants_lines || !note.is_of_lines;
    if (is_wanted && std::find(texts.begin(), texts.end(), note.text) == texts.end()) {
      texts.push_back(note.text);
    }
  }
  return texts;
}

std::vector<std::string> Symbolizer::notes_of(std::string_view path, std::string_view build_id,
                                              bool wants_lines) const {
  std::vector<std::string> texts;
  for (const State::Note& note : state_->all_notes()) {
    const bool is_wanted = wants_lines || !note.is_of_lines;
    if (is_wanted && note.of.first == path && note.of.second == build_id) {
      texts.push_back(note.text);
    }
  }
  return texts;
}

std::vector<Frame> Symbolizer::frames(std::string_view path, std::string_view build_id,
                                      std::uint64_t address, bool is_return) {
  State& state = *state_;
  State::Module* const of = state.module_of(path, build_id);
  if (of == nullptr) return {};
  State::Module& module = *of;
  if (module.is_short) ++state.shortages;
  const ElfSymbols::Function function = state.function_at(module, address, is_return);
  const bool is_first = is_return && function.begin == address;  // of a handler's return
  std::vector<Frame> frames = state.look(module, is_return && !is_first ? address - 1 : address);
  if (!function.name.empty()) {
    if (frames.empty()) frames.emplace_back();
    frames.back().name = state.demangled(module, function.name);
  }
  while (!frames.empty() && frames.back().name.empty()) frames.pop_back();
  return frames;
}

}  // namespace dial9::symbolize
