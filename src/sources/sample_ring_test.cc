// SPDX-License-Identifier: Apache-2.0
#include "sources/sample_ring.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "sources/cpu_samples.h"

namespace dial9::internal {
namespace {

// Rings are for the process's life: reachable to its end, or they'd count as leaks.
SampleRing* kept(std::size_t slots) {
  static auto* const rings = new std::vector<SampleRing*>;
  rings->push_back(SampleRing::make(slots));
  return rings->back();
}

TEST(SampleRing, GivesSamplesBackInTheOrderOfTheirClaims) {
  SampleRing* ring = kept(256);
  EXPECT_EQ(ring->front(), nullptr);
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    Sample* sample = ring->claim(1);
    ASSERT_NE(sample, nullptr);
    sample->at_ns = i;
    EXPECT_EQ(ring->front(), nullptr) << "not published";
    SampleRing::publish(sample);
    ASSERT_NE(ring->front(), nullptr);
    EXPECT_EQ(ring->front()->at_ns, i);
    ring->pop();
  }
}

TEST(SampleRing, CountsWhatFindsItFullWithItsWeightAndGoesOnWhenThereIsRoom) {
  SampleRing* ring = kept(256);
  for (int i = 0; i < 256; ++i) SampleRing::publish(ring->claim(1));
  EXPECT_EQ(ring->claim(3), nullptr);
  EXPECT_EQ(ring->claim(1), nullptr);
  EXPECT_EQ(ring->lost(), 2U);
  EXPECT_EQ(ring->lost_weight(), 4U);
  ring->pop();
  Sample* sample = ring->claim(1);
  ASSERT_NE(sample, nullptr);
  SampleRing::publish(sample);
  EXPECT_EQ(ring->claim(1), nullptr);
}

TEST(SampleRing, WaitsForTheOldestToBePublishedBeforeItShowsYoungerOnes) {
  SampleRing* ring = kept(256);
  Sample* slow = ring->claim(1);
  SampleRing::publish(ring->claim(1));
  EXPECT_EQ(ring->front(), nullptr);
  SampleRing::publish(slow);
  EXPECT_EQ(ring->front(), slow);
}

TEST(SampleRing, ForgetsEverythingAtARestart) {
  SampleRing* ring = kept(256);
  for (int i = 0; i < 300; ++i) {
    if (Sample* sample = ring->claim(1)) SampleRing::publish(sample);
  }
  ring->restart();
  EXPECT_EQ(ring->front(), nullptr);
  EXPECT_EQ(ring->lost(), 0U);
  EXPECT_NE(ring->claim(1), nullptr);
}

TEST(SampleRing, PassesOverAWriterThatNeverCameBackAfterASecondAndCountsItsWeight) {
  SampleRing* ring = kept(256);
  ASSERT_NE(ring->claim(7), nullptr);
  Sample* young = ring->claim(1);
  SampleRing::publish(young);
  EXPECT_FALSE(ring->pass_over_stuck(5'000));
  EXPECT_FALSE(ring->pass_over_stuck(5'000 + SampleRing::kStuckNs)) << "not over a second yet";
  EXPECT_EQ(ring->front(), nullptr);
  EXPECT_TRUE(ring->pass_over_stuck(5'001 + SampleRing::kStuckNs));
  EXPECT_EQ(ring->front(), young);
  EXPECT_EQ(ring->lost(), 1U);
  EXPECT_EQ(ring->lost_weight(), 7U);
  ring->pop();
  EXPECT_FALSE(ring->pass_over_stuck(10 * SampleRing::kStuckNs)) << "nothing is claimed";
}

TEST(SampleRing, GoesRoundWithoutAPlaceWhoseWriterIsAwayAndWithItOnceThatIsBack) {
  SampleRing* ring = kept(4);
  Sample* away = ring->claim(1);
  EXPECT_FALSE(ring->pass_over_stuck(1));
  EXPECT_TRUE(ring->pass_over_stuck(2 + SampleRing::kStuckNs));
  const auto fill = [&] {
    std::vector<Sample*> taken;
    while (Sample* sample = ring->claim(1)) taken.push_back(sample);
    for (Sample* sample : taken) SampleRing::publish(sample);
    return taken;
  };
  const auto drain = [&] {
    std::size_t count = 0;
    for (; ring->front() != nullptr; ring->pop()) ++count;
    return count;
  };
  for (int round = 0; round < 10; ++round) {
    const std::vector<Sample*> taken = fill();
    EXPECT_GE(taken.size(), 3U);
    EXPECT_EQ(std::count(taken.begin(), taken.end(), away), 0) << "its writer may still be at it";
    EXPECT_EQ(drain(), taken.size());
  }
  SampleRing::publish(away);
  EXPECT_EQ(ring->front(), nullptr) << "it was counted as lost";
  fill();
  drain();
  EXPECT_EQ(fill().size(), 4U);
  EXPECT_EQ(drain(), 4U);
}

TEST(SampleRing, WithAllPlacesAwayLosesAndCountsEverythingAndEnds) {
  SampleRing* ring = kept(4);
  std::vector<Sample*> away;
  while (Sample* sample = ring->claim(1)) away.push_back(sample);
  ring->drop_all();
  const std::uint64_t before = ring->lost();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(ring->claim(1), nullptr);
    EXPECT_EQ(ring->front(), nullptr);
  }
  EXPECT_EQ(ring->lost(), before + 100);
  for (Sample* sample : away) SampleRing::publish(sample);
  ring->drop_all();
  (void)ring->claim(1);
  ring->drop_all();
  EXPECT_NE(ring->claim(1), nullptr);
}

TEST(SampleRing, TakesMemoryForThePlacesThatWereUsedAlone) {
  SampleRing* ring = kept(4096);
  Sample* first = ring->claim(1);
  const auto resident = [&] {
    std::vector<unsigned char> pages(4096 * Sample::kBytes / 4096);
    EXPECT_EQ(::mincore(first, 4096 * Sample::kBytes, pages.data()), 0);
    return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
  };
  SampleRing::publish(first);
  EXPECT_LE(resident(), 1);
  ring->restart();
  EXPECT_EQ(resident(), 0);
}

TEST(SampleRing, LosesNothingUncountedWithManyWriters) {
  SampleRing* ring = kept(256);
  constexpr std::uint64_t kEach = 20'000;
  std::vector<std::thread> writers;
  for (std::uint32_t writer = 0; writer < 4; ++writer) {
    writers.emplace_back([ring, writer] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        Sample* sample = ring->claim(1);
        if (sample == nullptr) continue;
        sample->tid = writer;
        sample->at_ns = i;
        SampleRing::publish(sample);
      }
    });
  }
  std::vector<std::uint64_t> next(4, 0);
  std::uint64_t read = 0;
  while (read + ring->lost() < 4 * kEach) {
    const Sample* sample = ring->front();
    if (sample == nullptr) continue;
    EXPECT_GE(sample->at_ns, next[sample->tid]) << "each writer's in its order";
    next[sample->tid] = sample->at_ns + 1;
    ring->pop();
    ++read;
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(ring->front(), nullptr);
}

TEST(SampleRing, HoldsHalfASecondOfAllCpusWithinEightMegabytes) {
  EXPECT_EQ(ring_slots(1, 99), 256U);
  EXPECT_EQ(ring_slots(64, 99), 4096U);
  EXPECT_EQ(ring_slots(8, 99), 512U);
  EXPECT_EQ(ring_slots(1'000, 1'000) * Sample::kBytes, std::size_t{8} << 20);
}

}  // namespace
}  // namespace dial9::internal
