// SPDX-License-Identifier: Apache-2.0
#include "cli/durations.h"

#include <gtest/gtest.h>

namespace dial9::cli {
namespace {

TEST(Durations, TakeEveryUnit) {
  EXPECT_EQ(parse_duration("7"), 7U);
  EXPECT_EQ(parse_duration("7ns"), 7U);
  EXPECT_EQ(parse_duration("250us"), 250'000U);
  EXPECT_EQ(parse_duration("20ms"), 20'000'000U);
  EXPECT_EQ(parse_duration("1.5s"), 1'500'000'000U);
  EXPECT_EQ(parse_duration("2min"), 120'000'000'000U);
}

TEST(Durations, RefuseWhatIsNone) {
  for (const char* text : {"", "fast", "-1s", "nan", "inf", "1h", "1 s", "1e300s"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
    EXPECT_FALSE(check_duration(text).empty()) << text;
  }
  EXPECT_TRUE(check_duration("20ms").empty());
}

TEST(Durations, OfARangeThatHoldsNothingSayWhy) {
  const auto check = [](const char* from, const char* to) {
    return check_range("--from", from, "--to", to);
  };
  EXPECT_EQ(check("2s", "1s"), "--from 2s must be before --to 1s");
  EXPECT_EQ(check("1000ms", "1s"), "--from 1000ms must be before --to 1s");
  EXPECT_EQ(check("", "0s"), "--to 0s: nothing lies before the trace's start");
  EXPECT_EQ(check("", ""), "");
  EXPECT_EQ(check("2s", ""), "");
  EXPECT_EQ(check("", "1"), "");
  EXPECT_EQ(check("1s", "2s"), "");
}

}  // namespace
}  // namespace dial9::cli
