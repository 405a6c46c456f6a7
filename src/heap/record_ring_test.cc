// SPDX-License-Identifier: Apache-2.0
#include "heap/record_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace dial9::heap {
namespace {

RecordHead alloc_of(std::uint64_t number) {
  RecordHead head{};
  head.at_ns = number;
  head.address = number * 16;
  head.size = number + 1;
  head.extra = 512;
  head.tid = static_cast<std::uint32_t>(number % 1'000);
  head.is_tracked = true;
  return head;
}

std::vector<std::uint64_t> frames_of(std::uint64_t number) {
  std::vector<std::uint64_t> frames(number % (RecordRing::kMostFrames + 1));
  std::iota(frames.begin(), frames.end(), number);
  return frames;
}

bool put(RecordRing& ring, std::uint64_t number) {
  const auto frames = frames_of(number);
  internal::LabelText label{};
  label.name_bytes = 1;
  label.value_bytes = static_cast<std::uint8_t>(number % 70 + 1);
  std::memset(label.text, static_cast<int>('a' + number % 26), sizeof label.text);
  return ring.put_alloc(alloc_of(number),
                        {number, number * 2, number % 3 == 0 ? &label : nullptr, frames});
}

// Is it what put() wrote of its number?
bool is_whole(const RecordRing::Record& record) {
  const std::uint64_t number = record.head.at_ns;
  const auto frames = frames_of(number);
  const bool has_label = number % 3 == 0;
  return record.head.kind == RecordKind::kAlloc && record.head.address == number * 16 &&
         record.head.size == number + 1 && record.head.extra == 512 &&
         record.head.tid == number % 1'000 && record.head.is_tracked && record.task == number &&
         record.span == number * 2 && record.head.frames == frames.size() &&
         std::equal(frames.begin(), frames.end(), record.frames) &&
         record.label.has_value() == has_label &&
         (!has_label || record.label.value() ==
                            std::string(number % 70 + 1, static_cast<char>('a' + number % 26)));
}

TEST(RecordRing, RecordsOfEverySizeComeBackWholeAndInOrderRoundAfterRound) {
  const auto ring = std::make_unique<RecordRing>();
  const auto record = std::make_unique<RecordRing::Record>();
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  while (read < 60'000) {
    for (int i = 0; i < 400; ++i) ASSERT_TRUE(put(*ring, written++));
    for (int i = 0; i < 400; ++i, ring->pop()) {
      ASSERT_TRUE(ring->front(record.get()));
      ASSERT_EQ(record->head.at_ns, read++);
      ASSERT_TRUE(is_whole(*record)) << record->head.at_ns;
    }
    ASSERT_FALSE(ring->front(record.get()));
    ASSERT_TRUE(ring->is_empty());
  }
}

TEST(RecordRing, AFullRingRefusesAllocationsFirstAndThenFrees) {
  const auto ring = std::make_unique<RecordRing>();
  std::uint64_t allocs = 0;
  while (put(*ring, allocs)) ++allocs;
  EXPECT_GT(allocs, 1'000U);
  EXPECT_FALSE(ring->has_room(RecordRing::kMostFrames));
  RecordHead free{};
  free.at_ns = 77;
  std::uint64_t frees = 0;
  while (ring->put_free(free)) ++frees;
  EXPECT_GE(frees, RecordRing::kCells / 4);
  const auto record = std::make_unique<RecordRing::Record>();
  for (std::uint64_t i = 0; i < allocs; ++i, ring->pop()) {
    ASSERT_TRUE(ring->front(record.get()));
    ASSERT_TRUE(is_whole(*record));
  }
  EXPECT_TRUE(put(*ring, 1));
  for (std::uint64_t i = 0; i < frees; ++i, ring->pop()) {
    ASSERT_TRUE(ring->front(record.get()));
    ASSERT_EQ(record->head.kind, RecordKind::kFree);
    ASSERT_EQ(record->head.at_ns, 77U);
  }
  ASSERT_TRUE(ring->front(record.get()));
  EXPECT_TRUE(is_whole(*record));
}

TEST(RecordRing, LeavesOutFramesBeyondTheMost) {
  const auto ring = std::make_unique<RecordRing>();
  const std::vector<std::uint64_t> frames(RecordRing::kMostFrames + 50, 9);
  ASSERT_TRUE(ring->put_alloc(alloc_of(1), {0, 0, nullptr, frames}));
  const auto record = std::make_unique<RecordRing::Record>();
  ASSERT_TRUE(ring->front(record.get()));
  EXPECT_EQ(record->head.frames, RecordRing::kMostFrames);
}

TEST(RecordRing, WhatWasDroppedIsNotReadAndItsRoomIsUsedAgain) {
  const auto ring = std::make_unique<RecordRing>();
  const auto record = std::make_unique<RecordRing::Record>();
  for (int round = 0; round < 5; ++round) {
    while (put(*ring, 5)) {
    }
    ring->drop_published();
    EXPECT_TRUE(ring->is_empty());
    EXPECT_FALSE(ring->front(record.get()));
  }
}

TEST(RecordRing, ManyWritersAndAReaderLoseNothingThatWasTaken) {
  const auto ring = std::make_unique<RecordRing>();
  std::atomic<std::uint64_t> taken{0};
  std::atomic<int> at_work{3};
  std::vector<std::thread> writers;
  for (std::uint64_t t = 0; t < 3; ++t) {
    writers.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 8'000; ++i) {
        if (put(*ring, i * 3 + t)) ++taken;
      }
      --at_work;
    });
  }
  const auto record = std::make_unique<RecordRing::Record>();
  std::uint64_t read = 0;
  bool is_good = true;
  for (bool goes_on = true; goes_on;) {
    goes_on = at_work != 0;
    for (; ring->front(record.get()); ring->pop(), ++read) is_good &= is_whole(*record);
    std::this_thread::yield();
  }
  for (std::thread& writer : writers) writer.join();
  for (; ring->front(record.get()); ring->pop(), ++read) is_good &= is_whole(*record);
  EXPECT_TRUE(is_good);
  EXPECT_EQ(read, taken);
}

}  // namespace
}  // namespace dial9::heap
