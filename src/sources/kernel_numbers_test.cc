// SPDX-License-Identifier: Apache-2.0
#include "sources/kernel_numbers.h"

#include <gtest/gtest.h>

namespace dial9::internal {
namespace {

TEST(KernelNumbers, FindsTheNumberOfALineByItsWholeKey) {
  const std::string_view text =
      "usage_usec 5\nnr_throttled 3\nnr_throttled_more 9\nVmRSS:\t 12 kB\n";
  EXPECT_EQ(find_number(text, "nr_throttled"), 3U);
  EXPECT_EQ(find_number(text, "VmRSS:"), 12U);
  EXPECT_FALSE(find_number(text, "throttled"));
  EXPECT_FALSE(find_number(text, "usage"));
  EXPECT_FALSE(find_number("", "a"));
  EXPECT_FALSE(find_number("a x\n", "a"));
}

TEST(KernelNumbers, AWholeTextIsANumberOrUnknown) {
  EXPECT_EQ(parse_number("42\n"), 42U);
  EXPECT_FALSE(parse_number("max\n"));
  EXPECT_FALSE(parse_number("-1\n"));
  EXPECT_FALSE(parse_number(""));
  EXPECT_FALSE(parse_number("99999999999999999999\n"));
}

TEST(KernelNumbers, PressureHasBothTotalsOrOne) {
  const Pressure both = parse_pressure(
      "some avg10=1.00 avg60=0.22 avg300=0.05 total=2316\n"
      "full avg10=0.00 avg60=0.00 avg300=0.00 total=16\n");
  EXPECT_EQ(both.some_us, 2316U);
  EXPECT_EQ(both.full_us, 16U);
  const Pressure one = parse_pressure("some avg10=1.00 total=7\n");
  EXPECT_EQ(one.some_us, 7U);
  EXPECT_FALSE(one.full_us);
  EXPECT_FALSE(parse_pressure("some avg10=1.00\n").some_us);
}

TEST(KernelNumbers, MemoryOfAProcessIsInPagesAndWhatIsNotThereIsAbsent) {
  const Pages pages = parse_statm("111574 1398 1220 145 0 71009 0\n");
  EXPECT_EQ(pages.resident, 1398U);
  EXPECT_EQ(pages.shared, 1220U);
  EXPECT_EQ(parse_statm("5 6\n").resident, 6U);
  EXPECT_FALSE(parse_statm("5 6\n").shared);
  EXPECT_FALSE(parse_statm("5\n").resident);
  EXPECT_FALSE(parse_statm("5 x 7\n").shared);
  EXPECT_FALSE(parse_statm("").resident);
}

TEST(KernelNumbers, StealIsTheEighthOfTheFirstLine) {
  const std::string_view stat = "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
  EXPECT_EQ(parse_steal_ticks(stat), 80U);
  EXPECT_FALSE(parse_steal_ticks("cpu  10 20 30 40\n")) << "an old kernel";
  EXPECT_FALSE(parse_steal_ticks("intr 5\n"));
  EXPECT_FALSE(parse_steal_ticks(""));
}

}  // namespace
}  // namespace dial9::internal
