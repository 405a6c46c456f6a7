// One owner, one close.
// SPDX-License-Identifier: Apache-2.0
#include "base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace dial9 {
namespace {

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST(UniqueFd, ClosesWhenItGoes) {
  int raw = -1;
  {
    UniqueFd fd(open_null());
    raw = fd.get();
    ASSERT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

TEST(UniqueFd, MovesItsDescriptorAndClosesTheOneItHad) {
  UniqueFd a(open_null());
  UniqueFd b(open_null());
  const int first = a.get();
  const int second = b.get();
  b = std::move(a);
  EXPECT_EQ(b.get(), first);
  EXPECT_FALSE(is_open(second));
  EXPECT_TRUE(is_open(first));
}

TEST(UniqueFd, ReleasesToTheCaller) {
  UniqueFd fd(open_null());
  const int raw = fd.release();
  EXPECT_FALSE(fd.is_open());
  EXPECT_TRUE(is_open(raw));
  ::close(raw);
}

}  // namespace
}  // namespace dial9
