// Numbers of descriptors, under the limits that hosts have.
// SPDX-License-Identifier: Apache-2.0
#include "base/descriptor_numbers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <vector>

#include "base/unique_fd.h"

namespace dial9 {
namespace {

class DescriptorNumbers : public ::testing::Test {
 protected:
  DescriptorNumbers() { ::getrlimit(RLIMIT_NOFILE, &before_); }
  ~DescriptorNumbers() override { ::setrlimit(RLIMIT_NOFILE, &before_); }
  // False: this process may not have so many.
  bool allow(rlim_t number) {
    rlimit limit = before_;
    limit.rlim_cur = number;
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
  }
  static UniqueFd open_null() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

 private:
  rlimit before_{};
};

TEST_F(DescriptorNumbers, AreBeyondWhatSelectTakesWhereTheLimitAllowsIt) {
  if (!allow(4096)) GTEST_SKIP() << "RLIMIT_NOFILE can't be 4096 here";
  const UniqueFd low = open_null();
  const UniqueFd high(duplicate_high(low.get()));
  EXPECT_GE(high.get(), 1024);
  EXPECT_NE(::fcntl(high.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(duplicate_high(high.get()), -1) << "it is high already";
}

TEST_F(DescriptorNumbers, AreTheHighestFreeOnesUnderALowLimit) {
  ASSERT_TRUE(allow(100));
  const UniqueFd low = open_null();
  std::vector<UniqueFd> high;
  for (int i = 0; i < 3; ++i) {
    high.emplace_back(duplicate_high(low.get()));
    EXPECT_EQ(high.back().get(), 99 - i);
  }
}

TEST_F(DescriptorNumbers, AreHighAtOnceWhereTheProcessHasMadeRoomForThem) {
  ASSERT_TRUE(allow(100));
  const UniqueFd low = open_null();
  const UniqueFd first(duplicate_high(low.get()));
  const UniqueFd second(duplicate_high_at_once(low.get()));
  EXPECT_EQ(second.get(), first.get() - 1);
}

TEST_F(DescriptorNumbers, ARaisedLimitNeedsRoomAnew) {
  const UniqueFd low = open_null();
  if (!allow(2'100)) GTEST_SKIP() << "so many descriptors may not be allowed";
  if (UniqueFd(duplicate_high_at_once(low.get()))) GTEST_SKIP() << "another test had some before";
  ASSERT_TRUE(allow(100));
  const UniqueFd first(duplicate_high(low.get()));
  ASSERT_GE(first.get(), 0);
  ASSERT_TRUE(allow(2'100));
  EXPECT_EQ(duplicate_high_at_once(low.get()), -1);
  const UniqueFd second(duplicate_high(low.get()));
  const UniqueFd third(duplicate_high_at_once(low.get()));
  EXPECT_EQ(second.get(), 1'024);
  EXPECT_EQ(third.get(), 1'025);
}

TEST_F(DescriptorNumbers, StayAsTheyAreWhereNothingIsOpen) {
  errno = 7;
  EXPECT_EQ(duplicate_high(-1), -1);
  EXPECT_EQ(duplicate_high(1'000'000), -1);
  EXPECT_EQ(errno, 7);
}

TEST_F(DescriptorNumbers, AreFewBelow64AndTheTextNamesTheCure) {
  ASSERT_TRUE(allow(64));
  EXPECT_FALSE(are_descriptors_few());
  EXPECT_EQ(descriptor_shortage(), "");
  ASSERT_TRUE(allow(63));
  EXPECT_TRUE(are_descriptors_few());
  EXPECT_NE(descriptor_shortage().find("only 63 descriptors"), std::string::npos);
  EXPECT_NE(descriptor_shortage().find("ulimit -n"), std::string::npos);
}

}  // namespace
}  // namespace dial9
