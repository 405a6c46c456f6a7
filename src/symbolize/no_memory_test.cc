// Memory may end anywhere while names are looked up: what is asked next is answered right, of the
// right file, and nothing is kept that nobody uses.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/testing/failing_memory.h"
#include "symbolize/dwarf_file.h"
#include "symbolize/elf_file.h"
#include "symbolize/symbolizer.h"
#include "symbolize/testing/elf_images.h"

namespace dial9::symbolize {
namespace {

using dial9::testing::FailingMemory;
using dial9::testing::held_pieces;
using Ends = FailingMemory::Ends;

struct File {
  std::string path;
  std::string build_id;
};

File file_of(const std::string& path) {
  const std::string bytes = testing::content_of(path);
  const auto elf = ElfFile::open(testing::reader_of(bytes), bytes.size());
  return {path, elf ? elf->build_id() : ""};
}

// The same with another build id, and of a source file of another name.
File other_file(const File& file) {
  const File other{::testing::TempDir() + "no_memory_test_" + std::to_string(::getpid()),
                   std::string(40, 'b')};
  std::string bytes =
      testing::with_build_id(testing::content_of(file.path), file.build_id, other.build_id);
  const std::string name = "symbolized.cc";
  for (auto at = bytes.find(name); at != std::string::npos; at = bytes.find(name, at + 1)) {
    bytes[at] = 'S';
  }
  std::ofstream(other.path, std::ios::binary) << bytes;
  return other;
}

// Code of both.
std::vector<std::uint64_t> addresses() {
  const std::string bytes = testing::content_of(DIAL9_PLAIN4);
  const auto elf = ElfFile::open(testing::reader_of(bytes), bytes.size());
  std::vector<std::uint64_t> all;
  for (const ElfFile::Section& section : elf->sections()) {
    if (section.name != ".text") continue;
    for (std::uint64_t at = 0; at < section.header.sh_size; at += 5) {
      all.push_back(section.header.sh_addr + at);
    }
  }
  return all;
}

class NoMemory : public ::testing::Test {
 protected:
  using Answers = std::vector<std::vector<Frame>>;

  void SetUp() override {
    if (!dial9::testing::can_memory_fail()) GTEST_SKIP() << dial9::testing::kMemoryIsOthers;
  }
  std::unique_ptr<Symbolizer> make() const {
    SymbolizerOptions options;
    options.debug_root = "/none";
    options.dwarf.command = {DIAL9_DWARF_WORKER};
    options.boot_id = "this";
    return std::make_unique<Symbolizer>(std::move(options));
  }
  Answers ask(Symbolizer& symbolizer, const File& file) const {
    Answers out;
    for (const std::uint64_t address : addresses_) {
      out.push_back(symbolizer.frames(file.path, file.build_id, address, false));
    }
    return out;
  }

  ~NoMemory() override { (void)::unlink(second_.path.c_str()); }

  const File first_ = file_of(DIAL9_PLAIN4);
  const File second_ = other_file(first_);
  const std::vector<std::uint64_t> addresses_ = addresses();
  FailingMemory memory_;
};

TEST_F(NoMemory, LeavesTheNamesOfEachFileItsOwn) {
  if (!DwarfFile::is_supported()) GTEST_SKIP() << "built without libdw";
  auto reference = make();
  const Answers of_first = ask(*reference, first_);
  const Answers of_second = ask(*reference, second_);
  const std::vector<std::string> notes = reference->notes();
  ASSERT_NE(of_first, of_second);
  reference.reset();
  const std::int64_t before = held_pieces();
  for (const Ends ends : {Ends::kOnce, Ends::kForGood}) {
    bool was_refused = true;
    // Each takes a process.
    for (std::uint64_t pieces = 0; was_refused; pieces += 1 + pieces / 12) {
      auto symbolizer = make();
      FailingMemory::take_part(&memory_);
      memory_.end_after(pieces, ends);
      try {
        symbolizer->expect(first_.path, first_.build_id, addresses_);
        (void)symbolizer->frames(first_.path, first_.build_id, addresses_.back(), false);
      } catch (const std::bad_alloc&) {
      }
      was_refused = memory_.restore();
      FailingMemory::take_part(nullptr);
      EXPECT_EQ(ask(*symbolizer, second_), of_second) << pieces;
      EXPECT_EQ(ask(*symbolizer, first_), of_first) << pieces;
      EXPECT_EQ(symbolizer->notes(), notes) << pieces;
      symbolizer.reset();
      EXPECT_EQ(held_pieces(), before) << pieces;
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_F(NoMemory, LeavesATableThatIsReadAgainAsItWasWritten) {
  const std::string long_name(100, 'n');
  std::vector<Frame> frames;
  for (int i = 0; i < 20; ++i) {
    const std::string number = std::to_string(i);
    frames.push_back({.name = long_name + number, .file = long_name + "/" + number, .line = 1});
  }
  for (const Ends ends : {Ends::kOnce, Ends::kForGood}) {
    bool was_refused = true;
    for (std::uint64_t pieces = 0; was_refused; ++pieces) {
      FrameTable other;
      other.add(3, frames);
      FrameTable table;
      FailingMemory::take_part(&memory_);
      memory_.end_after(pieces, ends);
      try {
        for (std::uint64_t address = 1; address <= 2; ++address) table.add(address, frames);
        table.take(other);
      } catch (const std::bad_alloc&) {
      }
      was_refused = memory_.restore();
      FailingMemory::take_part(nullptr);
      for (std::uint64_t address = 1; address <= 2; ++address) table.add(address, frames);
      table.take(other);
      ByteWriter written;
      table.write(written);
      EXPECT_EQ(written.bytes().size(), table.written_bytes()) << pieces;
      ByteReader in(written.bytes());
      EXPECT_TRUE(FrameTable::read(in, 3) == table) << pieces;
      EXPECT_EQ(table.size(), 3U);
      EXPECT_EQ(table.frames(3), frames);
      ASSERT_FALSE(HasFailure());
    }
  }
}

}  // namespace
}  // namespace dial9::symbolize
