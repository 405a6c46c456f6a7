// Pools keep what they were given at an address that stays, whatever the ids.
// SPDX-License-Identifier: Apache-2.0
#include "format/pool.h"

#include <gtest/gtest.h>

#include <random>

namespace dial9::format {
namespace {

void put(StringPool& pool, std::uint32_t id, const std::string& text) {
  const std::span<char> room = pool.define(id, static_cast<std::uint32_t>(text.size()));
  std::copy(text.begin(), text.end(), room.begin());
}

std::string get(const StringPool& pool, std::uint32_t id) {
  const auto found = pool.find(id);
  return found ? std::string(found->begin(), found->end()) : "none";
}

TEST(Pool, AnswersLikeAMapForIdsNearAndFar) {
  StringPool pool;
  std::map<std::uint32_t, std::string> reference;
  std::minstd_rand random(1);
  for (int i = 0; i < 20'000; ++i) {
    // Near ids, far ids, and a growing range in between that moves from the tree to the array.
    const std::uint32_t kinds[] = {static_cast<std::uint32_t>(random() % 1000),
                                   static_cast<std::uint32_t>(random()) * 2,
                                   static_cast<std::uint32_t>(random() % 100'000)};
    const std::uint32_t id = kinds[i % 3];
    const std::string text = std::to_string(i) + std::string(random() % 50, 'x');
    put(pool, id, text);
    reference[id] = text;
  }
  for (const auto& [id, text] : reference) {
    EXPECT_EQ(get(pool, id), text);
  }
  EXPECT_EQ(get(pool, 0xffffffff), "none");
}

TEST(Pool, NeverMovesAnEntry) {
  StackPool pool;
  pool.define(1, 1)[0] = 42;
  const std::span<const std::uint64_t> first = *pool.find(1);
  for (std::uint32_t id = 2; id < 5000; ++id) {
    pool.define(id, 30);
  }
  EXPECT_EQ(pool.find(1)->data(), first.data());
  EXPECT_EQ(first[0], 42u);
}

TEST(Pool, KeepsEmptyEntriesApartFromMissingOnes) {
  StringPool pool;
  pool.define(3, 0);
  EXPECT_TRUE(pool.contains(3));
  EXPECT_FALSE(pool.contains(2));
  EXPECT_EQ(pool.find(3)->size(), 0u);
}

TEST(Pool, ForgetsEverythingWhenItIsCleared) {
  StringPool pool;
  put(pool, 1, "near");
  put(pool, 4'000'000'000u, "far");
  pool.clear();
  EXPECT_FALSE(pool.contains(1));
  EXPECT_FALSE(pool.contains(4'000'000'000u));
  put(pool, 1, "again");
  EXPECT_EQ(get(pool, 1), "again");
}

}  // namespace
}  // namespace dial9::format
