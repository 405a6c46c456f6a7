// See wall_sampler.h.
// SPDX-License-Identifier: Apache-2.0
#include "sources/wall_sampler.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace dial9::internal {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kListNs = kSecond / 10;
constexpr std::uint64_t kListAnywayNs = 10 * kSecond;
constexpr std::uint32_t kSameLists = 10;
// Waits that go on are written in pieces, so that what a kill leaves is short of that at most.
constexpr std::uint64_t kLeastPieceNs = 5 * kSecond;
constexpr std::uint64_t kPieceNsAThread = kSecond / 200;  // at most 200 pieces a second

std::uint64_t hash_of(const std::vector<std::uint64_t>& frames) {
  std::uint64_t hash = 0x9e37'79b9'7f4a'7c15u + frames.size();
  for (const std::uint64_t frame : frames) {
    hash = (hash ^ frame) * 0xff51'afd7'ed55'8ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

StackShelf::Stack* StackShelf::put(const std::vector<std::uint64_t>& frames) {
  const std::uint64_t hash = hash_of(frames);
  const auto [first, last] = stacks_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (at->second->frames != frames) continue;
    ++at->second->users;
    return at->second.get();
  }
  const std::size_t bytes = frames.size() * sizeof frames[0] + sizeof(Stack);
  if (bytes_ + bytes > kMostBytes) return nullptr;
  bytes_ += bytes;
  return stacks_.emplace(hash, std::make_unique<Stack>(frames, 1U, hash))->second.get();
}

void StackShelf::give_back(Stack* stack) {
  if (stack == nullptr || --stack->users != 0) return;
  bytes_ -= stack->frames.size() * sizeof stack->frames[0] + sizeof(Stack);
  const auto [first, last] = stacks_.equal_range(stack->hash);
  stacks_.erase(
      std::find_if(first, last, [&](const auto& at) { return at.second.get() == stack; }));
}

WallSampler::WallSampler(ThreadProbe& probe, OffCpuEncoder& encoder, std::uint32_t frequency_hz)
    : probe_(probe),
      encoder_(encoder),
      base_period_ns_(kSecond / frequency_hz),
      period_ns_(base_period_ns_),
      random_(probe.now_ns() | 1) {
  round_begin_ns_ = written_.at_ns = totals_.at_ns = probe.now_ns();
}

std::uint64_t WallSampler::piece_ns() const {
  return std::max(kLeastPieceNs, threads_.size() * kPieceNsAThread);
}

// Three quarters to five quarters of it: a thread that works at the period isn't always found at
// one place.
std::uint64_t WallSampler::jittered(std::uint64_t ns) {
  random_ = random_ * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
  return ns - ns / 4 + (random_ >> 33) % (ns / 2 + 1);
}

// All that were listed live, and there are as many as then: no other has come. One that takes the
// place of another within a round is found in the next one, so not where threads come and go.
bool WallSampler::is_list_good(std::uint64_t now_ns, std::optional<std::uint64_t> count) const {
  return same_lists_ >= kSameLists && !has_missed_ && count && count == counted_ &&
         now_ns - listed_ns_ < kListAnywayNs;
}

void WallSampler::list(std::uint64_t now_ns) {
  list_due_ns_ = now_ns + kListNs;
  const auto count = probe_.count();
  if (is_list_good(now_ns, count)) return;
  if (!probe_.list(&listed_)) return;
  counted_ = count == listed_.size() + 1 ? count : std::nullopt;
  listed_ns_ = now_ns;
  has_missed_ = false;
  same_lists_ = listed_ == tids_ ? same_lists_ + 1 : 0;
  tids_.swap(listed_);
  ++round_;
  totals_.threads_unsampled = 0;
  if (tids_.size() > kMostThreads) {
    totals_.threads_unsampled = static_cast<std::uint32_t>(tids_.size() - kMostThreads);
    tids_.resize(kMostThreads);
  }
  totals_.threads = static_cast<std::uint32_t>(tids_.size());
  for (const std::uint32_t tid : tids_) {
    const auto known = threads_.find(tid);
    if (known != threads_.end()) known->second.round = round_;
  }
  for (auto at = threads_.begin(); at != threads_.end();) {
    if (at->second.round == round_) {
      ++at;
      continue;
    }
    remove(at->first, at->second);
    at = threads_.erase(at);
  }
}

// What is known of a thread that ended, up to the last look at it.
void WallSampler::remove(std::uint32_t tid, Thread& thread) {
  if (thread.switches != nullptr) {
    switched_.clear();
    switch_stacks_.clear();
    probe_.switches(tid, &switched_, &switch_stacks_);
    take_stacks(thread);
    thread.switches->book_rest(switched_);
    thread.switches->take_all(true, &stretches_);
    write_stretches(tid, thread);
  }
  thread.ledger.end();
  if (thread.waiting != nullptr) end_wait(tid, thread, thread.ledger.take_piece());
  write_times(tid, thread);
  forget_stacks(thread, ~std::uint32_t{0});
  probe_.forget(tid);
}

void WallSampler::begin_wait(Thread& thread) {
  thread.waiting = std::make_unique<Waiting>();
  Waiting& waiting = *thread.waiting;
  std::vector<std::uint64_t> frames = std::exchange(blocked_.frames, {});
  waiting.thread = blocked_;
  waiting.has_switches = thread.switches != nullptr && thread.switches->is_known();
  waiting.is_followed = thread.switches != nullptr;
  waiting.losses = waiting.is_followed ? thread.switches->losses() : 0;
  waiting.socket_due_ns = blocked_.at_ns + kSlowWaitNs;
  if (frames.empty()) {
    ++totals_.unreadable;
  } else {
    ++totals_.stacks;
    waiting.stack = shelf_.put(frames);
    if (waiting.stack == nullptr) ++totals_.lost;
  }
  blocked_.frames = std::move(frames);
}

// Its wait is, or will be, told by its switches.
bool WallSampler::is_exact(const Thread& thread) {
  const Waiting& waiting = *thread.waiting;
  return waiting.is_written || (waiting.has_switches && thread.switches != nullptr &&
                                thread.switches->losses() == waiting.losses);
}

void WallSampler::end_wait(std::uint32_t tid, Thread& thread, const SeenWait& wait) {
  if (thread.waiting == nullptr) return;
  if (!thread.waiting->is_written && is_exact(thread)) {
    thread.switches->take_all(false, &stretches_);
    write_stretches(tid, thread);
  }
  if (!is_exact(thread)) write_wait(tid, thread, wait);
  shelf_.give_back(thread.waiting->stack);
  thread.waiting.reset();
}

// `waiting`: null: nobody looked.
OffCpuRecord WallSampler::record_of(std::uint32_t tid, const Thread& thread,
                                    const Waiting* waiting) const {
  OffCpuRecord record;
  record.tid = tid;
  record.thread_name = thread.name;
  if (waiting == nullptr) return record;
  const BlockedThread& blocked = waiting->thread;
  record.is_parked = blocked.context.is_parked;
  record.is_truncated = blocked.is_truncated;
  record.has_guessed_fp = blocked.has_guessed_fp;
  record.task = blocked.context.sample.task;
  record.span = blocked.context.sample.span;
  record.label = blocked.context.sample.label;
  record.call = blocked.call;
  record.cause = blocked.cause;
  record.address = blocked.peer;
  record.fd = blocked.fd;
  record.object = blocked.object;
  if (waiting->stack != nullptr) {
    record.unwound_by = blocked.unwound_by;
    record.frames = waiting->stack->frames;
  }
  return record;
}

void WallSampler::write_wait(std::uint32_t tid, const Thread& thread, const SeenWait& wait) {
  if (thread.waiting == nullptr || (wait.seen_ns == 0 && wait.share_ns == 0)) return;
  OffCpuRecord record = record_of(tid, thread, thread.waiting.get());
  record.at_ns = wait.since_ns;
  record.seen_ns = wait.seen_ns;
  record.share_ns = wait.share_ns;
  record.is_continued = wait.is_continued;
  encoder_.add(record);
}

// The thread hasn't run since it was seen to wait.
void WallSampler::read_socket(std::uint32_t tid, std::uint64_t at_ns, const SchedReading& reading,
                              Thread& thread) {
  Waiting& waiting = *thread.waiting;
  if (!waiting.thread.socket || at_ns < waiting.socket_due_ns) return;
  const std::uint64_t waited_ns = at_ns - waiting.thread.at_ns;
  waiting.socket_due_ns = at_ns + waited_ns;
  if (at_ns - sockets_since_ns_ >= kSecond) {
    sockets_since_ns_ = at_ns;
    sockets_read_ = 0;
  }
  if (sockets_read_ == kMostSockets) {
    ++totals_.sockets_unread;
    return;
  }
  ++sockets_read_;
  const auto health = probe_.socket_health(tid, reading, waiting.thread);
  if (!health) return;
  SocketWaitRecord record;
  record.at_ns = at_ns;
  record.waited_ns = waited_ns;
  record.cookie = *waiting.thread.socket;
  record.tcp_state = health->state;
  record.rtt_ns = health->rtt_ns;
  record.rtt_var_ns = health->rtt_var_ns;
  record.retransmits = health->retransmits;
  record.total_retransmits = health->total_retransmits;
  record.unacked_segments = health->unacked;
  record.lost_segments = health->lost;
  record.since_received_ns = health->since_received_ns;
  record.since_sent_ns = health->since_sent_ns;
  record.unread_bytes = health->unread_bytes;
  record.unsent_bytes = health->unsent_bytes;
  encoder_.add(record, record_of(tid, thread, &waiting));
}

// As many a second as there is room for, the longest first.
bool WallSampler::is_listed(const OffStretch& stretch) {
  constexpr std::uint64_t kBurst = 2;
  if (stretch.length_ns() >= least_listed_ns_ && ++offered_ <= kBurst * kMostListed) return true;
  ++totals_.unlisted;
  return false;
}

void WallSampler::set_least_listed(std::uint64_t now_ns) {
  constexpr std::uint64_t kFirstNs = 1'000;
  if (now_ns - offered_since_ns_ < kSecond) return;
  const std::uint64_t a_second = offered_ * kSecond / (now_ns - offered_since_ns_);
  if (a_second > kMostListed) {
    least_listed_ns_ =
        std::max(kFirstNs, least_listed_ns_) * std::bit_ceil(a_second / kMostListed + 1);
  } else if (a_second < kMostListed / 4) {
    least_listed_ns_ = least_listed_ns_ <= kFirstNs ? 0 : least_listed_ns_ / 2;
  }
  offered_ = 0;
  offered_since_ns_ = now_ns;
}

void WallSampler::take_stacks(Thread& thread) {
  constexpr std::size_t kMostLeft = 1'024;  // of switches whose stretches were never told
  for (const SwitchStack& taken : switch_stacks_) {
    StackShelf::Stack* const stack = taken.frames.empty() ? nullptr : shelf_.put(taken.frames);
    if (stack == nullptr) {
      ++totals_.lost;
      continue;
    }
    thread.left.push_back({taken.number, stack, taken.unwound_by, taken.cause, taken.is_truncated});
  }
  if (thread.left.size() > kMostLeft) {
    totals_.lost += thread.left.size() - kMostLeft;
    forget_stacks(thread, thread.left[thread.left.size() - kMostLeft - 1].number);
  }
}

void WallSampler::forget_stacks(Thread& thread, std::uint32_t up_to) {
  const auto kept = std::ranges::find_if(
      thread.left, [up_to](const LeftStack& left) { return left.number > up_to; });
  std::for_each(thread.left.begin(), kept,
                [this](const LeftStack& left) { shelf_.give_back(left.stack); });
  thread.left.erase(thread.left.begin(), kept);
}

// That of the switch is of the same place as a look's, found with all registers, but no deeper than
// its copy.
void WallSampler::put_stack(const Thread& thread, std::uint32_t number, const Waiting* waiting,
                            OffCpuRecord& record) const {
  const auto left = std::ranges::find(thread.left, number, &LeftStack::number);
  if (number == 0 || left == thread.left.end()) return;
  const bool is_better =
      waiting == nullptr || waiting->stack == nullptr ||
      (!left->is_truncated && (waiting->thread.is_truncated || waiting->thread.has_guessed_fp));
  if (is_better) {
    record.frames = left->stack->frames;
    record.unwound_by = left->unwound_by;
    record.is_truncated = left->is_truncated;
    record.has_guessed_fp = false;
  }
  if (waiting == nullptr && !record.is_preempted) record.cause = left->cause;
}

// The wait that was seen is the first stretch that ended after the look at it, unless switches were
// lost in between.
void WallSampler::write_stretch(std::uint32_t tid, Thread& thread, const OffStretch& stretch) {
  Waiting* const waiting = thread.waiting.get();
  const bool is_seen = waiting != nullptr && !waiting->is_written && !stretch.is_preempted &&
                       waiting->is_followed && stretch.losses == waiting->losses &&
                       (stretch.goes_on || stretch.to_ns > waiting->thread.at_ns);
  const bool has_begin = stretch.from_ns != 0;
  // Stretches come in their order: earlier stacks are nobody's any more, nor is this one where it
  // isn't told.
  if (stretch.stack != 0) forget_stacks(thread, stretch.stack - 1);
  if (!has_begin && !is_seen) return;
  OffStretch told = stretch;
  if (!has_begin) told.from_ns = std::min(thread.ledger.wait_since_ns(), told.to_ns);
  if (is_seen) waiting->is_written = !told.goes_on;
  if (told.length_ns() == 0 || (!is_seen && !is_listed(told))) return;
  OffCpuRecord record = record_of(tid, thread, is_seen ? waiting : nullptr);
  record.at_ns = told.from_ns;
  record.seen_ns = told.length_ns();
  record.is_continued = told.is_continued;
  record.is_preempted = told.is_preempted;
  record.is_exact = has_begin;
  if (told.runnable_ns) record.runnable_ns = std::min(*told.runnable_ns, told.length_ns());
  put_stack(thread, told.stack, is_seen ? waiting : nullptr, record);
  thread.switches->add_seen(told);
  encoder_.add(record);
}

void WallSampler::write_stretches(std::uint32_t tid, Thread& thread) {
  for (const OffStretch& stretch : stretches_) write_stretch(tid, thread, stretch);
  stretches_.clear();
}

void WallSampler::book_switches(std::uint32_t tid, std::uint64_t at_ns, const SchedReading& reading,
                                Thread& thread) {
  switched_.clear();
  switch_stacks_.clear();
  if (!probe_.switches(tid, &switched_, &switch_stacks_)) {
    if (thread.switches == nullptr) return;
    thread.switches->take_all(true, &stretches_);  // no more: what is known of it is told
    write_stretches(tid, thread);
    thread.switches.reset();
    forget_stacks(thread, ~std::uint32_t{0});
    return;
  }
  take_stacks(thread);
  if (thread.switches == nullptr) thread.switches = std::make_unique<SwitchAccount>();
  thread.switches->book(switched_, at_ns, reading);
  thread.switches->take_ended(&stretches_);
  write_stretches(tid, thread);
}

void WallSampler::write_times(std::uint32_t tid, Thread& thread) {
  ThreadTimes times = thread.ledger.take_times();
  ThreadTimesRecord record;
  record.at_ns = thread.ledger.at_ns();
  if (thread.switches != nullptr) {
    if (const auto exact = thread.switches->take_times(); exact && exact->elapsed_ns != 0) {
      times = *exact;
      record.at_ns = thread.switches->booked_ns();
      record.is_exact = true;
    }
  }
  if (times.elapsed_ns == 0) return;
  record.tid = tid;
  record.thread_name = thread.name;
  record.elapsed_ns = times.elapsed_ns;
  record.running_ns = times.running_ns;
  record.runnable_ns = times.runnable_ns;
  record.blocked_ns = times.blocked_ns;
  record.seen_ns = times.seen_ns;
  record.share_ns = times.share_ns;
  encoder_.add(record);
}

void WallSampler::write_pieces(std::uint32_t tid, Thread& thread) {
  if (thread.switches != nullptr) {
    thread.switches->take_all(true, &stretches_);
    write_stretches(tid, thread);
  }
  if (thread.waiting != nullptr) {
    const SeenWait piece = thread.ledger.take_piece();
    if (!is_exact(thread)) write_wait(tid, thread, piece);
  }
  write_times(tid, thread);
}

// True: it is blocked, and didn't run while it was looked at.
bool WallSampler::look_at(std::uint32_t tid, const SchedReading& reading, Thread& thread) {
  switch (probe_.look(tid, reading, &blocked_)) {
    case Look::kBlocked:
      break;
    case Look::kMoved:
      ++totals_.moved;
      return false;
    case Look::kUnreadable:
      ++totals_.unreadable;
      return false;
    case Look::kRunning:
      return false;
  }
  static_cast<void>(thread);
  return true;
}

// True: it waits, and its CPU clock stands still, which will do for now. The clock is only asked
// where the wait is so long, and its account so new, that little is left unproven. `charged_ns`:
// what it said, if it was asked.
bool WallSampler::has_stayed(std::uint32_t tid, std::uint64_t at_ns, Thread& thread,
                             std::optional<std::uint64_t>* charged_ns) {
  const Waiting* const waiting = thread.waiting.get();
  if (waiting == nullptr || thread.switches != nullptr) return false;
  if (at_ns < waiting->thread.at_ns || at_ns < thread.ledger.at_ns()) return false;
  const std::uint64_t waited_ns = at_ns - waiting->thread.at_ns;
  if ((at_ns - thread.ledger.at_ns()) * kClockShare > waited_ns) return false;
  if (at_ns - thread.ledger.times_since_ns() >= piece_ns()) return false;
  if (waiting->thread.socket && at_ns >= waiting->socket_due_ns) return false;
  *charged_ns = probe_.charged_ns(tid);
  if (!*charged_ns || *charged_ns != thread.charged_ns) return false;
  thread.ledger.stay(at_ns);
  return true;
}

// True: it has run since the last look.
bool WallSampler::visit(std::uint32_t tid) {
  ++totals_.looks;
  const std::uint64_t at_ns = probe_.now_ns();
  const auto known = threads_.find(tid);
  std::optional<std::uint64_t> charged_ns;
  if (known != threads_.end() && has_stayed(tid, at_ns, known->second, &charged_ns)) return false;
  const auto reading = probe_.account(tid);
  if (!reading) {  // the next list tells whether it ended, where that isn't known
    has_missed_ = true;
    if (known == threads_.end()) probe_.forget(tid);  // what is kept may be another's before it
    if (known == threads_.end() || !probe_.has_ended()) return false;
    remove(tid, known->second);
    threads_.erase(known);
    return true;
  }
  if (known != threads_.end() && known->second.ledger.is_other(*reading)) {
    remove(tid, known->second);
    threads_.erase(known);
    return true;
  }
  const bool is_new = known == threads_.end();
  Thread& thread =
      is_new ? threads_.try_emplace(tid, at_ns, *reading).first->second : known->second;
  if (is_new) {
    thread.round = round_;
    thread.name = probe_.name(tid);
  }
  const bool has_run = is_new || thread.ledger.has_run(*reading);
  book_switches(tid, probe_.now_ns(), *reading, thread);
  const bool goes_on = !has_run && thread.ledger.is_waiting();
  const bool is_blocked = goes_on || look_at(tid, *reading, thread);
  if (const auto ended = thread.ledger.look(at_ns, *reading, is_blocked)) {
    end_wait(tid, thread, *ended);
  }
  if (!goes_on || charged_ns) thread.charged_ns = goes_on ? charged_ns : std::nullopt;
  if (is_blocked && !goes_on) begin_wait(thread);
  if (goes_on && thread.waiting != nullptr) read_socket(tid, at_ns, *reading, thread);
  const std::uint64_t since_ns = thread.ledger.times_since_ns();
  if (at_ns - since_ns >= (has_run ? kSecond : piece_ns())) {
    if (has_run) thread.name = probe_.name(tid);
    write_pieces(tid, thread);
  }
  return has_run;
}

void WallSampler::pace(std::uint64_t now_ns, std::uint64_t cost_ns, std::size_t looked_at) {
  if (next_ >= tids_.size()) {  // a round is over
    totals_.round_ns = now_ns - std::exchange(round_begin_ns_, now_ns);
    period_ns_ = has_moved_ ? std::max(base_period_ns_, period_ns_ / 2)
                            : std::min(kIdlePeriodNs, period_ns_ * 2);
    has_moved_ = false;
    next_ = 0;
  }
  const std::uint64_t share_ns =
      looked_at == 0 ? period_ns_ : period_ns_ * looked_at / tids_.size();
  due_ns_ = now_ns + std::max(jittered(share_ns), cost_ns * share_);
}

void WallSampler::set_budget(double max_cpu_ns) {
  constexpr double kQuarterOfSecondNs = 4e9;
  const double share = max_cpu_ns > 0 ? kQuarterOfSecondNs / max_cpu_ns : 0;
  share_ =
      static_cast<std::uint64_t>(std::clamp(share, double{kBudgetShare}, double{kSmallestShare}));
}

std::uint64_t WallSampler::step(std::uint64_t now_ns) {
  // A clock that starts anew doesn't leave it waiting.
  if (now_ns < due_ns_ && due_ns_ - now_ns < 60 * kSecond) return due_ns_;
  const std::uint64_t begin_ns = probe_.cpu_ns();
  if (next_ == 0 && now_ns >= list_due_ns_) list(now_ns);
  const std::size_t last = std::min(next_ + kBatch, tids_.size());
  const std::size_t count = last - std::min(next_, last);
  for (; next_ < last; ++next_) {
    if (visit(tids_[next_])) has_moved_ = true;
  }
  set_least_listed(now_ns);
  write_profile(probe_.now_ns(), false);
  pace(now_ns, probe_.cpu_ns() - begin_ns, count);
  return due_ns_;
}

void WallSampler::write_profile(std::uint64_t now_ns, bool is_last) {
  const std::uint64_t elapsed_ns = now_ns - written_.at_ns;
  const SwitchCounts switches = probe_.switch_counts();
  totals_.switch_threads = switches.threads;
  totals_.switches_lost = switches.lost;
  totals_.switch_stacks = switches.stacks;
  totals_.switch_stacks_lost = switches.stacks_lost;
  if (!is_last && elapsed_ns < (is_idle() ? kLeastPieceNs : kSecond)) return;
  OffCpuProfileRecord record = totals_;
  record.at_ns = now_ns;
  record.elapsed_ns = elapsed_ns;
  record.looks -= written_.looks;
  record.stacks -= written_.stacks;
  record.moved -= written_.moved;
  record.unreadable -= written_.unreadable;
  record.lost -= written_.lost;
  record.switches_lost -= written_.switches_lost;
  record.switch_stacks -= written_.switch_stacks;
  record.switch_stacks_lost -= written_.switch_stacks_lost;
  record.sockets_unread -= written_.sockets_unread;
  record.unlisted -= written_.unlisted;
  written_ = totals_;
  written_.at_ns = now_ns;
  if (record.looks != 0) encoder_.add(record);
}

void WallSampler::finish() {
  for (auto& [tid, thread] : threads_) {
    const std::uint64_t at_ns = probe_.now_ns();
    const auto reading = probe_.account(tid);
    // It may have run and be in another wait now: the one that was seen ends here.
    if (reading && !thread.ledger.is_other(*reading)) {
      book_switches(tid, probe_.now_ns(), *reading, thread);
      if (const auto ended = thread.ledger.look(at_ns, *reading, false)) {
        end_wait(tid, thread, *ended);
      }
    }
    remove(tid, thread);
  }
  threads_.clear();
  write_profile(probe_.now_ns(), true);
}

}  // namespace dial9::internal
