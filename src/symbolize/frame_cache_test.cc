// SPDX-License-Identifier: Apache-2.0
#include "symbolize/frame_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace dial9::symbolize {
namespace {

namespace fs = std::filesystem;

class FrameCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "dial9-cache-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    directory_ = root_ + "/deeper/dial9";
  }
  void TearDown() override { fs::remove_all(root_); }

  FrameCache cache(std::uint64_t most_bytes = 1 << 20) const {
    return FrameCache({directory_, most_bytes});
  }
  static FrameTable some(std::uint64_t addresses) {
    FrameTable frames;
    for (std::uint64_t i = 0; i < addresses; ++i) {
      frames.add(i, std::vector<Frame>{{.name = "function " + std::to_string(i), .line = 7}});
    }
    return frames;
  }
  std::string file(const std::string& build_id) const {
    return directory_ + "/" + build_id + ".frames";
  }

  std::string root_;
  std::string directory_;
};

TEST_F(FrameCacheTest, GivesBackWhatWasSaved) {
  FrameTable frames = some(100);
  frames.add(500, {});  // nothing is known of it, and that is known
  cache().save("abcd", frames);
  EXPECT_TRUE(cache().load("abcd") == frames);
  EXPECT_TRUE(cache().load("abce").empty());
  cache().save("abcd", some(3));
  EXPECT_TRUE(cache().load("abcd") == some(3));
  struct stat facts{};
  ASSERT_EQ(::stat(directory_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700U) << "names are nobody else's business";
}

TEST_F(FrameCacheTest, DoesNotReadWhatIsDamagedOrCut) {
  cache().save("abcd", some(10));
  const auto size = fs::file_size(file("abcd"));
  for (std::uint64_t at = 0; at < size; at += 7) {
    std::fstream damaged(file("abcd"), std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekg(static_cast<std::streamoff>(at));
    const auto was = static_cast<char>(damaged.get());
    damaged.seekp(static_cast<std::streamoff>(at));
    damaged.put(static_cast<char>(was ^ 0x10));
    damaged.flush();
    EXPECT_TRUE(cache().load("abcd").empty()) << at;
    damaged.seekp(static_cast<std::streamoff>(at));
    damaged.put(was);
  }
  EXPECT_TRUE(cache().load("abcd") == some(10)) << "as it was";
  fs::resize_file(file("abcd"), size - 1);
  EXPECT_TRUE(cache().load("abcd").empty());
}

TEST_F(FrameCacheTest, StaysWithinItsBoundAndDropsWhatWasUsedLeastLately) {
  cache().save("aa", some(100));
  const std::uint64_t one = fs::file_size(file("aa"));
  const FrameCache small = cache(2 * one + one / 2);
  small.save("bb", some(100));
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(file("aa"), now - std::chrono::hours(2));
  fs::last_write_time(file("bb"), now - std::chrono::hours(1));
  EXPECT_EQ(small.load("aa").size(), 100U) << "used now";
  std::ofstream(directory_ + "/notes.txt") << "somebody else's";
  small.save("cc", some(100));
  EXPECT_TRUE(fs::exists(file("aa")));
  EXPECT_FALSE(fs::exists(file("bb")));
  EXPECT_TRUE(fs::exists(file("cc")));
  EXPECT_TRUE(fs::exists(directory_ + "/notes.txt"));
}

TEST_F(FrameCacheTest, KeepsNothingWithoutAFolderOrOfAnotherUser) {
  const FrameCache none({"", 1 << 20});
  none.save("abcd", some(1));
  EXPECT_TRUE(none.load("abcd").empty());
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  cache().save("abcd", some(1));
  ASSERT_EQ(::chown(file("abcd").c_str(), 65534, 65534), 0);
  EXPECT_TRUE(cache().load("abcd").empty());
}

}  // namespace
}  // namespace dial9::symbolize
