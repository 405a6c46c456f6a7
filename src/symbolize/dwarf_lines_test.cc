// Line tables of DWARF 4 and 5, written byte by byte.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_lines.h"

#include <gtest/gtest.h>

#include "symbolize/dwarf_constants.h"
#include "symbolize/testing/dwarf_writer.h"

namespace dial9::symbolize {
namespace {

using testing::DwarfWriter;

constexpr AddressRange kCode[] = {{0x1000, 0x2000}};
constexpr std::uint8_t kFirstSpecial = 13;
constexpr int kLineBase = -5;
constexpr unsigned kLineRange = 14;

void add_sizes(DwarfWriter& out, unsigned version) {
  out.u8(1);                    // bytes of an instruction
  if (version >= 4) out.u8(1);  // operations of one
  out.u8(1).u8(static_cast<std::uint8_t>(kLineBase)).u8(kLineRange).u8(kFirstSpecial);
  for (const unsigned count : {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}) out.u8(count);
}

// Files: "/comp/inc/a.h" (1), "/comp/main.cc" (2), "/abs.cc" (3).
DwarfWriter old_table(const DwarfWriter& program) {
  DwarfWriter rest;
  add_sizes(rest, 4);
  rest.text("inc").u8(0);
  rest.text("a.h").ulebs({1, 0, 0}).text("main.cc").ulebs({0, 0, 0}).text("/abs.cc").ulebs(
      {1, 0, 0});
  rest.u8(0);
  DwarfWriter table;
  table.number(4, 2).sized(rest).append(program);
  return table;
}

// Files: "/comp/main.cc" (0), "/comp/inc/a.h" (1).
DwarfWriter new_table(const DwarfWriter& program) {
  DwarfWriter rest;
  add_sizes(rest, 5);
  rest.u8(1).ulebs({dwarf::kLinePath, dwarf::kFormLineStrp});
  rest.uleb(2).number(0, 4).number(6, 4);
  rest.u8(3).ulebs({dwarf::kLinePath, dwarf::kFormString, dwarf::kLineDirectory, dwarf::kFormUdata,
                    5, dwarf::kFormData16});
  rest.uleb(2);
  rest.text("main.cc").uleb(0).number(0, 8).number(0, 8);
  rest.text("a.h").uleb(1).number(0, 8).number(0, 8);
  DwarfWriter table;
  table.number(5, 2).u8(8).u8(0).sized(rest).append(program);
  return table;
}

const std::vector<std::uint8_t> kLineTexts{'/', 'c', 'o', 'm', 'p', 0, 'i', 'n', 'c', 0};

DwarfWriter at(std::uint64_t address) {
  DwarfWriter out;
  out.u8(0).uleb(9).u8(dwarf::kLineSetAddress).number(address, 8);
  return out;
}
DwarfWriter end_after(std::uint64_t bytes) {
  DwarfWriter out;
  out.u8(dwarf::kLineAdvancePc).uleb(bytes).u8(0).uleb(1).u8(dwarf::kLineEndSequence);
  return out;
}
std::uint8_t special(unsigned bytes, int lines) {
  return static_cast<std::uint8_t>(kFirstSpecial + bytes * kLineRange +
                                   static_cast<unsigned>(lines - kLineBase));
}

// 0x1000: line 1 of file 1; 0x1004: line 11; 0x1008: line 11 of file 2; up to 0x1010.
DwarfWriter program() {
  DwarfWriter out = at(0x1000);
  out.u8(dwarf::kLineCopy);
  out.u8(dwarf::kLineAdvanceLine).uleb(6).u8(special(4, 4));
  out.u8(dwarf::kLineSetFile).uleb(2).u8(special(4, 0));
  return out.append(end_after(8));
}

struct Read {
  std::vector<std::uint8_t> bytes;
  std::optional<LineTable> table;
  std::string at(std::uint64_t address) const {
    const LineTable::Line found = table->find(address);
    return found.line == 0 ? "" : table->file(found.file) + ":" + std::to_string(found.line);
  }
};
Read read(const DwarfWriter& table, std::string_view directory = "/comp") {
  DwarfWriter section;
  section.u8(0xee).sized(table);
  Read out{section.bytes(), std::nullopt};
  out.table = LineTable::read({out.bytes, {}, kLineTexts}, 1, directory, kCode);
  return out;
}

TEST(LineTable, TellsTheLineUpToTheNextRowAndTheSequencesEnd) {
  const Read old = read(old_table(program()));
  ASSERT_TRUE(old.table.has_value());
  EXPECT_EQ(old.at(0xfff), "");
  EXPECT_EQ(old.at(0x1000), "/comp/inc/a.h:1");
  EXPECT_EQ(old.at(0x1003), "/comp/inc/a.h:1");
  EXPECT_EQ(old.at(0x1004), "/comp/inc/a.h:11");
  EXPECT_EQ(old.at(0x1008), "/comp/main.cc:11");
  EXPECT_EQ(old.at(0x100f), "/comp/main.cc:11");
  EXPECT_EQ(old.at(0x1010), "");
}

TEST(LineTable, CountsFilesFromNothingInDwarf5AndFromOneBefore) {
  const Read old = read(old_table(program()));
  EXPECT_EQ(old.table->file(0), "");
  EXPECT_EQ(old.table->file(3), "/abs.cc");
  EXPECT_EQ(old.table->file(4), "");
  const Read now = read(new_table(program()), "");
  ASSERT_TRUE(now.table.has_value());
  EXPECT_EQ(now.table->file(0), "/comp/main.cc");
  EXPECT_EQ(now.table->file(2), "");
  EXPECT_EQ(now.at(0x1000), "inc/a.h:1") << "nothing says what that is in";
  EXPECT_EQ(read(new_table(program())).at(0x1000), "/comp/inc/a.h:1");
}

TEST(LineTable, LeavesOutSequencesWhereNoCodeIs) {
  DwarfWriter dead = at(0);
  dead.u8(dwarf::kLineCopy).append(end_after(0x1800));  // thrown away, but reaches over code
  DwarfWriter beyond = at(0x1ff8);
  beyond.u8(dwarf::kLineCopy).append(end_after(0x10));
  const Read found = read(old_table(dead.append(program()).append(beyond)));
  EXPECT_EQ(found.at(0x1000), "/comp/inc/a.h:1");
  EXPECT_EQ(found.at(0x1100), "");
  EXPECT_EQ(found.at(0x1ff8), "");
}

TEST(LineTable, LeavesOutSequencesThatFallOrDoNotEnd) {
  DwarfWriter falling = at(0x1100);
  falling.u8(dwarf::kLineCopy).append(at(0x1080)).u8(dwarf::kLineCopy).append(end_after(0x90));
  DwarfWriter open = at(0x1200);
  open.u8(dwarf::kLineCopy);
  const Read found = read(old_table(falling.append(program()).append(open)));
  EXPECT_EQ(found.at(0x1100), "");
  EXPECT_EQ(found.at(0x1200), "");
  EXPECT_EQ(found.at(0x1004), "/comp/inc/a.h:11");
}

TEST(LineTable, TakesTheLaterOfTwoRowsAtOnePlaceAndKnowsNothingOfLineZero) {
  DwarfWriter rows = at(0x1000);
  rows.u8(dwarf::kLineCopy).u8(special(0, 3)).u8(special(4, -4)).append(end_after(4));
  const Read found = read(old_table(rows));
  EXPECT_EQ(found.at(0x1000), "/comp/inc/a.h:4");
  EXPECT_EQ(found.at(0x1004), "");
}

TEST(LineTable, RunsEveryKindOfOperation) {
  DwarfWriter rows = at(0x1000);
  rows.u8(5).uleb(300).u8(6).u8(7).u8(10).u8(11).u8(12).uleb(
      9);  // columns, marks, instruction sets
  rows.u8(dwarf::kLineConstAddPc).u8(dwarf::kLineFixedAdvancePc).number(0x100, 2);
  rows.u8(0).uleb(2).u8(0x80).u8(1);  // somebody's own
  rows.u8(dwarf::kLineCopy).append(end_after(4));
  const unsigned advance = (255 - kFirstSpecial) / kLineRange;
  const Read found = read(old_table(rows));
  EXPECT_EQ(found.at(0x1100 + advance), "/comp/inc/a.h:1");
  EXPECT_EQ(found.at(0x1100 + advance - 1), "");
}

TEST(LineTable, IsNoneWhereItIsCutOrMakesNoSense) {
  for (const DwarfWriter& table : {old_table(program()), new_table(program())}) {
    DwarfWriter section;
    section.sized(table);
    for (std::size_t size = 0; size < section.size(); ++size) {
      const std::vector<std::uint8_t> cut(
          section.bytes().begin(), section.bytes().begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_FALSE(LineTable::read({cut, {}, {}}, 0, "", kCode).has_value()) << size;
    }
  }
  DwarfWriter unknown;
  unknown.number(6, 2);
  EXPECT_FALSE(read(unknown).table.has_value());
  EXPECT_FALSE(LineTable::read({kLineTexts, {}, {}}, 99, "", kCode).has_value());
}

}  // namespace
}  // namespace dial9::symbolize
