// SPDX-License-Identifier: Apache-2.0
#include "base/whole_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

namespace dial9 {
namespace {

TEST(WholeFile, IsReadThoughItSaysThatItHasNoSize) {
  const Result<std::string> name = read_whole_file("/proc/self/status");
  ASSERT_TRUE(name) << name.error().message;
  EXPECT_NE(name->find("Pid:\t" + std::to_string(::getpid())), std::string::npos);
}

TEST(WholeFile, ThatIsLargerThanAllowedIsCut) {
  EXPECT_EQ(read_whole_file("/proc/self/maps", 7)->size(), 7U);
  EXPECT_EQ(read_whole_file("/dev/zero", 40'000)->size(), 40'000U);
}

TEST(WholeFile, ThatIsNotThereOrCannotBeReadIsAnError) {
  EXPECT_EQ(read_whole_file("/nowhere/at/all").error().code, ErrorCode::kNotFound);
  // It opens, and each read of it fails: so do the files of a thread that ends meanwhile.
  const Result<std::string> directory = read_whole_file("/proc/self");
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.error().message.find("cannot read '/proc/self'"), std::string::npos);
}

}  // namespace
}  // namespace dial9
