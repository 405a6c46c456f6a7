// SPDX-License-Identifier: Apache-2.0
#include "recorder/kept_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "recorder/fork_fds.h"
#include "recorder/test_support.h"

namespace dial9::internal {
namespace {

class KeptFiles : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::ofstream(path(name)) << text;
  }
  std::string path(const std::string& name) const { return dir_.path() + "/" + name; }
  std::string text(KeptFile& file) {
    char buffer[64];
    return std::string(file.read(buffer, sizeof buffer));
  }
  // The descriptor that leads to the file; -1: none.
  static int number_of(const std::string& path) {
    const FileIdentity file = identity_of(UniqueFd(::open(path.c_str(), O_PATH)).get());
    for (int fd = 3; fd < 4096; ++fd) {
      if (leads_to(fd, file)) return fd;
    }
    return -1;
  }
  TempDir dir_;
};

TEST_F(KeptFiles, AreReadFromTheirBeginningEachTimeThroughOneDescriptor) {
  write("a", "one");
  KeptFile file(path("a"));
  EXPECT_EQ(text(file), "one");
  EXPECT_EQ(kept_files_open(), 1U);
  write("a", "two!");
  EXPECT_EQ(text(file), "two!");
  EXPECT_EQ(kept_files_open(), 1U);
}

TEST_F(KeptFiles, OneThatIsMissingOrTooLongIsEmptyAndKeepsNothing) {
  KeptFile missing(path("missing"));
  EXPECT_EQ(text(missing), "");
  write("long", std::string(64, 'x'));
  KeptFile too_long(path("long"));
  EXPECT_EQ(text(too_long), "");
  EXPECT_EQ(kept_files_open(), 0U);
}

TEST_F(KeptFiles, OneThatIsReadSeldomKeepsNoDescriptorNorLeavesAnOldOne) {
  write("a", "one");
  KeptFile file(path("a"));
  char buffer[64];
  EXPECT_EQ(file.read_and_close(buffer, sizeof buffer), "one");
  EXPECT_EQ(kept_files_open(), 0U);
  EXPECT_EQ(text(file), "one");
  EXPECT_TRUE(file.is_kept());
  EXPECT_EQ(kept_files_open(), 1U);
  write("a", "two!");
  EXPECT_EQ(file.read_and_close(buffer, sizeof buffer), "two!");
  EXPECT_FALSE(file.is_kept());
  EXPECT_EQ(kept_files_open(), 0U);
  EXPECT_EQ(number_of(path("a")), -1);
}

TEST_F(KeptFiles, ADirectorysStatusIsThatOfNowThroughOneDescriptorWhichTheHostMayClose) {
  KeptFile directory(dir_.path());
  struct stat status{};
  ASSERT_TRUE(directory.status(&status));
  EXPECT_TRUE(S_ISDIR(status.st_mode));
  EXPECT_EQ(kept_files_open(), 1U);
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0750), 0);
  ASSERT_TRUE(directory.status(&status));
  EXPECT_EQ(status.st_mode & 0777U, 0750U);
  const int number = number_of(dir_.path());
  write("host", "the host's");
  const UniqueFd host(::open(path("host").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::dup2(host.get(), number), number);
  ASSERT_TRUE(directory.status(&status));
  EXPECT_TRUE(S_ISDIR(status.st_mode)) << "never the host's file";
  EXPECT_EQ(kept_files_open(), 1U);
  const UniqueFd taken(number);
  KeptFile missing(path("missing"));
  EXPECT_FALSE(missing.status(&status));
}

TEST_F(KeptFiles, AllAreClosedAtRestAndOpenedAgain) {
  write("a", "one");
  KeptFile file(path("a"));
  EXPECT_EQ(text(file), "one");
  close_kept_files();
  EXPECT_EQ(kept_files_open(), 0U);
  EXPECT_FALSE(file.is_kept());
  EXPECT_EQ(text(file), "one");
  EXPECT_EQ(kept_files_open(), 1U);
}

TEST_F(KeptFiles, ThoseBeyondTheMostAreReadWithoutKeepingADescriptor) {
  write("a", "one");
  std::vector<std::unique_ptr<KeptFile>> files;
  for (std::size_t i = 0; i < kMostKeptFiles + 3; ++i) {
    files.push_back(std::make_unique<KeptFile>(path("a")));
    EXPECT_EQ(text(*files.back()), "one");
  }
  EXPECT_EQ(kept_files_open(), kMostKeptFiles);
  EXPECT_EQ(text(*files.back()), "one");
  files.clear();
  EXPECT_EQ(kept_files_open(), 0U);
}

TEST_F(KeptFiles, OneWhoseNumberTheHostTookIsOpenedAgainAndTheHostsIsLeftAlone) {
  write("a", "one");
  write("host", "the host's");
  auto file = std::make_unique<KeptFile>(path("a"));
  EXPECT_EQ(text(*file), "one");
  const int number = number_of(path("a"));
  ASSERT_GE(number, 0);
  ASSERT_EQ(::close(number), 0);
  EXPECT_EQ(text(*file), "one") << "closed by the host";
  const int again = number_of(path("a"));
  const UniqueFd host(::open(path("host").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::dup2(host.get(), again), again);
  EXPECT_EQ(text(*file), "one") << "and taken";
  EXPECT_EQ(kept_files_open(), 1U);
  const UniqueFd taken(again);
  const int last = number_of(path("a"));
  ASSERT_EQ(::dup2(host.get(), last), last);
  const UniqueFd taken_last(last);
  close_kept_files();
  file.reset();
  EXPECT_TRUE(leads_to(taken.get(), identity_of(host.get())));
  EXPECT_TRUE(leads_to(taken_last.get(), identity_of(host.get())));
}

TEST_F(KeptFiles, AProcessThatMayOpenFewFilesKeepsAlmostNone) {
  write("a", "one");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<std::unique_ptr<KeptFile>> files;
  for (const rlim_t limit : {31, 64}) {
    const rlimit few{limit, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < 4; ++i) {
      files.push_back(std::make_unique<KeptFile>(path("a")));
      EXPECT_EQ(text(*files.back()), "one");
    }
    EXPECT_EQ(kept_files_open(), limit / 32);
  }
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(KeptFiles, AProgramThatIsExecutedHasNoneOfThem) {
  write("a", "one");
  KeptFile file(path("a"));
  EXPECT_EQ(text(file), "one");
  const int fd = number_of(path("a"));
  ASSERT_GE(fd, 0);
  EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(KeptFiles, TheLowestFreeNumberStaysTheHosts) {
  write("a", "one");
  const UniqueFd lowest(::open(path("a").c_str(), O_RDONLY | O_CLOEXEC));
  const int number = lowest.get();
  write("b", "two");
  KeptFile file(path("b"));
  EXPECT_EQ(text(file), "two");
  EXPECT_GT(number_of(path("b")), number + 16);
  const UniqueFd next(::open(path("a").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(next.get(), number + 1);
}

}  // namespace
}  // namespace dial9::internal
