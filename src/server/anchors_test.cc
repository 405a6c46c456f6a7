// Thinned anchors: wall time by them against wall time by all, as the engine has it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/anchors_json.h"

namespace dial9::server {
namespace {

using analysis::Anchor;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kEpoch = 1'790'000'000 * kSecond;

std::uint64_t wall(const std::vector<Anchor>& anchors, std::uint64_t at_ns) {
  analysis::Trace trace;
  trace.anchors = anchors;
  return trace.realtime_ns(at_ns).value_or(0);
}

void expect_within(const std::vector<Anchor>& all, const ThinAnchors& thin) {
  for (std::uint64_t at_ns = 0; at_ns < all.back().monotonic_ns; at_ns += 3 * kSecond + 7) {
    const std::uint64_t right = wall(all, at_ns);
    const std::uint64_t ours = wall(thin.anchors, at_ns);
    ASSERT_LE(std::max(right, ours) - std::min(right, ours), thin.error_ns) << at_ns;
  }
}

// An anchor each 10 s for a day, the wall clock set back by an hour in the middle.
TEST(Anchors, AStepOfTheWallClockStaysWhereItWasHoweverLongTheTrace) {
  std::vector<Anchor> all;
  for (std::uint64_t i = 1; i < 8'640; ++i) {
    const std::uint64_t back_ns = i > 4'321 ? 3'600 * kSecond : 0;
    all.push_back({i * 10 * kSecond, kEpoch + i * 10 * kSecond - back_ns});
  }
  const ThinAnchors thin = thin_anchors(all, 256);
  EXPECT_EQ(thin.anchors.size(), 4U);
  EXPECT_EQ(thin.error_ns, 0U);
  expect_within(all, thin);
}

TEST(Anchors, AClockThatIsAlwaysCorrectedIsOffByWhatIsSaidAtMost) {
  std::vector<Anchor> all;
  for (std::uint64_t i = 1; i < 8'640; ++i) {
    const std::uint64_t jitter_ns = i * 7'919 % 2'000;
    all.push_back({i * 10 * kSecond, kEpoch + i * 10 * kSecond + i * 50'000 + jitter_ns});
  }
  const ThinAnchors thin = thin_anchors(all, 256);
  EXPECT_LE(thin.anchors.size(), 256U);
  EXPECT_GT(thin.error_ns, 0U);
  EXPECT_LT(thin.error_ns, 20'000'000U);  // of 432 ms that it drifts
  expect_within(all, thin);
}

TEST(Anchors, FewOnesAreAllThere) {
  const std::vector<Anchor> all = {{5, 100}, {10, 300}};
  EXPECT_EQ(thin_anchors(all, 256).anchors.size(), 2U);
  EXPECT_TRUE(thin_anchors({}, 256).anchors.empty());
}

}  // namespace
}  // namespace dial9::server
