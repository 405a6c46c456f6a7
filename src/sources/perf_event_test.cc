// Records of perf events from their bytes, and the texts of refusals.
// SPDX-License-Identifier: Apache-2.0
#include "sources/perf_event.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

#include "sources/perf_threads.h"

namespace dial9::internal {
namespace {

constexpr PerfPlan kPlan{.period_ns = 1'000'000, .has_kernel = true, .counts_lost = true};

// A record of these words.
std::vector<std::uint64_t> record_of(std::vector<std::uint64_t> words,
                                     std::uint32_t type = PERF_RECORD_SAMPLE,
                                     std::uint16_t misc = 0) {
  perf_event_header header{};
  header.type = type;
  header.misc = misc;
  header.size = static_cast<std::uint16_t>(8 * words.size() + 8);
  std::uint64_t first = 0;
  std::memcpy(&first, &header, sizeof first);
  words.insert(words.begin(), first);
  return words;
}

std::optional<PerfSample> parse(const std::vector<std::uint64_t>& record,
                                const PerfPlan& plan = kPlan) {
  return parse_perf_sample(std::as_bytes(std::span(record)), plan);
}

std::vector<std::uint64_t> good_words() {
  return {std::uint64_t{7} << 32 | 1,
          5'000,
          3,
          9'000'000,
          2,  // tid, time, cpu, count, lost
          2,
          ~std::uint64_t{127},
          0xffff'8000'0000'1111,  // kernel frames
          PERF_SAMPLE_REGS_ABI_64,
          30,
          20,
          10,  // fp, sp, pc
          16,
          0xaa,
          0xbb,
          8};  // room, two words, of which one is
}

TEST(PerfEvent, ASamplesRecordHasAllItsParts) {
  const auto record = record_of(good_words());
  const auto sample = parse(record);
  ASSERT_TRUE(sample.has_value());
  EXPECT_EQ(sample->tid, 7U);
  EXPECT_EQ(sample->at_ns, 5'000U);
  EXPECT_EQ(sample->cpu, 3);
  EXPECT_EQ(sample->count_ns, 9'000'000U);
  EXPECT_EQ(sample->lost, 2U);
  ASSERT_EQ(sample->in_kernel.size(), 2U);
  EXPECT_EQ(sample->in_kernel[1], 0xffff'8000'0000'1111U);
  EXPECT_TRUE(sample->has_registers);
  EXPECT_EQ(sample->pc, 10U);
  EXPECT_EQ(sample->sp, 20U);
  EXPECT_EQ(sample->fp, 30U);
  EXPECT_EQ(sample->stack.size(), 8U) << "only what was copied";
}

TEST(PerfEvent, ASwitchHasTheArgumentOfItsSystemCallBeforeItsOtherRegisters) {
  const auto record = record_of({1, 2, 0, 3, PERF_SAMPLE_REGS_ABI_64, 137, 30, 20, 10, 8, 0xaa, 8});
  const auto sample = parse(record, {.period_ns = 1, .kind = PerfKind::kSwitchStacks});
  ASSERT_TRUE(sample.has_value());
  EXPECT_EQ(sample->argument, 137U);
  EXPECT_EQ(sample->fp, 30U);
  EXPECT_EQ(sample->pc, 10U);
}

TEST(PerfEvent, WithoutAUserContextThereAreNoRegistersAndNoStack) {
  const auto record = record_of({1, 2, 0, 3, PERF_SAMPLE_REGS_ABI_NONE, 0});
  const auto sample = parse(record, {.period_ns = 1'000'000});
  ASSERT_TRUE(sample.has_value());
  EXPECT_FALSE(sample->has_registers);
  EXPECT_TRUE(sample->stack.empty());
}

TEST(PerfEvent, WhatIsNoWholeSampleIsRefused) {
  EXPECT_FALSE(parse(record_of(good_words(), PERF_RECORD_LOST)));
  for (std::size_t words = 0; words < good_words().size(); ++words) {
    auto cut = good_words();
    cut.resize(words);
    EXPECT_FALSE(parse(record_of(cut))) << words;
  }
  auto claims = good_words();
  claims[5] = ~std::uint64_t{0} / 8 + 3;  // frames
  EXPECT_FALSE(parse(record_of(claims)));
  claims = good_words();
  claims[12] = ~std::uint64_t{0};  // room for the stack
  EXPECT_FALSE(parse(record_of(claims)));
  claims = good_words();
  claims[15] = 17;  // copied bytes of 16
  EXPECT_FALSE(parse(record_of(claims)));
  EXPECT_FALSE(parse_perf_sample({}, kPlan));
}

TEST(PerfEvent, GarbageIsReadWithinItsBounds) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::uint64_t> words(random() % 24);
    for (std::uint64_t& word : words) word = random() % 3 == 0 ? random() : random() % 20;
    const auto record = record_of(words);
    const auto sample = parse(record);
    if (!sample) continue;
    EXPECT_LE(sample->stack.size(), record.size() * 8);
    EXPECT_LE(sample->in_kernel.size(), record.size());
  }
}

std::optional<ThreadSwitch> parse_switch(const std::vector<std::uint64_t>& record) {
  return parse_perf_switch(std::as_bytes(std::span(record)));
}

TEST(PerfEvent, ASwitchSaysWhichWayAndWhetherTheThreadCouldHaveGoneOn) {
  const std::vector<std::uint64_t> words = {std::uint64_t{7} << 32 | 1, 5'000};
  const auto in = parse_switch(record_of(words, PERF_RECORD_SWITCH));
  ASSERT_TRUE(in.has_value());
  EXPECT_EQ(in->kind, SwitchKind::kIn);
  EXPECT_EQ(in->tid, 7U);
  EXPECT_EQ(in->at_ns, 5'000U);
  const auto out = record_of(words, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT);
  EXPECT_EQ(parse_switch(out)->kind, SwitchKind::kBlocked);
  const auto preempted = record_of(
      words, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
  EXPECT_EQ(parse_switch(preempted)->kind, SwitchKind::kPreempted);
  const auto lost = parse_switch(record_of({1, 12, std::uint64_t{7} << 32, 9}, PERF_RECORD_LOST));
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->kind, SwitchKind::kLost);
  EXPECT_EQ(lost->lost, 12U);
  EXPECT_EQ(lost->at_ns, 9U);
  EXPECT_FALSE(parse_switch(record_of({words[0]}, PERF_RECORD_SWITCH))) << "cut short";
  EXPECT_FALSE(parse_switch(record_of(words, PERF_RECORD_MMAP)));
  EXPECT_FALSE(parse_perf_switch({}));
}

TEST(PerfEvent, ARefusalOfSwitchesSaysThatLooksGoOn) {
  EXPECT_NE(perf_open_refusal(EACCES, 3, PerfKind::kSwitches).find("waits come from looks"),
            std::string::npos);
}

TEST(PerfEvent, ARefusalOfStacksAtSwitchesNamesTheirOwnLimit) {
  const std::string refused = perf_open_refusal(EACCES, 2, PerfKind::kSwitchStacks);
  EXPECT_NE(refused.find("perf_event_paranoid<=1 (now 2)"), std::string::npos) << refused;
  EXPECT_NE(refused.find("switches are followed without their stacks"), std::string::npos);
  EXPECT_NE(perf_open_refusal(EPERM, 2, PerfKind::kSwitchStacks).find("paranoid<=1"),
            std::string::npos);
  EXPECT_NE(perf_open_refusal(EPERM, 1, PerfKind::kSwitchStacks).find("blocked"),
            std::string::npos);
}

TEST(PerfEvent, ARefusalSaysWhatWasTriedTheErrnoAndWhatWorks) {
  EXPECT_EQ(perf_open_refusal(EPERM, 2),
            "perf_event_open: blocked (EPERM; seccomp or CAP_PERFMON): allow perf_event_open in "
            "the seccomp profile, or add CAP_PERFMON; timers of the threads need none of that "
            "(backend \"timers\", the default)");
  EXPECT_NE(perf_open_refusal(EACCES, 3).find("perf_event_paranoid<=2 (now 3)"), std::string::npos);
  EXPECT_NE(perf_ring_refusal(EPERM, 64 << 10).find("ring of 64 KiB refused: RLIMIT_MEMLOCK="),
            std::string::npos);
  EXPECT_NE(no_kernel_time_text(2).find("perf_event_paranoid<=1 (now 2)"), std::string::npos);
}

TEST(PerfEvent, ARingHoldsTheSamplesOfThreeTenthsOfASecondWithinItsBounds) {
  EXPECT_EQ(perf_ring_bytes(1'000'000'000), std::size_t{32} << 10);
  EXPECT_EQ(perf_ring_bytes(10'101'010), std::size_t{256} << 10);
  EXPECT_EQ(perf_ring_bytes(1'000'000), std::size_t{512} << 10);
}

constexpr std::uint64_t kMs = 1'000'000;

// 138 samples of 200 periods: the machine was away in between.
TEST(PerfProgress, LostSamplesStandForAllThatWasCountedUntilTheEnd) {
  PerfProgress progress;
  EXPECT_EQ(progress.weigh(3 * kMs, kPlan), 3U);
  EXPECT_EQ(progress.lose(137, 200 * kMs + kMs / 2, true, kPlan), 197U);
  EXPECT_EQ(progress.periods, 200U);
  EXPECT_EQ(progress.lost, 137U);
}

TEST(PerfProgress, TheSampleBehindALossHasItsShareAndNotWhatWasLost) {
  PerfProgress progress;
  EXPECT_EQ(progress.lose(99, 200 * kMs, false, kPlan), 198U);
  EXPECT_EQ(progress.weigh(200 * kMs, kPlan), 2U);
  EXPECT_EQ(progress.weigh(201 * kMs, kPlan), 1U);
  EXPECT_EQ(progress.periods, 201U) << "as the event counted";
}

TEST(PerfProgress, EveryLostSampleStandsForOnePeriodAtLeast) {
  PerfProgress progress;
  EXPECT_EQ(progress.lose(5, 3 * kMs, false, kPlan), 5U);
  EXPECT_EQ(progress.weigh(3 * kMs, kPlan), 1U);
  EXPECT_EQ(progress.lose(2, 0, true, kPlan), 2U) << "its descriptor was gone";
}

TEST(PerfProgress, WithoutSamplesInTheKernelEachStandsForOnePeriod) {
  constexpr PerfPlan kUserOnly{.period_ns = kMs, .has_kernel = false, .counts_lost = true};
  PerfProgress progress;
  EXPECT_EQ(progress.weigh(9 * kMs, kUserOnly), 1U);
  EXPECT_EQ(progress.lose(4, 50 * kMs, false, kUserOnly), 4U);
}

}  // namespace
}  // namespace dial9::internal
