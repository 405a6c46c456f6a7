// Parks, blocking calls and lock waits. The kernel's account of the thread is read once a park cycle,
// at the park, when the worker has nothing to do; a sampled cycle reads it a second time at the unpark,
// so that its sched_wait is exactly what the kernel made the thread wait after this wake-up.
// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <ctime>

#include "dial9/internal/runtime_events.h"
#include "recorder/runtime_state.h"

namespace dial9::internal {

bool read_own_sched(ThreadState& t, SchedReading* reading) noexcept {
  if (sched_read(t.record->sched_file, t.record->tid, false, reading)) return true;
  const int saved_errno = errno;
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  errno = saved_errno;
  reading->run_ns = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
                    static_cast<std::uint64_t>(now.tv_nsec);
  return false;
}

}  // namespace dial9::internal

namespace dial9::runtime {
namespace {

using internal::SchedReading;
using internal::t_state;
using internal::ThreadState;

constinit std::atomic<std::uint64_t> g_blocking_floor_ns{kDefaultBlockingFloorNs};
constinit std::atomic<std::uint64_t> g_lock_floor_ns{kDefaultLockFloorNs};

// The two sources of CPU time differ by a tick at most; a thread's own never goes back.
std::uint64_t advance_cpu(ThreadState& t, std::uint64_t run_ns) noexcept {
  if (run_ns > t.last_cpu_ns) t.last_cpu_ns = run_ns;
  return t.last_cpu_ns;
}

}  // namespace

bool park() noexcept {
  ThreadState& t = t_state;
  if (t.binding == nullptr || t.poll != nullptr || t.is_parked || !is_recording()) return false;
  SchedReading reading;
  const bool is_exact = internal::read_own_sched(t, &reading);
  const std::uint64_t cpu_ns = advance_cpu(t, reading.run_ns);
  t.is_sampled_cycle = false;
  if (t.parks_to_sample-- == 0) {
    t.parks_to_sample =
        internal::g_registry.sched_wait_sample_rate.load(std::memory_order_relaxed) - 1;
    t.is_sampled_cycle = is_exact;
    t.park_wait_ns = reading.wait_ns;
  }
  t.is_parked = true;
  record(internal::WorkerParkEvent{internal::event_worker(t.binding->worker), 0, cpu_ns,
                                   t.record->tid});
  return true;
}

void unpark() noexcept {
  ThreadState& t = t_state;
  if (!t.is_parked) return;
  t.is_parked = false;
  if (!is_recording()) return;
  const std::uint64_t stamp = now_ns();
  optional<std::uint64_t> sched_wait_ns;
  SchedReading reading;
  if (t.is_sampled_cycle && internal::sched_read(t.record->sched_file, t.record->tid, false, &reading)) {
    sched_wait_ns = reading.wait_ns - t.park_wait_ns;
    advance_cpu(t, reading.run_ns);
  }
  internal::record_at(internal::WorkerUnparkEvent{internal::event_worker(t.binding->worker), 0,
                                                  t.last_cpu_ns, sched_wait_ns, t.record->tid},
                      stamp);
}

void blocking_call(Place& call, std::uint64_t start_ns, std::uint64_t duration_ns) noexcept {
  if (duration_ns < g_blocking_floor_ns.load(std::memory_order_relaxed)) return;
  internal::record_at(
      internal::BlockingCallEvent{internal::own_tid(), polled_task(), call, duration_ns, {}}, start_ns);
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
