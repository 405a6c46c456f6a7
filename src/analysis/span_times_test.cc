// Where a span's time goes: the rules one by one, and all of them against a reference that asks
// about every nanosecond of random traces.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/span_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "analysis/loader.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using format::FieldType;
using testing::TraceBuilder;

constexpr std::uint16_t kWholeSpan = 100;
constexpr std::uint16_t kEnter = 101;
constexpr std::uint16_t kExit = 102;

// A span in one event, of a task.
void whole_span(TraceBuilder& builder, std::uint64_t from_ns, std::uint64_t to_ns,
                std::uint64_t task) {
  auto& out = builder.encoder();
  out.schema(kWholeSpan, "Request", true,
             {{"took", FieldType::kVarint}, {"dial9.tokio.task_id", FieldType::kVarint}});
  out.annotations(kWholeSpan, {{0, "dial9.role", "span.duration"}});
  builder.encoder().begin(kWholeSpan, to_ns);
  builder.encoder().varint(to_ns - from_ns);
  builder.encoder().varint(task);
}

// A span of worker 0 that says how long it was on it.
void pair_span(TraceBuilder& builder, std::uint64_t from_ns, std::uint64_t to_ns,
               std::uint64_t active_ns) {
  auto& out = builder.encoder();
  out.schema(kEnter, "SpanEnter:a.cc:1:2", true,
             {{"worker_id", FieldType::kVarint}, {"span_id", FieldType::kVarint}});
  out.schema(kExit, "SpanExit:a.cc:1:2", true,
             {{"worker_id", FieldType::kVarint},
              {"span_id", FieldType::kVarint},
              {"active_ns", FieldType::kVarint},
              {"idle_ns", FieldType::kVarint}});
  out.begin(kEnter, from_ns);
  out.varint(0);
  out.varint(5);
  out.begin(kExit, to_ns);
  out.varint(0);
  out.varint(5);
  out.varint(active_ns);
  out.varint(to_ns - from_ns - active_ns);
}

// Worker 0's thread is parked up to `from_ns` and again from `to_ns`; in between it used `cpu_ns`.
void busy(TraceBuilder& builder, std::uint64_t from_ns, std::uint64_t to_ns, std::uint64_t cpu_ns) {
  builder.park(from_ns - 100, 0, 9, 1'000);
  builder.unpark(from_ns, 0, TraceBuilder::kNoWait, 9, 1'000);
  builder.park(to_ns, 0, 9, 1'000 + cpu_ns);
  builder.unpark(to_ns + 100, 0, TraceBuilder::kNoWait, 9, 1'000 + cpu_ns);
}

std::uint64_t unknown(const SpanTime& time, UnknownTime reason) {
  return time.unknown_by[static_cast<std::size_t>(reason)];
}

SpanTime only_span(TraceBuilder& builder) {
  const Trace trace = builder.load();
  EXPECT_EQ(trace.spans.size(), 1U);
  const SpanTime time = SpanTimes(trace).of(0);
  EXPECT_EQ(time.sum_ns(), trace.spans.end_ns[0] - trace.spans.start_ns[0]);
  return time;
}

TEST(SpanTimes, SplitASuspensionAtTheMomentTheTaskWasReady) {
  TraceBuilder builder;
  busy(builder, 1'000, 9'000, 8'000);
  builder.poll(2'000, 3'000, 0, 7);
  builder.wake(5'000, 7);
  builder.poll(6'000, 8'000, 0, 7);
  whole_span(builder, 2'500, 7'000, 7);
  const SpanTime time = only_span(builder);
  EXPECT_EQ(time.on_cpu_ns, 1'500U);
  EXPECT_EQ(time.async_wait_ns, 2'000U);
  EXPECT_EQ(time.scheduler_delay_ns, 1'000U);
  EXPECT_EQ(time.unknown_ns(), 0U);
}

TEST(SpanTimes, AreUnknownWhereTheReadyTimeIs) {
  TraceBuilder builder;
  busy(builder, 1'000, 9'000, 8'000);
  builder.poll(2'000, 3'000, 0, 7);
  builder.poll(6'000, 8'000, 0, 7);
  whole_span(builder, 2'500, 7'000, 7);
  EXPECT_EQ(unknown(only_span(builder), UnknownTime::kNoReadyTime), 3'000U);
}

TEST(SpanTimes, OfAPollsSwitchesTellWhatWasBlockedRunnableAndRunning) {
  TraceBuilder builder;
  busy(builder, 1'000, 9'000, 5'000);
  builder.poll(2'000, 8'000, 0, 7);
  builder.off_cpu(
      {.at_ns = 3'000, .proven_ns = 2'000, .tid = 9, .is_exact = true, .runnable_ns = 500});
  builder.off_cpu({.at_ns = 6'000, .proven_ns = 1'000, .tid = 9, .reason = 1, .is_exact = true});
  whole_span(builder, 2'000, 8'000, 7);
  const SpanTime time = only_span(builder);
  EXPECT_EQ(time.on_cpu_ns, 3'000U);
  EXPECT_EQ(time.blocked_ns, 1'500U);
  EXPECT_EQ(time.scheduler_delay_ns, 1'500U) << "preempted, and woken without a CPU";
  EXPECT_EQ(time.unknown_ns(), 0U);
}

TEST(SpanTimes, CountCallsAndLocksOfAPollAsBlockedOnce) {
  TraceBuilder builder;
  busy(builder, 1'000, 9'000, 6'200);
  builder.poll(2'000, 8'000, 0, 7);
  builder.blocking_call(3'000, 1'000, 7, "fsync");
  builder.lock_wait(3'500, 1'300, 7, 0xabc);
  whole_span(builder, 2'000, 8'000, 7);
  const SpanTime time = only_span(builder);
  EXPECT_EQ(time.blocked_ns, 1'800U);
  EXPECT_EQ(time.on_cpu_ns, 4'200U);
  EXPECT_EQ(time.unknown_ns(), 0U);
}

TEST(SpanTimes, NeverCountAsOnACpuWhatTheThreadsClockCanNotHaveSeen) {
  TraceBuilder builder;
  busy(builder, 1'000, 9'000, 5'000);  // 3,000 off the CPU, and no record says where
  builder.poll(2'000, 8'000, 0, 7);
  whole_span(builder, 2'000, 8'000, 7);
  const SpanTime time = only_span(builder);
  EXPECT_EQ(time.on_cpu_ns, 3'000U);
  EXPECT_EQ(unknown(time, UnknownTime::kOffCpu), 3'000U);
}

TEST(SpanTimes, KnowNothingOfAPollWhoseThreadsClockWasNotRead) {
  TraceBuilder builder;
  builder.poll(2'000, 8'000, 0, 7);
  whole_span(builder, 2'000, 8'000, 7);
  EXPECT_EQ(unknown(only_span(builder), UnknownTime::kNoCpuClock), 6'000U);
}

TEST(SpanTimes, CountAWaitForAStrandAsBlockedWithinTheDelay) {
  TraceBuilder builder;
  busy(builder, 1'000, 9'000, 8'000);
  builder.poll(2'000, 3'000, 0, 7);
  builder.wake(4'000, 7);
  builder.lock_wait(4'000, 1'500, 7, 0xabc, {.kind = LockKind::kStrand});
  builder.poll(6'000, 8'000, 0, 7);
  whole_span(builder, 3'000, 6'000, 7);
  const SpanTime time = only_span(builder);
  EXPECT_EQ(time.async_wait_ns, 1'000U);
  EXPECT_EQ(time.blocked_ns, 1'500U);
  EXPECT_EQ(time.scheduler_delay_ns, 500U);
}

TEST(SpanTimes, BetweenPollsAreUnknownWhereAWaitTellsThatAPollIsMissing) {
  for (const LockKind kind : {LockKind::kMutex, LockKind::kUnknown}) {
    TraceBuilder builder;
    busy(builder, 1'000, 9'000, 8'000);
    builder.poll(2'000, 3'000, 0, 7);
    builder.wake(4'000, 7);
    builder.lock_wait(4'000, 1'500, 7, 0xabc, {.kind = kind});
    builder.poll(6'000, 8'000, 0, 7);
    whole_span(builder, 3'000, 6'000, 7);
    const SpanTime time = only_span(builder);
    EXPECT_EQ(unknown(time, UnknownTime::kNoPoll), 3'000U);
    EXPECT_EQ(time.sum_ns(), 3'000U);
  }
}

TEST(SpanTimes, OfAPollAStrandsWaitThatItRanThroughIsNoTimeOffTheCpu) {
  TraceBuilder builder;
  busy(builder, 1'000, 9'000, 8'000);
  builder.poll(2'000, 8'000, 0, 7);
  builder.lock_wait(3'000, 4'000, 7, 0xabc, {.kind = LockKind::kStrand});
  whole_span(builder, 2'000, 8'000, 7);
  EXPECT_EQ(only_span(builder).on_cpu_ns, 6'000U);
}

TEST(SpanTimes, AreUnknownAfterAPollWithoutAnEndThatOverlappedTheLastOne) {
  TraceBuilder builder;
  builder.poll(1'000, 4'000, 0, 7);
  builder.poll_start(2'000, 1, 7);  // how long it went on isn't known
  builder.poll(3'000, 3'100, 1, 8);
  builder.wake(5'000, 7);
  builder.poll(6'000, 7'000, 0, 7);
  whole_span(builder, 3'500, 6'000, 7);
  const SpanTime time = only_span(builder);
  EXPECT_EQ(unknown(time, UnknownTime::kCutOff), 2'000U);
  EXPECT_EQ(time.async_wait_ns, 0U);
}

TEST(SpanTimes, AreUnknownWhereEventsWereLost) {
  TraceBuilder builder;
  busy(builder, 1'000, 9'000, 8'000);
  builder.poll(2'000, 3'000, 0, 7);
  builder.wake(5'000, 7);
  builder.poll(6'000, 8'000, 0, 7);
  builder.loss(9'500, "buffer full", 2, 3'500, 3'600);
  whole_span(builder, 2'500, 7'000, 7);
  EXPECT_EQ(unknown(only_span(builder), UnknownTime::kEventsLost), 3'000U);
}

TEST(SpanTimes, AreUnknownBeyondTheLastPollAndInAPollThatIsCutOff) {
  TraceBuilder builder;
  busy(builder, 1'000, 4'000, 3'000);
  builder.poll(2'000, 3'000, 0, 7);
  builder.wake(4'500, 7);
  builder.poll_start(5'000, 0, 7);
  builder.wake(6'000, 8);  // the trace's last record
  whole_span(builder, 2'500, 6'000, 7);
  EXPECT_EQ(unknown(only_span(builder), UnknownTime::kCutOff), 1'000U);
}

TEST(SpanTimes, AreUnknownWithoutATaskButNotForAScopeInsideOnePoll) {
  TraceBuilder builder;
  busy(builder, 1'000, 9'000, 8'000);
  builder.poll(2'000, 8'000, 0, 0);
  pair_span(builder, 3'000, 4'000, 1'000);
  EXPECT_EQ(only_span(builder).on_cpu_ns, 1'000U);
  busy(builder, 1'000, 9'000, 8'000);
  builder.poll(2'000, 8'000, 0, 0);
  whole_span(builder, 3'000, 4'000, 0);
  EXPECT_EQ(unknown(only_span(builder), UnknownTime::kNoTask), 1'000U);
}

TEST(SpanTimes, DoNotTakeAnotherBranchOfTheTaskForTheSpan) {
  TraceBuilder builder;
  busy(builder, 100'000, 900'000, 800'000);
  builder.poll(200'000, 400'000, 0, 7);
  builder.wake(450'000, 7);
  builder.poll(500'000, 800'000, 0, 7);
  // The task was on the worker for 500,000 ns of the span, the span for 200,000 of them.
  pair_span(builder, 200'000, 800'000, 200'000);
  const SpanTime time = only_span(builder);
  EXPECT_EQ(time.on_cpu_ns, 200'000U);
  EXPECT_EQ(time.scheduler_delay_ns, 0U);
  EXPECT_EQ(unknown(time, UnknownTime::kConcurrent), 350'000U);
}

// The header's rules, asked of each nanosecond.
class Slow {
 public:
  Slow(const Trace& trace, std::uint32_t span) : trace_(trace), span_(span) {
    const Range range = trace.tasks.polls[trace.spans.task[span]];
    for (std::uint32_t i = range.first; i < range.last; ++i) {  // by start
      polls_.push_back(trace.task_polls[i]);
    }
  }

  SpanTime run() {
    for (at_ = trace_.spans.start_ns[span_]; at_ < trace_.spans.end_ns[span_]; ++at_) {
      std::vector<std::uint32_t> here;
      for (const std::uint32_t poll : polls_) {
        if (start(poll) <= at_ && at_ < end(poll)) {
          here.push_back(poll);
        }
      }
      if (here.size() > 1) {
        unknown(UnknownTime::kConcurrent);
      } else if (here.size() == 1) {
        in_poll(here[0]);
      } else {
        in_gap();
      }
    }
    for (const auto& [park, ns] : rest_) {
      const std::uint64_t off_ns = std::min(ns, unexplained(park));
      time_.unknown_by[static_cast<std::size_t>(UnknownTime::kOffCpu)] += off_ns;
      time_.on_cpu_ns += ns - off_ns;
    }
    return time_;
  }

 private:
  std::uint64_t start(std::uint32_t poll) const { return trace_.polls.start_ns[poll]; }
  std::uint64_t end(std::uint32_t poll) const { return trace_.polls.end_ns[poll]; }
  void unknown(UnknownTime reason) { ++time_.unknown_by[static_cast<std::size_t>(reason)]; }
  bool is_lost(std::uint64_t from_ns, std::uint64_t to_ns) const {
    return std::any_of(trace_.loss.begin(), trace_.loss.end(), [&](const LossRecord& loss) {
      return loss.first_ns <= to_ns && loss.last_ns >= from_ns;
    });
  }
  template <class Wanted>
  bool is_held(std::uint64_t at_ns, Wanted is_wanted) const {
    for (std::uint32_t i = 0; i < trace_.blocks.size(); ++i) {
      const Block& block = trace_.blocks[i];
      if (is_wanted(block) && block.start_ns <= at_ns &&
          at_ns < block.start_ns + block.duration_ns) {
        return true;
      }
    }
    return false;
  }

  void in_poll(std::uint32_t poll) {
    if (is_lost(start(poll), end(poll))) {
      return unknown(UnknownTime::kEventsLost);
    }
    if (!trace_.polls.is_complete(poll)) {
      return unknown(UnknownTime::kCutOff);
    }
    if (is_held(at_, [&](const Block& block) { return block.poll == poll; })) {
      ++time_.blocked_ns;
      return;
    }
    const Range parks = trace_.lanes[trace_.polls.lane[poll]].parks;
    for (std::uint32_t park = parks.first + 1; park < parks.last; ++park) {
      if (trace_.parks.end_ns[park - 1] <= start(poll) &&
          trace_.parks.start_ns[park] >= end(poll) && trace_.parks.flags[park - 1] == 0 &&
          (trace_.parks.flags[park] & kParkStartLost) == 0 &&
          !is_lost(trace_.parks.end_ns[park - 1], trace_.parks.start_ns[park])) {
        ++rest_[park];
        return;
      }
    }
    unknown(UnknownTime::kNoCpuClock);
  }

  std::uint64_t unexplained(std::uint32_t park) const {
    std::uint64_t off_ns = trace_.parks.start_ns[park] - trace_.parks.end_ns[park - 1];
    off_ns -= std::min(off_ns, trace_.parks.cpu_start_ns[park] - trace_.parks.cpu_end_ns[park - 1]);
    for (std::uint64_t at = trace_.parks.end_ns[park - 1]; at < trace_.parks.start_ns[park]; ++at) {
      const bool is_blocked = is_held(at, [&](const Block& block) {
        return block.poll != kNoIndex && trace_.polls.lane[block.poll] == trace_.parks.lane[park] &&
               start(block.poll) >= trace_.parks.end_ns[park - 1] &&
               start(block.poll) < trace_.parks.start_ns[park];
      });
      off_ns -= is_blocked && off_ns != 0 ? 1 : 0;
    }
    return off_ns;
  }

  void in_gap() {
    std::uint32_t next = kNoIndex;
    bool has_before = false;
    bool is_cut = false;
    std::uint64_t before_end_ns = trace_.spans.start_ns[span_];
    std::uint64_t reach_ns = 0;
    for (const std::uint32_t poll : polls_) {  // by start
      if (start(poll) > at_) {
        next = poll;
        break;
      }
      const bool overlaps = start(poll) < reach_ns;
      is_cut = (overlaps && is_cut) || !trace_.polls.is_complete(poll);
      reach_ns = std::max(reach_ns, end(poll));
      before_end_ns = has_before ? std::max(before_end_ns, end(poll)) : end(poll);
      has_before = true;
    }
    const std::uint64_t gap_end_ns =
        std::min(next == kNoIndex ? kUnknownNs : start(next), trace_.spans.end_ns[span_]);
    if (is_lost(before_end_ns, gap_end_ns)) {
      return unknown(UnknownTime::kEventsLost);
    }
    const std::uint32_t task = trace_.spans.task[span_];
    const std::uint64_t gap_from_ns = has_before ? before_end_ns : trace_.spans.start_ns[span_];
    const auto is_pollless = [&](const Block& b) {
      return b.kind == BlockKind::kLock && b.lock_kind != LockKind::kStrand && b.poll == kNoIndex &&
             b.task == task && b.duration_ns != 0;
    };
    const auto is_in_gap = [&](const Block& b) {
      return is_pollless(b) && b.start_ns < gap_end_ns && b.end_ns() > gap_from_ns;
    };
    for (std::size_t i = 0; i < trace_.blocks.size(); ++i) {
      if (is_in_gap(trace_.blocks[i])) return unknown(UnknownTime::kNoPoll);
    }
    if (is_held(at_, [&](const Block& b) {
          return b.lock_kind == LockKind::kStrand && b.task == task;
        })) {
      ++time_.blocked_ns;
      return;
    }
    if (next == kNoIndex || is_cut) {
      return unknown(UnknownTime::kCutOff);
    }
    if (coverage_of(trace_.polls.ready_source[next]) != Coverage::kKnown) {
      return unknown(UnknownTime::kNoReadyTime);
    }
    if (at_ >= trace_.polls.ready_ns[next]) {
      ++time_.scheduler_delay_ns;
    } else if (has_before) {
      ++time_.async_wait_ns;
    } else {
      unknown(UnknownTime::kCutOff);
    }
  }

  const Trace& trace_;
  std::uint32_t span_;
  std::vector<std::uint32_t> polls_;
  std::uint64_t at_ = 0;
  std::map<std::uint32_t, std::uint64_t> rest_;  // ns in a poll, by the park that ends its stretch
  SpanTime time_;
};

// What one worker does: parks, polls of three tasks (some of which are cut), calls inside them.
void random_worker(TraceBuilder& builder, std::mt19937_64& random, std::uint64_t worker) {
  const auto upto = [&](std::uint64_t most) { return random() % (most + 1); };
  std::uint64_t now_ns = 1'000 + upto(20);
  std::uint64_t cpu_ns = 500;
  const auto tid = static_cast<std::uint32_t>(10 + worker);
  for (int i = 0; i < 25; ++i) {
    const std::uint64_t task = 1 + upto(2);
    if (upto(3) == 0) {
      builder.park(now_ns, worker, tid, cpu_ns);
      now_ns += upto(10);
      if (upto(9) != 0) {
        builder.unpark(now_ns, worker, TraceBuilder::kNoWait, tid, cpu_ns);
      }
      continue;
    }
    if (upto(2) != 0) {
      builder.wake(now_ns + upto(6), task);
    }
    if (upto(5) == 0) {
      builder.lock_wait(now_ns, upto(12), task, 0xabc, {.kind = static_cast<LockKind>(upto(2))});
    }
    now_ns += upto(8);
    builder.poll_start(now_ns, worker, task);
    const std::uint64_t length_ns = upto(15);
    if (upto(2) == 0) {
      builder.blocking_call(now_ns + upto(length_ns), upto(length_ns / 2), task, "read", tid);
    }
    now_ns += length_ns;
    cpu_ns += length_ns - upto(length_ns / 3);
    if (upto(11) != 0) {
      builder.poll_end(now_ns, worker);
    }
    now_ns += upto(2);
  }
}

TEST(SpanTimes, AgreeWithAReferenceThatAsksEveryNanosecond) {
  std::mt19937_64 random(9);
  std::uint64_t seen[5] = {};
  for (int round = 0; round < 400; ++round) {
    TraceBuilder builder;
    for (std::uint64_t worker = 0; worker <= random() % 5; ++worker) {
      random_worker(builder, random, worker);
    }
    if (random() % 3 == 0) {
      const std::uint64_t at_ns = 1'000 + random() % 300;
      builder.loss(2'000, "buffer full", 1, at_ns, at_ns + random() % 10);
    }
    for (int i = 0; i < 6; ++i) {
      const std::uint64_t from_ns = 990 + random() % 300;
      whole_span(builder, from_ns, from_ns + random() % 200, 1 + random() % 3);
    }
    const Trace trace = builder.load();
    const SpanTimes times(trace);
    for (std::uint32_t span = 0; span < trace.spans.size(); ++span) {
      if (trace.spans.task[span] == kNoIndex || trace.tasks.polls[trace.spans.task[span]].empty()) {
        continue;
      }
      const SpanTime fast = times.of(span);
      const SpanTime slow = Slow(trace, span).run();
      ASSERT_EQ(fast.sum_ns(), trace.spans.end_ns[span] - trace.spans.start_ns[span]);
      ASSERT_EQ(fast.on_cpu_ns, slow.on_cpu_ns) << "round " << round << " span " << span;
      ASSERT_EQ(fast.blocked_ns, slow.blocked_ns) << "round " << round << " span " << span;
      ASSERT_EQ(fast.async_wait_ns, slow.async_wait_ns) << "round " << round << " span " << span;
      ASSERT_EQ(fast.scheduler_delay_ns, slow.scheduler_delay_ns) << "round " << round;
      ASSERT_EQ(fast.unknown_by, slow.unknown_by) << "round " << round << " span " << span;
      seen[0] += fast.on_cpu_ns;
      seen[1] += fast.blocked_ns;
      seen[2] += fast.async_wait_ns;
      seen[3] += fast.scheduler_delay_ns;
      seen[4] += fast.unknown_ns();
    }
  }
  for (const std::uint64_t ns : seen) {
    EXPECT_GT(ns, 1'000U);  // the traces hold some of each
  }
}

}  // namespace
}  // namespace dial9::analysis
