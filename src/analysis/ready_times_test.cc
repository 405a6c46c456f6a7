// The ready-time rules, one by one, and all of them against a slow reference on random traces.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "analysis/delays.h"
#include "analysis/loader.h"
#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

using testing::TraceBuilder;

// Of the only task's n-th poll.
struct Ready {
  std::uint64_t ready_ns;
  ReadySource source;
  bool operator==(const Ready&) const = default;
};
Ready ready_of(const Trace& trace, std::uint32_t n) {
  const std::uint32_t poll = trace.task_polls[trace.tasks.polls[0].first + n];
  return {trace.polls.ready_ns[poll], trace.polls.ready_source[poll]};
}

TEST(ReadyTimes, TheFirstWakeSinceThePreviousPollBeganCounts) {
  TraceBuilder builder;
  builder.poll(100, 110, 0, 7);
  builder.wake(200, 7);
  builder.wake(250, 7);
  builder.poll(300, 310, 0, 7);
  EXPECT_EQ(ready_of(builder.load(), 1), (Ready{200, ReadySource::kWake}));
}

TEST(ReadyTimes, AWakeDuringAPollCountsFromItsEnd) {
  TraceBuilder builder;
  builder.poll_start(100, 0, 7);
  builder.wake(150, 7, 7);
  builder.poll_end(200, 0);
  builder.poll(300, 310, 0, 7);
  EXPECT_EQ(ready_of(builder.load(), 1), (Ready{200, ReadySource::kWakeInPoll}));
}

TEST(ReadyTimes, WakesAreConsumed) {
  TraceBuilder builder;
  builder.wake(90, 7);
  builder.poll(100, 110, 0, 7);
  builder.poll(300, 310, 0, 7);
  const Trace trace = builder.load();
  EXPECT_EQ(ready_of(trace, 0), (Ready{90, ReadySource::kWake}));
  EXPECT_EQ(ready_of(trace, 1), (Ready{kUnknownNs, ReadySource::kNoWake}));
}

TEST(ReadyTimes, AreInferredFromTheSpawnForAFirstPollWithoutAWake) {
  TraceBuilder builder;
  builder.spawn(50, 7);
  builder.poll(100, 110, 0, 7);
  EXPECT_EQ(ready_of(builder.load(), 0), (Ready{50, ReadySource::kSpawn}));
}

TEST(ReadyTimes, AreUnknownForTheFirstPollOfAnOlderTask) {
  TraceBuilder builder;
  builder.poll(100, 110, 0, 7);
  EXPECT_EQ(ready_of(builder.load(), 0), (Ready{kUnknownNs, ReadySource::kFirstSeen}));
}

TEST(ReadyTimes, SayThatATasksWakesAreNotRecorded) {
  TraceBuilder builder;
  builder.spawn(50, 7, "lib.cc:1", false);
  builder.poll(100, 110, 0, 7);
  builder.poll(200, 210, 0, 7);
  EXPECT_EQ(ready_of(builder.load(), 1), (Ready{kUnknownNs, ReadySource::kUntracked}));
}

TEST(ReadyTimes, AreUnknownAcrossAStretchOfLostEvents) {
  TraceBuilder builder;
  builder.wake(100, 7);
  builder.poll(300, 310, 0, 7);
  builder.wake(400, 7);
  builder.poll(450, 460, 0, 7);
  builder.loss(500, "buffer full", 3, 150, 200);
  const Trace trace = builder.load();
  EXPECT_EQ(ready_of(trace, 0), (Ready{kUnknownNs, ReadySource::kEventsLost}));
  EXPECT_EQ(ready_of(trace, 1), (Ready{400, ReadySource::kWake}));
}

TEST(ReadyTimes, AreUnknownAcrossAStretchInWhichRecordingWasOff) {
  TraceBuilder builder;
  builder.wake(100, 7);
  builder.poll(9'300, 9'310, 0, 7);
  builder.loss(9'000, "recording_off", 0, 150, 9'000);
  const Trace trace = builder.load();
  EXPECT_EQ(ready_of(trace, 0), (Ready{kUnknownNs, ReadySource::kEventsLost}));
  EXPECT_FALSE(trace.has_unknown_loss()) << "nobody asked for what is missing";
}

TEST(ReadyTimes, HaveNoUpperCutOff) {
  TraceBuilder builder;
  builder.wake(1'000, 7);
  builder.poll(3'600'000'001'000, 3'600'000'002'000, 0, 7);
  const Trace trace = builder.load();
  EXPECT_EQ(trace.polls.delay_ns(0), 3'600'000'000'000U);
}

TEST(ReadyTimes, DoNotDependOnTheOrderOfTheInput) {
  TraceBuilder first;
  first.poll(100, 110, 0, 7);
  TraceBuilder second;
  second.poll(300, 310, 1, 7);
  second.new_stream();
  second.wake(200, 7);
  std::vector<std::uint8_t> bytes = second.take();
  const std::vector<std::uint8_t> rest = first.take();
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  EXPECT_EQ(ready_of(load(bytes), 1), (Ready{200, ReadySource::kWake}));
}

// What the header says, as slowly as it can be said: for each poll all wakes are looked through.
struct Slow {
  struct Poll {
    std::uint64_t start_ns, end_ns;
  };
  std::vector<Poll> polls;           // of one task, by time
  std::vector<std::uint64_t> wakes;  // by time

  std::vector<std::uint64_t> ready() const {
    std::vector<std::uint64_t> out;
    std::vector<bool> used(wakes.size(), false);
    for (std::size_t p = 0; p < polls.size(); ++p) {
      std::uint64_t found = kUnknownNs;
      for (std::size_t w = 0; w < wakes.size(); ++w) {
        if (used[w] || wakes[w] > polls[p].start_ns) {
          continue;
        }
        if (found == kUnknownNs) {
          found = wakes[w];
          used[w] = true;
        } else if (wakes[w] < polls[p].start_ns) {
          used[w] = true;  // consumed with the first
        }
      }
      if (found != kUnknownNs && p != 0) {
        found = std::max(found, polls[p - 1].end_ns);
      }
      out.push_back(found);
    }
    return out;
  }
};

TEST(ReadyTimes, AgreeWithASlowReferenceOnRandomTraces) {
  std::mt19937_64 random(42);
  for (int round = 0; round < 200; ++round) {
    TraceBuilder builder;
    std::map<std::uint64_t, Slow> tasks;
    std::uint64_t now_ns = 1'000;
    const auto step = [&](std::uint64_t most) { now_ns += random() % most; };
    for (int i = 0; i < 120; ++i) {
      const std::uint64_t task = 1 + random() % 4;
      if (random() % 3 == 0) {
        step(4);  // equal stamps are common
        const std::uint64_t start_ns = now_ns;
        builder.poll_start(start_ns, 0, task);
        const std::uint64_t wakes = random() % 3;
        for (std::uint64_t w = 0; w < wakes; ++w) {
          const std::uint64_t woken = 1 + random() % 4;
          step(3);
          builder.wake(now_ns, woken, task);
          tasks[woken].wakes.push_back(now_ns);
        }
        now_ns += 1 + random() % 3;
        builder.poll_end(now_ns, 0);
        tasks[task].polls.push_back({start_ns, now_ns});
      } else {
        step(3);
        builder.wake(now_ns, task);
        tasks[task].wakes.push_back(now_ns);
      }
    }
    const Trace trace = builder.load();
    for (const auto& [id, slow] : tasks) {
      const std::vector<std::uint64_t> expected = slow.ready();
      const Range polls = trace.tasks.polls[trace.task_by_id.at(id)];
      ASSERT_EQ(polls.size(), expected.size());
      for (std::uint32_t i = 0; i < polls.size(); ++i) {
        ASSERT_EQ(trace.polls.ready_ns[trace.task_polls[polls.first + i]], expected[i])
            << "round " << round << " task " << id << " poll " << i;
      }
    }
  }
}

TEST(DelaySummary, CountsKnownInferredAndMissingApart) {
  TraceBuilder builder;
  std::uint64_t now_ns = 1'000;
  for (std::uint64_t task = 1; task <= 10; ++task) {
    if (task <= 6) {
      builder.wake(now_ns, task);
    } else if (task <= 9) {
      builder.spawn(now_ns, task);
    }
    builder.poll(now_ns + 10, now_ns + 20, 0, task);
    now_ns += 100;
  }
  const DelaySummary summary = summarize_delays(builder.load());
  EXPECT_EQ(summary.polls(Coverage::kKnown), 6U);
  EXPECT_EQ(summary.polls(Coverage::kInferred), 3U);
  EXPECT_EQ(summary.polls(Coverage::kMissing), 1U);
  EXPECT_EQ(summary.known.max(), 10U);
}

}  // namespace
}  // namespace dial9::analysis
