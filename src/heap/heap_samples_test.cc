// Known allocations come back: by site, thread, size, task, span and label, allocated and live. The
// malloc of this process is dial9's.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <thread>

#include "dial9/label.h"
#include "dial9/runtime.h"
#include "dial9/source.h"
#include "dial9/span.h"
#include "heap/heap_sampler.h"
#include "heap/hooks.h"
#include "heap/testing/heap_recording.h"
#include "recorder/recording_state.h"

namespace dial9::heap {
namespace {

using namespace testing;
using internal::this_tid;

DIAL9_SPAN(Building, "building", DIAL9_FIELDS((std::uint64_t, number)));

auto from(Site site) {
  return [site](const AllocRow& row) { return passes(row.frames, site); };
}
std::vector<AllocRow> only(const std::vector<AllocRow>& rows, Site site) {
  std::vector<AllocRow> some;
  std::ranges::copy_if(rows, std::back_inserter(some), from(site));
  return some;
}

TEST(HeapSamples, ARateOfOneRecordsEveryAllocationWithItsSizeAddressAndThread) {
  HeapRecording recording({.sample_rate_bytes = 1});
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < 1'000; ++i) blocks.push_back(allocate_one(i));
  const auto rows = only(recording.rows(), allocate_one);
  ASSERT_EQ(rows.size(), 1'000U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].size, i);
    EXPECT_EQ(rows[i].address, reinterpret_cast<std::uintptr_t>(blocks[i]));
    EXPECT_EQ(rows[i].tid, this_tid());
    EXPECT_EQ(rows[i].rate, 1U);
    EXPECT_TRUE(rows[i].is_tracked);
    EXPECT_FALSE(rows[i].is_truncated);
    EXPECT_EQ(rows[i].unwound_by, "tables");
    EXPECT_EQ(rows[i].freed_ns, 0U);
  }
  for (void* block : blocks) std::free(block);
  const auto freed = only(recording.rows(), allocate_one);
  ASSERT_EQ(freed.size(), 1'000U);
  for (const AllocRow& row : freed) {
    EXPECT_GE(row.freed_ns, row.at_ns);
    EXPECT_NE(row.freed_ns, 0U);
  }
  EXPECT_EQ(heap_sample_status().lost_samples, 0U);
  EXPECT_EQ(heap_sample_status().lost_frees, 0U);
}

TEST(HeapSamples, TheTimeThatTheyTakeOnTheirThreadsIsMeasured) {
  const HeapRecording recording({.sample_rate_bytes = 1});
  const std::uint64_t before = HeapSampler::instance().host_cost_ns();
  for (std::size_t i = 0; i < 1'000; ++i) std::free(allocate_one(i));
  const std::uint64_t took_ns = HeapSampler::instance().host_cost_ns() - before;
  EXPECT_GT(took_ns, 1'000 * 100U) << "nobody walks a stack in so little";
}

TEST(HeapSamples, WhatTheRecorderAllocatesForItselfIsNoneAndWhatTheHostDoesOnItsThreadIs) {
  HeapRecording recording({.sample_rate_bytes = 1});
  ASSERT_TRUE(add_source("dial9_test.allocates", std::chrono::milliseconds(10), [] {
                std::free(allocate_other(77));
              }).ok());
  recording.recorder().rotate(std::chrono::seconds(30));
  while (only(recording.rows(), allocate_other).empty()) {
    std::free(allocate_one(1));  // the source is due again while the host records
  }
  remove_source("dial9_test.allocates");
  for (const AllocRow& row : recording.rows()) {
    if (row.tid == this_tid()) continue;
    EXPECT_TRUE(passes(row.frames, allocate_other)) << row.size << " bytes";
  }
}

// Countdowns are of each allocation, whether it is a sample or not.
TEST(HeapSamples, APassOfTheCollectorWithNothingToDoAllocatesNothing) {
  ASSERT_TRUE(add_function_names().ok());
  internal::SteppedRecorder recorder(RecorderOptions::memory(internal::kTestBudget));
  ASSERT_TRUE(add_heap_samples({.sample_rate_bytes = std::uint64_t{1} << 40}).ok());
  for (int i = 0; i < 50; ++i) recorder.step();
  std::int64_t allocated = 0;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t left = t_thread.left;
    recorder.step();
    allocated += left - t_thread.left;
  }
  EXPECT_EQ(allocated, 0) << "bytes";
  remove_heap_samples();
}

TEST(HeapSamples, TheFirstFrameIsWhoCalledTheAllocator) {
  HeapRecording recording({.sample_rate_bytes = 1});
  std::free(allocate_one(10));
  const auto rows = only(recording.rows(), allocate_one);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_TRUE(passes({rows[0].frames.at(0)}, allocate_one));
  EXPECT_GT(rows[0].frames.size(), 5U);
}

// The estimate is within five standard errors of a sum of as many chances.
void expect_close(const Estimate& estimate, double allocations, double size, double rate) {
  const double chance = -std::expm1(-size / rate);
  const double error = 5 * std::sqrt(allocations * (1 - chance) / chance) + 1e-3 * allocations;
  EXPECT_NEAR(estimate.count, allocations, error);
  EXPECT_NEAR(estimate.bytes, allocations * size, error * size);
}

TEST(HeapSamples, SitesComeBackWithTheirBytesAndCountsWhateverTheirSizes) {
  constexpr std::uint64_t kRate = 16 * 1024;
  HeapRecording recording({.sample_rate_bytes = kRate});
  for (int i = 0; i < 200'000; ++i) std::free(allocate_one(100));
  for (int i = 0; i < 400; ++i) std::free(allocate_other(50'000));
  const auto rows = recording.rows();
  expect_close(estimate(rows, from(allocate_one)), 200'000, 100, kRate);
  expect_close(estimate(rows, from(allocate_other)), 400, 50'000, kRate);
  EXPECT_EQ(heap_sample_status().lost_samples, 0U);
}

TEST(HeapSamples, LeaksAreWhatIsLeftAndFreesByAnyThreadAreSeen) {
  constexpr std::uint64_t kRate = 4 * 1024;
  HeapRecording recording({.sample_rate_bytes = kRate});
  std::vector<void*> leaked;
  std::vector<void*> handed_over;
  std::thread maker([&] {
    for (int i = 0; i < 8'000; ++i) {
      void* block = allocate_one(256);
      (i % 4 == 0 ? leaked : handed_over).push_back(block);
    }
  });
  maker.join();
  std::uint32_t freer_tid = 0;
  std::thread freer([&] {
    freer_tid = this_tid();
    for (void* block : handed_over) std::free(block);
  });
  freer.join();
  const auto rows = only(recording.rows(), allocate_one);
  expect_close(estimate(rows, [](const AllocRow&) { return true; }), 8'000, 256, kRate);
  expect_close(estimate(rows, [](const AllocRow& row) { return row.freed_ns == 0; }), 2'000, 256,
               kRate);
  for (const AllocRow& row : rows) {
    EXPECT_NE(row.tid, freer_tid);
    EXPECT_TRUE(row.freed_ns == 0 || row.freed_tid == freer_tid);
  }
  for (void* block : leaked) std::free(block);
}

TEST(HeapSamples, ThreadsEachHaveTheirShare) {
  constexpr std::uint64_t kRate = 8 * 1024;
  HeapRecording recording({.sample_rate_bytes = kRate});
  std::vector<std::thread> threads;
  std::vector<std::uint32_t> tids(4);
  for (std::size_t t = 0; t < tids.size(); ++t) {
    threads.emplace_back([&, t] {
      tids[t] = this_tid();
      for (std::size_t i = 0; i < 20'000 * (t + 1); ++i) std::free(allocate_one(128));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto rows = only(recording.rows(), allocate_one);
  for (std::size_t t = 0; t < tids.size(); ++t) {
    expect_close(estimate(rows, [&](const AllocRow& row) { return row.tid == tids[t]; }),
                 20'000.0 * static_cast<double>(t + 1), 128, kRate);
  }
  EXPECT_EQ(heap_sample_status().lost_frees, 0U);
}

TEST(HeapSamples, CarryTaskSpanAndLabel) {
  static runtime::Place place{"allocating task"};
  HeapRecording recording({.sample_rate_bytes = 1});
  const runtime::RuntimeId runtime = runtime::register_runtime("allocating");
  const runtime::TaskId task = runtime::task_spawn(place, runtime);
  std::uint64_t span_id = 0;
  {
    const runtime::PollScope poll(runtime, {task, &place});
    const span<Building> building({1});
    span_id = building.as_parent().id;
    const label scope("tenant", "blue");
    std::free(allocate_one(64));
  }
  std::free(allocate_other(64));
  const auto rows = recording.rows();
  const auto inside = only(rows, allocate_one);
  ASSERT_EQ(inside.size(), 1U);
  EXPECT_EQ(inside[0].task, task);
  EXPECT_EQ(inside[0].span, span_id);
  EXPECT_EQ(inside[0].label, "tenant=blue");
  const auto outside = only(rows, allocate_other);
  ASSERT_EQ(outside.size(), 1U);
  EXPECT_EQ(outside[0].task, 0U);
  EXPECT_EQ(outside[0].span, 0U);
  EXPECT_EQ(outside[0].label, "");
}

TEST(HeapSamples, WhatFindsNoRoomIsCountedAndNothingSeemsAliveThatIsNot) {
  HeapRecording recording({.sample_rate_bytes = 1});
  constexpr std::uint64_t kBlocks = 400'000;
  std::vector<void*> blocks;
  blocks.reserve(kBlocks);
  for (std::uint64_t i = 0; i < kBlocks; ++i) blocks.push_back(allocate_one(8));
  for (void* block : blocks) std::free(block);
  const internal::Trace trace = recording.finish();
  const HeapSampleStatus status = heap_sample_status();
  const auto rows = only(allocs_of(trace), allocate_one);
  EXPECT_GT(status.lost_samples, 0U);
  EXPECT_FALSE(status.message.empty());
  EXPECT_GE(rows.size() + status.lost_samples, kBlocks);
  EXPECT_LT(rows.size(), kBlocks);
  std::uint64_t alive = 0;
  for (const AllocRow& row : rows) alive += row.is_tracked && row.freed_ns == 0 ? 1 : 0;
  const auto sum = [&](const char* event, const char* field) {
    std::uint64_t all = 0;
    for (const std::uint64_t one : trace.numbers(event, field)) all += one;
    return all;
  };
  EXPECT_EQ(sum("HeapProfileEvent", "lost_samples"), status.lost_samples);
  EXPECT_LE(alive, sum("HeapProfileEvent", "lost_frees")) << "a lost free that nobody counted";
  EXPECT_EQ(sum("MemoryProfileOverflowEvent", "dropped_allocs"), status.lost_samples);
  EXPECT_EQ(sum("HeapProfileEvent", "samples"), trace.count("AllocEvent"));
  EXPECT_EQ(sum("HeapProfileEvent", "frees"), trace.count("FreeEvent"));
}

TEST(HeapSamples, NothingIsRecordedWhileTheRecorderIsOffAndFreesMissedMeanwhileAreCounted) {
  HeapRecording recording({.sample_rate_bytes = 1});
  void* before = allocate_one(16);
  recording.recorder().disable();
  std::free(allocate_other(16));
  std::free(before);
  EXPECT_GE(heap_sample_status().lost_frees, 1U);
  recording.recorder().enable();
  const auto rows = recording.rows();
  EXPECT_EQ(only(rows, allocate_one).size(), 1U);
  EXPECT_EQ(only(rows, allocate_other).size(), 0U);
}

TEST(HeapSamples, RemovedAndAddedAgainThreadsSampleAtTheNewRateAtOnce) {
  HeapRecording recording({.sample_rate_bytes = std::uint64_t{1} << 30});
  for (int i = 0; i < 100; ++i) std::free(allocate_one(64));
  EXPECT_FALSE(add_heap_samples().ok()) << "once";
  EXPECT_TRUE(remove_heap_samples());
  EXPECT_FALSE(remove_heap_samples());
  for (int i = 0; i < 100; ++i) std::free(allocate_one(64));
  ASSERT_TRUE(add_heap_samples({.sample_rate_bytes = 1}).ok());
  for (int i = 0; i < 100; ++i) std::free(allocate_other(64));
  const auto rows = recording.rows();
  EXPECT_LE(only(rows, allocate_one).size(), 1U);  // of 12,800 bytes, at one in 2^30
  EXPECT_EQ(only(rows, allocate_other).size(), 100U);
  EXPECT_EQ(heap_sample_status().sample_rate_bytes, 1U);
}

TEST(HeapSamples, WithoutTheLiveSetNoFreeIsRecordedAndTheProfileSaysSo) {
  HeapRecording recording({.sample_rate_bytes = 1, .tracks_live = false});
  for (int i = 0; i < 50; ++i) std::free(allocate_one(64));
  const internal::Trace trace = recording.read();
  const auto rows = only(allocs_of(trace), allocate_one);
  ASSERT_EQ(rows.size(), 50U);
  for (const AllocRow& row : rows) EXPECT_FALSE(row.is_tracked);
  EXPECT_EQ(trace.count("FreeEvent"), 0U);
  EXPECT_EQ(heap_sample_status().untracked, 0U);
  EXPECT_EQ(trace.metadata("memory.track_liveset"), "false");
}

TEST(HeapSamples, TheMetadataSayHowTheyWereTaken) {
  HeapRecording recording({.sample_rate_bytes = 4096});
  EXPECT_TRUE(heap_sample_status().is_sampling);
  std::free(allocate_one(std::size_t{1} << 20));
  const internal::Trace trace = recording.finish();
  EXPECT_EQ(trace.metadata("memory.sample_rate_bytes"), "4096");
  EXPECT_EQ(trace.metadata("memory.profile.enabled"), "true");
  EXPECT_NE(trace.metadata("memory.allocator").find("libc"), std::string::npos);
  EXPECT_FALSE(heap_sample_status().is_sampling);
}

}  // namespace
}  // namespace dial9::heap
