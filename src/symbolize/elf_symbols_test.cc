// SPDX-License-Identifier: Apache-2.0
#include "symbolize/elf_symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

namespace dial9::symbolize {
namespace {

using Bytes = std::vector<std::uint8_t>;

[[gnu::noinline]] int a_function_of_this_test(int x) {
  volatile int y = x;
  return y * 3;
}

Bytes bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

FileReader reader_of(const Bytes& bytes) {
  return [&bytes](std::uint64_t offset, std::span<std::uint8_t> to) {
    if (offset > bytes.size() || bytes.size() - offset < to.size()) return false;
    std::memcpy(to.data(), bytes.data() + offset, to.size());
    return true;
  };
}

// Its table; empty where the file is none.
ElfSymbols read(const Bytes& bytes) {
  const FileReader reader = reader_of(bytes);
  const auto file = ElfFile::open(reader, bytes.size());
  return file ? ElfSymbols::read(*file) : ElfSymbols();
}

std::uint64_t own_bias() {
  std::uint64_t bias = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        *static_cast<std::uint64_t*>(data) = info->dlpi_addr;
        return 1;  // the first is the program
      },
      &bias);
  return bias;
}

// A table made by hand.
struct Row {
  std::uint64_t begin;
  std::uint64_t bytes;
  const char* name;
  unsigned char bind = STB_GLOBAL;
};

Bytes elf_with(const std::vector<Row>& rows) {
  std::string names(1, '\0');
  std::vector<Elf64_Sym> symbols;
  for (const Row& row : rows) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(names.size());
    symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(row.bind, STT_FUNC));
    symbol.st_shndx = 1;
    symbol.st_value = row.begin;
    symbol.st_size = row.bytes;
    symbols.push_back(symbol);
    names += std::string(row.name) + '\0';
  }
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_shoff = sizeof head;
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = 3;
  Elf64_Shdr sections[3] = {};
  sections[1].sh_type = SHT_SYMTAB;
  sections[1].sh_offset = sizeof head + sizeof sections;
  sections[1].sh_size = symbols.size() * sizeof(Elf64_Sym);
  sections[1].sh_link = 2;
  sections[2].sh_type = SHT_STRTAB;
  sections[2].sh_offset = sections[1].sh_offset + sections[1].sh_size;
  sections[2].sh_size = names.size();
  Bytes bytes;
  const auto add = [&](const void* data, std::size_t size) {
    const auto* begin = static_cast<const std::uint8_t*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  };
  add(&head, sizeof head);
  add(sections, sizeof sections);
  add(symbols.data(), symbols.size() * sizeof(Elf64_Sym));
  add(names.data(), names.size());
  return bytes;
}

TEST(ElfSymbols, NamesAFunctionAtItsFirstAndItsLaterAddresses) {
  const ElfSymbols symbols = read(bytes_of("/proc/self/exe"));
  EXPECT_FALSE(symbols.is_dynamic_only());
  EXPECT_GT(symbols.size(), 100U);
  const auto at = reinterpret_cast<std::uintptr_t>(&a_function_of_this_test) - own_bias();
  EXPECT_NE(symbols.find(at).name.find("a_function_of_this_test"), std::string_view::npos);
  EXPECT_EQ(symbols.find(at + 1).name, symbols.find(at).name);
  EXPECT_EQ(a_function_of_this_test(2), 6);
}

TEST(ElfSymbols, HasNoNameForAnAddressInNoFunction) {
  const ElfSymbols symbols = read(elf_with({{100, 10, "one"}, {200, 10, "two"}}));
  EXPECT_EQ(symbols.find(99).name, "");
  EXPECT_EQ(symbols.find(109).name, "one");
  EXPECT_EQ(symbols.find(110).name, "") << "a gap belongs to nobody";
  EXPECT_EQ(symbols.find(205).name, "two");
  EXPECT_EQ(symbols.find(~std::uint64_t{0}).name, "");
}

TEST(ElfSymbols, NamesTheSmallestFunctionThatHoldsTheAddress) {
  const ElfSymbols symbols =
      read(elf_with({{100, 100, "outer"}, {120, 10, "inner"}, {150, 5, "other"}}));
  EXPECT_EQ(symbols.find(125).name, "inner");
  EXPECT_EQ(symbols.find(140).name, "outer");
  EXPECT_EQ(symbols.find(152).name, "other");
  EXPECT_EQ(symbols.find(160).name, "outer");
  EXPECT_EQ(symbols.find(200).name, "");
}

TEST(ElfSymbols, PrefersTheNameThatProgrammersCall) {
  EXPECT_EQ(read(elf_with({{100, 10, "__libc_malloc"}, {100, 10, "malloc"}, {100, 10, "__malloc"}}))
                .find(100)
                .name,
            "malloc");
  EXPECT_EQ(read(elf_with({{100, 10, "local", STB_LOCAL}, {100, 10, "global"}})).find(100).name,
            "global");
}

TEST(ElfSymbols, ReadsTheDynamicTableOfALibraryWithoutAnother) {
  Dl_info info{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&std::strtol), &info), 0);
  const Bytes bytes = bytes_of(info.dli_fname);
  const FileReader reader = reader_of(bytes);
  const auto file = ElfFile::open(reader, bytes.size());
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->build_id().size(), 40U);
  const auto address = reinterpret_cast<std::uintptr_t>(info.dli_saddr) -
                       reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  EXPECT_NE(ElfSymbols::read(*file).find(address).name, "");
}

TEST(ElfFile, RefusesWhatIsNoElfFile) {
  for (const std::string text : {"", "\177ELF", "#!/bin/sh\n"}) {
    const Bytes bytes(text.begin(), text.end());
    const FileReader reader = reader_of(bytes);
    EXPECT_FALSE(ElfFile::open(reader, bytes.size()).has_value());
  }
}

TEST(ElfFile, TakesNoMoreMemoryThanItsBoundsWhateverAHeaderSays) {
  Bytes bytes = elf_with({{100, 10, "one"}});
  Elf64_Shdr table;
  const std::size_t at = sizeof(Elf64_Ehdr) + sizeof table;
  std::memcpy(&table, bytes.data() + at, sizeof table);
  table.sh_size = std::uint64_t{1} << 40;
  std::memcpy(bytes.data() + at, &table, sizeof table);
  // A file that has it all, as one full of holes would.
  const FileReader reader = [&bytes](std::uint64_t offset, std::span<std::uint8_t> to) {
    EXPECT_LE(to.size(), kMaxSectionBytes);
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] = offset + i < bytes.size() ? bytes[offset + i] : 0;
    }
    return true;
  };
  const auto file = ElfFile::open(reader, std::uint64_t{1} << 50);
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(ElfSymbols::read(*file).size(), 0U);
}

TEST(ElfSymbols, SurvivesFilesThatAreCutOrDamagedAnywhere) {
  const Bytes whole = bytes_of(DIAL9_WHOLE);
  ASSERT_GT(whole.size(), sizeof(Elf64_Ehdr));
  Elf64_Ehdr head{};
  std::memcpy(&head, whole.data(), sizeof head);
  std::minstd_rand random(11);
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes = whole;
    if (round % 4 == 0) bytes.resize(sizeof head + random() % (bytes.size() - sizeof head));
    for (int i = 0; i < 8; ++i) {  // in the header and in the section table
      bytes[16 + random() % 48] = static_cast<std::uint8_t>(random());
      const std::uint64_t at = head.e_shoff + random() % (head.e_shnum * 64U + 1U);
      if (round % 2 == 0) std::memcpy(bytes.data(), whole.data(), sizeof head);
      if (at < bytes.size()) bytes[at] = static_cast<std::uint8_t>(random());
    }
    const ElfSymbols symbols = read(bytes);
    for (int i = 0; i < 50; ++i) (void)symbols.find(random() % 65536);
  }
}

}  // namespace
}  // namespace dial9::symbolize
