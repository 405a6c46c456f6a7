// What a process is in at one moment: what each worker does and since when, which tasks wait the
// longest, the queues, and what the handlers of the last moments took. For a trace whose records
// end at that moment, as a snapshot's do. Strongest property: it claims a wait only where the
// history since its begin is whole; the others are counted, not guessed.
// Spec: docs/spec/snapshot.md, "What is claimed".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/trace.h"

namespace dial9::analysis {

enum class WorkerDoing : std::uint8_t {
  kPolling,  // inside a poll
  kParked,   // waits in the kernel for work
  kBetween,  // neither: in the runtime itself, or outside it
};

struct WorkerNow {
  std::uint32_t lane = kNoIndex;
  WorkerDoing doing = WorkerDoing::kBetween;
  std::uint64_t since_ns = kUnknownNs;
  bool is_uncertain = false;      // events were lost since then: it may have gone on
  bool is_partial = false;        // or in its window: the numbers below are the least
  std::uint32_t poll = kNoIndex;  // kPolling
  // Over the lane's records: from the first to now.
  std::uint64_t window_ns = 0;
  std::uint64_t polls = 0;           // begun in the window, its first record left out
  std::uint64_t busy_ns = 0;         // inside polls, the open one too, as far as it is certain
  std::uint64_t parked_ns = 0;       // the open park too
  std::uint32_t longest = kNoIndex;  // of the complete polls
};

// A task that waits: for a worker (it is ready), or for what will make it ready.
struct TaskWait {
  std::uint32_t task = kNoIndex;
  std::uint64_t since_ns = 0;
  bool is_inferred = false;  // ready since its spawn, of which no wake was recorded
};

struct QueueNow {
  NameId runtime = kNoName;
  std::uint64_t at_ns = kUnknownNs;  // of the last sample
  double depth = -1;                 // -1: never sampled
  double alive_tasks = -1;
};

// Handlers of one place, by their longest poll; one that still runs counts with its time so far.
struct PlaceNow {
  NameId place = kNoName;
  std::uint64_t polls = 0;  // complete ones
  std::uint64_t total_ns = 0;
  std::uint64_t longest_ns = 0;
  bool is_open = false;       // the longest one still runs
  bool is_uncertain = false;  // or did when events were lost
};

struct NowOptions {
  std::uint64_t now_ns = 0;             // 0: the trace's end
  std::uint64_t complete_since_ns = 0;  // of all threads no record after this is missing
  std::size_t max_rows = 10;            // of each list of tasks and places
};

struct NowView {
  std::uint64_t now_ns = 0;
  std::vector<WorkerNow> workers;   // by lane
  std::vector<TaskWait> ready;      // woken, not polled since: longest first
  std::vector<TaskWait> suspended;  // alive, not woken: longest first
  std::uint64_t ready_count = 0;    // all of them
  std::uint64_t suspended_count = 0;
  std::uint64_t uncertain_tasks = 0;  // records that would tell are missing or older
  std::vector<QueueNow> queues;       // by runtime's name
  std::vector<PlaceNow> places;       // slowest first
};

// O(polls + tasks + wakes).
NowView look_at_now(const Trace& trace, const NowOptions& options);

}  // namespace dial9::analysis
