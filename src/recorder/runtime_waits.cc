// Parks, blocking calls and lock waits. At a park, when the worker has nothing to do, its CPU time
// is read from the kernel's clock for it. A sampled cycle also reads the kernel's account at both
// ends, so that its sched_wait is exactly what the thread waited for a CPU after this wake-up:
// nothing that happened while it ran is in it. (The account's own CPU time lags by up to a tick, so
// it isn't used.)
// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <ctime>

#include "dial9/internal/runtime_events.h"
#include "recorder/runtime_state.h"
#include "recorder/wait_stacks.h"

namespace dial9::runtime {
namespace {

using internal::SchedReading;
using internal::t_state;
using internal::ThreadState;

constinit std::atomic<std::uint64_t> g_blocking_floor_ns{kDefaultBlockingFloorNs};
constinit std::atomic<std::uint64_t> g_lock_floor_ns{kDefaultLockFloorNs};
constinit std::atomic<internal::TakeWaitStack> g_take_stack{nullptr};
constinit std::atomic<std::uint32_t> g_stacks_a_second{0};

// One more stack of this thread in this second?
bool may_take_stack(ThreadState& t, std::uint64_t now_ns) noexcept {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  if (now_ns - t.wait_stacks_since_ns >= kSecond) {
    t.wait_stacks_since_ns = now_ns;
    t.wait_stacks = 0;
  }
  return t.wait_stacks++ < g_stacks_a_second.load(std::memory_order_relaxed);
}

internal::LockWaitEvent lock_wait_event(LockKind kind, TaskId waiter, std::uint64_t lock,
                                        std::uint32_t owner_tid,
                                        std::uint64_t duration_ns) noexcept {
  optional<std::uint32_t> owner;
  if (owner_tid != 0) owner = owner_tid;
  return {internal::own_tid(), waiter, lock,  owner,
          duration_ns,         {},     false, static_cast<std::uint8_t>(kind)};
}

// After the wait: the frames are on this thread's stack.
[[gnu::noinline]] void write_lock_wait(const void* caller, internal::LockWaitEvent& event,
                                       std::uint64_t start_ns) noexcept {
  std::uint64_t room[internal::kWaitStackRoom];
  const auto take = g_take_stack.load(std::memory_order_relaxed);
  if (take != nullptr && may_take_stack(t_state, start_ns + event.duration_ns.value)) {
    const internal::WaitStack stack = take(caller, room);
    if (stack.count != 0) event.callchain = callchain{stack.frames, stack.count};
    event.truncated = stack.is_truncated;
  }
  internal::record_at(event, start_ns);
}

// About 0.5 us. Keeps errno.
std::uint64_t thread_cpu_ns() noexcept {
  const int saved_errno = errno;
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  errno = saved_errno;
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// About 1 us. False: not known now.
bool read_sched(ThreadState& t, SchedReading* reading) noexcept {
  return internal::sched_read(t.record->sched_file, t.record->tid, false, reading);
}

}  // namespace

bool park() noexcept {
  ThreadState& t = t_state;
  if (t.binding == nullptr || t.poll != nullptr || t.is_parked || !is_recording()) return false;
  t.park_cpu_ns = thread_cpu_ns();
  t.is_sampled_cycle = false;
  if (t.parks_to_sample-- == 0) {
    t.parks_to_sample =
        internal::g_registry.sched_wait_sample_rate.load(std::memory_order_relaxed) - 1;
    SchedReading reading;
    t.is_sampled_cycle = read_sched(t, &reading);
    t.park_wait_ns = reading.wait_ns;
  }
  t.is_parked = true;
  internal::note_worker(t);
  record(internal::WorkerParkEvent{internal::event_worker(t.binding->worker), 0, t.park_cpu_ns,
                                   t.record->tid});
  return true;
}

void unpark() noexcept {
  ThreadState& t = t_state;
  if (!t.is_parked) return;
  t.is_parked = false;
  internal::note_worker(t);
  if (!is_recording()) return;
  const std::uint64_t stamp = now_ns();
  optional<std::uint64_t> sched_wait_ns;
  SchedReading reading;
  if (t.is_sampled_cycle && read_sched(t, &reading))
    sched_wait_ns = reading.wait_ns - t.park_wait_ns;
  // It used no CPU while it slept.
  internal::record_at(internal::WorkerUnparkEvent{internal::event_worker(t.binding->worker), 0,
                                                  t.park_cpu_ns, sched_wait_ns, t.record->tid},
                      stamp);
}

void blocking_call(Place& call, std::uint64_t start_ns, std::uint64_t duration_ns) noexcept {
  if (duration_ns < g_blocking_floor_ns.load(std::memory_order_relaxed)) return;
  internal::record_at(
      internal::BlockingCallEvent{internal::own_tid(), polled_task(), call, duration_ns, {}},
      start_ns);
}

void lock_wait(LockKind kind, TaskId waiter, std::uint64_t lock, std::uint32_t owner_tid,
               std::uint64_t start_ns, std::uint64_t duration_ns) noexcept {
  if (duration_ns < g_lock_floor_ns.load(std::memory_order_relaxed)) return;
  internal::record_at(lock_wait_event(kind, waiter, lock, owner_tid, duration_ns), start_ns);
}

void set_wait_floors(std::uint64_t blocking_floor_ns, std::uint64_t lock_floor_ns) noexcept {
  g_blocking_floor_ns.store(blocking_floor_ns, std::memory_order_relaxed);
  g_lock_floor_ns.store(lock_floor_ns, std::memory_order_relaxed);
}

}  // namespace dial9::runtime

namespace dial9::internal {

void set_wait_stacks(TakeWaitStack take, std::uint32_t most_a_second) noexcept {
  runtime::g_stacks_a_second.store(most_a_second, std::memory_order_relaxed);
  runtime::g_take_stack.store(take, std::memory_order_relaxed);
}

void lock_wait_of(const void* caller, runtime::TaskId waiter, std::uint64_t lock,
                  std::uint32_t owner_tid, std::uint64_t start_ns,
                  std::uint64_t duration_ns) noexcept {
  if (duration_ns < runtime::g_lock_floor_ns.load(std::memory_order_relaxed)) return;
  LockWaitEvent event =
      runtime::lock_wait_event(runtime::LockKind::kMutex, waiter, lock, owner_tid, duration_ns);
  runtime::write_lock_wait(caller, event, start_ns);
}

}  // namespace dial9::internal
