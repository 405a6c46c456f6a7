// See switch_account.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/switch_account.h"

#include <algorithm>
#include <utility>

namespace dial9::internal {

// Up to `to_ns` it went on with what it did.
void SwitchAccount::advance(std::uint64_t to_ns) {
  const std::uint64_t passed_ns = to_ns > booked_ns_ ? to_ns - booked_ns_ : 0;
  booked_ns_ = std::max(booked_ns_, to_ns);
  if (state_ == State::kUnknown) {
    is_whole_ = false;
    return;
  }
  times_.elapsed_ns += passed_ns;
  if (state_ == State::kRunning) {
    times_.running_ns += passed_ns;
  } else if (open_.is_preempted) {
    times_.runnable_ns += passed_ns;
  } else {
    times_.blocked_ns += passed_ns;
  }
}

void SwitchAccount::lose() {
  state_ = State::kUnknown;
  is_whole_ = false;
  has_base_ = false;
  ++losses_;
}

void SwitchAccount::end_stretch(std::uint64_t at_ns) {
  open_.to_ns = at_ns;
  open_.losses = losses_;
  if (open_.is_preempted) {
    preempted_ns_ += at_ns - open_since_ns_;
  } else {
    ++blocked_count_;
  }
  unmatched_.push_back(open_);
}

void SwitchAccount::apply(const ThreadSwitch& one) {
  if (one.kind == SwitchKind::kLost) return lose();
  // Clocks of two CPUs, and what was booked already, may be ahead by a little.
  const std::uint64_t at_ns = std::max(one.at_ns, booked_ns_);
  const bool is_in = one.kind == SwitchKind::kIn;
  // Twice the same: one in between is missing.
  if (state_ == (is_in ? State::kRunning : State::kOff)) lose();
  advance(at_ns);
  if (is_in) {
    ++ins_;
    if (state_ == State::kUnknown) {
      open_ = {};
      open_since_ns_ = at_ns;
    }
    end_stretch(at_ns);
    state_ = State::kRunning;
    return;
  }
  state_ = State::kOff;
  open_ = {
      .from_ns = at_ns, .stack = one.stack, .is_preempted = one.kind == SwitchKind::kPreempted};
  open_since_ns_ = at_ns;
}

// The kernel counts a wait for a CPU as it ends, with the slice that begins: as many slices as
// switches mean that all of it is of the stretches that ended.
void SwitchAccount::match(const SchedReading& reading) {
  constexpr int kMostMisses = 2;
  const bool is_matched = has_base_ && reading.slices - base_.slices == ins_;
  if (!is_matched && has_base_ && ++misses_ < kMostMisses && unmatched_.size() < kMostWaiting) {
    return;
  }
  if (is_matched) {
    const std::uint64_t wait_ns = reading.wait_ns - base_.wait_ns;
    const std::uint64_t woken_ns = wait_ns - std::min(wait_ns, preempted_ns_);
    const std::uint64_t moved_ns = std::min(woken_ns, times_.blocked_ns);
    times_.blocked_ns -= moved_ns;
    times_.runnable_ns += moved_ns;
    const auto only = std::ranges::find(unmatched_, false, &OffStretch::is_preempted);
    if (blocked_count_ == 1 && only != unmatched_.end()) only->runnable_ns = woken_ns;
  }
  ended_.insert(ended_.end(), unmatched_.begin(), unmatched_.end());
  unmatched_.clear();
  base_ = reading;
  has_base_ = state_ != State::kUnknown;
  ins_ = blocked_count_ = preempted_ns_ = 0;
  misses_ = 0;
}

void SwitchAccount::book(std::span<const ThreadSwitch> switches, std::uint64_t at_ns,
                         const SchedReading& reading) {
  later_.insert(later_.end(), switches.begin(), switches.end());
  const auto first_later =
      std::ranges::find_if(later_, [&](const ThreadSwitch& one) { return one.at_ns > at_ns; });
  std::for_each(later_.begin(), first_later, [this](const ThreadSwitch& one) { apply(one); });
  later_.erase(later_.begin(), first_later);
  if (later_.size() > kMostWaiting) {  // a clock that stands still
    later_.clear();
    lose();
  }
  advance(at_ns);
  match(reading);
}

void SwitchAccount::book_rest(std::span<const ThreadSwitch> switches) {
  for (const ThreadSwitch& one : std::exchange(later_, {})) apply(one);
  for (const ThreadSwitch& one : switches) apply(one);
}

void SwitchAccount::take_ended(std::vector<OffStretch>* to) {
  to->insert(to->end(), ended_.begin(), ended_.end());
  ended_.clear();
}

void SwitchAccount::take_all(bool has_open, std::vector<OffStretch>* to) {
  take_ended(to);
  to->insert(to->end(), unmatched_.begin(), unmatched_.end());
  unmatched_.clear();
  if (!has_open || state_ != State::kOff || booked_ns_ <= open_.from_ns) return;
  open_.to_ns = booked_ns_;
  open_.losses = losses_;
  to->push_back(open_);
  to->back().goes_on = true;
  open_.from_ns = booked_ns_;
  open_.is_continued = true;
}

void SwitchAccount::add_seen(const OffStretch& stretch) {
  if (stretch.is_preempted || stretch.from_ns == 0) return;
  times_.seen_ns +=
      stretch.length_ns() - std::min(stretch.length_ns(), stretch.runnable_ns.value_or(0));
}

std::optional<ThreadTimes> SwitchAccount::take_times() {
  ThreadTimes times = std::exchange(times_, {});
  times.seen_ns = std::min(times.seen_ns, times.blocked_ns);
  if (!std::exchange(is_whole_, state_ != State::kUnknown)) return std::nullopt;
  return times;
}

}  // namespace dial9::internal
