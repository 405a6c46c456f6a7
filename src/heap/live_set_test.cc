// SPDX-License-Identifier: Apache-2.0
#include "heap/live_set.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

namespace dial9::heap {
namespace {

std::unique_ptr<LiveSet> empty_set() { return std::make_unique<LiveSet>(); }

const void* at(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

TEST(LiveSet, GivesBackWhatWasPutInAndNothingElse) {
  const auto set = empty_set();
  ASSERT_TRUE(set->insert({0x1000, 24, 7}));
  EXPECT_TRUE(set->may_hold(at(0x1000)));
  EXPECT_EQ(set->size(), 1U);
  LiveEntry entry{};
  EXPECT_EQ(set->remove(at(0x2000), &entry), LiveSet::Removed::kNothing);
  EXPECT_EQ(set->remove(nullptr, &entry), LiveSet::Removed::kNothing);
  ASSERT_EQ(set->remove(at(0x1000), &entry), LiveSet::Removed::kEntry);
  EXPECT_EQ(entry.size, 24U);
  EXPECT_EQ(entry.at_ns, 7U);
  EXPECT_FALSE(set->may_hold(at(0x1000)));
  EXPECT_EQ(set->remove(at(0x1000), &entry), LiveSet::Removed::kNothing);
  EXPECT_EQ(set->size(), 0U);
}

TEST(LiveSet, AgreesWithAMapOverManyRandomSteps) {
  const auto set = empty_set();
  std::unordered_map<std::uint64_t, std::uint64_t> reference;
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> known;
  for (std::uint64_t step = 1; step <= 400'000; ++step) {
    const bool grows = random() % 8 < (step / 50'000 % 2 == 0 ? 6U : 2U);
    if (grows || known.empty()) {
      const std::uint64_t address = 0x7F00'0000'0000 + (random() % 1'000'000) * 16;
      if (reference.contains(address)) continue;
      ASSERT_TRUE(set->insert({address, step, step}));
      reference[address] = step;
      known.push_back(address);
    } else {
      const std::size_t which = random() % known.size();
      const std::uint64_t address = known[which];
      known[which] = known.back();
      known.pop_back();
      LiveEntry entry{};
      ASSERT_EQ(set->remove(at(address), &entry), LiveSet::Removed::kEntry);
      ASSERT_EQ(entry.at_ns, reference[address]);
      reference.erase(address);
    }
  }
  EXPECT_EQ(set->size(), reference.size());
  for (const auto& [address, time] : reference) {
    LiveEntry entry{};
    ASSERT_TRUE(set->may_hold(at(address)));
    ASSERT_EQ(set->remove(at(address), &entry), LiveSet::Removed::kEntry);
    ASSERT_EQ(entry.at_ns, time);
  }
  for (std::uint64_t i = 0; i < 1'000'000; i += 997) {
    ASSERT_FALSE(set->may_hold(at(0x7F00'0000'0000 + i * 16)));
  }
}

TEST(LiveSet, RefusesWhatFindsNoRoomAndFindsTheRestAllTheSame) {
  const auto set = empty_set();
  std::uint64_t held = 0;
  std::vector<std::uint64_t> in;
  for (std::uint64_t i = 1; i <= LiveSet::kMost + 20'000; ++i) {
    if (set->insert({i * 32, i, i})) {
      in.push_back(i);
      ++held;
    }
  }
  EXPECT_LE(held, LiveSet::kMost);
  EXPECT_GT(held, LiveSet::kMost * 9 / 10);
  EXPECT_EQ(set->size(), held);
  for (const std::uint64_t i : in) {
    LiveEntry entry{};
    ASSERT_EQ(set->remove(at(i * 32), &entry), LiveSet::Removed::kEntry) << i;
    ASSERT_EQ(entry.size, i);
  }
  EXPECT_EQ(set->size(), 0U);
}

TEST(LiveSet, AnAddressThatWasMissedIsReplaced) {
  const auto set = empty_set();
  ASSERT_TRUE(set->insert({0x1000, 1, 1}));
  ASSERT_TRUE(set->insert({0x1000, 2, 2}));
  EXPECT_EQ(set->size(), 1U);
  LiveEntry entry{};
  ASSERT_EQ(set->remove(at(0x1000), &entry), LiveSet::Removed::kEntry);
  EXPECT_EQ(entry.size, 2U);
  EXPECT_FALSE(set->may_hold(at(0x1000)));
}

TEST(LiveSet, ForgetsAllWhenCleared) {
  const auto set = empty_set();
  for (std::uint64_t i = 1; i <= 5'000; ++i) ASSERT_TRUE(set->insert({i * 16, i, i}));
  set->clear();
  EXPECT_EQ(set->size(), 0U);
  for (std::uint64_t i = 1; i <= 5'000; ++i) ASSERT_FALSE(set->may_hold(at(i * 16)));
  EXPECT_TRUE(set->insert({0x1000, 1, 1}));
}

// Each thread has addresses of its own, but shards and filter bytes are everybody's.
TEST(LiveSet, ThreadsNeverLoseAnEntryNorSeeOneThatIsGone) {
  const auto set = empty_set();
  std::atomic<int> wrong{0};
  const auto removed = [&](std::uint64_t address, LiveEntry* entry) {
    LiveSet::Removed result = set->remove(at(address), entry);
    for (; result == LiveSet::Removed::kUnknown; result = set->remove(at(address), entry)) {
      std::this_thread::yield();
    }
    return result;
  };
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<std::uint64_t> own;
      for (std::uint64_t step = 1; step <= 30'000; ++step) {
        if (own.size() < 500 || random() % 2 == 0) {
          const std::uint64_t address = (t << 40) + step * 16;
          // It doesn't wait for a lock whose holder is off the CPU.
          while (!set->insert({address, step, t})) std::this_thread::yield();
          own.push_back(address);
          continue;
        }
        std::swap(own[random() % own.size()], own.back());
        LiveEntry entry{};
        const bool is_seen = set->may_hold(at(own.back()));
        if (!is_seen || removed(own.back(), &entry) != LiveSet::Removed::kEntry ||
            entry.at_ns != t) {
          ++wrong;
        }
        if (removed(own.back(), &entry) != LiveSet::Removed::kNothing) ++wrong;
        own.pop_back();
      }
      LiveEntry entry{};
      for (const std::uint64_t address : own) {
        if (removed(address, &entry) != LiveSet::Removed::kEntry) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(set->size(), 0U);
}

// As in a thread that a handler jumped out of, or a copy of memory taken in between.
TEST(LiveSet, ALockThatIsNeverGivenBackCostsEntriesNotTheCaller) {
  const auto set = empty_set();
  ASSERT_TRUE(set->insert({0x1000, 1, 1}));
  set->hold_all_locks_for_test();
  EXPECT_FALSE(set->insert({0x2000, 1, 1}));
  LiveEntry entry{};
  EXPECT_EQ(set->remove(at(0x1000), &entry), LiveSet::Removed::kUnknown);
  EXPECT_EQ(set->remove(at(0x2000), &entry), LiveSet::Removed::kNothing) << "seen without a lock";
}

}  // namespace
}  // namespace dial9::heap
