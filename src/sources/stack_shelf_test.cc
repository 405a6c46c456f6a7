// Stacks of waits that go on are kept once, within a bound.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "sources/wall_sampler.h"

namespace dial9::internal {
namespace {

TEST(StackShelf, KeepsAStackOnceAndRefusesBeyondItsBound) {
  StackShelf shelf;
  StackShelf::Stack* one = shelf.put({1, 2, 3});
  EXPECT_EQ(shelf.put({1, 2, 3}), one);
  const std::size_t bytes = shelf.bytes();
  shelf.give_back(one);
  EXPECT_EQ(shelf.bytes(), bytes);
  shelf.give_back(one);
  EXPECT_EQ(shelf.bytes(), 0U);
  std::vector<StackShelf::Stack*> all;
  std::vector<std::uint64_t> frames(200);
  for (std::uint64_t i = 0;; ++i) {
    frames[0] = i;
    StackShelf::Stack* stack = shelf.put(frames);
    if (stack == nullptr) break;
    all.push_back(stack);
  }
  EXPECT_LE(shelf.bytes(), StackShelf::kMostBytes);
  for (StackShelf::Stack* stack : all) shelf.give_back(stack);
  EXPECT_EQ(shelf.bytes(), 0U);
}

}  // namespace
}  // namespace dial9::internal
