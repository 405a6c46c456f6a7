// The quiet wall sampler: looks at a few threads at a time, as often as a CPU budget allows, and
// writes down how long each was blocked, in which call and from where. Strongest property: a thread
// that hasn't run costs one read, and what can't be known (a wait between two looks) is counted as
// blocked time without a stack, never given to another's. Spec: docs/spec/off_cpu_samples.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "recorder/off_cpu_stream.h"
#include "sources/thread_ledger.h"
#include "sources/thread_probe.h"

namespace dial9::internal {

// Stacks of waits that go on, each once. Bounded: beyond it a wait has no stack.
class StackShelf {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  struct Stack {
    std::vector<std::uint64_t> frames;
    std::uint32_t users = 0;
    std::uint64_t hash = 0;
  };
  // Null: no room.
  Stack* put(const std::vector<std::uint64_t>& frames);
  void give_back(Stack* stack);
  std::size_t bytes() const { return bytes_; }

 private:
  std::unordered_multimap<std::uint64_t, std::unique_ptr<Stack>> stacks_;
  std::size_t bytes_ = 0;
};

class WallSampler {
 public:
  static constexpr std::size_t kBatch = 128;  // threads a step looks at
  static constexpr std::size_t kMostThreads = 16'384;
  static constexpr std::uint64_t kBudgetShare = 200;  // a step's CPU time is a 200th of a CPU's

  WallSampler(ThreadProbe& probe, OffCpuEncoder& encoder, std::uint32_t frequency_hz);

  // Looks at the next threads if they are due. `seed` jitters. Returns when the next step is due.
  std::uint64_t step(std::uint64_t now_ns);
  // The end: each thread's account once more, and all that is known is written.
  void finish();
  // Nothing moves: the next step may come with the collector's next pass.
  bool is_idle() const { return period_ns_ >= kIdlePeriodNs; }
  std::uint64_t due_ns() const { return due_ns_; }
  const OffCpuProfileRecord& totals() const { return totals_; }

 private:
  static constexpr std::uint64_t kMs = 1'000'000;
  static constexpr std::uint64_t kIdlePeriodNs = 250 * kMs;

  struct Waiting {
    BlockedThread thread;  // without frames
    StackShelf::Stack* stack = nullptr;
  };
  struct Thread {
    explicit Thread(std::uint64_t at_ns, const SchedReading& reading) : ledger(at_ns, reading) {}
    ThreadLedger ledger;
    std::string name;
    std::uint64_t round = 0;
    std::unique_ptr<Waiting> waiting;
  };

  void list(std::uint64_t now_ns);
  bool visit(std::uint32_t tid);
  bool look_at(std::uint32_t tid, const SchedReading& reading, Thread& thread);
  void end_wait(std::uint32_t tid, Thread& thread, const SeenWait& wait);
  void write_wait(std::uint32_t tid, const Thread& thread, const SeenWait& wait);
  void write_times(std::uint32_t tid, Thread& thread);
  void write_pieces(std::uint32_t tid, Thread& thread);
  void remove(std::uint32_t tid, Thread& thread);
  void write_profile(std::uint64_t now_ns, bool is_last);
  std::uint64_t piece_ns() const;
  std::uint64_t jittered(std::uint64_t ns);
  void pace(std::uint64_t now_ns, std::uint64_t cost_ns, std::size_t looked_at);

  ThreadProbe& probe_;
  OffCpuEncoder& encoder_;
  const std::uint64_t base_period_ns_;
  std::uint64_t period_ns_;
  std::uint64_t due_ns_ = 0;
  std::uint64_t list_due_ns_ = 0;
  std::uint64_t random_;
  std::vector<std::uint32_t> tids_;
  std::size_t next_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t round_begin_ns_ = 0;
  bool has_moved_ = false;  // a thread ran, in this round
  std::unordered_map<std::uint32_t, Thread> threads_;
  StackShelf shelf_;
  BlockedThread blocked_;  // of the last look; reused
  OffCpuProfileRecord totals_;
  OffCpuProfileRecord written_;
};

}  // namespace dial9::internal
