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

namespace dial9::runtime {
namespace {

using internal::SchedReading;
using internal::t_state;
using internal::ThreadState;

constinit std::atomic<std::uint64_t> g_blocking_floor_ns{kDefaultBlockingFloorNs};
constinit std::atomic<std::uint64_t> g_lock_floor_ns{kDefaultLockFloorNs};

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

void lock_wait(TaskId waiter, std::uint64_t lock, std::uint32_t owner_tid, std::uint64_t start_ns,
               std::uint64_t duration_ns) noexcept {
  if (duration_ns < g_lock_floor_ns.load(std::memory_order_relaxed)) return;
  optional<std::uint32_t> owner;
  if (owner_tid != 0) owner = owner_tid;
  internal::record_at(
      internal::LockWaitEvent{internal::own_tid(), waiter, lock, owner, duration_ns, {}}, start_ns);
}

void set_wait_floors(std::uint64_t blocking_floor_ns, std::uint64_t lock_floor_ns) noexcept {
  g_blocking_floor_ns.store(blocking_floor_ns, std::memory_order_relaxed);
  g_lock_floor_ns.store(lock_floor_ns, std::memory_order_relaxed);
}

}  // namespace dial9::runtime
