// What is read of a module's file is that file's, even where it is exchanged meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/module_file.h"

#include <gtest/gtest.h>

#include "symbolize/testing/elf_images.h"

namespace dial9::symbolize {
namespace {

using testing::content_of;
using testing::reader_of;

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Where a function of that name begins; 0: nowhere in the first 64 KiB.
std::uint64_t begin_of(const ModuleFile& file, std::string_view name) {
  for (std::uint64_t address = 0; address < (64 << 10); ++address) {
    if (file.symbols.find(address).name == name) return address;
  }
  return 0;
}

// Both have the same layout, so that only what is read tells them apart.
TEST(ModuleFile, HasNothingOfAFileThatIsExchangedBetweenAnyTwoReads) {
  const std::string first = content_of(DIAL9_WHOLE);
  const FileReader whole = reader_of(first);
  const auto elf = ElfFile::open(whole, first.size());
  ASSERT_TRUE(elf.has_value());
  const std::string build_id = elf->build_id();
  const std::string second =
      replaced(testing::with_build_id(first, build_id, std::string(build_id.size(), 'b')),
               "exported_worker", "exchanged_thing");
  std::size_t all_reads = 0;
  std::size_t reads = 0;
  std::size_t exchanged_at = ~std::size_t{0};
  const FileReader reader = [&](std::uint64_t offset, std::span<std::uint8_t> to) {
    return reader_of(reads++ < exchanged_at ? first : second)(offset, to);
  };
  const auto sound = read_module(reader, first.size(), build_id);
  ASSERT_TRUE(sound.has_value());
  EXPECT_FALSE(sound->was_changed);
  EXPECT_TRUE(sound->has_dwarf);
  const std::uint64_t address = begin_of(*sound, "exported_worker");
  ASSERT_NE(address, 0U);
  all_reads = reads;
  for (exchanged_at = 0; exchanged_at < all_reads; ++exchanged_at) {
    reads = 0;
    const auto found = read_module(reader, first.size(), build_id);
    ASSERT_TRUE(found.has_value());
    if (found->build_id != build_id) continue;
    EXPECT_TRUE(found->was_changed || found->symbols.find(address).name == "exported_worker")
        << exchanged_at;
    EXPECT_TRUE(!found->was_changed || found->symbols.size() == 0) << exchanged_at;
  }
}

TEST(ModuleFile, IsNoneWhereThereIsNoElfFile) {
  bool is_short = false;
  EXPECT_FALSE(read_module_file("/nowhere/none", "aa", is_short).has_value());
  EXPECT_FALSE(read_module_file("/dev/null", "aa", is_short).has_value());
  EXPECT_FALSE(read_module_file("/proc/self/status", "aa", is_short).has_value());
  EXPECT_FALSE(is_short);
}

}  // namespace
}  // namespace dial9::symbolize
