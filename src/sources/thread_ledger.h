// Where a thread's time went, from readings of the kernel's account (schedstat) at any moments:
// running, runnable and blocked sum to what passed, exactly and in every record. And how long it
// was in the wait that it was seen in: proven while its slice count stands still (a CPU clock that
// stands still is no proof); the blocked time at both ends of that is shared out by estimate, and
// kept apart.
// Spec: docs/spec/off_cpu_samples.md, "Times".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "recorder/sched_files.h"

namespace dial9::internal {

struct ThreadTimes {
  std::uint64_t elapsed_ns = 0;
  std::uint64_t running_ns = 0;
  std::uint64_t runnable_ns = 0;
  std::uint64_t blocked_ns = 0;
  std::uint64_t seen_ns = 0;   // of blocked: proven, in waits that were seen
  std::uint64_t share_ns = 0;  // of blocked: given to those by estimate
};

// A wait that was seen, or a piece of it.
struct SeenWait {
  std::uint64_t since_ns = 0;
  std::uint64_t seen_ns = 0;  // from `since_ns` on the thread didn't run for so long
  std::uint64_t share_ns = 0;
  bool is_continued = false;  // an earlier piece was taken
};

class ThreadLedger {
 public:
  ThreadLedger(std::uint64_t at_ns, const SchedReading& reading)
      : at_ns_(at_ns), times_since_ns_(at_ns), last_(reading) {}

  // It was put on a CPU since the last look. Also true where the reading can't be this thread's.
  bool has_run(const SchedReading& reading) const { return reading.slices != last_.slices; }
  // Its account fell: another thread has the id by now.
  bool is_other(const SchedReading& reading) const {
    return reading.slices < last_.slices || reading.run_ns < last_.run_ns ||
           reading.wait_ns < last_.wait_ns;
  }
  bool is_waiting() const { return is_waiting_; }

  // Books what passed since the last look. `is_blocked`: it was seen blocked now (in the wait that
  // goes on, if it hasn't run). Returns the wait that ended, if one did.
  std::optional<SeenWait> look(std::uint64_t at_ns, const SchedReading& reading, bool is_blocked);
  // Between two looks, of a thread that waits: from the last one up to `at_ns` it was charged for
  // no CPU time. Nothing is booked yet: the next look tells whether it was one wait all along.
  void stay(std::uint64_t at_ns);
  // It ended: what stay() told of it is booked, as an estimate.
  void end();
  // What there is of the wait that goes on, as a piece; it begins anew.
  SeenWait take_piece();
  ThreadTimes take_times();
  std::uint64_t at_ns() const { return at_ns_; }
  std::uint64_t times_since_ns() const { return times_since_ns_; }
  std::uint64_t wait_since_ns() const { return wait_.since_ns; }

 private:
  void begin_wait(std::uint64_t share_ns);
  std::uint64_t take_stay(std::uint64_t at_ns);
  std::uint64_t book_stay(std::uint64_t stay_ns, std::uint64_t elapsed_ns, std::uint64_t blocked_ns,
                          bool is_proven);
  std::uint64_t book(std::uint64_t elapsed_ns, std::uint64_t run_ns, std::uint64_t wait_ns);

  std::uint64_t at_ns_;
  std::uint64_t times_since_ns_;
  SchedReading last_;
  // Of the account, more than passed since the last look: booked later. The kernel counts a slice
  // as it ends, and waiting for a CPU as it is over.
  std::uint64_t late_run_ns_ = 0;
  std::uint64_t late_wait_ns_ = 0;
  bool is_waiting_ = false;
  std::uint64_t stay_until_ns_ = 0;  // 0: no stay() since the last look
  SeenWait wait_;
  ThreadTimes times_;
};

}  // namespace dial9::internal
