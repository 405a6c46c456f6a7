// Lines and inlined functions are those that libdw's own, slow calls tell of each address.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "symbolize/elf_file.h"
#include "symbolize/testing/elf_images.h"

namespace dial9::symbolize {
namespace {

struct Told {
  std::string file;
  std::uint32_t line = 0;
  std::vector<std::string> names;  // of functions, innermost first, without their namespaces
};

// The unit that an address lies in; false: none.
bool unit_at(Dwarf* dwarf, std::uint64_t address, Dwarf_Die* unit) {
  std::size_t header = 0;
  Dwarf_Off next = 0;
  for (Dwarf_Off at = 0; ::dwarf_nextcu(dwarf, at, &next, &header, nullptr, nullptr, nullptr) == 0;
       at = next) {
    if (::dwarf_offdie(dwarf, at + header, unit) != nullptr && ::dwarf_haspc(unit, address) == 1) {
      return true;
    }
  }
  return false;
}

Told by_libdw(Dwarf* dwarf, std::uint64_t address) {
  Told told;
  Dwarf_Die unit;
  if (!unit_at(dwarf, address, &unit)) return told;
  if (Dwarf_Line* const line = ::dwarf_getsrc_die(&unit, address); line != nullptr) {
    int number = 0;
    ::dwarf_lineno(line, &number);
    const char* const path = ::dwarf_linesrc(line, nullptr, nullptr);
    told.line = static_cast<std::uint32_t>(number);
    // libdw leaves some paths as they are in the table, relative to where the unit was compiled.
    Dwarf_Attribute attribute;
    const char* const directory =
        ::dwarf_formstring(::dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
    if (told.line != 0) {
      told.file = (std::filesystem::path(directory) / path).lexically_normal().string();
    }
  }
  Dwarf_Die* innermost = nullptr;
  Dwarf_Die* scopes = nullptr;
  const bool is_known = ::dwarf_getscopes(&unit, address, &innermost) > 0;
  // Around an inlined function the first call tells where it is written, not where it is inlined.
  const int count = is_known ? ::dwarf_getscopes_die(&innermost[0], &scopes) : 0;
  for (int i = 0; i < count; ++i) {
    const int tag = ::dwarf_tag(&scopes[i]);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    const char* const name = ::dwarf_diename(&scopes[i]);
    told.names.emplace_back(name == nullptr ? "" : name);
    if (tag == DW_TAG_subprogram) break;
  }
  std::free(scopes);
  std::free(innermost);
  return told;
}

// Every address of the text section, up to 1,000.
void expect_the_same(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd other(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(fd && other);
  auto file = DwarfFile::open(fd.get(), std::size_t{64} << 20);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  Dwarf* const dwarf = ::dwarf_begin(other.get(), DWARF_C_READ);
  ASSERT_NE(dwarf, nullptr);
  const std::string bytes = testing::content_of(path);
  const FileReader reader = testing::reader_of(bytes);
  const auto elf = ElfFile::open(reader, bytes.size());
  std::size_t lines = 0;
  std::size_t inlined = 0;
  for (const ElfFile::Section& section : elf->sections()) {
    if (section.name != ".text") continue;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(section.header.sh_size, 1000); ++i) {
      const std::uint64_t address = section.header.sh_addr + i;
      const Told told = by_libdw(dwarf, address);
      const std::vector<Frame> frames = file->frames(address);
      const std::string at_file = frames.empty() ? "" : frames[0].at_file;
      ASSERT_EQ(at_file, told.file) << address;
      ASSERT_EQ(frames.empty() ? 0U : frames[0].at_line, told.line) << address;
      lines += told.line != 0 ? 1 : 0;
      if (told.names.empty()) continue;
      ASSERT_EQ(frames.size(), told.names.size()) << address;
      for (std::size_t k = 0; k < frames.size(); ++k) {
        EXPECT_NE(frames[k].name.find(told.names[k]), std::string::npos) << frames[k].name;
        EXPECT_EQ(frames[k].is_inlined, k + 1 != frames.size());
      }
      inlined += frames.size() - 1;
    }
  }
  EXPECT_GT(lines, 0U);
  EXPECT_GT(inlined, 0U);
  ::dwarf_end(dwarf);
}

TEST(DwarfFileTest, TellsOfEachAddressWhatLibdwTellsWithDwarf4) { expect_the_same(DIAL9_PLAIN4); }
TEST(DwarfFileTest, TellsOfEachAddressWhatLibdwTellsWithDwarf5) { expect_the_same(DIAL9_PLAIN5); }
TEST(DwarfFileTest, TellsOfEachAddressWhatLibdwTellsOfCompressedSections) {
  expect_the_same(DIAL9_WHOLE);
}

// Nothing known would be kept as an answer; that the process ended is none.
TEST(DwarfFileTest, EndsTheProcessWhereItCannotBeOpenedAgain) {
#ifdef DIAL9_SANITIZED
  GTEST_SKIP() << "a sanitizer's allocator doesn't tell what is in use: nothing is opened again";
#endif
  const auto look = [] {
    UniqueFd fd(::open(DIAL9_WHOLE, O_RDONLY | O_CLOEXEC));
    auto file = DwarfFile::open(fd.get(), 0);
    if (!file) std::_Exit(2);
    const std::string bytes = testing::content_of(DIAL9_WHOLE);
    const FileReader reader = testing::reader_of(bytes);
    const auto elf = ElfFile::open(reader, bytes.size());
    fd.reset();  // so the next open fails
    for (const ElfFile::Section& section : elf->sections()) {
      if (section.name != ".text") continue;
      for (std::uint64_t i = 0; i < section.header.sh_size; ++i) {
        (void)file->frames(section.header.sh_addr + i);
      }
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(look(), ::testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace dial9::symbolize
