// The process that reads debug information: what it answers, and what a file can make of it.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarf_worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "symbolize/dwarf_file.h"
#include "symbolize/elf_file.h"
#include "symbolize/symbolizer.h"
#include "symbolize/testing/elf_images.h"

namespace dial9::symbolize {
namespace {

namespace fs = std::filesystem;

using testing::content_of;
using testing::reader_of;

class DwarfWorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!DwarfFile::is_supported()) GTEST_SKIP() << "built without libdw";
    std::string pattern = ::testing::TempDir() + "dial9-dwarf-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    bytes_ = content_of(DIAL9_WHOLE);
    const FileReader reader = reader_of(bytes_);
    const auto elf = ElfFile::open(reader, bytes_.size());
    ASSERT_TRUE(elf.has_value());
    sections_ = elf->sections();
    build_id_ = elf->build_id();
    for (const ElfFile::Section& section : sections_) {
      if (section.name == ".text") text_ = section.header;
    }
    ASSERT_NE(text_.sh_size, 0U);
  }
  void TearDown() override {
    if (!directory_.empty()) fs::remove_all(directory_);
  }

  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::vector<std::uint64_t> all_addresses() const {
    std::vector<std::uint64_t> addresses;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(text_.sh_size, 1000); ++i) {
      addresses.push_back(text_.sh_addr + i);
    }
    return addresses;
  }

  std::string directory_;
  std::string bytes_;
  std::vector<ElfFile::Section> sections_;
  std::string build_id_;
  Elf64_Shdr text_{};
};

TEST_F(DwarfWorkerTest, AnswersManyAddressesOfSeveralFiles) {
  DwarfWorker worker({{DIAL9_DWARF_WORKER}});
  const auto first = worker.open(DIAL9_WHOLE, build_id_);
  const auto second = worker.open(write("copy.so", bytes_), build_id_);
  ASSERT_TRUE(first.has_value()) << first.error().message;
  ASSERT_TRUE(second.has_value()) << second.error().message;
  const auto of_first = worker.frames(*first, all_addresses());
  const auto of_second = worker.frames(*second, all_addresses());
  ASSERT_TRUE(of_first.has_value() && of_second.has_value());
  EXPECT_EQ(of_first->size(), all_addresses().size());
  EXPECT_TRUE(*of_first == *of_second);
  const auto addresses = all_addresses();
  const auto named = std::count_if(addresses.begin(), addresses.end(), [&](std::uint64_t address) {
    const std::vector<Frame> frames = of_first->frames(address);
    return !frames.empty() && frames.back().name == "exported_worker";
  });
  EXPECT_GT(named, 0);
}

TEST_F(DwarfWorkerTest, AnswersPartByPartWhereAnAnswerWouldBeTooLarge) {
  DwarfWorker whole({{DIAL9_DWARF_WORKER}});
  DwarfWorker small({{DIAL9_DWARF_WORKER, "500"}});
  const auto of_whole = whole.open(DIAL9_WHOLE, build_id_);
  const auto of_small = small.open(DIAL9_WHOLE, build_id_);
  ASSERT_TRUE(of_whole.has_value() && of_small.has_value());
  const auto addresses = all_addresses();
  const auto all = whole.frames(*of_whole, addresses);
  ASSERT_TRUE(all.has_value());
  FrameTable parts;
  std::size_t questions = 0;
  for (std::span<const std::uint64_t> rest = addresses; !rest.empty(); ++questions) {
    const auto part = small.frames(*of_small, rest);
    ASSERT_TRUE(part.has_value()) << part.error().message;
    parts.take(*part);
    rest = rest.subspan(part->size());
  }
  EXPECT_GT(questions, 2U);
  EXPECT_TRUE(parts == *all);
}

TEST_F(DwarfWorkerTest, SaysNothingOfAFileThatWasOverwrittenInPlace) {
  DwarfWorker worker({{DIAL9_DWARF_WORKER}});
  const std::string path = write("over.so", bytes_);
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  const auto file = worker.open(path, build_id_);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  ASSERT_TRUE(worker.frames(*file, all_addresses()).has_value());
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << bytes_;  // the same
  const auto written = worker.frames(*file, all_addresses());
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().message, "it was written to while it was read");
  const std::string other(40, 'a');
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      << testing::with_build_id(bytes_, build_id_, other);
  const auto overwritten = worker.frames(*file, all_addresses());
  ASSERT_FALSE(overwritten.has_value());
  EXPECT_EQ(overwritten.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(overwritten.error().message.find("has build id " + other + ", not " + build_id_),
            std::string::npos)
      << overwritten.error().message;
  EXPECT_TRUE(worker.open(DIAL9_WHOLE, build_id_).has_value()) << "it goes on";
}

TEST_F(DwarfWorkerTest, RefusesAFileThatIsNotTheOneThatWasAskedFor) {
  DwarfWorker worker({{DIAL9_DWARF_WORKER}});
  EXPECT_FALSE(worker.open(DIAL9_WHOLE, std::string(40, 'a')).has_value());
  EXPECT_FALSE(worker.open(directory_ + "/none", build_id_).has_value());
  EXPECT_FALSE(worker.open(write("text", "no ELF file"), build_id_).has_value());
  const auto stripped = worker.open(DIAL9_SPLIT "/worker.so", build_id_);
  ASSERT_FALSE(stripped.has_value());
  EXPECT_EQ(stripped.error().code, ErrorCode::kNotFound) << stripped.error().message;
  EXPECT_TRUE(worker.open(DIAL9_WHOLE, build_id_).has_value()) << "it goes on";
}

TEST_F(DwarfWorkerTest, IsReplacedWhenItEnded) {
  const std::string flag = directory_ + "/flag";
  DwarfWorker worker(
      {{"/bin/sh", "-c",
        "if [ -e '" + flag + "' ]; then exec '" DIAL9_DWARF_WORKER "'; fi; : > '" + flag + "'"}});
  const auto ended = worker.open(DIAL9_WHOLE, build_id_);
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().code, ErrorCode::kIo);
  const auto again = worker.open(DIAL9_WHOLE, build_id_);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_TRUE(worker.frames(*again, all_addresses()).has_value());
}

TEST_F(DwarfWorkerTest, IsNotStartedForEverWhereItAlwaysEnds) {
  const std::string log = directory_ + "/log";
  DwarfWorker worker({{"/bin/sh", "-c", "echo started >> '" + log + "'"}});
  for (int i = 0; i < 2 * WorkerProcess::kMostStarts; ++i) {
    EXPECT_FALSE(worker.open(DIAL9_WHOLE, build_id_).has_value());
  }
  const std::string lines = content_of(log);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), WorkerProcess::kMostStarts);
}

TEST_F(DwarfWorkerTest, IsStartedForAQuarterAsOftenWhereItTakesTooLong) {
  DwarfWorker worker({{"/bin/sh", "-c", "exec sleep 600"}, 1, 1});
  int late = 0;
  for (int i = 0; i < WorkerProcess::kMostStarts; ++i) {
    const auto opened = worker.open(DIAL9_WHOLE, build_id_);
    ASSERT_FALSE(opened.has_value());
    late += opened.error().message.find("it took longer") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(late, WorkerProcess::kMostStarts / 4);
}

TEST_F(DwarfWorkerTest, FilesThatEndItsProcessLeaveOneToTheOthers) {
  std::vector<std::uint64_t> with_lines;
  SymbolizerOptions options;
  options.debug_root = directory_ + "/none";
  options.dwarf.command = {DIAL9_DWARF_WORKER};
  Symbolizer whole(options);
  for (const std::uint64_t address : all_addresses()) {
    const auto frames = whole.frames(DIAL9_WHOLE, build_id_, address, false);
    if (!frames.empty() && frames.back().at_line != 0) with_lines.push_back(address);
  }
  constexpr std::size_t kBad = 12;
  ASSERT_GT(with_lines.size(), kBad);
  options.dwarf.command = {DIAL9_DWARF_WORKER, "8000000", std::to_string(with_lines[0]),
                           std::to_string(with_lines[kBad])};
  Symbolizer symbolizer(options);
  for (int file = 0; file < 5; ++file) {
    const std::string path = write("bad" + std::to_string(file), bytes_);
    for (std::size_t i = 0; i < kBad; ++i) {
      for (const Frame& frame : symbolizer.frames(path, build_id_, with_lines[i], false)) {
        EXPECT_EQ(frame.at_line, 0U);
      }
    }
  }
  const auto frames = symbolizer.frames(DIAL9_WHOLE, build_id_, with_lines[kBad], false);
  ASSERT_FALSE(frames.empty());
  EXPECT_NE(frames.back().at_line, 0U);
}

TEST_F(DwarfWorkerTest, WritesIntoNoFileThatLiesWhereItsNotebookWould) {
  const std::string users(8192, 'u');
  const std::string path = write("users", users);
  DwarfWorker worker({{"/bin/sh", "-c", "exec 3<>'" + path + "'; exec '" DIAL9_DWARF_WORKER "'"}});
  const auto opened = worker.open(DIAL9_WHOLE, build_id_);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_TRUE(worker.frames(*opened, all_addresses()).has_value());
  EXPECT_EQ(content_of(path), users);
}

TEST_F(DwarfWorkerTest, FailsAloneWhereTheFileIsCutWhileItIsRead) {
  DwarfWorker worker({{DIAL9_DWARF_WORKER}});
  const std::string path = write("cut.so", bytes_);
  const auto cut = worker.open(path, build_id_);
  const auto whole = worker.open(DIAL9_WHOLE, build_id_);
  ASSERT_TRUE(cut.has_value() && whole.has_value());
  fs::resize_file(path, 1);
  EXPECT_FALSE(worker.frames(*cut, all_addresses()).has_value());
  EXPECT_TRUE(worker.frames(*whole, all_addresses()).has_value());
}

}  // namespace
}  // namespace dial9::symbolize
