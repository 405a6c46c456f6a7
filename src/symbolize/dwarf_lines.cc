// See dwarf_lines.h. Line tables of DWARF 2 to 5, of machines with one operation an instruction.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_lines.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "symbolize/dwarf_constants.h"

namespace dial9::symbolize {
namespace {

constexpr int kMostLookedAt = 64;  // sequences that hold one address

std::uint32_t to_u32(std::uint64_t value) {
  return value <= std::numeric_limits<std::uint32_t>::max() ? static_cast<std::uint32_t>(value) : 0;
}

std::string joined(std::string_view directory, std::string_view name) {
  if (directory.empty() || name.starts_with('/')) return std::string(name);
  return std::string(directory) + "/" + std::string(name);
}

// What an entry of a table of files is made of.
using Kinds = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // what, form

Kinds read_kinds(DwarfBytes& in) {
  Kinds kinds;
  const unsigned count = in.u8();
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t what = in.uleb();
    kinds.emplace_back(what, in.uleb());
  }
  return kinds;
}

std::string_view read_text(DwarfBytes& in, std::uint64_t form, const DwarfFormat& format,
                           const LineSections& sections) {
  switch (form) {
    case dwarf::kFormString:
      return in.text();
    case dwarf::kFormLineStrp:
      return text_in(sections.line_texts, in.number(format.offset_bytes));
    case dwarf::kFormStrp:
      return text_in(sections.texts, in.number(format.offset_bytes));
    default:
      skip_value(in, form, format);
      return {};
  }
}

std::uint64_t read_number(DwarfBytes& in, std::uint64_t form, const DwarfFormat& format) {
  switch (form) {
    case dwarf::kFormData1:
      return in.number(1);
    case dwarf::kFormData2:
      return in.number(2);
    case dwarf::kFormData4:
      return in.number(4);
    case dwarf::kFormUdata:
      return in.uleb();
    default:
      skip_value(in, form, format);
      return 0;
  }
}

}  // namespace

struct LineTable::Header {
  DwarfFormat format;
  std::size_t program = 0;  // where it begins
  std::uint8_t instruction_bytes = 1;
  std::int8_t line_base = 0;
  std::uint8_t line_range = 1;
  std::uint8_t first_special = 0;
  std::span<const std::uint8_t> argument_counts;
};

// Runs a table's program: what it has come to, and what it does to the table.
struct LineTable::Program {
  LineTable& table;
  const Header& header;
  std::span<const AddressRange> code;
  std::size_t first = 0;  // of the sequence's rows
  std::uint64_t address = 0;
  std::uint64_t file = 1;
  std::uint64_t line = 1;
  bool is_sound = true;  // the sequence's addresses rise

  void advance(std::uint64_t instructions) { address += instructions * header.instruction_bytes; }
  void add_row();
  void end_sequence();
  void special(unsigned operation);
  void standard(std::uint8_t operation, DwarfBytes& in);
  void extended(DwarfBytes& in);
};

void LineTable::Program::add_row() {
  const Row row{address, to_u32(file), to_u32(line)};
  std::vector<Row>& rows = table.rows_;
  const bool has_rows = rows.size() > first;
  if (has_rows && row.begin < rows.back().begin) is_sound = false;
  if (has_rows && row.begin == rows.back().begin) {
    rows.back() = row;  // the later one says more
  } else if (!has_rows || rows.back().file != row.file || rows.back().line != row.line) {
    rows.push_back(row);
  }
}

void LineTable::Program::end_sequence() {
  std::vector<Row>& rows = table.rows_;
  const std::size_t count = rows.size() - first;
  const std::uint64_t begin = count == 0 ? 0 : rows[first].begin;
  const bool is_code = std::any_of(code.begin(), code.end(), [&](const AddressRange& range) {
    return begin >= range.begin && address <= range.end;
  });
  if (count != 0 && is_sound && rows.back().begin <= address && is_code) {
    table.sequences_.push_back({{begin, address}, 0, first, count});
  } else {
    rows.resize(first);
  }
  first = rows.size();
  address = 0;
  file = 1;
  line = 1;
  is_sound = true;
}

void LineTable::Program::special(unsigned operation) {
  advance(operation / header.line_range);
  line += static_cast<std::uint64_t>(std::int64_t{header.line_base} +
                                     static_cast<std::int64_t>(operation % header.line_range));
  add_row();
}

void LineTable::Program::standard(std::uint8_t operation, DwarfBytes& in) {
  switch (operation) {
    case dwarf::kLineExtended:
      return extended(in);
    case dwarf::kLineCopy:
      return add_row();
    case dwarf::kLineAdvancePc:
      return advance(in.uleb());
    case dwarf::kLineAdvanceLine:
      line += static_cast<std::uint64_t>(in.sleb());
      return;
    case dwarf::kLineSetFile:
      file = in.uleb();
      return;
    case dwarf::kLineConstAddPc:
      return advance((255U - header.first_special) / header.line_range);
    case dwarf::kLineFixedAdvancePc:
      address += in.number(2);
      return;
    default:
      for (unsigned i = 0; i < header.argument_counts[operation - 1U]; ++i) (void)in.uleb();
  }
}

void LineTable::Program::extended(DwarfBytes& in) {
  const std::uint64_t size = in.uleb();
  if (size == 0 || size > in.left()) return in.fail();
  DwarfBytes inside(in.bytes(size));
  const std::uint8_t operation = inside.u8();
  if (operation == dwarf::kLineEndSequence) {
    end_sequence();
  } else if (operation == dwarf::kLineSetAddress) {
    address = inside.number(static_cast<unsigned>(std::min<std::size_t>(inside.left(), 8)));
  } else if (operation == dwarf::kLineDefineFile) {
    const std::string_view name = inside.text();
    table.files_.push_back({name, inside.uleb()});
  }
}

bool LineTable::read_header(DwarfBytes& in, const LineSections& sections, Header& header) {
  version_ = static_cast<std::uint16_t>(in.number(2));
  header.format.version = version_;
  if (version_ < 2 || version_ > 5) return false;
  if (version_ == 5) {
    header.format.address_bytes = in.u8();
    in.skip(1);  // of segment selectors: they have none
  }
  const std::uint64_t length = in.number(header.format.offset_bytes);
  if (length > in.left()) return false;
  header.program = in.at() + length;
  header.instruction_bytes = in.u8();
  if (version_ >= 4 && in.u8() > 1) return false;
  in.skip(1);  // whether rows are statements
  header.line_base = static_cast<std::int8_t>(in.u8());
  header.line_range = in.u8();
  header.first_special = in.u8();
  if (header.line_range == 0 || header.first_special == 0) return false;
  header.argument_counts = in.bytes(header.first_special - 1U);
  if (version_ == 5) {
    read_names(in, sections, header);
  } else {
    read_old_names(in);
  }
  in.go_to(header.program);
  return in.is_whole();
}

void LineTable::read_names(DwarfBytes& in, const LineSections& sections, const Header& header) {
  for (const bool is_file : {false, true}) {
    const Kinds kinds = read_kinds(in);
    const std::uint64_t count = in.uleb();
    if (count > in.left()) return in.fail();  // each takes a byte at least
    for (std::uint64_t i = 0; i < count && in.is_whole(); ++i) {
      File file;
      for (const auto& [what, form] : kinds) {
        if (what == dwarf::kLinePath) {
          file.name = read_text(in, form, header.format, sections);
        } else if (what == dwarf::kLineDirectory) {
          file.directory = read_number(in, form, header.format);
        } else {
          skip_value(in, form, header.format);
        }
      }
      if (is_file) {
        files_.push_back(file);
      } else {
        directories_.push_back(file.name);
      }
    }
  }
}

// Directories count from 1 on: 0 is the unit's.
void LineTable::read_old_names(DwarfBytes& in) {
  directories_.push_back(directory_);
  for (std::string_view name = in.text(); !name.empty(); name = in.text()) {
    directories_.push_back(name);
  }
  files_.emplace_back();  // there is no number 0
  for (std::string_view name = in.text(); !name.empty(); name = in.text()) {
    files_.push_back({name, in.uleb()});
    (void)in.uleb();  // when it was written
    (void)in.uleb();  // its size
  }
}

void LineTable::read_rows(DwarfBytes& in, const Header& header,
                          std::span<const AddressRange> code) {
  Program program{*this, header, code};
  while (!in.is_at_end()) {
    const std::uint8_t operation = in.u8();
    if (operation >= header.first_special) {
      program.special(operation - unsigned{header.first_special});
    } else {
      program.standard(operation, in);
    }
  }
  rows_.resize(program.first);  // without those of a sequence that doesn't end
}

void LineTable::order_sequences() {
  std::sort(sequences_.begin(), sequences_.end(), [](const Sequence& a, const Sequence& b) {
    return std::pair(a.range.begin, a.first) < std::pair(b.range.begin, b.first);
  });
  std::uint64_t reach = 0;
  for (Sequence& one : sequences_) {
    reach = std::max(reach, one.range.end);
    one.reach = reach;
  }
  rows_.shrink_to_fit();
}

std::optional<LineTable> LineTable::read(const LineSections& sections, std::uint64_t offset,
                                         std::string_view directory,
                                         std::span<const AddressRange> code, bool with_rows) {
  if (offset > sections.lines.size()) return std::nullopt;
  constexpr std::uint64_t kLongLength = 0xffffffff;
  DwarfBytes all(sections.lines.subspan(offset));
  Header header;
  std::uint64_t length = all.number(4);
  if (length == kLongLength) {
    length = all.number(8);
    header.format.offset_bytes = 8;
  }
  if (!all.is_whole() || length > all.left()) return std::nullopt;
  DwarfBytes in(all.bytes(length));
  LineTable table;
  table.directory_ = directory;
  if (!table.read_header(in, sections, header)) return std::nullopt;
  if (with_rows) {
    table.read_rows(in, header, code);
    table.order_sequences();
  }
  return table;
}

LineTable::Line LineTable::find(std::uint64_t address) const {
  auto after = std::upper_bound(
      sequences_.begin(), sequences_.end(), address,
      [](std::uint64_t wanted, const Sequence& one) { return wanted < one.range.begin; });
  for (int i = 0; i < kMostLookedAt && after != sequences_.begin(); ++i) {
    --after;
    if (address >= after->reach) break;
    if (address >= after->range.end) continue;
    const auto first = rows_.begin() + static_cast<std::ptrdiff_t>(after->first);
    const auto row =
        std::upper_bound(first, first + static_cast<std::ptrdiff_t>(after->count), address,
                         [](std::uint64_t wanted, const Row& one) { return wanted < one.begin; });
    if (row == first) break;
    return {std::prev(row)->file, std::prev(row)->line};
  }
  return {};
}

std::string LineTable::file(std::uint64_t number) const {
  if (number >= files_.size() || files_[number].name.empty()) return {};
  const File& found = files_[number];
  const std::string_view directory =
      found.directory < directories_.size() ? directories_[found.directory] : std::string_view();
  return joined(directory_, joined(directory, found.name));
}

}  // namespace dial9::symbolize
