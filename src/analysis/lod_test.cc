// The pyramid against a slow reference that looks at every slice for every bin.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/lod.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "analysis/loader.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

struct Slices {
  Column<std::uint64_t> start_ns;
  Column<std::uint64_t> end_ns;
  void add(std::uint64_t start, std::uint64_t end) {
    start_ns.push_back(start);
    end_ns.push_back(end);
  }
  Range all() const { return {0, static_cast<std::uint32_t>(start_ns.size())}; }
};

std::vector<Bin> query(const Slices& slices, Range range, const Window& window) {
  std::vector<Bin> out(window.bins);
  Pyramid(slices.start_ns, slices.end_ns, range).query(window, out);
  return out;
}

std::vector<Bin> slow(const Slices& slices, Range range, const Window& window) {
  std::vector<Bin> out(window.bins);
  for (std::uint32_t b = 0; b < window.bins; ++b) {
    const double from = window.t0_ns + window.bin_ns * b;
    const double to = window.t0_ns + window.bin_ns * (b + 1);
    for (std::uint32_t i = range.first; i < range.last; ++i) {
      const auto start = static_cast<double>(slices.start_ns[i]);
      const auto end = static_cast<double>(slices.end_ns[i]);
      const bool starts_here = start >= from && start < to;
      if (!starts_here && !(start < to && end > from)) {
        continue;
      }
      out[b].starts += starts_here ? 1 : 0;
      out[b].busy_ns += std::max(0.0, std::min(end, to) - std::max(start, from));
      const std::uint64_t length = slices.end_ns[i] - slices.start_ns[i];
      if (out[b].longest == kNoIndex || length > out[b].longest_ns) {
        out[b].longest = i;
        out[b].longest_ns = length;
      }
    }
  }
  return out;
}

TEST(Pyramid, SplitsASliceAtThePixelsEdges) {
  Slices slices;
  slices.add(150, 350);
  const std::vector<Bin> bins = query(slices, slices.all(), {100, 100, 4});
  EXPECT_EQ(bins[0].busy_ns, 50);
  EXPECT_EQ(bins[1].busy_ns, 100);
  EXPECT_EQ(bins[2].busy_ns, 50);
  EXPECT_EQ(bins[3].busy_ns, 0);
  EXPECT_EQ(bins[0].starts, 1U);
  EXPECT_EQ(bins[1].starts, 0U);
  EXPECT_EQ(bins[2].longest, 0U);
  EXPECT_EQ(bins[3].longest, kNoIndex);
}

TEST(Pyramid, HasNothingToSayOfAnEmptyRow) {
  const Slices slices;
  EXPECT_EQ(query(slices, slices.all(), {0, 10, 2})[1].longest, kNoIndex);
}

TEST(Pyramid, OfEqualSlicesNamesTheFirst) {
  Slices slices;
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    slices.add(i * 10, i * 10 + 5);
  }
  EXPECT_EQ(query(slices, slices.all(), {95, 5'000, 1})[0].longest, 10U);
}

TEST(Pyramid, AgreesWithASlowReferenceOnRandomRowsAndWindows) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    Slices slices;
    std::uint64_t now_ns = 1'000;
    const std::uint64_t count = random() % 700;
    for (std::uint64_t i = 0; i < count; ++i) {
      now_ns += random() % 20;
      const std::uint64_t length = random() % 10 == 0 ? random() % 3'000 : random() % 12;
      slices.add(now_ns, now_ns + length);
      now_ns += length + (length == 0 ? 1 : 0);
    }
    const auto first = static_cast<std::uint32_t>(count == 0 ? 0 : random() % count);
    const Range range{first, static_cast<std::uint32_t>(count)};
    const auto span = static_cast<double>(now_ns) * 1.2;
    const Window window{static_cast<double>(random() % (now_ns + 1)) - 500,
                        0.5 + span / static_cast<double>(1 + random() % 400), 37};
    const std::vector<Bin> fast = query(slices, range, window);
    const std::vector<Bin> expected = slow(slices, range, window);
    for (std::uint32_t b = 0; b < window.bins; ++b) {
      ASSERT_NEAR(fast[b].busy_ns, expected[b].busy_ns, 1e-6) << round << " bin " << b;
      ASSERT_EQ(fast[b].starts, expected[b].starts) << round << " bin " << b;
      ASSERT_EQ(fast[b].longest, expected[b].longest) << round << " bin " << b;
      ASSERT_EQ(fast[b].longest_ns, expected[b].longest_ns);
    }
  }
}

TEST(LaneIndex, ShowsKernelWaitBeforeTheUnpark) {
  testing::TraceBuilder builder;
  builder.park(1'000, 0);
  builder.unpark(5'000, 0, 700);
  builder.park(6'000, 0);
  builder.unpark(7'000, 0);  // not sampled
  const Trace trace = builder.load();
  const LaneIndex index(trace);
  ASSERT_EQ(index.kernel_waits().park.size(), 1U);
  EXPECT_EQ(index.kernel_waits().start_ns[0], 4'300U);
  EXPECT_EQ(index.kernel_waits().end_ns[0], 5'000U);
  std::vector<Bin> bins(1);
  index.lane(0).parks.query({0, 10'000, 1}, bins);
  EXPECT_EQ(bins[0].busy_ns, 5'000);
}

}  // namespace
}  // namespace dial9::analysis
