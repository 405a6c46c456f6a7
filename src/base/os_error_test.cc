// An errno becomes a code that programs can act on and a line that people can act on.
// SPDX-License-Identifier: Apache-2.0
#include "base/os_error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace dial9 {
namespace {

TEST(OsError, SaysWhatWasAttemptedOnWhatAndWhy) {
  const std::unexpected<Error> error = os_error(ENOENT, "open", "/no/such", "check the spelling");
  EXPECT_EQ(error.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(error.error().message,
            "cannot open '/no/such': No such file or directory; check the spelling");
  EXPECT_EQ(error.error().offset, kNoOffset);
}

TEST(OsError, MapsEveryCauseThatACallerActsOn) {
  EXPECT_EQ(error_code_of(EACCES), ErrorCode::kPermission);
  EXPECT_EQ(error_code_of(EROFS), ErrorCode::kPermission);
  EXPECT_EQ(error_code_of(EEXIST), ErrorCode::kAlreadyExists);
  EXPECT_EQ(error_code_of(ENOSPC), ErrorCode::kNoSpace);
  EXPECT_EQ(error_code_of(EDQUOT), ErrorCode::kNoSpace);
  EXPECT_EQ(error_code_of(EMFILE), ErrorCode::kLimit);
  EXPECT_EQ(error_code_of(EIO), ErrorCode::kIo);
}

}  // namespace
}  // namespace dial9
