// SPDX-License-Identifier: Apache-2.0
#include "server/run_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "server/testing/sample_runs.h"

namespace dial9::server {
namespace {

namespace fs = std::filesystem;

class RunFiles : public ::testing::Test {
 protected:
  RunFiles() {
    std::string pattern = (fs::temp_directory_path() / "dial9_serve_XXXXXX").string();
    base_ = ::mkdtemp(pattern.data());
    root_ = base_ / "served";
    fs::create_directory(root_);
  }
  ~RunFiles() override { fs::remove_all(base_); }

  void write(const fs::path& path) {
    fs::create_directories(path.parent_path());
    const auto bytes = testing::sample_trace();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
  }
  std::vector<std::string> ids(const fs::path& path) {
    std::vector<std::string> out;
    const auto source = *runs_in(path.string());
    const auto runs = *source->list();
    for (const RunInfo& run : runs) out.push_back(run.id);
    std::ranges::sort(out);
    return out;
  }

  fs::path base_;
  fs::path root_;
};

TEST_F(RunFiles, FindDirectoriesOfSegmentsAndLooseFiles) {
  write(root_ / "abcd-12" / "trace.0.bin");
  write(root_ / "abcd-12" / "trace.1.bin");
  write(root_ / "loose.bin");
  EXPECT_EQ(ids(root_), (std::vector<std::string>{"abcd-12", "loose.bin"}));
}

TEST_F(RunFiles, ReadARunsBytesInChunks) {
  write(root_ / "loose.bin");
  const auto source = *runs_in(root_.string());
  const auto runs = *source->list();
  testing::Bytes bytes;
  ASSERT_TRUE(source->read(runs[0], 0, [&](std::span<const std::uint8_t> chunk) {
    bytes.insert(bytes.end(), chunk.begin(), chunk.end());
    return true;
  }));
  EXPECT_EQ(bytes, testing::sample_trace());
}

TEST_F(RunFiles, ServeOneFileWithoutItsNeighbours) {
  write(root_ / "one.bin");
  write(root_ / "two.bin");
  EXPECT_EQ(ids(root_ / "one.bin"), (std::vector<std::string>{"one.bin"}));
}

TEST_F(RunFiles, KnowWhenOneFileWasWrittenAndWhetherARecorderStillDoes) {
  for (const char* name : {"one.bin", "trace.3.bin.active"}) {
    const fs::path path = root_ / name;
    write(path);
    const auto source = *runs_in(path.string());
    for (const std::int64_t at_ms : {1'500'000'000'000, 1'500'000'001'000}) {
      const timespec at{.tv_sec = at_ms / 1000, .tv_nsec = 0};
      const timespec times[] = {at, at};
      ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
      const auto runs = *source->list();
      ASSERT_EQ(runs.size(), 1u) << name;
      EXPECT_EQ(runs[0].modified_ms, at_ms) << name;
      EXPECT_EQ(runs[0].is_live, path.extension() == ".active") << name;
    }
    fs::remove(path);
    EXPECT_TRUE(source->list()->empty()) << name;
  }
}

TEST_F(RunFiles, TellWhatIsSealedAndKnowNothingOfAFileThatIsNoSegmentByItsName) {
  write(root_ / "whole-1" / "trace.0.bin");
  write(root_ / "open-2" / "trace.0.bin");
  write(root_ / "open-2" / "trace.1.bin.active");
  write(root_ / "foreign.bin");
  const auto sealed = [](const fs::path& path, const std::string& name) {
    const auto runs = *(*runs_in(path.string()))->list();
    const auto found = std::ranges::find(runs, name, &RunInfo::name);
    EXPECT_NE(found, runs.end()) << name;
    return found == runs.end() ? std::nullopt : found->is_sealed;
  };
  EXPECT_EQ(sealed(root_, "whole-1"), true);
  EXPECT_EQ(sealed(root_, "open-2"), false);
  EXPECT_EQ(sealed(root_, "foreign.bin"), std::nullopt);
  EXPECT_EQ(sealed(root_ / "foreign.bin", "foreign.bin"), std::nullopt);
  EXPECT_EQ(sealed(root_ / "whole-1" / "trace.0.bin", "trace.0.bin"), true);
  EXPECT_EQ(sealed(root_ / "open-2" / "trace.1.bin.active", "trace.1.bin.active"), false);
}

TEST_F(RunFiles, LeaveOutWhatALinkLeadsOutOfTheDirectory) {
  write(base_ / "secret.bin");
  write(base_ / "other" / "trace.0.bin");
  write(root_ / "mine.bin");
  fs::create_symlink(base_ / "secret.bin", root_ / "link.bin");
  fs::create_directory_symlink(base_ / "other", root_ / "linked");
  EXPECT_EQ(ids(root_), (std::vector<std::string>{"mine.bin"}));
}

TEST_F(RunFiles, RefuseAFileThatBecameALinkOutsideAfterItWasListed) {
  write(base_ / "secret.bin");
  write(root_ / "mine.bin");
  const auto source = *runs_in(root_.string());
  const auto runs = *source->list();
  fs::remove(root_ / "mine.bin");
  fs::create_symlink(base_ / "secret.bin", root_ / "mine.bin");
  std::size_t seen = 0;
  const auto read = source->read(runs[0], 0, [&](std::span<const std::uint8_t> chunk) {
    seen += chunk.size();
    return true;
  });
  EXPECT_EQ(read.error().code, ErrorCode::kPermission);
  EXPECT_EQ(seen, 0u);
}

TEST_F(RunFiles, NameWhatIsWrongWithAPath) {
  EXPECT_EQ(runs_in((root_ / "nowhere").string()).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(runs_in("/dev/null").error().code, ErrorCode::kNotFound);
}

TEST_F(RunFiles, AreNoneInAnEmptyDirectory) { EXPECT_TRUE(ids(root_).empty()); }

}  // namespace
}  // namespace dial9::server
