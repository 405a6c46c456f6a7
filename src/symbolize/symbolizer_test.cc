// Whose names and lines a module's addresses get: of its own file, of its split debug file, of
// nobody.
// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbolizer.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <time.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "symbolize/dwarf_file.h"
#include "symbolize/elf_file.h"
#include "symbolize/testing/elf_images.h"

namespace dial9::symbolize {
namespace {

namespace fs = std::filesystem;

const std::string kStripped = DIAL9_SPLIT "/worker.so";
const std::string kDebugFile = DIAL9_SPLIT "/debug/worker.so.debug";

std::string build_id_of(const std::string& path) {
  const std::string bytes = testing::content_of(path);
  const FileReader reader = testing::reader_of(bytes);
  const auto elf = ElfFile::open(reader, bytes.size());
  return elf ? elf->build_id() : "";
}

class SymbolizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "dial9-symbols-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    handle_ = ::dlopen(kStripped.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle_, nullptr) << ::dlerror();
    using Address = void* (*)();
    const auto address_of = reinterpret_cast<Address>(::dlsym(handle_, "address_of_hidden_worker"));
    void* const exported = ::dlsym(handle_, "exported_worker");
    Dl_info info{};
    ASSERT_NE(::dladdr(exported, &info), 0);
    const auto base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    exported_ = reinterpret_cast<std::uintptr_t>(exported) - base;
    hidden_ = reinterpret_cast<std::uintptr_t>(address_of()) - base;
    build_id_ = build_id_of(kStripped);
    ASSERT_EQ(build_id_.size(), 40U);
  }
  void TearDown() override {
    if (handle_ != nullptr) ::dlclose(handle_);
    fs::remove_all(directory_);
  }

  // No distribution's debug files unless the test says so.
  SymbolizerOptions options(std::vector<std::string> directories = {}) const {
    return {std::move(directories), directory_ + "/none"};
  }
  std::string name(Symbolizer& symbolizer, std::uint64_t address, bool is_return = false) const {
    const auto frames = symbolizer.frames(kStripped, build_id_, address, is_return);
    return frames.empty() ? "" : frames.front().name;
  }
  void put(const std::string& from, const std::string& to) const {
    fs::create_directories(fs::path(directory_ + to).parent_path());
    fs::copy_file(from, directory_ + to);
  }

  std::string directory_;
  void* handle_ = nullptr;
  std::uint64_t exported_ = 0;
  std::uint64_t hidden_ = 0;
  std::string build_id_;
};

TEST_F(SymbolizerTest, HasOnlyTheExportedNamesOfAStrippedLibrary) {
  Symbolizer symbolizer(options());
  EXPECT_EQ(name(symbolizer, exported_), "exported_worker");
  EXPECT_EQ(name(symbolizer, hidden_), "") << "never the neighbour's";
}

TEST_F(SymbolizerTest, FindsASplitDebugFileByItsBuildId) {
  put(kDebugFile, "/.build-id/" + build_id_.substr(0, 2) + "/" + build_id_.substr(2) + ".debug");
  Symbolizer by_root({{}, directory_});
  EXPECT_EQ(name(by_root, hidden_), "(anonymous namespace)::hidden_worker(int)");
  Symbolizer by_directory(options({directory_}));
  EXPECT_EQ(name(by_directory, hidden_), "(anonymous namespace)::hidden_worker(int)");
}

TEST_F(SymbolizerTest, FindsASplitDebugFileByTheLinkInTheLibrary) {
  put(kDebugFile, fs::path(kStripped).parent_path().string() + "/worker.so.debug");
  Symbolizer symbolizer({{}, directory_});
  EXPECT_EQ(name(symbolizer, hidden_), "(anonymous namespace)::hidden_worker(int)");
}

TEST_F(SymbolizerTest, FindsAWholeBinaryByItsNameInASymbolPath) {
  put(DIAL9_WHOLE, "/worker.so");
  Symbolizer symbolizer(options({directory_}));
  EXPECT_EQ(name(symbolizer, hidden_), "(anonymous namespace)::hidden_worker(int)");
  EXPECT_TRUE(symbolizer.notes().empty());
}

TEST_F(SymbolizerTest, RefusesABinaryWithAnotherBuildIdAndNamesIt) {
  put("/proc/self/exe", "/worker.so");
  Symbolizer symbolizer(options({directory_}));
  EXPECT_EQ(name(symbolizer, exported_), "exported_worker") << "of the right one";
  ASSERT_EQ(symbolizer.notes().size(), 1U);
  EXPECT_EQ(symbolizer.notes()[0].find("binary at " + directory_ + "/worker.so has build id "), 0U);
  EXPECT_NE(symbolizer.notes()[0].find("the trace says " + build_id_ + ": not used"),
            std::string::npos);
  Symbolizer wrong(options());
  EXPECT_TRUE(wrong.frames(kStripped, std::string(40, 'a'), exported_, false).empty());
  ASSERT_EQ(wrong.notes().size(), 1U);
  EXPECT_EQ(wrong.notes()[0].find("binary at " + kStripped), 0U);
}

TEST_F(SymbolizerTest, SaysOnceWhereThereIsNoBinaryOrNoBuildId) {
  Symbolizer symbolizer(options());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(symbolizer.frames("/nowhere/gone.so", build_id_, hidden_, false).empty());
    EXPECT_TRUE(symbolizer.frames(kStripped, "", hidden_, false).empty());
    EXPECT_TRUE(symbolizer.frames(kStripped, "../../etc", hidden_, false).empty());
  }
  ASSERT_EQ(symbolizer.notes().size(), 2U);
  EXPECT_EQ(symbolizer.notes()[0].find("no binary at /nowhere/gone.so"), 0U);
  EXPECT_EQ(symbolizer.notes()[1].find("worker.so has no build id"), 0U);
}

TEST_F(SymbolizerTest, TakesAReturnAddressForTheCallBeforeIt) {
  Symbolizer symbolizer(options());
  EXPECT_EQ(name(symbolizer, exported_ + 1, true), "exported_worker");
  EXPECT_NE(name(symbolizer, exported_, true), "exported_worker")
      << "what called is before the function's first instruction";
}

TEST_F(SymbolizerTest, NamesTheKernelsOwnLibraryWithoutAFile) {
  const std::uint64_t base = ::getauxval(AT_SYSINFO_EHDR);
  if (base == 0) GTEST_SKIP() << "no vdso here";
  void* const handle = ::dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
  void* const clock = handle == nullptr ? nullptr : ::dlsym(handle, "__vdso_clock_gettime");
  if (clock == nullptr) GTEST_SKIP() << "the vdso has no such function";
  const FileReader reader = [&](std::uint64_t offset, std::span<std::uint8_t> to) {
    std::copy_n(reinterpret_cast<const std::uint8_t*>(base + offset), to.size(), to.data());
    return true;
  };
  const auto vdso = ElfFile::open(reader, 4096 * 2);
  if (!vdso || vdso->build_id().empty()) GTEST_SKIP() << "the vdso has no build id";
  Symbolizer symbolizer(options());
  const auto frames = symbolizer.frames("linux-vdso.so.1", vdso->build_id(),
                                        reinterpret_cast<std::uintptr_t>(clock) - base, false);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_NE(frames[0].name.find("clock_gettime"), std::string::npos);
}

class SymbolizerKernel : public SymbolizerTest {
 protected:
  std::string list(const std::string& text) const {
    const std::string path = directory_ + "/kallsyms";
    std::ofstream(path) << text;
    return path;
  }
  SymbolizerOptions kernel(const std::string& text) const {
    SymbolizerOptions given = options();
    given.kernel_list = list(text);
    given.boot_id = "boot";
    return given;
  }
};

TEST_F(SymbolizerKernel, NamesItsFunctionsOnTheBootThatTheTraceIsOf) {
  Symbolizer symbolizer(
      kernel("ffffffff81000000 T _stext\nffffffff81000010 T one\nffffffff81000020 T two\n"
             "ffffffff81000030 T _etext\n"));
  const auto frames = symbolizer.kernel_frames("boot", 0xffffffff81000020, false);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].name, "two");
  EXPECT_EQ(symbolizer.kernel_frames("boot", 0xffffffff81000020, true).at(0).name, "one")
      << "the call is before what it returns to";
  EXPECT_TRUE(symbolizer.kernel_frames("boot", 0xffffffff81000030, false).empty());
  EXPECT_TRUE(symbolizer.notes().empty());
}

TEST_F(SymbolizerKernel, HasNoNamesForAnotherBootAndSaysWhyOnce) {
  for (const std::string boot : {"", "another"}) {
    Symbolizer symbolizer(kernel("ffffffff81000000 T _stext\nffffffff81000030 T _etext\n"));
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(symbolizer.kernel_frames(boot, 0xffffffff81000000, false).empty());
    }
    ASSERT_EQ(symbolizer.notes().size(), 1U);
    EXPECT_NE(symbolizer.notes()[0].find(boot.empty() ? "isn't known" : "another machine"),
              std::string::npos);
  }
}

TEST_F(SymbolizerKernel, NamesTheCureWhereTheAddressesAreHidden) {
  Symbolizer symbolizer(kernel("0000000000000000 T _stext\n0000000000000000 T _etext\n"));
  EXPECT_TRUE(symbolizer.kernel_frames("boot", 0xffffffff81000000, false).empty());
  ASSERT_EQ(symbolizer.notes().size(), 1U);
  EXPECT_NE(symbolizer.notes()[0].find("kernel.kptr_restrict=0"), std::string::npos);
}

class SymbolizerLines : public SymbolizerTest {
 protected:
  void SetUp() override {
    if (!DwarfFile::is_supported()) GTEST_SKIP() << "built without libdw";
    SymbolizerTest::SetUp();
    if (HasFatalFailure()) return;
    using Address = void* (*)(int);
    const auto inlined = reinterpret_cast<Address>(::dlsym(handle_, "inlined_address"));
    ASSERT_NE(inlined, nullptr);
    inlined_ = reinterpret_cast<std::uintptr_t>(inlined(1)) -
               (reinterpret_cast<std::uintptr_t>(::dlsym(handle_, "exported_worker")) - exported_);
  }
  std::string debug_path() const {
    return directory_ + "/.build-id/" + build_id_.substr(0, 2) + "/" + build_id_.substr(2) +
           ".debug";
  }
  // With the debug file; its debug information is read by `worker`.
  SymbolizerOptions with_lines(std::vector<std::string> worker = {DIAL9_DWARF_WORKER}) {
    const std::string by_id =
        "/.build-id/" + build_id_.substr(0, 2) + "/" + build_id_.substr(2) + ".debug";
    if (!fs::exists(directory_ + by_id)) put(kDebugFile, by_id);
    SymbolizerOptions given = options({directory_});
    given.dwarf.command = std::move(worker);
    given.wants_lines = true;
    return given;
  }
  // The line of the library's source that ends in this comment.
  static std::uint32_t line_of(const std::string& comment) {
    std::ifstream source(DIAL9_SOURCE_DIR "/src/symbolize/testing/symbolized.cc");
    std::uint32_t number = 0;
    for (std::string line; std::getline(source, line);) {
      ++number;
      if (line.ends_with("// " + comment)) return number;
    }
    ADD_FAILURE() << "no line has " << comment;
    return 0;
  }
  void expect_inlined(const std::vector<Frame>& frames) const {
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(frames[0].name, "shop::where()");
    EXPECT_EQ(frames[1].name, "shop::Till::add(int)");
    EXPECT_EQ(frames[2].name, "inlined_address");
    EXPECT_EQ(frames[0].at_line, line_of("AT: of the nop"));
    EXPECT_EQ(frames[1].at_line, line_of("WHERE IS CALLED"));
    EXPECT_EQ(frames[2].at_line, line_of("ADD IS CALLED"));
    EXPECT_EQ(frames[0].line, line_of("WHERE"));
    EXPECT_EQ(frames[1].line, line_of("ADD"));
    EXPECT_EQ(frames[2].line, line_of("THE FUNCTION"));
    for (const Frame& frame : frames) {
      EXPECT_EQ(frame.is_inlined, &frame != &frames.back()) << frame.name;
      EXPECT_TRUE(frame.file.ends_with("/src/symbolize/testing/symbolized.cc")) << frame.file;
      EXPECT_EQ(frame.at_file, frame.file);
    }
  }

  std::uint64_t inlined_ = 0;
};

TEST_F(SymbolizerLines, ShowsInlinedFunctionsAndTheLineOfEach) {
  Symbolizer symbolizer(with_lines());
  expect_inlined(symbolizer.frames(kStripped, build_id_, inlined_, false));
  const auto frames = symbolizer.frames(kStripped, build_id_, hidden_, false);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].name, "(anonymous namespace)::hidden_worker(int)");
  EXPECT_EQ(frames[0].line, line_of("HIDDEN"));
  EXPECT_FALSE(frames[0].is_inlined);
  EXPECT_TRUE(symbolizer.notes().empty()) << symbolizer.notes()[0];
}

// g++ gives functions that no other file sees no linkage name.
TEST_F(SymbolizerLines, NamesTheNamespacesOfAFunctionThatNoOtherFileSees) {
  Symbolizer symbolizer(with_lines());
  bool is_found = false;
  for (std::uint64_t address = inlined_; address < inlined_ + 64; ++address) {
    for (const Frame& frame : symbolizer.frames(kStripped, build_id_, address, false)) {
      if (frame.name.find("doubled") == std::string::npos) continue;
      is_found = true;
      EXPECT_EQ(frame.name.find("shop::(anonymous namespace)::doubled"), 0U) << frame.name;
      EXPECT_TRUE(frame.is_inlined);
    }
  }
  EXPECT_TRUE(is_found);
}

TEST_F(SymbolizerLines, TakesAReturnAddressForTheCallBeforeIt) {
  Symbolizer symbolizer(with_lines());
  expect_inlined(symbolizer.frames(kStripped, build_id_, inlined_ + 1, true));
}

TEST_F(SymbolizerLines, LooksUpTogetherWhatItWillBeAskedFor) {
  Symbolizer symbolizer(with_lines());
  const std::vector<std::uint64_t> both{hidden_, inlined_, hidden_};
  symbolizer.expect(kStripped, build_id_, both);
  fs::remove_all(directory_ + "/.build-id");
  expect_inlined(symbolizer.frames(kStripped, build_id_, inlined_, false));
  const auto hidden = symbolizer.frames(kStripped, build_id_, hidden_ + 1, true);
  ASSERT_EQ(hidden.size(), 1U);
  EXPECT_EQ(hidden[0].line, line_of("HIDDEN"));
  symbolizer.expect(kStripped, build_id_, {});
}

TEST_F(SymbolizerLines, AsksAgainForWhatAnAnswerHadNoRoomFor) {
  Symbolizer symbolizer(with_lines({DIAL9_DWARF_WORKER, "1"}));
  symbolizer.expect(kStripped, build_id_, std::vector<std::uint64_t>{hidden_, inlined_});
  fs::remove_all(directory_ + "/.build-id");
  expect_inlined(symbolizer.frames(kStripped, build_id_, inlined_, false));
  const auto hidden = symbolizer.frames(kStripped, build_id_, hidden_, false);
  ASSERT_EQ(hidden.size(), 1U);
  EXPECT_EQ(hidden[0].line, line_of("HIDDEN"));
  EXPECT_TRUE(symbolizer.notes().empty());
}

TEST_F(SymbolizerLines, HasTheSameFromTwoReadersAtATime) {
  std::vector<std::uint64_t> many;
  for (std::uint64_t i = 0; i < 3000; ++i) many.push_back(inlined_ + 1500 - i);
  SymbolizerOptions given = with_lines();
  given.readers = 1;
  Symbolizer one(given);
  one.expect(kStripped, build_id_, many);
  given.readers = 2;
  Symbolizer two(given);
  two.expect(kStripped, build_id_, many);
  fs::remove_all(directory_ + "/.build-id");
  for (const std::uint64_t address : many) {
    EXPECT_EQ(one.frames(kStripped, build_id_, address, false),
              two.frames(kStripped, build_id_, address, false));
  }
  expect_inlined(two.frames(kStripped, build_id_, inlined_, false));
  EXPECT_TRUE(two.notes().empty());
}

TEST_F(SymbolizerLines, KeepsWhatOneReaderFoundWhereTheOtherEnds) {
  const std::string flag = directory_ + "/flag";
  SymbolizerOptions given = with_lines({"/bin/sh", "-c",
                                        "if [ -e '" + flag + "' ]; then exit 1; fi; : > '" + flag +
                                            "'; exec '" DIAL9_DWARF_WORKER "'"});
  given.readers = 2;
  Symbolizer symbolizer(given);
  std::vector<std::uint64_t> many;
  for (std::uint64_t i = 0; i < 3000; ++i) many.push_back(inlined_ + i);
  symbolizer.expect(kStripped, build_id_, many);
  expect_inlined(symbolizer.frames(kStripped, build_id_, inlined_, false));
  ASSERT_EQ(symbolizer.notes().size(), 1U);
  EXPECT_EQ(symbolizer.notes()[0].find("not all lines from " + directory_), 0U)
      << symbolizer.notes()[0];
}

// The addresses from `begin` up to `end` end each reader.
TEST_F(SymbolizerLines, LeavesOutTheAddressesThatEndAReaderAndSaysHowMany) {
  const auto from = [&](std::uint64_t begin, std::uint64_t end) {
    return with_lines({DIAL9_DWARF_WORKER, "8000000", std::to_string(begin), std::to_string(end)});
  };
  Symbolizer whole(with_lines());
  std::vector<std::uint64_t> many;
  for (std::uint64_t i = 0; i < 40; ++i) many.push_back(inlined_ + i);
  for (const std::uint64_t bad : {std::uint64_t{1}, std::uint64_t{10}}) {
    Symbolizer symbolizer(from(inlined_ + 5, inlined_ + 5 + bad));
    symbolizer.expect(kStripped, build_id_, many);
    std::size_t without = 0;
    for (const std::uint64_t address : many) {
      const auto frames = symbolizer.frames(kStripped, build_id_, address, false);
      const auto all = whole.frames(kStripped, build_id_, address, false);
      if (frames == all) continue;
      ++without;
      ASSERT_EQ(frames.size(), 1U);
      EXPECT_EQ(frames[0].name, all.back().name) << "of the symbol table";
      EXPECT_EQ(frames[0].line, 0U);
    }
    EXPECT_GE(without, bad);
    ASSERT_EQ(symbolizer.notes().size(), 1U);
    const std::string note = symbolizer.notes()[0];
    EXPECT_EQ(note.find("not all lines from " + directory_), 0U) << note;
    const std::string count = bad == 1 ? "(1 address has none)" : "(15 addresses have none)";
    EXPECT_NE(note.find(count), std::string::npos) << note;
  }
}

TEST_F(SymbolizerLines, GivesUpAFileOfWhichTooManyAddressesEndAReader) {
  std::vector<std::uint64_t> few;
  for (std::uint64_t i = 0; i < 40; i += 2) few.push_back(inlined_ + i);
  Symbolizer symbolizer(with_lines({DIAL9_DWARF_WORKER, "8000000", "0", "9999999999"}));
  for (const std::uint64_t address : few) {
    for (const Frame& frame : symbolizer.frames(kStripped, build_id_, address, false)) {
      EXPECT_EQ(frame.line, 0U);
    }
  }
  ASSERT_EQ(symbolizer.notes().size(), 1U);
  EXPECT_EQ(symbolizer.notes()[0], "no lines from " + debug_path() +
                                       ": the process that does it ended (20 addresses have none)");
}

TEST_F(SymbolizerLines, KeepsNoMoreBytesThanItMayAndLooksAgain) {
  SymbolizerOptions given = with_lines();
  given.most_known_bytes = 1;
  given.cache.directory = directory_ + "/cache";
  {
    Symbolizer symbolizer(given);
    EXPECT_EQ(name(symbolizer, hidden_), "(anonymous namespace)::hidden_worker(int)");
    symbolizer.expect(kStripped, build_id_, std::vector<std::uint64_t>{inlined_});
    for (int i = 0; i < 2; ++i) {
      expect_inlined(symbolizer.frames(kStripped, build_id_, inlined_, false));
    }
  }
  SymbolizerOptions later = options();
  later.cache = given.cache;
  Symbolizer symbolizer(later);
  EXPECT_EQ(symbolizer.frames("/nowhere/worker.so", build_id_, hidden_, false).size(), 1U)
      << "there was room for the first";
  EXPECT_TRUE(symbolizer.frames("/nowhere/worker.so", build_id_, inlined_, false).empty());
}

TEST_F(SymbolizerLines, TakesNoMoreLinesFromAFileThatIsOverwrittenAndNamesIt) {
  Symbolizer symbolizer(with_lines());
  const std::string path =
      directory_ + "/.build-id/" + build_id_.substr(0, 2) + "/" + build_id_.substr(2) + ".debug";
  expect_inlined(symbolizer.frames(kStripped, build_id_, inlined_, false));
  const std::string other(40, 'c');
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      << testing::with_build_id(testing::content_of(path), build_id_, other);
  const auto frames = symbolizer.frames(kStripped, build_id_, hidden_, false);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].name, "(anonymous namespace)::hidden_worker(int)") << "read before";
  EXPECT_EQ(frames[0].line, 0U);
  expect_inlined(symbolizer.frames(kStripped, build_id_, inlined_, false));
  ASSERT_EQ(symbolizer.notes().size(), 1U);
  EXPECT_EQ(symbolizer.notes()[0].find("not all lines from " + path), 0U) << symbolizer.notes()[0];
  EXPECT_NE(symbolizer.notes()[0].find("has build id " + other), std::string::npos);
}

TEST_F(SymbolizerLines, TellsTheNotesOnOneModuleAlone) {
  Symbolizer symbolizer(options());
  (void)symbolizer.frames("/nowhere/gone.so", build_id_, hidden_, false);
  (void)symbolizer.kernel_frames("", 1, false);
  EXPECT_EQ(symbolizer.notes_of("/nowhere/gone.so", build_id_, false).size(), 1U);
  EXPECT_EQ(symbolizer.notes_of(kKernelNotes, "", false).size(), 1U);
  EXPECT_TRUE(symbolizer.notes_of("/nowhere/gone.so", std::string(40, 'a'), false).empty());
  SymbolizerOptions given = options();
  given.dwarf.command = {DIAL9_DWARF_WORKER};
  Symbolizer without(given);
  (void)without.frames(kStripped, build_id_, exported_, false);
  EXPECT_TRUE(without.notes().empty()) << "nobody wants lines";
  EXPECT_TRUE(without.notes_of(kStripped, build_id_, false).empty());
  EXPECT_EQ(without.notes_of(kStripped, build_id_, true).size(), 1U);
}

TEST_F(SymbolizerLines, KnowsNothingOfAnAddressInNoFunction) {
  Symbolizer symbolizer(with_lines());
  EXPECT_TRUE(symbolizer.frames(kStripped, build_id_, 0, false).empty());
  EXPECT_TRUE(symbolizer.frames(kStripped, build_id_, 1, true).empty());
  EXPECT_TRUE(symbolizer.frames(kStripped, build_id_, ~std::uint64_t{0}, false).empty());
}

TEST_F(SymbolizerLines, KeepsWhatItFoundForATimeWithoutTheFiles) {
  SymbolizerOptions first = with_lines();
  first.cache.directory = directory_ + "/cache/dial9";
  expect_inlined(Symbolizer(first).frames(kStripped, build_id_, inlined_, false));
  SymbolizerOptions later = options();
  later.cache = first.cache;
  Symbolizer symbolizer(later);
  expect_inlined(symbolizer.frames("/nowhere/worker.so", build_id_, inlined_, false));
  EXPECT_TRUE(symbolizer.frames("/nowhere/worker.so", build_id_, hidden_, false).empty());
  EXPECT_TRUE(symbolizer.notes().empty());
}

TEST_F(SymbolizerLines, SaysWhichModuleHasNoDebugInformationWhereLinesAreWanted) {
  SymbolizerOptions stripped = options();
  stripped.dwarf.command = {DIAL9_DWARF_WORKER};
  stripped.wants_lines = true;
  Symbolizer symbolizer(stripped);
  EXPECT_EQ(name(symbolizer, exported_), "exported_worker");
  ASSERT_EQ(symbolizer.notes().size(), 1U);
  EXPECT_EQ(symbolizer.notes()[0].find("no debug information of " + kStripped), 0U);
}

TEST_F(SymbolizerLines, GoesOnWithoutLinesWhereTheReaderEndsHangsOrLies) {
  const std::vector<std::vector<std::string>> workers = {
      {"/bin/false"}, {"/bin/cat"}, {"/bin/sleep", "1000"}, {directory_ + "/none"}};
  for (const auto& worker : workers) {
    SymbolizerOptions given = with_lines(worker);
    given.dwarf.open_ms = 50;
    Symbolizer symbolizer(given);
    for (int i = 0; i < 2; ++i) {
      const auto frames = symbolizer.frames(kStripped, build_id_, inlined_, false);
      ASSERT_EQ(frames.size(), 1U) << worker[0];
      EXPECT_EQ(frames[0].name, "inlined_address");
      EXPECT_EQ(frames[0].line, 0U);
    }
    ASSERT_EQ(symbolizer.notes().size(), 1U) << worker[0];
    EXPECT_EQ(symbolizer.notes()[0].find("no lines from " + directory_), 0U)
        << symbolizer.notes()[0];
  }
}

}  // namespace
}  // namespace dial9::symbolize
