// The collector's part: sums the threads' counters into RuntimeMetricsEvents, and reads the
// kernel's account of every worker, so that run-queue wait shows for workers that never park too.
// Spec: docs/spec/events_ours.md.
// SPDX-License-Identifier: Apache-2.0
#include "dial9/internal/runtime_events.h"
#include "recorder/runtime_host.h"
#include "recorder/runtime_state.h"

namespace dial9::internal {

// What the kernel says a worker's thread did since the last of these, whether it parked or not.
DIAL9_EVENT(WorkerSchedEvent, (std::uint64_t, worker_id), (std::uint32_t, tid), (ns_u64, run_ns),
            (ns_u64, wait_ns), (std::uint64_t, slices));

namespace {

constexpr std::uint64_t kMetricsPeriodNs = 10'000'000;
constexpr std::uint64_t kSchedPeriodNs = 100'000'000;
constexpr std::uint64_t kRepeatNs = 1'000'000'000;  // of an unchanged value
constexpr std::uint32_t kMaxThreadsARound = 1024;

constinit std::uint64_t g_last_metrics_ns = 0;
constinit std::uint64_t g_last_sched_ns = 0;

std::uint32_t difference(std::uint64_t more, std::uint64_t less) noexcept {
  const std::uint64_t left = more > less ? more - less : 0;
  return left > ~std::uint32_t{0} ? ~std::uint32_t{0} : static_cast<std::uint32_t>(left);
}

struct Totals {
  std::uint64_t pushed = 0, popped = 0, spawned = 0, terminated = 0;

  // The later half of each pair first: what it counts is then in the earlier half, too.
  void add_second(const Counters& counters) noexcept {
    popped += counters.popped.load(std::memory_order_acquire);
    terminated += counters.terminated.load(std::memory_order_acquire);
  }
  void add_first(const Counters& counters) noexcept {
    pushed += counters.pushed.load(std::memory_order_acquire);
    spawned += counters.spawned.load(std::memory_order_acquire);
  }
};

// Under the mutex.
Totals totals_of(const Runtime& runtime) noexcept {
  Totals totals;
  totals.add_second(runtime.gone);
  for (const Binding* b = runtime.bindings; b != nullptr; b = b->next_of_runtime) {
    totals.add_second(b->counters);
  }
  totals.add_first(runtime.gone);
  for (const Binding* b = runtime.bindings; b != nullptr; b = b->next_of_runtime) {
    totals.add_first(b->counters);
  }
  return totals;
}

bool collect_metrics(std::uint64_t now_ns) noexcept {
  bool is_quiet = true;
  const RegistryLock lock;
  const std::uint32_t count = g_registry.runtime_count.load(std::memory_order_relaxed);
  for (std::uint32_t id = 1; id <= count; ++id) {
    Runtime& runtime = g_registry.runtimes[id];
    const Totals totals = totals_of(runtime);
    const std::uint32_t depth = difference(totals.pushed, totals.popped);
    const std::uint32_t alive = difference(totals.spawned, totals.terminated);
    const bool is_same = depth == runtime.last_depth && alive == runtime.last_alive;
    is_quiet = is_quiet && is_same;
    if (is_same && runtime.last_metrics_ns != 0 && now_ns - runtime.last_metrics_ns < kRepeatNs)
      continue;
    runtime.last_metrics_ns = now_ns;
    runtime.last_depth = depth;
    runtime.last_alive = alive;
    record_at(RuntimeMetricsEvent{*runtime.place, depth, alive}, now_ns);
  }
  return is_quiet;
}

// Under the mutex.
bool collect_thread(ThreadRecord& thread) noexcept {
  const std::uint32_t worker = thread.worker.load(std::memory_order_relaxed);
  SchedReading reading;
  if (worker == kNoWorker || !sched_read(thread.sched_file, thread.tid, true, &reading))
    return true;
  const SchedReading last = thread.last_reading;
  const bool has_last = thread.has_reading;
  thread.last_reading = reading;
  thread.has_reading = true;
  if (!has_last || reading.slices < last.slices) return false;
  if (reading.run_ns == last.run_ns && reading.wait_ns == last.wait_ns) return true;
  record(WorkerSchedEvent{worker, thread.tid, reading.run_ns - last.run_ns,
                          reading.wait_ns - last.wait_ns, reading.slices - last.slices});
  return false;
}

// A thread that ends or begins meanwhile waits for at most one reading: the mutex is taken for
// each.
bool collect_sched() noexcept {
  bool is_quiet = true;
  for (std::uint32_t skip = 0; skip < kMaxThreadsARound; ++skip) {
    const RegistryLock lock;
    ThreadRecord* thread = g_registry.threads;
    for (std::uint32_t i = 0; i < skip && thread != nullptr; ++i) thread = thread->next;
    if (thread == nullptr) break;
    is_quiet = collect_thread(*thread) && is_quiet;
  }
  return is_quiet;
}

}  // namespace

bool runtime_collect(std::uint64_t now_ns) noexcept {
  bool is_quiet = true;
  if (now_ns - g_last_metrics_ns >= kMetricsPeriodNs) {
    g_last_metrics_ns = now_ns;
    is_quiet = collect_metrics(now_ns);
  }
  if (now_ns - g_last_sched_ns >= kSchedPeriodNs) {
    g_last_sched_ns = now_ns;
    is_quiet = collect_sched() && is_quiet;
  }
  return is_quiet;
}

void runtime_release() noexcept {
  sched_close_all();
  const RegistryLock lock;
  for (ThreadRecord* t = g_registry.threads; t != nullptr; t = t->next) t->has_reading = false;
}

}  // namespace dial9::internal
