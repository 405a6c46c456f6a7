// libdial9_heap.so before a program that wasn't built with dial9: its allocations and leaks come
// back, as root and as nobody, with the C library's allocator and with others behind it.
// SPDX-License-Identifier: Apache-2.0
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "format/materialize.h"

namespace dial9::test {
namespace {

namespace fs = std::filesystem;

constexpr double kRate = 4'096;
constexpr double kSize = 1'000;
constexpr uid_t kNobody = 65'534;

struct Found {
  double allocated = 0;  // estimated
  double live = 0;
  std::string allocator;
};

class HeapPreload : public testing::Test {
 protected:
  HeapPreload() {
    std::string pattern = testing::TempDir() + "dial9-heap-XXXXXX";
    directory_ = mkdtemp(pattern.data());
    // Where nobody may read them too.
    library_ = directory_ / "libdial9_heap.so";
    program_ = directory_ / "heap_child";
    fs::copy_file(DIAL9_HEAP_PRELOAD, library_);
    fs::copy_file(DIAL9_HEAP_CHILD, program_);
    fs::permissions(directory_, fs::perms::all);
    fs::permissions(library_, fs::perms::all);
    fs::permissions(program_, fs::perms::all);
  }
  ~HeapPreload() override { fs::remove_all(directory_); }

  // The program's exit status.
  int run(const std::string& next_library, bool as_nobody = false) const {
    return run_program(program_, (directory_ / "site").string(), next_library, as_nobody);
  }
  int run_program(const fs::path& program, const std::string& argument,
                  const std::string& next_library = "", bool as_nobody = false) const {
    const pid_t child = ::fork();
    if (child == 0) {
      if (as_nobody && (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) ||
                        ::setresuid(kNobody, kNobody, kNobody) != 0)) {
        ::_exit(90);
      }
      ::setenv("LD_PRELOAD", (library_.string() + " " + next_library).c_str(), 1);
      ::setenv("DIAL9_ENABLED", "1", 1);
      ::setenv("DIAL9_TRACE_DIR", (directory_ / "traces").c_str(), 1);
      ::setenv("DIAL9_MEMORY_PROFILE_ENABLED", "1", 1);
      ::setenv("DIAL9_MEMORY_TRACK_LIVESET", "1", 1);
      ::setenv("DIAL9_MEMORY_SAMPLE_RATE_BYTES", "4096", 1);
      ::execl(program.c_str(), program.c_str(), argument.c_str(), nullptr);
      ::_exit(91);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  format::MaterializedTrace trace() const {
    std::vector<std::uint8_t> bytes;
    for (const auto& entry : fs::recursive_directory_iterator(directory_ / "traces")) {
      if (entry.path().extension() != ".bin") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      bytes.insert(bytes.end(), std::istreambuf_iterator<char>(file), {});
    }
    return format::materialize(bytes);
  }

  Found found() const {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::ifstream(directory_ / "site") >> from >> to;
    const format::MaterializedTrace read = trace();
    EXPECT_FALSE(read.error.has_value());
    Found sums;
    std::map<std::pair<std::uint64_t, std::uint64_t>, double> alive;
    for (const format::OwnedEvent& event : read.events) {
      const auto field = [&](const char* name) -> const format::OwnedValue& {
        return *read.field(event, name);
      };
      const std::string name(read.schemas[event.schema].name);
      if (name == "AllocEvent") {
        const auto& frames = field("callchain").frames;
        if (frames.empty() || frames[0] < from || frames[0] >= to) continue;
        EXPECT_EQ(field("size").bits, 1'000U);
        const double weight = 1 / -std::expm1(-kSize / kRate);
        sums.allocated += weight;
        alive[{field("addr").bits, event.timestamp_ns}] = weight;
      } else if (name == "FreeEvent") {
        alive.erase({field("addr").bits, field("alloc_timestamp_ns").bits});
      } else if (name == "SegmentMetadataEvent") {
        const auto& entries = field("entries").elements;
        for (std::size_t i = 0; i + 1 < entries.size(); i += 2) {
          if (entries[i].text == "memory.allocator") sums.allocator = entries[i + 1].text;
        }
      }
    }
    for (const auto& [key, weight] : alive) sums.live += weight;
    return sums;
  }

  // Five standard errors of a sum of as many chances.
  static void expect_truth(const Found& found) {
    const double chance = -std::expm1(-kSize / kRate);
    const auto error = [&](double n) { return 5 * std::sqrt(n * (1 - chance) / chance); };
    EXPECT_NEAR(found.allocated, 20'000, error(20'000));
    EXPECT_NEAR(found.live, 4'000, error(4'000));
  }

  fs::path directory_;
  fs::path library_;
  fs::path program_;
};

TEST_F(HeapPreload, AllocationsAndLeaksOfASiteComeBack) {
  ASSERT_EQ(run(""), 0);
  const Found sums = found();
  expect_truth(sums);
  EXPECT_NE(sums.allocator.find("libc.so"), std::string::npos) << sums.allocator;
}

TEST_F(HeapPreload, NobodyWithoutCapabilitiesHasTheSame) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become nobody";
  ASSERT_EQ(run("", true), 0);
  expect_truth(found());
}

// perl does the first, sort the second.
TEST_F(HeapPreload, AProgramThatResetsOrTakesTheSignalOfSamplesIsNotEndedByThem) {
  for (const char* way : {"default", "handler", "signal", "sysv"}) {
    EXPECT_EQ(run_program(DIAL9_RESETTING_CHILD, way), 7) << way;
  }
}

class HeapChain : public HeapPreload, public testing::WithParamInterface<const char*> {};

TEST_P(HeapChain, AllocatesFromTheAllocatorThatComesNext) {
  const std::string library = GetParam();
  if (!fs::exists(library)) GTEST_SKIP() << library << " isn't installed (tools/bootstrap)";
  ASSERT_EQ(run(library), 0);
  const Found sums = found();
  expect_truth(sums);
  EXPECT_EQ(fs::path(sums.allocator).filename(), fs::path(library).filename());
}

// Every symbol of a program that records by the environment and doesn't link dial9::heap.
TEST(HeapAbsence, AProgramThatDoesNotLinkItHasNoTraceOfIt) {
  std::FILE* names = ::popen("nm -C " DIAL9_WITHOUT_HEAP " 2>/dev/null", "r");
  ASSERT_NE(names, nullptr);
  std::string text;
  char part[4'096];
  while (std::fgets(part, sizeof part, names) != nullptr) text += part;
  if (::pclose(names) != 0) GTEST_SKIP() << "nm isn't installed";
  EXPECT_NE(text.find("dial9::recorder_from_env"), std::string::npos);
  EXPECT_EQ(text.find("dial9::heap::"), std::string::npos);
  EXPECT_EQ(text.find(" T malloc\n"), std::string::npos);
  EXPECT_EQ(text.find(" T operator new"), std::string::npos);
  EXPECT_EQ(text.find("HeapSampleEncoder"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Allocators, HeapChain,
                         testing::Values(DIAL9_LIBRARY_DIR "/libjemalloc.so.2",
                                         DIAL9_LIBRARY_DIR "/libtcmalloc_minimal.so.4",
                                         DIAL9_LIBRARY_DIR "/libmimalloc.so.2.0"),
                         [](const auto& which) {
                           const std::string name = fs::path(which.param).stem().stem();
                           return name.substr(3, name.find_first_of("_.", 3) - 3);
                         });

}  // namespace
}  // namespace dial9::test
