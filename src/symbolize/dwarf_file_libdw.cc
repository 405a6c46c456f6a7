// See dwarf_file.h. libdw's own look-ups by address walk a whole unit each time (milliseconds), so
// a unit is walked once, into a table of which function lies innermost where.
// SPDX-License-Identifier: Apache-2.0
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <limits>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/os_error.h"
#include "symbolize/demangle.h"
#include "symbolize/dwarf_file.h"
#include "symbolize/elf_file.h"

namespace dial9::symbolize {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr std::uint32_t kMostNested = 256;  // entries within entries
constexpr int kMostReferences = 16;         // from a function to its declaration
constexpr int kMostLookedAt = 64;           // units that claim one address

struct Range {
  std::uint64_t begin;
  std::uint64_t end;
};

// A function or an inlined one.
struct Scope {
  void* die;
  std::uint32_t parent;  // the next outer one; kNone
  bool is_inlined;
};

// From `begin` to the next piece's, `scope` is the innermost; kNone: there is none.
struct Piece {
  std::uint64_t begin;
  std::uint32_t scope;
};

struct ScopeRange {
  Range range;
  std::uint32_t scope;
  std::uint32_t depth;
};

// A namespace: entries from `begin` up to `end` are in it.
struct Space {
  const void* begin;
  const void* end;  // null: up to the unit's end
  std::uint32_t parent;
};

struct Unit {
  Dwarf_Die die;
  bool is_read = false;
  Dwarf* dwarf = nullptr;     // of its entries: the file's, or that of the unit's own file
  std::vector<Space> spaces;  // by `begin`
  std::vector<Scope> scopes;
  std::vector<Piece> pieces;
};

struct UnitRange {
  Range range;
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

std::size_t bytes_in_use() {
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

bool is_code_section(const GElf_Shdr& header) {
  return (header.sh_flags & SHF_EXECINSTR) != 0 && (header.sh_flags & SHF_ALLOC) != 0 &&
         header.sh_size != 0 && header.sh_addr + header.sh_size > header.sh_addr;
}

std::vector<Range> code_of(Elf* elf) {
  std::vector<Range> code;
  for (Elf_Scn* section = ::elf_nextscn(elf, nullptr); section != nullptr;
       section = ::elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (::gelf_getshdr(section, &header) != nullptr && is_code_section(header)) {
      code.push_back({header.sh_addr, header.sh_addr + header.sh_size});
    }
  }
  return code;
}

// The pieces of ranges that may lie within each other: deeper ones lie on top.
std::vector<Piece> flatten(std::vector<ScopeRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const ScopeRange& a, const ScopeRange& b) {
    return std::pair(a.range.begin, a.depth) < std::pair(b.range.begin, b.depth);
  });
  std::vector<std::uint64_t> borders;
  borders.reserve(ranges.size() * 2);
  for (const ScopeRange& one : ranges) {
    borders.push_back(one.range.begin);
    borders.push_back(one.range.end);
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::vector<Piece> pieces;
  std::priority_queue<std::pair<std::uint32_t, std::size_t>> open;  // by depth; positions
  std::size_t next = 0;
  for (const std::uint64_t at : borders) {
    while (next < ranges.size() && ranges[next].range.begin == at) {
      open.emplace(ranges[next].depth, next);
      ++next;
    }
    while (!open.empty() && ranges[open.top().second].range.end <= at) open.pop();
    const std::uint32_t scope = open.empty() ? kNone : ranges[open.top().second].scope;
    if (pieces.empty() || pieces.back().scope != scope) pieces.push_back({at, scope});
  }
  pieces.shrink_to_fit();
  return pieces;
}

}  // namespace

struct DwarfFile::State {
  int fd = -1;
  std::size_t most_bytes = 0;
  void* map = nullptr;  // the file
  std::size_t map_bytes = 0;
  Elf* elf = nullptr;
  Dwarf* dwarf = nullptr;
  bool has_grown = false;              // by a unit, since the memory was looked at
  const void* first_walked = nullptr;  // of the unit that was read last
  const void* last_walked = nullptr;
  std::vector<Range> code;
  std::vector<Unit> units;
  std::vector<UnitRange> unit_ranges;  // by `begin`
  std::unordered_map<void*, Described> described;
  std::unordered_map<const char*, std::string> files;

  ~State() { close(); }
  Result<void> open();
  void close();
  void list_units();
  void let_go(const void* begin, const void* end) const;
  Unit* unit_at(std::uint64_t address);
  bool is_code(const Range& range) const;
  template <class Use>
  void for_each_range(Dwarf_Die& die, Use use) const;
  void read_unit(Unit& unit);
  struct Around;
  void walk(Dwarf_Die& parent_die, const Around& around, Unit& unit,
            std::vector<ScopeRange>& ranges);
  std::string spaces_of(Unit& unit, Dwarf_Die& die) const;
  const std::string& file_of(const char* path);
  Place line_at(Unit& unit, std::uint64_t address);
  Place place_of(Dwarf_Attribute* file, Dwarf_Attribute* line);
  const Described& describe(Unit& unit, Dwarf_Die& die);
  std::vector<Frame> frames_in(Unit& unit, std::uint64_t address);
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
  first_walked = nullptr;
  last_walked = nullptr;
  units.clear();
  unit_ranges.clear();
  described.clear();
  files.clear();
  if (dwarf != nullptr) ::dwarf_end(std::exchange(dwarf, nullptr));
  if (elf != nullptr) ::elf_end(std::exchange(elf, nullptr));
  if (map != nullptr) ::munmap(std::exchange(map, nullptr), map_bytes);
}

// What was read of the file between two entries needn't stay in memory: a page that is needed once
// more comes from the system's cache. Not of a section that was compressed, so isn't in the map.
void DwarfFile::State::let_go(const void* begin, const void* end) const {
  constexpr std::uintptr_t kPage = 4096;  // or larger: then it's refused
  const auto low = (reinterpret_cast<std::uintptr_t>(begin) + kPage - 1) & ~(kPage - 1);
  const auto high = reinterpret_cast<std::uintptr_t>(end) & ~(kPage - 1);
  const auto first = reinterpret_cast<std::uintptr_t>(map);
  if (low < high && low >= first && high <= first + map_bytes) {
    (void)::madvise(reinterpret_cast<void*>(low), high - low, MADV_DONTNEED);
  }
}

// A linker leaves what it threw away at address 0, or at one beyond all.
bool DwarfFile::State::is_code(const Range& range) const {
  return range.begin < range.end && std::any_of(
                                        code.begin(), code.end(),
                                        [&](const Range& section) {
                                          return range.begin >= section.begin &&
                                                 range.end <= section.end;
                                        });
}

template <class Use>
void DwarfFile::State::for_each_range(Dwarf_Die& die, Use use) const {
  Dwarf_Addr base = 0;
  Range range{};
  std::ptrdiff_t at = 0;
  while ((at = ::dwarf_ranges(&die, at, &base, &range.begin, &range.end)) > 0) {
    use(range);
  }
}

// A unit's range may reach over several sections; those of its functions don't.
void DwarfFile::State::list_units() {
  Dwarf_CU* cu = nullptr;
  Dwarf_CU* next = nullptr;
  std::uint8_t type = 0;
  Unit unit{};
  while (::dwarf_get_units(dwarf, cu, &next, nullptr, &type, &unit.die, nullptr) == 0) {
    cu = next;
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    const auto number = static_cast<std::uint32_t>(units.size());
    const std::size_t before = unit_ranges.size();
    for_each_range(unit.die, [&](const Range& range) {
      if (range.begin < range.end) unit_ranges.push_back({range, 0, number});
    });
    if (unit_ranges.size() != before) units.push_back(unit);
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

// What the entries lie in that a walk is at.
struct DwarfFile::State::Around {
  std::uint32_t scope = kNone;
  std::uint32_t space = kNone;
  std::uint32_t depth = 0;   // functions
  std::uint32_t nested = 0;  // entries
};

void DwarfFile::State::walk(Dwarf_Die& parent_die, const Around& around, Unit& unit,
                            std::vector<ScopeRange>& ranges) {
  Dwarf_Die die;
  if (around.nested > kMostNested || ::dwarf_child(&parent_die, &die) != 0) return;
  std::uint32_t open_space = kNone;  // that ends where the next entry begins
  do {
    for (std::size_t i = open_space; i < unit.spaces.size(); ++i) {  // and the last within it
      if (unit.spaces[i].end == nullptr) unit.spaces[i].end = die.addr;
    }
    open_space = kNone;
    last_walked = die.addr;
    Around inner = around;
    ++inner.nested;
    const int tag = ::dwarf_tag(&die);
    if (tag == DW_TAG_namespace) {
      open_space = static_cast<std::uint32_t>(unit.spaces.size());
      unit.spaces.push_back({die.addr, nullptr, around.space});
      inner.space = open_space;
    } else if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) {
      const bool is_inlined = tag == DW_TAG_inlined_subroutine;
      inner.scope = static_cast<std::uint32_t>(unit.scopes.size());
      ++inner.depth;
      const std::size_t before = ranges.size();
      for_each_range(die, [&](const Range& range) {
        if (is_code(range)) ranges.push_back({range, inner.scope, around.depth});
      });
      // A declaration, a function that is only inlined elsewhere, or one that was thrown away.
      if (!is_inlined && ranges.size() == before) continue;
      unit.scopes.push_back({die.addr, is_inlined ? around.scope : kNone, is_inlined});
    } else if (tag != DW_TAG_lexical_block && tag != DW_TAG_try_block &&
               tag != DW_TAG_catch_block) {
      continue;
    }
    walk(die, inner, unit, ranges);
  } while (::dwarf_siblingof(&die, &die) == 0);
}

void DwarfFile::State::read_unit(Unit& unit) {
  unit.is_read = true;
  has_grown = true;
  Dwarf_Die root = unit.die;
  std::uint8_t type = 0;
  Dwarf_Die split{};
  if (::dwarf_cu_info(unit.die.cu, nullptr, &type, nullptr, &split, nullptr, nullptr, nullptr) ==
          0 &&
      type == DW_UT_skeleton && split.addr != nullptr) {
    root = split;
  }
  unit.dwarf = ::dwarf_cu_getdwarf(root.cu);
  std::vector<ScopeRange> ranges;
  let_go(first_walked, last_walked);  // the unit before; this one will be looked at
  first_walked = root.addr;
  last_walked = root.addr;
  walk(root, {}, unit, ranges);
  unit.scopes.shrink_to_fit();
  unit.pieces = flatten(std::move(ranges));
}

// Of several that claim an address, the one with a function there.
Unit* DwarfFile::State::unit_at(std::uint64_t address) {
  auto after = std::upper_bound(
      unit_ranges.begin(), unit_ranges.end(), address,
      [](std::uint64_t wanted, const UnitRange& one) { return wanted < one.range.begin; });
  Unit* found = nullptr;
  for (int i = 0; i < kMostLookedAt && after != unit_ranges.begin(); ++i) {
    --after;
    if (address >= after->reach) break;
    if (address >= after->range.end) continue;
    Unit& unit = units[after->unit];
    if (!unit.is_read) read_unit(unit);
    const auto piece =
        std::upper_bound(unit.pieces.begin(), unit.pieces.end(), address,
                         [](std::uint64_t wanted, const Piece& one) { return wanted < one.begin; });
    if (piece != unit.pieces.begin() && std::prev(piece)->scope != kNone) return &unit;
    if (found == nullptr) found = &unit;
  }
  return found;
}

const std::string& DwarfFile::State::file_of(const char* path) {
  const auto [at, is_new] = files.try_emplace(path);
  if (is_new) at->second = std::filesystem::path(path).lexically_normal().string();
  return at->second;
}

Place DwarfFile::State::line_at(Unit& unit, std::uint64_t address) {
  Dwarf_Line* const line = ::dwarf_getsrc_die(&unit.die, address);
  int number = 0;
  if (line == nullptr || ::dwarf_lineno(line, &number) != 0 || number <= 0) return {};
  const char* const file = ::dwarf_linesrc(line, nullptr, nullptr);
  if (file == nullptr) return {};
  return {file_of(file), static_cast<std::uint32_t>(number)};
}

// libdw takes 0 for no file; from DWARF 5 on, and so of clang, it is the first.
Place DwarfFile::State::place_of(Dwarf_Attribute* file, Dwarf_Attribute* line) {
  Dwarf_Word index = 0;
  Dwarf_Word number = 0;
  Dwarf_Die unit;
  Dwarf_Half version = 0;
  Dwarf_Files* files_of_unit = nullptr;
  std::size_t count = 0;
  if (::dwarf_formudata(file, &index) != 0 || ::dwarf_formudata(line, &number) != 0 ||
      number == 0 || number > std::numeric_limits<std::uint32_t>::max() ||
      ::dwarf_cu_die(file->cu, &unit, &version, nullptr, nullptr, nullptr, nullptr, nullptr) ==
          nullptr ||
      (index == 0 && version < 5) || ::dwarf_getsrcfiles(&unit, &files_of_unit, &count) != 0 ||
      index >= count) {
    return {};
  }
  const char* const path = ::dwarf_filesrc(files_of_unit, index, nullptr, nullptr);
  if (path == nullptr) return {};
  return {file_of(path), static_cast<std::uint32_t>(number)};
}

// "a::b::" of where a function is declared. Only of the unit's own functions, and of none in a
// class.
std::string DwarfFile::State::spaces_of(Unit& unit, Dwarf_Die& die) const {
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
  const auto after =
      std::upper_bound(unit.spaces.begin(), unit.spaces.end(), static_cast<const void*>(at.addr),
                       [](const void* wanted, const Space& one) { return wanted < one.begin; });
  auto number = static_cast<std::uint32_t>(after - unit.spaces.begin()) - 1;
  std::string text;
  for (; number != kNone; number = unit.spaces[number].parent) {
    const Space& space = unit.spaces[number];
    if (space.end != nullptr && at.addr >= space.end) continue;
    Dwarf_Die named;
    if (at.cu != unit.die.cu ||
        ::dwarf_die_addr_die(unit.dwarf, const_cast<void*>(space.begin), &named) == nullptr) {
      return {};
    }
    const char* const name = ::dwarf_diename(&named);
    text.insert(0, std::string(name == nullptr ? "(anonymous namespace)" : name) + "::");
  }
  return text;
}

const Described& DwarfFile::State::describe(Unit& unit, Dwarf_Die& die) {
  const auto [at, is_new] = described.try_emplace(die.addr);
  Described& out = at->second;
  if (!is_new) return out;
  Dwarf_Attribute attribute;
  const char* name = nullptr;
  for (const unsigned code_of_name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    if (name == nullptr && ::dwarf_attr_integrate(&die, code_of_name, &attribute) != nullptr) {
      name = ::dwarf_formstring(&attribute);
    }
  }
  if (name != nullptr) {
    out.name = demangle(name);
  } else if (name = ::dwarf_diename(&die); name != nullptr) {
    out.name = spaces_of(unit, die) + name;
  }
  Dwarf_Attribute line;
  if (::dwarf_attr_integrate(&die, DW_AT_decl_file, &attribute) != nullptr &&
      ::dwarf_attr_integrate(&die, DW_AT_decl_line, &line) != nullptr) {
    out.place = place_of(&attribute, &line);
  }
  return out;
}

std::vector<Frame> DwarfFile::State::frames_in(Unit& unit, std::uint64_t address) {
  const auto piece =
      std::upper_bound(unit.pieces.begin(), unit.pieces.end(), address,
                       [](std::uint64_t wanted, const Piece& one) { return wanted < one.begin; });
  std::uint32_t scope = piece == unit.pieces.begin() ? kNone : std::prev(piece)->scope;
  Place at = line_at(unit, address);
  std::vector<Frame> frames;
  while (scope != kNone && frames.size() + 1 < kMostFrames) {
    const Scope& found = unit.scopes[scope];
    Dwarf_Die die;
    if (::dwarf_die_addr_die(unit.dwarf, found.die, &die) == nullptr) break;
    const Described& what = describe(unit, die);
    frames.push_back({.name = what.name,
                      .file = what.place.file,
                      .line = what.place.line,
                      .at_file = std::move(at.file),
                      .at_line = at.line,
                      .is_inlined = found.is_inlined});
    Dwarf_Attribute file;
    Dwarf_Attribute line;
    at = found.is_inlined && ::dwarf_attr(&die, DW_AT_call_file, &file) != nullptr &&
                 ::dwarf_attr(&die, DW_AT_call_line, &line) != nullptr
             ? place_of(&file, &line)
             : Place{};
    scope = found.parent;
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
  if (std::exchange(state.has_grown, false) && bytes_in_use() > state.most_bytes) {
    state.close();
    (void)::malloc_trim(0);
    (void)state.open();  // a file that changed meanwhile has no units then
  }
  Unit* const unit = state.unit_at(address);
  return unit == nullptr ? std::vector<Frame>() : state.frames_in(*unit, address);
}

}  // namespace dial9::symbolize
