// Files whose debug information is damaged, through the process that reads it: whatever libdw makes
// of them, there is an answer in time, functions keep their names, and a note says what lacks.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "symbolize/demangle.h"
#include "symbolize/dwarf_file.h"
#include "symbolize/dwarf_worker.h"
#include "symbolize/elf_file.h"
#include "symbolize/elf_symbols.h"
#include "symbolize/symbolizer.h"
#include "symbolize/testing/elf_images.h"

namespace dial9::symbolize {
namespace {

namespace fs = std::filesystem;

// Of DWARF 4 and 5, not compressed.
class DwarfDamage : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!DwarfFile::is_supported()) GTEST_SKIP() << "built without libdw";
    std::string pattern = ::testing::TempDir() + "dial9-damage-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    whole_ = testing::content_of(GetParam());
    const FileReader reader = testing::reader_of(whole_);
    const auto elf = ElfFile::open(reader, whole_.size());
    ASSERT_TRUE(elf.has_value());
    build_id_ = elf->build_id();
    symbols_ = ElfSymbols::read(*elf);
    for (const ElfFile::Section& section : elf->sections()) {
      if (section.name == ".text") text_ = section.header;
      if (section.name.starts_with(".debug_") && section.header.sh_size != 0) {
        ASSERT_EQ(section.header.sh_flags & SHF_COMPRESSED, 0U) << section.name;
        debug_.push_back(section.header);
      }
    }
    ASSERT_FALSE(debug_.empty());
    ASSERT_NE(text_.sh_size, 0U);
  }
  void TearDown() override {
    if (!directory_.empty()) fs::remove_all(directory_);
  }

  // A file with `count` places of its debug information changed.
  std::string damaged(int count) {
    std::string bytes = whole_;
    for (int i = 0; i < count; ++i) {
      const Elf64_Shdr& header = debug_[random_() % debug_.size()];
      // Numbers that are far too large do more harm than any.
      const std::size_t at = header.sh_offset + random_() % header.sh_size;
      const std::size_t size = std::min<std::size_t>(1 + random_() % 4, whole_.size() - at);
      const bool is_wild = random_() % 3 == 0;
      for (std::size_t k = 0; k < size && at + k < header.sh_offset + header.sh_size; ++k) {
        bytes[at + k] = is_wild ? '\xff' : static_cast<char>(random_());
      }
    }
    const std::string path = directory_ + "/damaged" + std::to_string(++files_);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::vector<std::uint64_t> addresses() const {
    std::vector<std::uint64_t> all;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(text_.sh_size, 1000); ++i) {
      all.push_back(text_.sh_addr + i);
    }
    return all;
  }

  std::minstd_rand random_{7};
  int files_ = 0;
  std::string directory_;
  std::string whole_;
  std::string build_id_;
  ElfSymbols symbols_;
  Elf64_Shdr text_{};
  std::vector<Elf64_Shdr> debug_;
};

TEST_P(DwarfDamage, GetsAnAnswerOrAnErrorWithinItsTime) {
  DwarfWorker worker({{DIAL9_DWARF_WORKER}, 5'000, 5'000});
  int answered = 0;
  for (int round = 0; round < 60; ++round) {
    const auto file = worker.open(damaged(1 + round / 4), build_id_);
    if (!file) continue;
    answered += worker.frames(*file, addresses()) ? 1 : 0;
  }
  EXPECT_GT(answered, 0);
}

TEST_P(DwarfDamage, NeverChangesTheNameOfAFunctionAndIsNotedWhereLinesLack) {
  for (int round = 0; round < 15; ++round) {
    const std::string path = damaged(1 + 4 * round);
    SymbolizerOptions options;
    options.debug_root = directory_ + "/none";
    options.dwarf = {{DIAL9_DWARF_WORKER}, 5'000, 5'000};
    options.wants_lines = true;
    Symbolizer symbolizer(options);
    const std::vector<std::uint64_t> all = addresses();
    symbolizer.expect(path, build_id_, all);
    bool has_lines = false;
    for (const std::uint64_t address : all) {
      const auto function = symbols_.find(address);
      const auto frames = symbolizer.frames(path, build_id_, address, false);
      has_lines = has_lines || (!frames.empty() && frames.back().at_line != 0);
      if (function.name.empty()) continue;
      ASSERT_FALSE(frames.empty());
      ASSERT_EQ(frames.back().name, demangle(function.name));
      ASSERT_FALSE(frames.back().is_inlined);
    }
    for (const std::string& note : symbolizer.notes()) {
      EXPECT_NE(note.find("lines from " + path + ": "), std::string::npos) << note;
      EXPECT_FALSE(has_lines && note.starts_with("no lines")) << note;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfDwarf, DwarfDamage, ::testing::Values(DIAL9_PLAIN4, DIAL9_PLAIN5),
                         [](const auto& of) { return std::string(of.index == 0 ? "4" : "5"); });

}  // namespace
}  // namespace dial9::symbolize
