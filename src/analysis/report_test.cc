// The report's text and JSON, word for word.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/report.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/testing/trace_builder.h"

namespace dial9::analysis {
namespace {

Trace example() {
  constexpr std::uint64_t kMs = 1'000'000;
  testing::TraceBuilder builder;
  builder.clock_sync(1'000 * kMs, 1'790'000'000'000'000'000);
  builder.metadata(1'000 * kMs, "runtime.main", "0");
  for (std::uint64_t i = 0; i < 100; ++i) {
    builder.wake(1'000 * kMs + i * kMs, 1);
    builder.poll(1'000 * kMs + i * kMs + 1'000, 1'000 * kMs + i * kMs + 17'384, 0, 1, "app.cc:3");
  }
  for (std::uint64_t i = 0; i < 5; ++i) {
    builder.poll((1'200 + i * 100) * kMs, (1'220 + i * 100) * kMs, 0, 2, "slow.cc:9");
  }
  builder.loss(1'700 * kMs, "buffer full", 1, 1'690 * kMs, 1'695 * kMs);
  return builder.load();
}

TEST(Report, TextReadsAsIsWrittenHere) {
  const Trace trace = example();
  EXPECT_EQ(report_text(trace, diagnose(trace)),
            R"(313 events over 700 ms, from 2026-09-21T14:13:20.000000000Z
1 worker, 2 tasks, 105 polls, 0 spans
polls: p50 16.4 µs, p90 16.4 µs, p99 19.9 ms, max 20.0 ms
ready delay: p50 1.00 µs, p90 1.00 µs, p99 1.00 µs, max 1.00 µs (100 polls known, 0 from a spawn, 5 unknown)

1. critical long-poll: 5 polls of tasks from slow.cc:9 held a worker for up to 20.0 ms (100 ms in all, 14.3 % of one worker)
   when: 2026-09-21T14:13:20.200000000Z, worst 20.0 ms
   - all polls of this runtime: p50 16.4 µs, p90 16.4 µs, p99 19.9 ms, max 20.0 ms over 105 polls
   - the worst: task 2 on worker 0 (main)
   - the kernel's run-queue wait wasn't recorded, so a busy machine may be part of this
   next: all other tasks of that worker wait meanwhile: split the work, move it to a pool, or await

2. warning loss: 1 event was dropped (buffer full), 0.32 % of all
   when: 2026-09-21T14:13:20.690000000Z
   - in 1 stretch from 2026-09-21T14:13:20.690000000Z to 2026-09-21T14:13:20.695000000Z (5.00 ms); delays and span times that cross one are not judged
   next: larger thread buffers or budget, or fewer events of the noisiest type
)");
}

TEST(Report, JsonReadsAsIsWrittenHere) {
  const Trace trace = example();
  std::vector<Finding> findings = diagnose(trace);
  findings.erase(findings.begin());
  EXPECT_EQ(
      report_json(trace, findings),
      R"({"trace": {"events": 313, "events_at_least": 313, "begin": "2026-09-21T14:13:20.000000000Z", "duration_ns": 700000000, "duration_at_least_ns": 700000000, "workers": 1, "workers_at_least": 1, "tasks": 2, "tasks_at_least": 2, "polls": 105, "polls_at_least": 105, "spans": 0, "spans_at_least": 0, "lost_events": 1, "lost_events_at_least": 1, "shed": {}, "inversions": 0, "inversions_at_least": 0, "truncated": false}, "findings": [
{"kind": "loss", "severity": "warning", "message": "1 event was dropped (buffer full), 0.32 % of all", "count": 1, "worst_ns": null, "at": "2026-09-21T14:13:20.690000000Z", "at_ns": 690000000, "duration_ns": 5000000, "where": "buffer full", "worker": null, "task": null, "evidence": ["in 1 stretch from 2026-09-21T14:13:20.690000000Z to 2026-09-21T14:13:20.695000000Z (5.00 ms); delays and span times that cross one are not judged"], "next": "larger thread buffers or budget, or fewer events of the noisiest type"}
]}
)");
}

TEST(Report, WithoutAnAnchorCountsFromTheStart) {
  testing::TraceBuilder builder;
  builder.poll(5'000'000'000, 6'500'000'000, 0, 1);
  const Trace trace = builder.load();
  EXPECT_EQ(moment_text(trace, 6'500'000'000), "+1.500000s");
  EXPECT_EQ(moment_text(trace, kUnknownNs), "");
}

TEST(Report, OfNothingSaysSo) {
  EXPECT_NE(report_text(Trace{}, {}).find("no findings"), std::string::npos);
}

}  // namespace
}  // namespace dial9::analysis
