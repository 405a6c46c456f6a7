// SPDX-License-Identifier: Apache-2.0
#include "base/stable_sort.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace dial9 {
namespace {

TEST(StableSort, KeepsTheOrderOfEqualElementsForEverySize) {
  std::mt19937 random(1);
  for (std::size_t count = 0; count < 200; ++count) {
    std::vector<std::pair<unsigned, std::size_t>> rows;  // key, position
    for (std::size_t i = 0; i < count; ++i) {
      rows.emplace_back(random() % 7, i);
    }
    std::vector<std::pair<unsigned, std::size_t>> expected = rows;
    std::sort(expected.begin(), expected.end());
    dial9::stable_sort(rows.begin(), rows.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
    ASSERT_EQ(rows, expected) << count;
  }
}

TEST(StableSort, MovesWhatOwnsMemory) {
  std::vector<std::string> words;
  for (int i = 99; i >= 0; --i) {
    words.push_back("a rather long word number " + std::to_string(100 + i));
  }
  dial9::stable_sort(words.begin(), words.end(), std::less<>());
  EXPECT_TRUE(std::is_sorted(words.begin(), words.end()));
}

}  // namespace
}  // namespace dial9
