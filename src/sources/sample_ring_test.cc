// SPDX-License-Identifier: Apache-2.0
#include "sources/sample_ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "sources/cpu_samples.h"

namespace dial9::internal {
namespace {

TEST(SampleRing, GivesSamplesBackInTheOrderOfTheirClaims) {
  SampleRing* ring = SampleRing::make(256);
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
  SampleRing* ring = SampleRing::make(256);
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
  SampleRing* ring = SampleRing::make(256);
  Sample* slow = ring->claim(1);
  SampleRing::publish(ring->claim(1));
  EXPECT_EQ(ring->front(), nullptr);
  SampleRing::publish(slow);
  EXPECT_EQ(ring->front(), slow);
}

TEST(SampleRing, ForgetsEverythingAtARestart) {
  SampleRing* ring = SampleRing::make(256);
  for (int i = 0; i < 300; ++i) {
    if (Sample* sample = ring->claim(1)) SampleRing::publish(sample);
  }
  ring->restart();
  EXPECT_EQ(ring->front(), nullptr);
  EXPECT_EQ(ring->lost(), 0U);
  EXPECT_NE(ring->claim(1), nullptr);
}

TEST(SampleRing, LosesNothingUncountedWithManyWriters) {
  SampleRing* ring = SampleRing::make(256);
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
