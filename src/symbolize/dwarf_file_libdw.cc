// See dwarf_file.h. libdw's own look-ups by address walk a whole unit each time (milliseconds), and
// 100 ns an entry are much where millions are passed. So a unit's functions are listed once, by our
// own reader of entries (dwarf_entries.h), what is inlined into one is listed when it is asked for,
// and lines come from our own reader (dwarf_lines.h). libdw finds units, follows references and
// reads lists of ranges.
// SPDX-License-Identifier: Apache-2.0
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/os_error.h"
#include "symbolize/demangle.h"
#include "symbolize/dwarf_file.h"
#include "symbolize/dwarf_functions.h"
#include "symbolize/dwarf_lines.h"
#include "symbolize/dwarf_sections.h"
#include "symbolize/elf_file.h"

namespace dial9::symbolize {
namespace {

using ByteSpan = std::span<const std::uint8_t>;

constexpr int kMostReferences = 16;  // from a function to its declaration
constexpr int kMostLookedAt = 64;    // units that claim one address
constexpr std::size_t kMostInMemory = 8 << 20;
constexpr std::uint32_t kLookEach = 256;  // functions: how much memory is used is looked at

struct Unit {
  Dwarf_Die die;
  bool is_read = false;
  Dwarf* dwarf = nullptr;     // of its entries: the file's, or that of the unit's own file
  Dwarf_CU* split = nullptr;  // the unit in its own file; null: it has none
  ByteSpan bytes;             // from its header on
  UnitFunctions functions;

  void* at(std::size_t offset) const { return const_cast<std::uint8_t*>(bytes.data()) + offset; }
};

struct UnitRange {
  AddressRange range;
  std::uint64_t reach;  // the largest end of this and all before it
  std::uint32_t unit;
};

struct Place {
  std::string file;
  std::uint32_t line = 0;
};

// How a function is called, and where it is written.
struct Described {
  std::string name;
  Place place;
};

// A unit's line table, and the paths of its files that were asked for.
struct Lines {
  std::optional<LineTable> table;
  std::unordered_map<std::uint64_t, std::string> paths;
};

std::size_t bytes_in_use() {
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

}  // namespace

struct DwarfFile::State {
  int fd = -1;
  std::size_t most_bytes = 0;
  void* map = nullptr;  // the file
  std::size_t map_bytes = 0;
  Elf* elf = nullptr;
  Dwarf* dwarf = nullptr;
  std::uint32_t grown = 0;     // since the memory was looked at
  const Unit* last = nullptr;  // that was looked at
  std::size_t in_memory = 0;   // of the file, about: its units that were looked at
  std::vector<AddressRange> code;
  std::vector<Unit> units;
  std::vector<UnitRange> unit_ranges;  // by `begin`
  std::unordered_map<Dwarf*, DwarfSectionsOfFile> sections;
  std::unordered_map<Dwarf_CU*, Lines> lines;
  std::unordered_map<const void*, Described> described;

  ~State() { close(); }
  Result<void> open();
  void close();
  void forget();
  void list_units();
  void let_go(ByteSpan bytes) const;
  void look_at(const Unit& unit);
  bool is_code(const AddressRange& range) const;
  template <class Use>
  void for_each_range(Dwarf_Die& die, Use use) const;
  void add_code(const Unit& unit, const DwarfEntry& entry, std::vector<AddressRange>& to) const;
  const DwarfSections* sections_with(Dwarf* of, const void* entry);
  void read_unit(Unit& unit);
  struct Spot;
  std::optional<Spot> spot_at(std::uint64_t address);
  std::string spaces_of(const Unit& unit, Dwarf_Die& die) const;
  Lines& lines_of(Dwarf_CU* cu);
  static const std::string& path_of(Lines& of, std::uint64_t number);
  Place line_at(Unit& unit, std::uint64_t address);
  Place place_of(const Unit& unit, Dwarf_Attribute* file, Dwarf_Attribute* line);
  const Described& describe(const Unit& unit, Dwarf_Die die, bool is_inlined);
  std::vector<Frame> frames_in(Unit& unit, std::uint32_t function, std::uint64_t address);
};

Result<void> DwarfFile::State::open() {
  map_bytes = regular_file_bytes(fd).value_or(0);
  // Writable, a copy of what is written: libelf changes the headers of compressed sections where
  // they lie. That counts for RLIMIT_DATA: a file that is too large for it is only read.
  void* mapped = ::mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (mapped == MAP_FAILED) {
    mapped = ::mmap(nullptr, map_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  }
  if (mapped == MAP_FAILED) return os_error(errno, "map", "it");
  map = mapped;
  ::elf_version(EV_CURRENT);
  elf = ::elf_memory(static_cast<char*>(map), map_bytes);
  if (elf == nullptr) return make_error(ErrorCode::kCorrupt, ::elf_errmsg(-1));
  code = code_of(elf);
  dwarf = ::dwarf_begin_elf(elf, DWARF_C_READ, nullptr);
  if (dwarf == nullptr) return make_error(ErrorCode::kNotFound, ::dwarf_errmsg(-1));
  list_units();
  return {};
}

void DwarfFile::State::close() {
  last = nullptr;
  in_memory = 0;
  units.clear();
  unit_ranges.clear();
  sections.clear();
  lines.clear();
  described.clear();
  if (dwarf != nullptr) ::dwarf_end(std::exchange(dwarf, nullptr));
  if (elf != nullptr) ::elf_end(std::exchange(elf, nullptr));
  if (map != nullptr) ::munmap(std::exchange(map, nullptr), map_bytes);
}

// What we made of the units; it is made again when it is needed.
void DwarfFile::State::forget() {
  for (Unit& unit : units) {
    unit.functions = {};
    unit.is_read = false;
  }
  lines.clear();
  described.clear();
}

// What was read of the file needn't stay in memory: a page that is needed once more comes from the
// system's cache. Not of a section that was compressed, so isn't in the map.
void DwarfFile::State::let_go(ByteSpan bytes) const {
  constexpr std::uintptr_t kPage = 4096;  // or larger: then it's refused
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const auto low = (begin + kPage - 1) & ~(kPage - 1);
  const auto high = (begin + bytes.size()) & ~(kPage - 1);
  const auto first = reinterpret_cast<std::uintptr_t>(map);
  if (low < high && low >= first && high <= first + map_bytes) {
    (void)::madvise(reinterpret_cast<void*>(low), high - low, MADV_DONTNEED);
  }
}

// Before a unit's entries are read.
void DwarfFile::State::look_at(const Unit& unit) {
  if (last == &unit) return;
  last = &unit;
  if (in_memory > kMostInMemory) {
    for (const auto& [of, file] : sections) {
      let_go(file.own.entries);
      let_go(file.own.lines.lines);
    }
    in_memory = 0;
  }
  in_memory += unit.bytes.size();
}

// A linker leaves what it threw away at address 0, or at one beyond all.
bool DwarfFile::State::is_code(const AddressRange& range) const {
  return range.begin < range.end && std::any_of(
                                        code.begin(), code.end(),
                                        [&](const AddressRange& section) {
                                          return range.begin >= section.begin &&
                                                 range.end <= section.end;
                                        });
}

template <class Use>
void DwarfFile::State::for_each_range(Dwarf_Die& die, Use use) const {
  Dwarf_Addr base = 0;
  AddressRange range;
  std::ptrdiff_t at = 0;
  while ((at = ::dwarf_ranges(&die, at, &base, &range.begin, &range.end)) > 0) {
    use(range);
  }
}

void DwarfFile::State::add_code(const Unit& unit, const DwarfEntry& entry,
                                std::vector<AddressRange>& to) const {
  const auto add = [&](const AddressRange& range) {
    if (is_code(range)) to.push_back(range);
  };
  Dwarf_Die die;
  if (entry.has_range) {
    add(entry.range);
  } else if (entry.has_others &&
             ::dwarf_die_addr_die(unit.dwarf, unit.at(entry.at), &die) != nullptr) {
    for_each_range(die, add);
  }
}

// A unit's range may reach over several sections; those of its functions don't.
void DwarfFile::State::list_units() {
  Dwarf_CU* cu = nullptr;
  Dwarf_CU* next = nullptr;
  std::uint8_t type = 0;
  Dwarf_Die die{};
  while (::dwarf_get_units(dwarf, cu, &next, nullptr, &type, &die, nullptr) == 0) {
    cu = next;
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    const auto number = static_cast<std::uint32_t>(units.size());
    const std::size_t before = unit_ranges.size();
    for_each_range(die, [&](const AddressRange& range) {
      if (range.begin < range.end) unit_ranges.push_back({range, 0, number});
    });
    if (unit_ranges.size() != before) units.emplace_back().die = die;
  }
  std::sort(unit_ranges.begin(), unit_ranges.end(), [](const UnitRange& a, const UnitRange& b) {
    return std::pair(a.range.begin, a.unit) < std::pair(b.range.begin, b.unit);
  });
  std::uint64_t reach = 0;
  for (UnitRange& one : unit_ranges) {
    reach = std::max(reach, one.range.end);
    one.reach = reach;
  }
}

const DwarfSections* DwarfFile::State::sections_with(Dwarf* of, const void* entry) {
  const auto [at, is_new] = sections.try_emplace(of);
  if (is_new) at->second = dwarf_sections_of(::dwarf_getelf(of));
  return at->second.with(entry);
}

void DwarfFile::State::read_unit(Unit& unit) {
  unit.is_read = true;
  grown += kLookEach;
  Dwarf_Die root = unit.die;
  std::uint8_t type = 0;
  Dwarf_Die split{};
  if (::dwarf_cu_info(unit.die.cu, nullptr, &type, nullptr, &split, nullptr, nullptr, nullptr) ==
          0 &&
      type == DW_UT_skeleton && split.addr != nullptr) {
    root = split;
    unit.split = split.cu;
  }
  unit.dwarf = ::dwarf_cu_getdwarf(root.cu);
  const DwarfSections* const of = sections_with(unit.dwarf, root.addr);
  const UnitBytes found = of == nullptr ? UnitBytes() : unit_bytes(*of, root);
  if (found.bytes.empty()) return;
  unit.bytes = found.bytes;
  look_at(unit);
  unit.functions =
      UnitFunctions(found.bytes, found.first, found.format,
                    DwarfAbbreviations::read(found.abbreviations, found.format),
                    [this, &unit](const DwarfEntry& entry, std::vector<AddressRange>& to) {
                      add_code(unit, entry, to);
                    });
}

struct DwarfFile::State::Spot {
  Unit* unit;
  std::uint32_t
      function;  // UnitFunctions::kNone: the unit claims the address, but no function of it does
};

// Of several units that claim an address, the one with a function there.
std::optional<DwarfFile::State::Spot> DwarfFile::State::spot_at(std::uint64_t address) {
  auto after = std::upper_bound(
      unit_ranges.begin(), unit_ranges.end(), address,
      [](std::uint64_t wanted, const UnitRange& one) { return wanted < one.range.begin; });
  std::optional<Spot> found;
  for (int i = 0; i < kMostLookedAt && after != unit_ranges.begin(); ++i) {
    --after;
    if (address >= after->reach) break;
    if (address >= after->range.end) continue;
    Unit& unit = units[after->unit];
    if (!unit.is_read) read_unit(unit);
    const std::uint32_t function = unit.functions.at(address);
    if (function != UnitFunctions::kNone) return Spot{&unit, function};
    if (!found) found = Spot{&unit, UnitFunctions::kNone};
  }
  return found;
}

// A unit in a file of its own has the names of files there, or else in the one that tells of it.
Lines& DwarfFile::State::lines_of(Dwarf_CU* cu) {
  const auto [at, is_new] = lines.try_emplace(cu);
  if (!is_new) return at->second;
  grown += kLookEach;
  Dwarf_Die die;
  if (::dwarf_cu_die(cu, &die, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) == nullptr) {
    return at->second;
  }
  Dwarf_Attribute attribute;
  Dwarf_Word offset = 0;
  const DwarfSections* const found = sections_with(::dwarf_cu_getdwarf(cu), die.addr);
  const bool is_told = ::dwarf_attr(&die, DW_AT_stmt_list, &attribute) != nullptr &&
                       ::dwarf_formudata(&attribute, &offset) == 0;
  if (found == nullptr || (!is_told && !found->is_split)) return at->second;
  const char* const directory = ::dwarf_attr(&die, DW_AT_comp_dir, &attribute) == nullptr
                                    ? nullptr
                                    : ::dwarf_formstring(&attribute);
  at->second.table =
      LineTable::read(found->lines, offset, directory == nullptr ? "" : directory, code);
  return at->second;
}

const std::string& DwarfFile::State::path_of(Lines& of, std::uint64_t number) {
  const auto [at, is_new] = of.paths.try_emplace(number);
  if (is_new) {
    const std::string path = of.table->file(number);
    if (!path.empty()) at->second = std::filesystem::path(path).lexically_normal().string();
  }
  return at->second;
}

Place DwarfFile::State::line_at(Unit& unit, std::uint64_t address) {
  Lines& of = lines_of(unit.die.cu);
  if (!of.table) return {};
  const LineTable::Line found = of.table->find(address);
  const std::string& path = path_of(of, found.file);
  if (found.line == 0 || path.empty()) return {};
  return {path, found.line};
}

Place DwarfFile::State::place_of(const Unit& unit, Dwarf_Attribute* file, Dwarf_Attribute* line) {
  Dwarf_Word index = 0;
  Dwarf_Word number = 0;
  if (::dwarf_formudata(file, &index) != 0 || ::dwarf_formudata(line, &number) != 0 ||
      number == 0 || number > std::numeric_limits<std::uint32_t>::max()) {
    return {};
  }
  Lines* of = &lines_of(file->cu);
  if (!of->table && file->cu == unit.split) of = &lines_of(unit.die.cu);
  if (!of->table) return {};
  const std::string& path = path_of(*of, index);
  if (path.empty()) return {};
  return {path, static_cast<std::uint32_t>(number)};
}

// "a::b::" of where a function is declared. Only of the unit's own functions, and of none in a
// class.
std::string DwarfFile::State::spaces_of(const Unit& unit, Dwarf_Die& die) const {
  Dwarf_Die at = die;
  for (int i = 0; i < kMostReferences; ++i) {
    Dwarf_Attribute attribute;
    Dwarf_Die next;
    if (::dwarf_attr(&at, DW_AT_abstract_origin, &attribute) == nullptr &&
        ::dwarf_attr(&at, DW_AT_specification, &attribute) == nullptr) {
      break;
    }
    if (::dwarf_formref_die(&attribute, &next) == nullptr) return {};
    at = next;
  }
  if (!is_in(at.addr, unit.bytes)) return {};
  const auto entry =
      static_cast<std::size_t>(static_cast<const std::uint8_t*>(at.addr) - unit.bytes.data());
  const std::vector<UnitFunctions::Space>& spaces = unit.functions.spaces();
  std::string text;
  for (std::uint32_t number = unit.functions.space_at(entry); number != UnitFunctions::kNone;
       number = spaces[number].parent) {
    Dwarf_Die named;
    if (::dwarf_die_addr_die(unit.dwarf, unit.at(spaces[number].begin), &named) == nullptr) {
      return {};
    }
    const char* const name = ::dwarf_diename(&named);
    text.insert(0, std::string(name == nullptr ? "(anonymous namespace)" : name) + "::");
  }
  return text;
}

// An inlined function is described by its origin, which all of its copies have.
const Described& DwarfFile::State::describe(const Unit& unit, Dwarf_Die die, bool is_inlined) {
  Dwarf_Attribute attribute;
  Dwarf_Die origin;
  if (is_inlined && ::dwarf_attr(&die, DW_AT_abstract_origin, &attribute) != nullptr &&
      ::dwarf_formref_die(&attribute, &origin) != nullptr) {
    die = origin;
  }
  const auto [at, is_new] = described.try_emplace(die.addr);
  Described& out = at->second;
  if (!is_new) return out;
  const char* name = nullptr;
  for (const unsigned code_of_name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    if (name == nullptr && ::dwarf_attr_integrate(&die, code_of_name, &attribute) != nullptr) {
      name = ::dwarf_formstring(&attribute);
    }
  }
  if (name != nullptr) {
    out.name = readable_name(name);
  } else if (name = ::dwarf_diename(&die); name != nullptr) {
    out.name = spaces_of(unit, die) + name;
  }
  Dwarf_Attribute line;
  if (::dwarf_attr_integrate(&die, DW_AT_decl_file, &attribute) != nullptr &&
      ::dwarf_attr_integrate(&die, DW_AT_decl_line, &line) != nullptr) {
    out.place = place_of(unit, &attribute, &line);
  }
  return out;
}

std::vector<Frame> DwarfFile::State::frames_in(Unit& unit, std::uint32_t function,
                                               std::uint64_t address) {
  std::vector<UnitFunctions::Scope> chain;
  if (function != UnitFunctions::kNone) {
    look_at(unit);
    const std::size_t before = unit.functions.listed();
    chain = unit.functions.chain(function, address);
    if (unit.functions.listed() != before) ++grown;
  }
  Place at = line_at(unit, address);
  std::vector<Frame> frames;
  for (const UnitFunctions::Scope& scope : chain) {
    if (frames.size() + 1 >= kMostFrames) break;
    const bool is_inlined = scope.parent != UnitFunctions::kNone;
    Dwarf_Die die;
    if (::dwarf_die_addr_die(unit.dwarf, unit.at(scope.at), &die) == nullptr) break;
    const Described& what = describe(unit, die, is_inlined);
    frames.push_back({.name = what.name,
                      .file = what.place.file,
                      .line = what.place.line,
                      .at_file = std::move(at.file),
                      .at_line = at.line,
                      .is_inlined = is_inlined});
    Dwarf_Attribute file;
    Dwarf_Attribute line;
    at = is_inlined && ::dwarf_attr(&die, DW_AT_call_file, &file) != nullptr &&
                 ::dwarf_attr(&die, DW_AT_call_line, &line) != nullptr
             ? place_of(unit, &file, &line)
             : Place{};
  }
  if (frames.empty() ? at.line != 0 : frames.back().is_inlined) {
    frames.push_back({.name = "", .at_file = std::move(at.file), .at_line = at.line});
  }
  return frames;
}

DwarfFile::DwarfFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
DwarfFile::~DwarfFile() = default;
DwarfFile::DwarfFile(DwarfFile&&) noexcept = default;
DwarfFile& DwarfFile::operator=(DwarfFile&&) noexcept = default;

bool DwarfFile::is_supported() { return true; }

Result<DwarfFile> DwarfFile::open(int fd, std::size_t most_bytes) {
  auto state = std::make_unique<State>();
  state->fd = fd;
  state->most_bytes = most_bytes;
  if (const auto opened = state->open(); !opened) return std::unexpected(opened.error());
  return DwarfFile(std::move(state));
}

std::vector<Frame> DwarfFile::frames(std::uint64_t address) {
  State& state = *state_;
  if (state.grown >= kLookEach) {
    state.grown = 0;
    if (bytes_in_use() > state.most_bytes) {
      state.forget();
      (void)::malloc_trim(0);
    }
    if (bytes_in_use() > state.most_bytes) {  // so libdw keeps it
      state.close();
      (void)::malloc_trim(0);
      // "Nothing is known of the address" would be kept as an answer: that the process ended is
      // none.
      if (!state.open()) std::_Exit(1);
    }
  }
  const auto spot = state.spot_at(address);
  return spot ? state.frames_in(*spot->unit, spot->function, address) : std::vector<Frame>();
}

}  // namespace dial9::symbolize
