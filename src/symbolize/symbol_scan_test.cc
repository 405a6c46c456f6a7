// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbol_scan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "symbolize/elf_symbols.h"
#include "symbolize/testing/elf_images.h"

namespace dial9::symbolize {
namespace {

std::vector<SymbolScan::Function> scan(const std::string& bytes,
                                       const std::vector<std::uint64_t>& addresses,
                                       std::uint64_t piece) {
  const FileReader reader = testing::reader_of(bytes);
  auto scan = SymbolScan::open(reader, bytes.size(), addresses);
  if (!scan) return {};
  while (!scan->is_done()) EXPECT_TRUE(scan->step(reader, piece));
  return scan->take();
}

// Addresses that are spread over a file's code, whatever else is in it; two in no function.
std::vector<std::uint64_t> some_addresses(const ElfFile& file) {
  std::vector<std::uint64_t> addresses = {0, ~std::uint64_t{0}};
  for (const ElfFile::Section& section : file.sections()) {
    const Elf64_Shdr& code = section.header;
    if ((code.sh_flags & SHF_EXECINSTR) == 0) continue;
    const std::uint64_t gap = code.sh_size / 1500 + 1;
    for (std::uint64_t at = 0; at < code.sh_size; at += gap) addresses.push_back(code.sh_addr + at);
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

TEST(SymbolScan, FindsWhatTheWholeTableSaysWhateverThePieces) {
  const std::string bytes = testing::content_of("/proc/self/exe");
  const FileReader reader = testing::reader_of(bytes);
  const auto file = ElfFile::open(reader, bytes.size());
  ASSERT_TRUE(file);
  const ElfSymbols symbols = ElfSymbols::read(*file);
  const auto addresses = some_addresses(*file);
  const auto found = scan(bytes, addresses, 10'000);
  EXPECT_GT(found.size(), 100U);
  std::size_t named = 0;
  for (const std::uint64_t address : addresses) {
    const ElfSymbols::Function wanted = symbols.find(address);
    if (wanted.name.empty()) continue;
    const auto at = std::find_if(found.begin(), found.end(), [&](const auto& function) {
      return function.begin == wanted.begin && function.bytes == wanted.bytes;
    });
    ASSERT_NE(at, found.end()) << wanted.name;
    // Of longer ones the table compares the beginning alone.
    if (wanted.name.size() < 256) {
      EXPECT_EQ(at->name, wanted.name);
    }
    ++named;
  }
  EXPECT_GE(named, found.size());
  const auto in_one = scan(bytes, addresses, bytes.size());
  ASSERT_EQ(in_one.size(), found.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(in_one[i].name, found[i].name);
}

TEST(SymbolScan, HasTheBuildIdAndNamesNothingThatNobodyAskedFor) {
  const std::string bytes = testing::content_of("/proc/self/exe");
  const FileReader reader = testing::reader_of(bytes);
  const auto file = ElfFile::open(reader, bytes.size());
  auto scan = SymbolScan::open(reader, bytes.size(), {});
  ASSERT_TRUE(file);
  ASSERT_TRUE(scan);
  EXPECT_EQ(scan->build_id(), file->build_id());
  while (!scan->is_done()) ASSERT_TRUE(scan->step(reader, 1 << 20));
  EXPECT_TRUE(scan->take().empty());
}

TEST(SymbolScan, AFileThatEndsMeanwhileNamesNothing) {
  const std::string bytes = testing::content_of("/proc/self/exe");
  const FileReader reader = testing::reader_of(bytes);
  const auto file = ElfFile::open(reader, bytes.size());
  ASSERT_TRUE(file);
  auto scan = SymbolScan::open(reader, bytes.size(), some_addresses(*file));
  ASSERT_TRUE(scan);
  ASSERT_TRUE(scan->step(reader, 10'000));
  ASSERT_FALSE(scan->is_done());
  const FileReader cut = [](std::uint64_t, std::span<std::uint8_t>) { return false; };
  EXPECT_FALSE(scan->step(cut, 10'000));
  EXPECT_TRUE(scan->is_done());
  EXPECT_TRUE(scan->take().empty());
}

TEST(SymbolScan, WhatIsNoElfFileIsRefused) {
  const std::string bytes = "no file of that kind, but long enough to have a header of one, or so.";
  EXPECT_FALSE(SymbolScan::open(testing::reader_of(bytes), bytes.size(), {}));
}

}  // namespace
}  // namespace dial9::symbolize
