// Where a thread's time went, from its switches on a CPU and off it: each stretch off the CPU from
// its begin to its end, blocked or preempted. Strongest property: while no switch was lost,
// running, runnable and blocked sum to what passed, exactly; where one was, nothing is said until
// the thread's state is known again. Spec: docs/spec/off_cpu_samples.md, "Switches".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "recorder/sched_files.h"
#include "sources/thread_ledger.h"

namespace dial9::internal {

enum class SwitchKind : std::uint8_t {
  kIn,         // it was put on a CPU
  kBlocked,    // it left the CPU to wait for something
  kPreempted,  // it left the CPU while it could have gone on
  kLost,       // switches before this weren't told
};

struct ThreadSwitch {
  std::uint64_t at_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t lost = 0;   // of kLost, where counted
  std::uint32_t tid = 0;
  SwitchKind kind = SwitchKind::kLost;
  std::uint32_t stack = 0;  // of a switch off the CPU: the number of its SwitchStack; 0: none
};

// Off the CPU, or a piece of that.
struct OffStretch {
  std::uint64_t from_ns = 0;  // 0: before its switches were followed
  std::uint64_t to_ns = 0;
  std::optional<std::uint64_t> runnable_ns = {};  // of a blocked one: waiting for a CPU at its end
  std::uint64_t losses = 0;                       // SwitchAccount::losses() as it ended
  std::uint32_t stack = 0;                        // of the switch that it began with
  bool is_preempted = false;
  bool is_continued = false;  // an earlier piece was taken
  bool goes_on = false;       // it hasn't ended
  std::uint64_t length_ns() const { return to_ns - from_ns; }
};

// Of one thread. Switches come in their order; readings of the kernel's account (schedstat) tell
// what they don't: how long the thread waited for a CPU after it was woken.
class SwitchAccount {
 public:
  // Books what happened up to `at_ns`, at which moment, or just before, the account was `reading`.
  // Switches that came later wait for the next call.
  void book(std::span<const ThreadSwitch> switches, std::uint64_t at_ns,
            const SchedReading& reading);
  // The thread ended: all that is left.
  void book_rest(std::span<const ThreadSwitch> switches);

  // The stretches that ended, by time. One whose wait for a CPU can't be told yet comes later.
  void take_ended(std::vector<OffStretch>* to);
  // Those as well; and the one that goes on, as a piece up to now where `has_open`.
  void take_all(bool has_open, std::vector<OffStretch>* to);
  // A stretch is told of: blocked time that is seen.
  void add_seen(const OffStretch& stretch);

  // Of the time since the last call, up to booked_ns(). Nothing: it isn't known throughout.
  std::optional<ThreadTimes> take_times();
  std::uint64_t booked_ns() const { return booked_ns_; }
  bool is_known() const { return state_ != State::kUnknown; }
  // Times at which what it was doing was no more known.
  std::uint64_t losses() const { return losses_; }

 private:
  enum class State : std::uint8_t { kUnknown, kRunning, kOff };
  static constexpr std::size_t kMostWaiting = 4'096;  // switches that came later, and stretches

  void apply(const ThreadSwitch& one);
  void advance(std::uint64_t to_ns);
  void end_stretch(std::uint64_t at_ns);
  void lose();
  void match(const SchedReading& reading);

  State state_ = State::kUnknown;
  std::uint64_t booked_ns_ = 0;
  std::uint64_t losses_ = 0;
  OffStretch open_;                    // while off
  std::uint64_t open_since_ns_ = 0;    // its first piece
  std::vector<ThreadSwitch> later_;    // than the last book()
  std::vector<OffStretch> unmatched_;  // ended, with the wait for a CPU unknown so far
  std::vector<OffStretch> ended_;
  // Since the account that the switches were last matched with:
  SchedReading base_;
  bool has_base_ = false;
  std::uint64_t ins_ = 0;
  std::uint64_t blocked_count_ = 0;
  std::uint64_t preempted_ns_ = 0;
  int misses_ = 0;

  ThreadTimes times_;
  bool is_whole_ = false;
};

}  // namespace dial9::internal
