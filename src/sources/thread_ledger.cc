// See thread_ledger.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/thread_ledger.h"

#include <algorithm>
#include <utility>

namespace dial9::internal {

// Returns the blocked part. What the account has beyond what passed belongs to the time before: to
// the wait that just ended as far as it goes (it was runnable by then), else it waits.
std::uint64_t ThreadLedger::book(std::uint64_t elapsed_ns, std::uint64_t run_ns,
                                 std::uint64_t wait_ns) {
  const std::uint64_t run = run_ns + std::exchange(late_run_ns_, 0);
  const std::uint64_t wait = wait_ns + std::exchange(late_wait_ns_, 0);
  const std::uint64_t running = std::min(run, elapsed_ns);
  const std::uint64_t runnable = std::min(wait, elapsed_ns - running);
  const std::uint64_t blocked = elapsed_ns - running - runnable;
  late_run_ns_ = run - running;
  std::uint64_t late = wait - runnable;
  if (is_waiting_) {
    const std::uint64_t before = std::min({late, wait_.seen_ns, times_.seen_ns, times_.blocked_ns});
    wait_.seen_ns -= before;
    times_.seen_ns -= before;
    times_.blocked_ns -= before;
    times_.runnable_ns += before;
    late -= before;
  }
  late_wait_ns_ = late;
  times_.elapsed_ns += elapsed_ns;
  times_.running_ns += running;
  times_.runnable_ns += runnable;
  times_.blocked_ns += blocked;
  return blocked;
}

void ThreadLedger::begin_wait(std::uint64_t share_ns) {
  is_waiting_ = true;
  wait_ = {.since_ns = at_ns_, .seen_ns = 0, .share_ns = share_ns, .is_continued = false};
  times_.share_ns += share_ns;
}

void ThreadLedger::stay(std::uint64_t at_ns) { stay_until_ns_ = std::max(at_ns, stay_until_ns_); }

// How long it stayed since the last look, within what passed up to `at_ns`.
std::uint64_t ThreadLedger::take_stay(std::uint64_t at_ns) {
  const std::uint64_t until_ns = std::min(std::exchange(stay_until_ns_, 0), at_ns);
  return is_waiting_ && until_ns > at_ns_ ? until_ns - at_ns_ : 0;
}

// Of the blocked part of what passed that which lies in its first `stay_ns` is the wait's: running
// and waiting for a CPU were at its end. Returns the rest.
std::uint64_t ThreadLedger::book_stay(std::uint64_t stay_ns, std::uint64_t elapsed_ns,
                                      std::uint64_t blocked_ns, bool is_proven) {
  const std::uint64_t rest_ns = elapsed_ns - stay_ns;
  const std::uint64_t left_ns = rest_ns - std::min(rest_ns, elapsed_ns - blocked_ns);
  const std::uint64_t stayed_ns = blocked_ns - left_ns;
  (is_proven ? wait_.seen_ns : wait_.share_ns) += stayed_ns;
  (is_proven ? times_.seen_ns : times_.share_ns) += stayed_ns;
  return left_ns;
}

void ThreadLedger::end() {
  const std::uint64_t stay_ns = take_stay(~std::uint64_t{0});
  if (stay_ns == 0) return;
  at_ns_ += stay_ns;
  book_stay(stay_ns, stay_ns, book(stay_ns, 0, 0), false);
}

std::optional<SeenWait> ThreadLedger::look(std::uint64_t at_ns, const SchedReading& reading,
                                           bool is_blocked) {
  const std::uint64_t elapsed_ns = at_ns > at_ns_ ? at_ns - at_ns_ : 0;
  const std::uint64_t stay_ns = take_stay(at_ns);
  const bool has_run = this->has_run(reading);
  at_ns_ = std::max(at_ns, at_ns_);
  const SchedReading before = std::exchange(last_, reading);
  if (!has_run && is_waiting_) {
    wait_.seen_ns += elapsed_ns;
    times_.seen_ns += elapsed_ns;
    times_.blocked_ns += elapsed_ns;
    times_.elapsed_ns += elapsed_ns;
    return std::nullopt;
  }
  const std::uint64_t blocked_ns =
      book(elapsed_ns, reading.run_ns - before.run_ns, reading.wait_ns - before.wait_ns);
  std::optional<SeenWait> ended;
  std::uint64_t left_ns = blocked_ns;
  if (is_waiting_) {
    // What was charged came after the stay: so did the slice, where it was the only one. Of several
    // an earlier one may have been too short for the clock.
    const bool is_proven =
        reading.slices == before.slices + 1 && reading.run_ns != before.run_ns;
    left_ns = book_stay(stay_ns, elapsed_ns, blocked_ns, is_proven);
    // Its end and the begin of the next one lie in here, at moments that aren't known.
    const std::uint64_t share_ns = is_blocked ? left_ns / 2 : left_ns;
    left_ns -= share_ns;
    wait_.share_ns += share_ns;
    times_.share_ns += share_ns;
    ended = wait_;
    is_waiting_ = false;
  }
  if (is_blocked) begin_wait(left_ns);
  return ended;
}

SeenWait ThreadLedger::take_piece() {
  const SeenWait piece = wait_;
  wait_ = {.since_ns = at_ns_, .seen_ns = 0, .share_ns = 0, .is_continued = true};
  return piece;
}

ThreadTimes ThreadLedger::take_times() {
  times_since_ns_ = at_ns_;
  return std::exchange(times_, {});
}

}  // namespace dial9::internal
