// How seldom readings are made that are dear: by the least of the last four, a minute at most.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/reading_cost.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "recorder/heartbeat.h"

namespace dial9::internal {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMs;

std::uint64_t period_after(std::uint64_t share, std::initializer_list<std::uint64_t> costs_ns) {
  ReadingCost cost(share);
  for (const std::uint64_t cost_ns : costs_ns) cost.note(cost_ns);
  return cost.period_ns();
}

TEST(ReadingCost, IsKnownFromTheFourthReadingOnAndTheLeastOfTheLastFourCounts) {
  EXPECT_EQ(period_after(2'000, {kMs, kMs, kMs}), 0U);
  EXPECT_EQ(period_after(2'000, {kMs, kMs, kMs, kMs}), 2 * kSecond);
  EXPECT_EQ(period_after(2'000, {kMs, kMs, 5'000, kMs}), 10 * kMs) << "others were interrupted";
  EXPECT_EQ(period_after(2'000, {5'000, kMs, kMs, kMs, kMs}), 2 * kSecond) << "long ago";
}

TEST(ReadingCost, MakesNoneMoreSeldomThanOnceAMinute) {
  const std::uint64_t just_ns = ReadingCost::kMostNs / 2'000;
  EXPECT_EQ(ReadingCost::kMostNs, 60 * kSecond);
  EXPECT_EQ(period_after(2'000, {just_ns, just_ns, just_ns, just_ns}), 60 * kSecond);
  EXPECT_EQ(period_after(2'000, {kSecond, kSecond, kSecond, kSecond}), 60 * kSecond);
  const std::uint64_t huge_ns = std::uint64_t{1} << 63;  // times the share it would be none
  EXPECT_EQ(period_after(2'000, {huge_ns, huge_ns, huge_ns, huge_ns}), 60 * kSecond);
}

// A CPU clock that takes 100 ms to read: by its share of the time it would be read every 200 s.
TEST(ReadingCost, AHeartbeatReadsAClockThatIsEverSoDearOnceAMinute) {
  std::uint64_t now_ns = kSecond;
  int readings = 0;
  Heartbeat heartbeat([&] { return now_ns; },
                      [&] {
                        ++readings;
                        now_ns += 100 * kMs;
                        return std::uint64_t{0};
                      });
  for (int i = 0; i < 4; ++i) {
    heartbeat.sleeps(5 * kMs);
    now_ns += 10 * kMs;
  }
  ASSERT_EQ(readings, 4);
  const std::uint64_t read_ns = now_ns - 110 * kMs;  // as the last reading began
  now_ns = read_ns + 60 * kSecond - 1;
  heartbeat.sleeps(5 * kMs);
  EXPECT_EQ(readings, 4);
  now_ns = read_ns + 60 * kSecond;
  heartbeat.sleeps(5 * kMs);
  EXPECT_EQ(readings, 5);
}

}  // namespace
}  // namespace dial9::internal
