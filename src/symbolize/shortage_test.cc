// The system may have too little of something for a time: what couldn't be started or opened then
// is tried again, and what is refused for good is given up.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <spawn.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/no_descriptors.h"
#include "symbolize/debuginfod.h"
#include "symbolize/dwarf_file.h"
#include "symbolize/elf_file.h"
#include "symbolize/symbolizer.h"
#include "symbolize/testing/elf_images.h"

namespace {

int g_refusals = 0;       // of the next starts
int g_started_first = 0;  // before these
int g_error = 0;
int g_starts = 0;

}  // namespace

// Of this whole test program.
extern "C" int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                           const posix_spawnattr_t* attributes, char* const arguments[],
                           char* const variables[]) {
  static const auto real =
      reinterpret_cast<decltype(&posix_spawn)>(::dlsym(RTLD_NEXT, "posix_spawn"));
  ++g_starts;
  if (g_started_first > 0) {
    --g_started_first;
  } else if (g_refusals > 0) {
    --g_refusals;
    return g_error;
  }
  return real(pid, path, actions, attributes, arguments, variables);
}

namespace dial9::symbolize {
namespace {

constexpr int kAnHourMs = 3'600'000;
const std::string kFile = DIAL9_WHOLE;

class Shortage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!DwarfFile::is_supported()) GTEST_SKIP() << "built without libdw";
    const std::string bytes = testing::content_of(kFile);
    const auto elf = ElfFile::open(testing::reader_of(bytes), bytes.size());
    ASSERT_TRUE(elf);
    build_id_ = elf->build_id();
    std::uint64_t begin = 0;
    for (const ElfFile::Section& section : elf->sections()) {
      if (section.name == ".text") begin = section.header.sh_addr;
    }
    for (std::uint64_t i = 0; i < 3000; ++i) addresses_.push_back(begin + i);
    const auto reference = make(0);
    reference->expect(kFile, build_id_, addresses_);
    expected_ = frames(*reference);
    for (std::size_t i = 0; i < addresses_.size() && line_.empty(); ++i) {
      if (expected_[i].empty() || expected_[i][0].line == 0) continue;
      address_ = addresses_[i];
      line_ = expected_[i];
    }
    ASSERT_FALSE(line_.empty());
    refuse(0, 0);
  }
  void TearDown() override { refuse(0, 0); }

  static void refuse(int times, int error, int started_first = 0) {
    g_refusals = times;
    g_error = error;
    g_started_first = started_first;
    g_starts = 0;
  }
  static std::unique_ptr<Symbolizer> make(int retry_ms) {
    SymbolizerOptions options;
    options.debug_root = "/none";
    options.dwarf.command = {DIAL9_DWARF_WORKER};
    options.dwarf.retry_ms = retry_ms;
    options.readers = 2;
    options.wants_lines = true;
    options.boot_id = "boot";
    options.kernel_list = ::testing::TempDir() + "shortage_test_kernel";
    return std::make_unique<Symbolizer>(std::move(options));
  }
  std::vector<Frame> frames_of_one(Symbolizer& symbolizer) const {
    return symbolizer.frames(kFile, build_id_, address_, false);
  }
  std::vector<std::vector<Frame>> frames(Symbolizer& symbolizer) const {
    std::vector<std::vector<Frame>> all;
    for (const std::uint64_t address : addresses_) {
      all.push_back(symbolizer.frames(kFile, build_id_, address, false));
    }
    return all;
  }
  static std::string only_note(const Symbolizer& symbolizer) {
    const std::vector<std::string> notes = symbolizer.notes();
    return notes.size() == 1 ? notes[0] : std::to_string(notes.size()) + " notes";
  }

  std::string build_id_;
  std::vector<std::uint64_t> addresses_;
  std::vector<std::vector<Frame>> expected_;
  std::uint64_t address_ = 0;  // one that has a line
  std::vector<Frame> line_;
};

TEST_F(Shortage, OfProcessesLeavesLinesForTheNextTimeAndSaysWhichLack) {
  for (const int error : {EAGAIN, ENOMEM}) {
    const auto symbolizer = make(0);
    refuse(1, error);
    const auto without = frames_of_one(*symbolizer);
    ASSERT_EQ(without.size(), 1U);
    EXPECT_EQ(symbolizer->shortages(), 1U);
    EXPECT_EQ(without[0].name, line_.back().name) << "of the symbol table";
    EXPECT_EQ(without[0].line, 0U);
    const std::string note = only_note(*symbolizer);
    EXPECT_EQ(note.find("not all lines from " + kFile + ": cannot start '"), 0U) << note;
    EXPECT_NE(note.find("; it is tried again later (1 address has none)"), std::string::npos);
    EXPECT_EQ(frames_of_one(*symbolizer), line_);
    EXPECT_TRUE(symbolizer->notes().empty()) << only_note(*symbolizer);
    EXPECT_EQ(symbolizer->shortages(), 1U);
  }
}

TEST_F(Shortage, OfProcessesCostsNoLinesOfWhatIsLookedUpTogether) {
  for (const int started_first : {0, 1}) {
    const auto symbolizer = make(0);
    refuse(1, EAGAIN, started_first);
    symbolizer->expect(kFile, build_id_, addresses_);
    EXPECT_EQ(g_refusals, 0);
    EXPECT_EQ(frames(*symbolizer), expected_);
    EXPECT_TRUE(symbolizer->notes().empty()) << only_note(*symbolizer);
  }
}

TEST_F(Shortage, OfProcessesIsNotAskedAboutForAWhile) {
  const auto symbolizer = make(kAnHourMs);
  refuse(2, EAGAIN);
  symbolizer->expect(kFile, build_id_, addresses_);
  for (int i = 0; i < 2; ++i) {
    for (const auto& none : frames(*symbolizer)) {
      for (const Frame& frame : none) EXPECT_EQ(frame.line, 0U);
    }
  }
  EXPECT_LE(g_starts, 2) << "once a reader";
  const std::string note = only_note(*symbolizer);
  EXPECT_NE(note.find("(3000 addresses have none)"), std::string::npos) << note;
}

TEST_F(Shortage, ThatIsNoneIsGivenUp) {
  const auto symbolizer = make(0);
  refuse(1, EACCES);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(frames_of_one(*symbolizer).at(0).line, 0U);
  EXPECT_EQ(g_starts, 1);
  EXPECT_EQ(symbolizer->shortages(), 0U);
  const std::string note = only_note(*symbolizer);
  EXPECT_EQ(note.find("no lines from " + kFile + ": cannot start '"), 0U) << note;
  EXPECT_EQ(note.find("again"), std::string::npos) << note;
}

TEST_F(Shortage, OfDescriptorsLeavesAFilesNamesForTheNextTime) {
  const auto symbolizer = make(0);
  {
    const dial9::testing::NoDescriptors none;
    EXPECT_TRUE(frames_of_one(*symbolizer).empty());
  }
  const std::string note = only_note(*symbolizer);
  EXPECT_EQ(note.find("not all files of " + kFile + " could be opened"), 0U) << note;
  EXPECT_EQ(frames_of_one(*symbolizer), line_);
  EXPECT_TRUE(symbolizer->notes().empty()) << only_note(*symbolizer);
  {
    const dial9::testing::NoDescriptors none;
    EXPECT_EQ(frames_of_one(*symbolizer), line_) << "it is whole";
  }
}

TEST_F(Shortage, OfDescriptorsIsNotFeltAgainForAWhile) {
  const auto symbolizer = make(kAnHourMs);
  {
    const dial9::testing::NoDescriptors none;
    EXPECT_TRUE(frames_of_one(*symbolizer).empty());
  }
  EXPECT_TRUE(frames_of_one(*symbolizer).empty());
  EXPECT_EQ(symbolizer->shortages(), 2U);
  EXPECT_NE(only_note(*symbolizer).find("tried again later"), std::string::npos);
}

TEST_F(Shortage, OfDescriptorsLeavesTheKernelsNamesForTheNextTime) {
  const auto symbolizer = make(0);
  const std::string list = ::testing::TempDir() + "shortage_test_kernel";
  std::ofstream(list) << "ffffffff81000000 T _stext\nffffffff81000010 T one\n"
                         "ffffffff81000030 T _etext\n";
  {
    const dial9::testing::NoDescriptors none;
    EXPECT_TRUE(symbolizer->kernel_frames("boot", 0xffffffff81000010, false).empty());
  }
  EXPECT_EQ(symbolizer->shortages(), 1U);
  EXPECT_NE(only_note(*symbolizer).find("functions of the kernel have no names"),
            std::string::npos);
  EXPECT_EQ(symbolizer->kernel_frames("boot", 0xffffffff81000010, false).size(), 1U);
  EXPECT_TRUE(symbolizer->notes().empty()) << only_note(*symbolizer);
  std::filesystem::remove(list);
}

TEST_F(Shortage, OfProcessesIsNoReasonToAskNoServerAgain) {
  DebuginfodOptions options;
  options.urls = "http://127.0.0.1:1";
  options.command = {"/bin/false"};
  options.directory = ::testing::TempDir() + "shortage_test_files";
  Debuginfod debuginfod(options);
  refuse(1, ENOMEM);
  EXPECT_FALSE(debuginfod.fetch(build_id_, "any"));
  EXPECT_TRUE(debuginfod.lacks_process());
  EXPECT_FALSE(debuginfod.has_given_up());
  std::filesystem::remove(options.directory);
}

}  // namespace
}  // namespace dial9::symbolize
