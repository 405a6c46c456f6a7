// The state behind the core seam: what a thread keeps, and what all share. Strongest property:
// nothing here has a constructor or destructor to run, so the seam works before main, in
// thread_local destructors and after main.
//
//   ThreadState (TLS) ─► ThreadRecord ─► Binding ─► Binding ...   one a (thread, runtime)
//                        tid, sched file     │ counters, worker id
//   Registry: runtimes, worker ids, thread records, names; one mutex, cold paths only
//
// Spec: docs/spec/events_ours.md, "The seam's state".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "dial9/internal/span_core.h"
#include "dial9/runtime.h"
#include "recorder/sched_files.h"

namespace dial9::internal {

inline constexpr std::uint32_t kNoWorker = ~std::uint32_t{0};
inline constexpr std::uint16_t kNoRuntime = 0xFFFF;
static_assert(runtime::kMaxRuntimes < kNoRuntime);
// Workers below this are written in one byte: the short way of the events of polls.
inline constexpr std::uint32_t kShortWorkers = 0x80;
inline constexpr std::uint32_t kMaxBindings = 1 << 14;  // with their threads, about 2 MiB at most
inline constexpr std::size_t kRuntimeNameBytes = 64;

// Written by one thread with plain stores, summed by the collector: pairs of counters whose second
// is never ahead of the first for a reader that reads the second first (release and acquire).
struct Counters {
  std::atomic<std::uint64_t> pushed{0};
  std::atomic<std::uint64_t> popped{0};
  std::atomic<std::uint64_t> spawned{0};
  std::atomic<std::uint64_t> terminated{0};
};

// One a (thread, runtime). The counters' line is written by the thread alone.
struct alignas(64) Binding {
  Counters counters;
  runtime::RuntimeId runtime = 0;
  std::uint32_t worker = kNoWorker;
  Binding* next_of_thread = nullptr;   // also the free list
  Binding* next_of_runtime = nullptr;  // guarded by the registry's mutex
};
static_assert(sizeof(Binding) == 64);

// One a thread that has a binding.
struct ThreadRecord {
  std::uint32_t tid = 0;
  SchedFileRef sched_file;
  Binding* bindings = nullptr;                   // written by the thread, under the mutex
  std::atomic<std::uint32_t> worker{kNoWorker};  // the last bound one, for the collector
  ThreadRecord* next = nullptr;  // all records, or the free list; guarded by the mutex
  // The collector's.
  SchedReading last_reading;
  bool has_reading = false;
};

struct ThreadState {
  runtime::Poll* poll = nullptr;  // innermost
  Binding* binding = nullptr;     // last used as a worker
  Binding* counting = nullptr;    // last used for counters
  // Of `binding`, while its worker id is short and the thread isn't parked (note_worker): what a
  // poll is told of them, in its order, by one load and one store.
  std::uint16_t plain_runtime = kNoRuntime;
  runtime::Poll::State plain_state = runtime::Poll::State::kOpen;
  std::uint8_t plain_id_size = 0;  // the poll puts its own there
  std::uint32_t plain_worker = 0;
  // The Asio hooks' notes (src/asio/hooks.cc). The context whose work `counting` counts, if the
  // thread may queue plain work there at sight; null in a new epoch, and void once a context was
  // forgotten after it was noted: another may lie at its address.
  const void* counting_context = nullptr;
  std::uint64_t counting_head = 0;  // what is known of its plain work, but for the size of the id
  std::uint32_t counting_forgotten = 0;
  bool is_after_strand_push = false;  // a strand got work just now: its turn may be queued next
  // Of the last PollStartEvent of this thread.
  runtime::TaskId last_poll_task = 0;
  std::uint64_t last_poll_start_ns = 0;
  std::uint64_t next_task_id = 0;
  std::uint64_t end_task_id = 0;
  ThreadRecord* record = nullptr;
  std::uint64_t park_cpu_ns = 0;
  std::uint64_t park_wait_ns = 0;
  std::uint32_t tid = 0;  // 0: not asked yet
  std::uint32_t parks_to_sample = 0;
  bool is_parked = false;
  bool is_sampled_cycle = false;
  bool has_exited = false;
  std::uint32_t wait_stacks = 0;  // taken in the second from wait_stacks_since_ns on
  std::uint64_t wait_stacks_since_ns = 0;
};

extern __thread ThreadState t_state __attribute__((tls_model("initial-exec")));

struct Runtime {
  char name[kRuntimeNameBytes] = {};
  runtime::Place* place = nullptr;
  Counters gone;  // of bindings whose threads ended, and of threads that got no binding
  Binding* bindings = nullptr;
  // The collector's.
  std::uint64_t last_metrics_ns = 0;
  std::uint32_t last_depth = 0;
  std::uint32_t last_alive = 0;
};

struct Registry {
  std::mutex mutex;
  std::atomic<std::uint64_t> metadata_version{1};
  std::atomic<std::uint32_t> runtime_count{0};  // ids 1..count are valid (release after filling)
  Runtime runtimes[runtime::kMaxRuntimes + 1];
  std::uint16_t worker_runtime[runtime::kMaxWorkers] = {};  // 0: never given out
  bool is_worker_busy[runtime::kMaxWorkers] = {};
  ThreadRecord* threads = nullptr;
  ThreadRecord* free_threads = nullptr;
  Binding* free_bindings = nullptr;
  std::uint32_t bindings_made = 0;
  char default_name[kRuntimeNameBytes] = {};
  std::atomic<std::uint32_t> sched_wait_sample_rate{10};
};

extern Registry g_registry;

// The registry's mutex, held. In the child of a fork it is a fresh one.
class RegistryLock {
 public:
  RegistryLock() noexcept;
  ~RegistryLock() { g_registry.mutex.unlock(); }
  RegistryLock(const RegistryLock&) = delete;
  RegistryLock& operator=(const RegistryLock&) = delete;
};

// intern_place() for callers that hold the registry's mutex.
runtime::Place* intern_place_locked(const char* text, std::size_t size) noexcept;

// The cold halves: finds or makes the binding.
Binding* counting_binding_cold(ThreadState& t, runtime::RuntimeId) noexcept;
Binding* worker_binding_cold(ThreadState& t, runtime::RuntimeId) noexcept;

// The calling thread's binding for the runtime, without making it a worker; null: none to be had.
inline Binding* counting_binding(ThreadState& t, runtime::RuntimeId id) noexcept {
  if (__builtin_expect(t.counting != nullptr && t.counting->runtime == id, 1)) return t.counting;
  return id == 0 ? nullptr : counting_binding_cold(t, id);
}
// And as a worker (worker may still be kNoWorker: none left).
inline Binding* worker_binding(ThreadState& t, runtime::RuntimeId id) noexcept {
  if (__builtin_expect(t.binding != nullptr && t.binding->runtime == id, 1)) return t.binding;
  return id == 0 ? nullptr : worker_binding_cold(t, id);
}

// After each change of `is_parked`.
inline void note_worker(ThreadState& t) noexcept {
  const bool is_plain = t.binding != nullptr && t.binding->worker < kShortWorkers && !t.is_parked;
  t.plain_runtime = is_plain ? static_cast<std::uint16_t>(t.binding->runtime) : kNoRuntime;
  t.plain_worker = is_plain ? t.binding->worker : 0;
}

// After each change of `binding`.
inline void note_binding(ThreadState& t) noexcept {
  note_worker(t);
  t_spans.generation = 0;
}

// The calling thread's id; one system call a thread.
std::uint32_t own_tid() noexcept;

inline std::uint32_t event_worker(std::uint32_t worker) noexcept {
  return worker == kNoWorker ? runtime::kUnknownWorker : worker;
}

// One writer: no read-modify-write needed. Release pairs with the collector's acquire.
inline void count_up(std::atomic<std::uint64_t>& counter) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

}  // namespace dial9::internal
