// A thread takes chunks while a pass looks for them: none is listed without the one before.
// SPDX-License-Identifier: Apache-2.0
#include "recorder/chunk_list.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

namespace dial9::internal {
namespace {

// Chunks, and what happens as the n-th group of marks is read.
struct Chunks {
  std::map<std::uint32_t, std::uint64_t> opened_ns;
  std::map<int, std::function<void()>> at_reading;
  int readings = 0;

  std::vector<ChunkInUse> list(std::uint32_t groups) {
    std::vector<ChunkInUse> all;
    list_chunks_in_use(
        groups,
        [&](std::uint32_t group) {
          const auto happens = at_reading.find(readings++);
          if (happens != at_reading.end()) happens->second();
          std::uint64_t marks = 0;
          for (const auto& [i, at_ns] : opened_ns) {
            if (i / 64 == group) marks |= std::uint64_t{1} << i % 64;
          }
          return marks;
        },
        [&](std::uint32_t i) -> std::optional<std::uint64_t> {
          const auto found = opened_ns.find(i);
          if (found == opened_ns.end()) return std::nullopt;
          return found->second;
        },
        all);
    return all;
  }
};

using List = std::vector<ChunkInUse>;

TEST(ChunkList, AreThoseInUseByTheTimeAtWhichTheyWereOpened) {
  Chunks chunks{{{3, 50}, {63, 10}, {64, 40}, {130, 20}}, {}};
  EXPECT_EQ(chunks.list(3), (List{{10, 63}, {20, 130}, {40, 64}, {50, 3}}));
  EXPECT_EQ(Chunks{}.list(3), List{});
}

TEST(ChunkList, OneThatATakerFilledWhileItWasLookedIsThereBeforeItsNext) {
  Chunks chunks{{{130, 1}}, {}};
  // The first group is behind us: the thread takes one of it, fills it, and takes one that's ahead.
  chunks.at_reading[1] = [&] {
    chunks.opened_ns[5] = 10;
    chunks.opened_ns[70] = 20;
  };
  EXPECT_EQ(chunks.list(3), (List{{1, 130}, {10, 5}, {20, 70}}));
}

TEST(ChunkList, WhatWasOpenedSinceTheFirstLookIsLeftToTheNextPass) {
  Chunks chunks{{{130, 1}}, {}};
  chunks.at_reading[4] = [&] {  // in the second one, behind its first group
    chunks.opened_ns[5] = 10;
    chunks.opened_ns[70] = 20;
  };
  EXPECT_EQ(chunks.list(3), (List{{1, 130}}));
  EXPECT_EQ(chunks.list(3), (List{{1, 130}, {10, 5}, {20, 70}}));
}

TEST(ChunkList, AChunkThatBecameFreeInBetweenIsNotThere) {
  Chunks chunks{{{5, 10}, {70, 20}}, {}};
  chunks.at_reading[2] = [&] { chunks.opened_ns.erase(70); };
  EXPECT_EQ(chunks.list(2), (List{{10, 5}}));
}

}  // namespace
}  // namespace dial9::internal
