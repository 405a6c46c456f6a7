// Waits for locks as one tree: what events and what looks tell, under one name each, and what is
// said of those that are left out.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/lock_waits.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/flame_view.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using testing::TraceBuilder;

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint32_t kTid = 7;

// Of task 5, which is polled from 10 to 90 ms on worker 0.
class LockTrace {
 public:
  LockTrace() {
    builder.poll(10 * kMs, 90 * kMs, 0, 5);
    builder.encoder().schema(120, "LockWaitEvent", true,
                             {{"tid", format::FieldType::kU32},
                              {"task_id", format::FieldType::kVarint},
                              {"duration_ns", format::FieldType::kVarint},
                              {"kind", format::FieldType::kU8},
                              {"callchain", format::FieldType::kPooledStackFrames, true}});
  }

  void wait(std::uint64_t at_ms, std::uint64_t ms, const std::vector<std::uint64_t>& frames) {
    wait(at_ms, ms, LockKind::kMutex, frames);
  }
  // Without frames: without a stack.
  void wait(std::uint64_t at_ms, std::uint64_t ms, LockKind kind,
            const std::vector<std::uint64_t>& frames = {}) {
    format::Encoder& out = builder.encoder();
    out.begin(120, at_ms * kMs);
    out.u32(kTid);
    out.varint(5);
    out.varint(ms * kMs);
    out.u8(static_cast<std::uint8_t>(kind));
    if (frames.empty()) {
      out.absent();
    } else {
      out.present();
      out.pooled_stack(frames);
    }
  }

  // As a look saw it.
  void look(std::uint64_t at_ms, std::uint64_t ms, std::uint64_t frame, std::uint64_t span = 0) {
    builder.off_cpu({.at_ns = at_ms * kMs,
                     .proven_ns = ms * kMs,
                     .cause = "lock",
                     .frames = {frame, 0x1},
                     .task = 5,
                     .span = span});
  }

  TraceBuilder builder;
};

FlameView view_of(LockTrace& trace, const SampleFilter& filter = {}) {
  return flame_view(trace.builder.load(), {.of = FlameOf::kLocks, .filter = filter}, nullptr);
}

std::string notes(const FlameView& view) {
  std::string text;
  for (const std::string& note : view.heading.notes) text += note + "\n";
  return text;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(LockWaits, AStackIsOneWhetherAnEventOrALookTellsIt) {
  LockTrace trace;
  trace.wait(20, 12, {0x8, 0x1});
  trace.look(60, 3, 0x8);
  EXPECT_EQ(flame_folded(view_of(trace).tree), "0x1;0x8 15000000\n");
}

TEST(LockWaits, NoneIsTakenOnlyWhereLooksHaveNoneEither) {
  LockTrace trace;
  trace.wait(20, 12, {0x8, 0x1});
  trace.look(60, 3, 0x9, 11);
  const FlameView of_span = view_of(trace, {.span = 11});
  EXPECT_EQ(flame_folded(of_span.tree), "0x1;0x9 3000000\n");
  EXPECT_FALSE(has(notes(of_span), "no lock wait is taken")) << notes(of_span);
  LockTrace none;
  none.wait(20, 12, {0x8, 0x1});
  none.look(60, 3, 0x9, 11);
  EXPECT_TRUE(has(notes(view_of(none, {.span = 12})), "no lock wait is taken by the filter\n"));
}

TEST(LockWaits, WhatLooksDontKnowIsSaidBesideWhatEventsDont) {
  LockTrace trace;
  trace.wait(20, 12, {0x8, 0x1});
  trace.builder.off_cpu(
      {.at_ns = 60 * kMs, .proven_ns = kMs, .cause = "lock", .frames = {0x9}, .tid = 9});
  const std::string said = notes(view_of(trace, {.span = 11}));
  EXPECT_TRUE(has(said, "\nwaits off the CPU (told by events or not): 1 wait doesn't say whose"))
      << said;
  EXPECT_TRUE(has("\n" + said, "\n1 wait doesn't say whose")) << said;
}

// Its poll was dropped, was left out to keep within the budget, or nothing says why it isn't there.
TEST(LockWaits, OneWhosePollIsMissingIsNoHandlersThatWaitsForItsStrand) {
  for (const std::string_view why : {"dropped", "shed", ""}) {
    const auto make = [&](LockTrace& trace) {
      trace.wait(20, 12, {0x8, 0x1});
      trace.wait(100, 30, LockKind::kMutex);
      trace.wait(200, 40, LockKind::kStrand);
      if (why == "dropped") {
        trace.builder.loss(300 * kMs, "ring full", 3, 95 * kMs, 140 * kMs);
      } else if (why == "shed") {
        trace.builder.shed(95 * kMs, "polls", 4, 90 * kMs, 0, 0);
        trace.builder.shed(300 * kMs, "polls", 1, 95 * kMs, 1, 3);
      }
    };
    LockTrace missing;
    make(missing);
    const FlameView view = view_of(missing);
    EXPECT_EQ(flame_folded(view.tree), "[no stack] 30000000\n0x1;0x8 12000000\n") << why;
    EXPECT_TRUE(has(notes(view), "1 wait (40.0 ms) of handlers")) << notes(view);

    LockTrace of_worker;
    make(of_worker);
    const FlameView known = view_of(of_worker, {.worker = 0});
    EXPECT_EQ(flame_folded(known.tree), "0x1;0x8 12000000\n") << why;
    EXPECT_TRUE(has(notes(known), "1 wait doesn't say whose")) << notes(known);
  }
}

TEST(LockWaits, OneThatMayBeForALockOrAStrandIsLeftOutAndCounted) {
  LockTrace trace;
  trace.wait(20, 12, {0x8, 0x1});
  trace.wait(50, 7, LockKind::kUnknown);   // in the task's poll
  trace.wait(100, 8, LockKind::kUnknown);  // in none
  const FlameView view = view_of(trace);
  EXPECT_EQ(flame_folded(view.tree), "0x1;0x8 12000000\n");
  EXPECT_TRUE(has(notes(view), "2 waits (15.0 ms) for a lock or a strand left out: the trace"))
      << notes(view);
}

TEST(LockWaits, OfStrandsOnlyThoseAreCountedThatRangeAndFilterTake) {
  for (const auto& [filter, note] :
       {std::pair{SampleFilter{.from_ns = 110 * kMs}, "1 wait (20.0 ms) of handlers"},
        std::pair{SampleFilter{.to_ns = 50 * kMs}, ""}, std::pair{SampleFilter{.task = 6}, ""}}) {
    LockTrace trace;
    trace.wait(20, 12, {0x8, 0x1});
    trace.wait(100, 30, LockKind::kStrand);
    const std::string said = notes(view_of(trace, filter));
    EXPECT_EQ(has(said, "of handlers"), *note != '\0') << said;
    EXPECT_TRUE(has(said, note)) << said;
  }
}

}  // namespace
}  // namespace dial9::analysis
