// The quiet wall sampler: looks at a few threads at a time, as often as a CPU budget allows, and
// writes down how long each was blocked, in which call and from where; from switch to switch, where
// those are followed. Strongest property: a thread that hasn't run costs one system call, and what
// can't be known (a wait between two looks) is counted as blocked time without a stack, never given
// to another's. Spec: docs/spec/off_cpu_samples.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "recorder/off_cpu_stream.h"
#include "sources/switch_account.h"
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
  // Under a budget of the user's, and a quarter of that, down to this.
  static constexpr std::uint64_t kSmallestShare = 20'000;
  // A wait for a connection is slow from then on: its connection is read, and again each time the
  // wait has doubled; at most so many a second.
  static constexpr std::uint64_t kSlowWaitNs = 50'000'000;
  static constexpr std::uint64_t kMostSockets = 50;
  // Of a wait so much at most, beside the time between two looks, is told by the thread's CPU clock
  // alone, which is no proof: a 32nd of it.
  static constexpr std::uint64_t kClockShare = 32;
  // Stretches without a look that have an event of their own, a second; the longest ones.
  static constexpr std::uint64_t kMostListed = 5'000;

  WallSampler(ThreadProbe& probe, OffCpuEncoder& encoder, std::uint32_t frequency_hz);

  // Looks at the next threads if they are due. `seed` jitters. Returns when the next step is due.
  std::uint64_t step(std::uint64_t now_ns);
  // The end: each thread's account once more, and all that is known is written.
  void finish();
  // The user's budget for all of recording, ns of CPU time a second; 0: none.
  void set_budget(double max_cpu_ns);
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
    bool is_followed = false;         // its switches were, when it was seen
    bool has_switches = false;        // what the thread did was known when it was seen
    std::uint64_t losses = 0;         // of its switches, then
    bool is_written = false;          // to its end, from its switches
    std::uint64_t socket_due_ns = 0;  // its connection is read then, if it has one
  };
  // The stack of a switch off the CPU whose stretch isn't told to its end yet.
  struct LeftStack {
    std::uint32_t number = 0;
    StackShelf::Stack* stack = nullptr;
    std::string_view unwound_by;
    std::string_view cause;
    bool is_truncated = false;
  };
  struct Thread {
    explicit Thread(std::uint64_t at_ns, const SchedReading& reading) : ledger(at_ns, reading) {}
    ThreadLedger ledger;
    std::string name;
    std::uint64_t round = 0;
    std::unique_ptr<Waiting> waiting;
    // While it waits: its CPU clock, read before an account by which it hadn't run in this wait.
    std::optional<std::uint64_t> charged_ns;
    std::unique_ptr<SwitchAccount> switches;  // null: not followed
    std::vector<LeftStack> left;              // by number
  };

  void list(std::uint64_t now_ns);
  bool is_list_good(std::uint64_t now_ns, std::optional<std::uint64_t> count) const;
  bool visit(std::uint32_t tid);
  bool has_stayed(std::uint32_t tid, std::uint64_t at_ns, Thread& thread,
                  std::optional<std::uint64_t>* charged_ns);
  bool look_at(std::uint32_t tid, const SchedReading& reading, Thread& thread);
  void end_wait(std::uint32_t tid, Thread& thread, const SeenWait& wait);
  void begin_wait(Thread& thread);
  OffCpuRecord record_of(std::uint32_t tid, const Thread& thread, const Waiting* waiting) const;
  void write_wait(std::uint32_t tid, const Thread& thread, const SeenWait& wait);
  static bool is_exact(const Thread& thread);
  void book_switches(std::uint32_t tid, std::uint64_t at_ns, const SchedReading& reading,
                     Thread& thread);
  void take_stacks(Thread& thread);
  void forget_stacks(Thread& thread, std::uint32_t up_to);
  void put_stack(const Thread& thread, std::uint32_t number, const Waiting* waiting,
                 OffCpuRecord& record) const;
  void write_stretches(std::uint32_t tid, Thread& thread);
  void write_stretch(std::uint32_t tid, Thread& thread, const OffStretch& stretch);
  void read_socket(std::uint32_t tid, std::uint64_t at_ns, const SchedReading& reading,
                   Thread& thread);
  bool is_listed(const OffStretch& stretch);
  void set_least_listed(std::uint64_t now_ns);
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
  std::uint64_t share_ = kBudgetShare;
  std::uint64_t due_ns_ = 0;
  std::uint64_t list_due_ns_ = 0;
  std::uint64_t random_;
  std::vector<std::uint32_t> tids_;
  std::vector<std::uint32_t> listed_;     // by the next list
  std::optional<std::uint64_t> counted_;  // as many as tids_ and this one, where that is proven
  std::uint64_t listed_ns_ = 0;
  std::uint32_t same_lists_ = 0;  // in a row
  bool has_missed_ = false;       // the account of one of tids_ couldn't be read since
  std::size_t next_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t round_begin_ns_ = 0;
  bool has_moved_ = false;  // a thread ran, in this round
  std::unordered_map<std::uint32_t, Thread> threads_;
  StackShelf shelf_;
  BlockedThread blocked_;  // of the last look; reused
  std::vector<ThreadSwitch> switched_;
  std::vector<SwitchStack> switch_stacks_;
  std::vector<OffStretch> stretches_;
  std::uint64_t least_listed_ns_ = 0;  // shorter ones are only counted
  std::uint64_t offered_ = 0;          // longer ones, in the second that began at:
  std::uint64_t offered_since_ns_ = 0;
  std::uint64_t sockets_read_ = 0;  // in the second that began at:
  std::uint64_t sockets_since_ns_ = 0;
  OffCpuProfileRecord totals_;
  OffCpuProfileRecord written_;
};

}  // namespace dial9::internal
