// Which line of which file an address of a unit belongs to: its line table, read as bytes. libdw
// makes a list of all rows, sorts it, and keeps it as long as the file. Strongest property: an
// address in no sequence has no line, and a sequence that begins where no code is (a linker left it
// out) has none. Spec: docs/spec/flame.md, "Debug information".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "symbolize/dwarf_forms.h"

namespace dial9::symbolize {

// The bytes of sections; they outlive the tables that are read from them.
struct LineSections {
  std::span<const std::uint8_t> lines;
  std::span<const std::uint8_t> texts;
  std::span<const std::uint8_t> line_texts;
};

class LineTable {
 public:
  // `offset`: of the unit's table. `directory`: that the unit was compiled in; it outlives the
  // table. `code`: where code lies. `with_rows`: false: the names of files alone. nullopt: there is
  // no table that makes sense.
  static std::optional<LineTable> read(const LineSections& sections, std::uint64_t offset,
                                       std::string_view directory,
                                       std::span<const AddressRange> code, bool with_rows = true);

  struct Line {
    std::uint32_t file = 0;
    std::uint32_t line = 0;  // 0: none is known
  };
  Line find(std::uint64_t address) const;
  // The path of a file by the number that this table gives it; empty: there is none.
  std::string file(std::uint64_t number) const;

 private:
  struct Row {
    std::uint64_t begin;  // up to the next row's, or the sequence's end
    std::uint32_t file;
    std::uint32_t line;
  };
  struct Sequence {
    AddressRange range;
    std::uint64_t reach;  // the largest end of this and all before it
    std::size_t first;    // of rows
    std::size_t count;
  };
  struct File {
    std::string_view name;
    std::uint64_t directory = 0;
  };
  struct Header;
  struct Program;
  bool read_header(DwarfBytes& in, const LineSections& sections, Header& header);
  void read_names(DwarfBytes& in, const LineSections& sections, const Header& header);
  void read_old_names(DwarfBytes& in);
  void read_rows(DwarfBytes& in, const Header& header, std::span<const AddressRange> code);
  void order_sequences();

  std::string_view directory_;
  std::uint16_t version_ = 0;
  std::vector<std::string_view> directories_;
  std::vector<File> files_;
  std::vector<Row> rows_;
  std::vector<Sequence> sequences_;
};

}  // namespace dial9::symbolize
