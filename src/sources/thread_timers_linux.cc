// See thread_timers.h. The kernel's calls are made directly: libc's have no thread to signal
// (musl), or start a thread of their own.
// SPDX-License-Identifier: Apache-2.0
#include "sources/thread_timers.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "sources/thread_clock.h"

#ifndef sigev_notify_thread_id  // older glibc has no name for it
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace dial9::internal {
namespace {

constexpr std::size_t kLooksAgain = 16;
constexpr std::uint64_t kSecondNs = 1'000'000'000;

timespec to_timespec(std::uint64_t ns) {
  return {static_cast<time_t>(ns / kSecondNs), static_cast<long>(ns % kSecondNs)};
}

}  // namespace

std::uint32_t timer_room(std::string_view status, std::uint32_t armed) {
  constexpr std::uint32_t kAny = ~std::uint32_t{0};
  const std::string_view text = status_value(status, "\nSigQ:\t");
  const char* const end = text.data() + text.size();
  std::uint64_t used = 0;
  std::uint64_t limit = 0;
  const auto [slash, error] = std::from_chars(text.data(), end, used);
  if (error != std::errc() || slash == end || *slash != '/') return kAny;
  if (std::from_chars(slash + 1, end, limit).ec != std::errc()) return kAny;
  const std::uint64_t others = used > armed ? used - armed : 0;
  const std::uint64_t left = limit > others ? limit - others : 0;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(left / 2, kAny));
}

ThreadTimers::ThreadTimers(int signal, std::uint64_t period_ns)
    : signal_(signal), period_ns_(period_ns) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  random_ = static_cast<std::uint64_t>(now.tv_nsec) << 20 | static_cast<std::uint64_t>(::getpid());
}

std::uint64_t timer_mark() noexcept {
  static const char here = 0;  // each copy's lies elsewhere
  const auto page = (reinterpret_cast<std::uintptr_t>(&here) >> 12) & 0xFFFF;
  return 0xd1a1'0000'0000'0000 | (std::uint64_t{page} << 32);
}

ThreadTimers::~ThreadTimers() { disarm_all(); }

void ThreadTimers::arm(std::uint32_t tid, Thread& thread) {
  if (armed_ >= room_) {
    thread.state = State::kRefused;
    refused_tid_ = tid;
    refused_error_ = EAGAIN;
    return;
  }
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal_;
  event.sigev_value.sival_ptr = reinterpret_cast<void*>(timer_mark() | tid);
  event.sigev_notify_thread_id = static_cast<pid_t>(tid);
  int timer = -1;
  if (::syscall(SYS_timer_create, cpu_clock_of(tid), &event, &timer) != 0) {
    if (errno == EINVAL || errno == ESRCH) return;  // ended meanwhile: the next scan won't list it
    thread.state = State::kRefused;
    refused_tid_ = tid;
    refused_error_ = errno;
    return;
  }
  // A random phase: a thread that lives for less than a period is sampled in proportion.
  random_ = random_ * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
  const std::uint64_t phase_ns = 1 + (random_ >> 16) % period_ns_;
  itimerspec when{to_timespec(period_ns_), to_timespec(phase_ns)};
  if (::syscall(SYS_timer_settime, timer, 0, &when, nullptr) != 0) {
    ::syscall(SYS_timer_delete, timer);
    return;
  }
  thread.timer = timer;
  thread.state = State::kArmed;
  ++armed_;
}

void ThreadTimers::disarm(Thread& thread) {
  if (thread.timer >= 0) {
    ::syscall(SYS_timer_delete, thread.timer);
    --armed_;
  }
  thread.timer = -1;
  thread.state = State::kNew;
}

// The thread that the timer was made for has ended (its id may be another's by now), or the timer
// was stopped by the signal's handler while recording was off.
bool ThreadTimers::is_expired(const Thread& thread) {
  itimerspec left{};
  if (::syscall(SYS_timer_gettime, thread.timer, &left) != 0) return true;
  return left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0;
}

void ThreadTimers::look_at(std::uint32_t tid, Thread& thread) {
  const std::string status = read_thread_status(tid);
  if (status.empty()) return;
  ThreadFacts facts = parse_thread_status(status, signal_);
  thread.name = std::move(facts.name);
  if (!facts.is_blocking) {
    thread.times_blocking = 0;
    if (thread.state != State::kArmed) arm(tid, thread);
    return;
  }
  // libc blocks all signals for some microseconds where it starts a thread: twice is no accident.
  if (thread.times_blocking < 2) ++thread.times_blocking;
  if (thread.times_blocking < 2) return;
  disarm(thread);
  thread.state = State::kBlocking;
}

void ThreadTimers::look_again() {
  const std::size_t most = std::min(kLooksAgain, tids_.size());
  for (std::size_t i = 0; i < most; ++i) {
    const std::uint32_t tid = tids_[next_look_++ % tids_.size()];
    const auto found = threads_.find(tid);
    // A new one was looked at just now.
    if (found != threads_.end() && found->second.state != State::kNew) look_at(tid, found->second);
  }
}

void ThreadTimers::count() {
  counts_ = {};
  counts_.refused_tid = refused_tid_;
  counts_.refused_error = refused_error_;
  for (const auto& [tid, thread] : threads_) {
    counts_.armed += thread.state == State::kArmed ? 1 : 0;
    counts_.blocking += thread.state == State::kBlocking ? 1 : 0;
    counts_.refused += thread.state == State::kRefused ? 1 : 0;
  }
}

void ThreadTimers::scan(std::uint32_t own_tid) {
  scan(own_tid, timer_room(read_thread_status(own_tid), armed_));
}

void ThreadTimers::scan(std::uint32_t own_tid, std::uint32_t room) {
  room_ = room;
  ++round_;
  list_threads(tids_);
  std::erase(tids_, own_tid);
  // First what ended, so that its timers are there for others.
  std::vector<std::uint32_t> fresh;
  for (const std::uint32_t tid : tids_) {
    Thread& thread = threads_[tid];
    thread.round = round_;
    if (thread.state == State::kArmed && is_expired(thread)) disarm(thread);
    if (thread.state == State::kNew) fresh.push_back(tid);
  }
  for (auto at = threads_.begin(); at != threads_.end();) {
    if (at->second.round == round_) {
      ++at;
      continue;
    }
    disarm(at->second);
    at = threads_.erase(at);
  }
  for (const std::uint32_t tid : fresh) look_at(tid, threads_[tid]);
  look_again();
  count();
}

void ThreadTimers::disarm_all() {
  for (auto& [tid, thread] : threads_) disarm(thread);
  forget_all();
}

void ThreadTimers::forget_all() {
  threads_.clear();
  armed_ = 0;
  counts_ = {};
}

std::string_view ThreadTimers::name(std::uint32_t tid) const {
  const auto found = threads_.find(tid);
  return found == threads_.end() ? std::string_view() : found->second.name;
}

}  // namespace dial9::internal
