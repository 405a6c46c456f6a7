// SPDX-License-Identifier: Apache-2.0
#include "server/url.h"

#include <gtest/gtest.h>

namespace dial9::server {
namespace {

TEST(Url, SplitsBeforeItDecodes) {
  const auto target = parse_target("/runs/a%2Fb%3Fc/lanes?t0=1%262&name=x+y%2B");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->segments, (std::vector<std::string>{"runs", "a/b?c", "lanes"}));
  EXPECT_EQ(target->query[0], (std::pair<std::string, std::string>("t0", "1&2")));
  EXPECT_EQ(target->query[1], (std::pair<std::string, std::string>("name", "x y+")));
}

TEST(Url, RefusesBrokenEscapesAndNul) {
  for (const char* bad : {"/a%", "/a%2", "/a%zz", "/a%00b", "/a?b=%0", "a/b", ""}) {
    EXPECT_FALSE(parse_target(bad)) << bad;
  }
}

TEST(Url, RefusesDotSegmentsHoweverTheyAreWritten) {
  for (const char* bad : {"/../etc/passwd", "/a/..", "/%2e%2e/x", "/./a", "/a/%2E/b"}) {
    EXPECT_FALSE(parse_target(bad)) << bad;
  }
}

TEST(Url, DecodesOnceOnly) {
  EXPECT_EQ(percent_decode("%252e", false), "%2e");
  EXPECT_EQ(percent_decode("a+b", false), "a+b");
}

TEST(Url, LeavesOutEmptySegmentsAtTheEndOnly) {
  EXPECT_EQ(parse_target("/")->segments.size(), 0u);
  EXPECT_EQ(parse_target("/runs/")->segments.size(), 1u);
  EXPECT_EQ(parse_target("//runs")->segments.size(), 2u);
}

TEST(Url, TakesAParameterWithoutAValueAsEmpty) {
  EXPECT_EQ(parse_target("/a?b&c=&")->query.size(), 2u);
}

}  // namespace
}  // namespace dial9::server
