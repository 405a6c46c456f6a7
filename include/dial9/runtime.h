// The core seam: what a runtime integration (Asio, a coroutine library, a thread pool) tells the
// recorder: workers, tasks, polls, wakes, parks. Strongest property: one implementation and one set
// of thread-locals a process, so that two copies of an integration header in two shared objects
// still feed one recorder; while nothing is recorded a call is a load and a branch, besides task
// identity, which goes on so that a recording turned on later knows who is who.
//
// All calls are noexcept and may come from any thread. Warm, none locks, allocates or makes a
// system call (park() and unpark() read the thread's CPU time from the kernel). From a signal
// handler only what says so. Spec: docs/spec/events.md, "Runtime", and docs/spec/events_ours.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dial9/internal/fields.h"
#include "dial9/internal/thread_buffer.h"

namespace dial9::runtime {

using TaskId = std::uint64_t;     // 0: no task, or not known
using WorkerId = std::uint32_t;   // global over the runtimes of a process
using RuntimeId = std::uint32_t;  // 0: none, or not known
inline constexpr WorkerId kUnknownWorker = 255;
inline constexpr WorkerId kBlockingWorker = 254;  // a blocking pool's thread

// Runtimes and workers beyond these are recorded as unknown (id 0, worker 255).
inline constexpr std::uint32_t kMaxRuntimes = 256;
inline constexpr std::uint32_t kMaxWorkers = 4096;
// Kernel files (/proc/self/task/TID/schedstat) kept open at most, one a worker, all CLOEXEC.
inline constexpr std::uint32_t kMaxSchedFiles = 64;

// A place in the source or a task's name, interned once: `static dial9::runtime::Place
// p{"file.cc:12"};`
using Place = dial9::Symbol;

// A Place for a name that isn't a literal: the same pointer for the same text, for ever. Takes a
// lock when the text is new to the thread; at most 4,096 names of at most 200 bytes, then the Place
// of "(too many names)".
Place* intern_place(const char* text, std::size_t size) noexcept;

// What an operation hands on to the work it starts: the task it belongs to, and the task's place.
struct TaskRef {
  TaskId id = 0;
  Place* place = nullptr;  // of the spawn
};

}  // namespace dial9::runtime

namespace dial9::internal {
extern __thread runtime::TaskRef t_task __attribute__((tls_model("initial-exec")));
}

namespace dial9::runtime {

// --- Runtimes and workers
// --------------------------------------------------------------------------- Registers a runtime
// under `name` (copied, at most 63 bytes; a second runtime of the same name becomes "name-2").
// Takes a lock. The id is never reused. 0: there are kMaxRuntimes already.
RuntimeId register_runtime(const char* name) noexcept;
// Another name, for the metadata and RuntimeMetricsEvents from now on.
void rename_runtime(RuntimeId, const char* name) noexcept;
// Binds the calling thread to the runtime as a worker; idempotent, and cheap if the thread's last
// runtime is this one. The worker id becomes free when the thread ends and is then given to the
// next thread of the same runtime. kUnknownWorker for runtime 0.
WorkerId enter_worker(RuntimeId) noexcept;
// The worker that this thread was last bound as; kUnknownWorker if never.
WorkerId current_worker() noexcept;
// The kernel's id of this thread, as in the events; asked once.
std::uint32_t current_tid() noexcept;
RuntimeId current_runtime() noexcept;

// --- Tasks
// ------------------------------------------------------------------------------------------ From
// 1, dense, handed to threads in blocks; unique in the process.
TaskId new_task_id() noexcept;
// A new task, with its TaskSpawnEvent; counted in alive_tasks of the runtime (0: in none's).
TaskId task_spawn(Place& place, RuntimeId = 0) noexcept;
// Once a task, with the runtime that its task_spawn was given. Any thread.
void task_terminate(TaskId, RuntimeId = 0) noexcept;

// The task that this thread works for: inherited by what it starts.
inline TaskRef current_task() noexcept { return dial9::internal::t_task; }
inline TaskRef exchange_current_task(TaskRef task) noexcept {  // returns the one before
  const TaskRef before = dial9::internal::t_task;
  dial9::internal::t_task = task;
  return before;
}

// The task became ready now, woken by the task whose poll this thread is in (0: from outside).
void task_ready(TaskId woken) noexcept;
// The same for a moment in the past (CLOCK_MONOTONIC ns) and a waker given by the caller.
void task_ready_at(TaskId woken, TaskId waker, std::uint64_t when_ns) noexcept;

// Sets the current task for a scope.
class CurrentTask {
 public:
  explicit CurrentTask(TaskRef task) noexcept : before_(exchange_current_task(task)) {}
  ~CurrentTask() { exchange_current_task(before_); }
  CurrentTask(const CurrentTask&) = delete;
  CurrentTask& operator=(const CurrentTask&) = delete;

 private:
  TaskRef before_;
};

// --- Polls
// ------------------------------------------------------------------------------------------ One
// poll on a thread's stack: the caller keeps it, in nesting order, from poll_start to poll_end.
struct Poll {
  TaskRef task;    // of this poll
  TaskRef before;  // the thread's current task outside it
  Poll* outer;     // the poll around it, if any
  void* spans;     // where it counts for its task's open spans; null: nowhere
  std::uint64_t spans_since_ns;
  std::uint64_t start_ns;  // not set while kOff
  std::uint16_t runtime;   // a RuntimeId
  enum class State : std::uint8_t {
    kOff,        // not recorded: recording was off at its start
    kDeferred,   // may turn out to be a scheduler's own work
    kScheduler,  // did: work of other tasks began inside
    kOpen,       // PollStartEvent written, PollEndEvent due
    kMerged,     // inside an open poll of the same task: no events of its own
    kPaused,     // a poll of another task runs inside; resumes after it
  } state = State::kOff;
  std::uint8_t short_id_size = 0;  // 0: not made (yet)
  WorkerId worker;
  std::uint64_t short_id;  // the task's id as its events have it, for the recorder alone
};

// A handler or resume of `task` begins on this thread, as a worker of `runtime`. Inside another
// poll of the same task nothing is recorded; inside one of another task that one ends here and
// begins anew at the end of this one, so that every nanosecond belongs to one poll. Returns the
// stamp, 0 if off.
std::uint64_t poll_start(Poll&, RuntimeId runtime, TaskRef task) noexcept;
// For work that may be a scheduler's own (a strand's turn): recorded like the above at its end,
// unless a poll begins inside; then it's no poll at all.
std::uint64_t poll_start_deferred(Poll&, RuntimeId runtime, TaskRef task) noexcept;
// A deferred poll that turned out to be a task's: records its start, with its own stamp.
void poll_confirm(Poll&) noexcept;
// It ends, also by an exception. Returns the stamp, 0 if none was taken.
std::uint64_t poll_end(Poll&) noexcept;
// The work of this thread goes on as another task, which the one so far woke: where one coroutine
// resumes another directly. Inside a poll it ends here and begins anew as the other's, at one
// stamp.
void switch_task(TaskRef task) noexcept;
// True if a poll of `task` on `runtime`, begun now, would be part of the open poll around it:
// then it isn't an answer to a wake of its own.
bool is_polled(RuntimeId runtime, TaskId task) noexcept;
// True inside a poll that is being recorded. Any context.
bool is_in_poll() noexcept;
// The task of the innermost poll; 0 outside.
TaskId polled_task() noexcept;

// poll_start and poll_end for a scope.
class PollScope {
 public:
  PollScope(RuntimeId runtime, TaskRef task) noexcept { poll_start(poll_, runtime, task); }
  ~PollScope() { poll_end(poll_); }
  PollScope(const PollScope&) = delete;
  PollScope& operator=(const PollScope&) = delete;

 private:
  Poll poll_;
};

// --- Waits
// ------------------------------------------------------------------------------------------ This
// worker's thread goes to wait in the kernel, and runs again. Only outside a poll, only on a bound
// thread; else nothing. park() reads the thread's CPU time (0.5 us, while the worker is idle
// anyway); one cycle in DIAL9_SCHED_WAIT_SAMPLE_RATE reads the kernel's run-queue wait at both ends
// (1 us each), the other events carry no sched_wait. A poll that starts on a parked worker unparks
// it. errno is kept.
bool park() noexcept;  // true if now parked
void unpark() noexcept;

// A call of `duration_ns` that blocked this thread inside a poll; stamp = start. Nothing if shorter
// than the floor. Also from signal handlers.
void blocking_call(Place& call, std::uint64_t start_ns, std::uint64_t duration_ns) noexcept;
// What was waited for: by this thread, which stood inside a poll, or by a handler that was ready
// while no thread stood.
enum class LockKind : std::uint8_t { kMutex = 1, kStrand = 2 };
// A wait for a lock or a strand; owner_tid 0: unknown. Nothing if shorter than the floor.
void lock_wait(LockKind kind, TaskId waiter, std::uint64_t lock, std::uint32_t owner_tid,
               std::uint64_t start_ns, std::uint64_t duration_ns) noexcept;
// The floors: 1 ms for blocking calls, 100 us for locks and strands, unless set otherwise. Any
// thread.
inline constexpr std::uint64_t kDefaultBlockingFloorNs = 1'000'000;
inline constexpr std::uint64_t kDefaultLockFloorNs = 100'000;
void set_wait_floors(std::uint64_t blocking_floor_ns, std::uint64_t lock_floor_ns) noexcept;

// --- Queues
// ----------------------------------------------------------------------------------------- Both at
// once: the task became ready now, by work that went into the runtime's queue. Returns a stamp of
// about now. A task that queues more work in its own poll shares the last stamp of its thread (plus
// 1 ns), which saves a clock read: such a wake counts from the end of the poll anyway.
std::uint64_t work_queued(RuntimeId, TaskId woken) noexcept;
// Work became ready to run, and was taken to run (or thrown away). Plain per-thread counters,
// summed by the collector into RuntimeMetricsEvents; count also while recording is off, so that the
// depth is right when it is turned on.
void queue_pushed(RuntimeId) noexcept;
void queue_popped(RuntimeId) noexcept;

// CLOCK_MONOTONIC ns by the recorder's clock. Any context.
inline std::uint64_t now_ns() noexcept { return dial9::internal::now_ns(); }

}  // namespace dial9::runtime
