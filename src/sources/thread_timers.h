// A timer on each thread's CPU clock, armed from outside: the thread needn't do anything, and
// needn't know. Strongest property: what a thread may notice is a signal while it runs, and only if
// it doesn't block it; a thread that does gets no timer. Every timer is given back.
// Spec: docs/spec/cpu_samples.md, "Timers".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sources/thread_list.h"

namespace dial9::internal {

// The upper half of the signal's si_value: marks it as ours, and not as that of another copy of the
// library, of which a process may have two. Async-signal-safe.
std::uint64_t timer_mark() noexcept;

// How many timers this process may have, of which it has `armed` now: half of what others of its
// user leave of RLIMIT_SIGPENDING, by SigQ (used/limit) in the text of /proc/self/status. Without
// that: as many as the kernel gives.
std::uint32_t timer_room(std::string_view status, std::uint32_t armed);

struct TimerCounts {
  std::uint32_t armed = 0;
  std::uint32_t blocking = 0;     // not armed: the thread blocks the signal
  std::uint32_t refused = 0;      // not armed: no timer was to be had, or it is left to others
  std::uint32_t refused_tid = 0;  // one of them
  int refused_error = 0;
};

// One thread at a time.
class ThreadTimers {
 public:
  // Each armed thread gets `signal` once in `period_ns` of its CPU time, at a random phase.
  ThreadTimers(int signal, std::uint64_t period_ns);
  ~ThreadTimers();  // disarms
  ThreadTimers(const ThreadTimers&) = delete;
  ThreadTimers& operator=(const ThreadTimers&) = delete;

  // Arms threads that are new, gives back timers of those that ended, and looks again at a few
  // whether they block the signal. `own_tid` is left alone. Cost: 14 us + 0.5 us a thread, 10 us
  // for a new one, for each of 16 that are looked at again, and for the room there is.
  void scan(std::uint32_t own_tid);
  // The same with at most `room` timers armed; those that are stay.
  void scan(std::uint32_t own_tid, std::uint32_t room);
  void disarm_all();
  // In the child of a fork, which has none of its parent's timers.
  void forget_all();

  const TimerCounts& counts() const { return counts_; }
  // As of the last look at the thread; empty: not known.
  std::string_view name(std::uint32_t tid) const;

 private:
  enum class State : std::uint8_t { kNew, kArmed, kBlocking, kRefused };
  struct Thread {
    int timer = -1;
    State state = State::kNew;
    std::uint8_t times_blocking = 0;
    std::uint64_t round = 0;  // of the scan that saw it last
    std::string name;
  };

  void look_at(std::uint32_t tid, Thread& thread);
  void arm(std::uint32_t tid, Thread& thread);
  void disarm(Thread& thread);
  static bool is_expired(const Thread& thread);
  void look_again();
  void count();

  const int signal_;
  const std::uint64_t period_ns_;
  std::unordered_map<std::uint32_t, Thread> threads_;
  std::vector<std::uint32_t> tids_;  // of the last scan, without the own one
  std::uint64_t round_ = 0;
  std::size_t next_look_ = 0;
  std::uint64_t random_ = 0;
  std::uint32_t refused_tid_ = 0;
  int refused_error_ = 0;
  std::uint32_t armed_ = 0;
  std::uint32_t room_ = 0;
  TimerCounts counts_;
};

}  // namespace dial9::internal
