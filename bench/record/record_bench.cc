// What a recorded event costs, on and off, beside what the machine needs for a clock read and a
// store. One iteration is a batch of operations that is timed whole; the buffers are drained
// between batches, outside the timing, so that no event is dropped and the collector's work isn't
// counted in.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "dial9/event.h"
#include "dial9/internal/runtime_events.h"
#include "dial9/label.h"
#include "dial9/runtime.h"
#include "dial9/span.h"
#include "recorder/label_changes.h"
#include "recorder/recorder_core.h"

namespace dial9 {
namespace {

DIAL9_EVENT(ThreeFields, (std::uint64_t, id), (std::uint32_t, size), (std::uint8_t, kind));
DIAL9_EVENT(WithSymbol, (std::uint64_t, id), (interned, name));
DIAL9_EVENT(WithText, (std::uint64_t, id), (text, name));
DIAL9_SPAN(TwoFields, "two", DIAL9_FIELDS((std::uint64_t, a), (std::uint64_t, b)));

constexpr std::uint64_t kBatch = 20'000;

// One recorder for the process, stepped by hand.
struct Bench {
  std::shared_ptr<internal::RecorderCore> core;
};
Bench& bench() {
  static Bench* const instance = [] {
    auto* made = new Bench;
    internal::CoreSeams seams;
    seams.has_thread = false;
    seams.has_sources = false;
    Status status;
    made->core = internal::RecorderCore::start(RecorderOptions::memory(std::uint64_t{64} << 20),
                                               seams, &status);
    return made;
  }();
  return *instance;
}

// Where the threads of a benchmark meet. They spin: a batch begins on all of them at once.
class Meeting {
 public:
  void wait(int threads) {
    if (threads == 1) return;
    const unsigned round = round_.load();
    if (arrived_.fetch_add(1) + 1 == threads) {
      arrived_ = 0;
      ++round_;
    } else {
      while (round_ == round) asm volatile("pause");
    }
  }

 private:
  std::atomic<int> arrived_{0};
  std::atomic<unsigned> round_{0};
};
Meeting g_meeting;

// All threads' batches are over: what is timed never runs beside the collector's work.
void drain(const benchmark::State& state) {
  g_meeting.wait(state.threads());
  if (state.thread_index() == 0) bench().core->step();
  g_meeting.wait(state.threads());
}

// Times batches of `operation(i)`; reports ns an operation.
template <class Operation>
void run_batches(benchmark::State& state, Operation operation) {
  if (bench().core == nullptr) return state.SkipWithError("the recorder doesn't start");
  const std::uint64_t dropped = bench().core->status().events_dropped;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < kBatch; ++i) operation(i);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(taken.count());
    drain(state);
  }
  if (bench().core->status().events_dropped != dropped) state.SkipWithError("events were dropped");
  // Summed over the benchmark's threads: what an operation takes in a thread.
  const double operations = static_cast<double>(state.iterations()) * kBatch / state.threads();
  state.counters["ns"] = benchmark::Counter(
      operations * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void empty_loop(benchmark::State& state) {
  run_batches(state, [](std::uint64_t i) { benchmark::DoNotOptimize(i); });
}

void rdtsc(benchmark::State& state) {
  run_batches(state, [](std::uint64_t) { benchmark::DoNotOptimize(internal::read_ticks()); });
}

void clock_gettime_read(benchmark::State& state) {
  run_batches(state, [](std::uint64_t) { benchmark::DoNotOptimize(internal::kernel_now_ns()); });
}

void now(benchmark::State& state) {
  run_batches(state, [](std::uint64_t) { benchmark::DoNotOptimize(internal::now_ns()); });
}

struct alignas(16) Slot {
  std::uint64_t stamp, value;
};
thread_local Slot t_ring[4096];

void rdtsc_and_store(benchmark::State& state) {
  run_batches(state, [](std::uint64_t i) {
    t_ring[i % 4096] = {internal::read_ticks(), i};
    benchmark::ClobberMemory();
  });
}

void event_three_fields(benchmark::State& state) {
  run_batches(state,
              [](std::uint64_t i) { record(ThreeFields{i, static_cast<std::uint32_t>(i), 3}); });
}

void event_off(benchmark::State& state) {
  bench().core->disable();
  run_batches(state, [](std::uint64_t i) {
    record(ThreeFields{i, static_cast<std::uint32_t>(i), 3});
    benchmark::DoNotOptimize(i);
  });
  bench().core->enable();
}

void event_shared_stamp(benchmark::State& state) {
  const std::uint64_t stamp = internal::now_ns();
  run_batches(state, [stamp](std::uint64_t i) {
    internal::record_at(ThreeFields{i, static_cast<std::uint32_t>(i), 3}, stamp);
  });
}

void event_symbol(benchmark::State& state) {
  static Symbol name{"gold"};
  run_batches(state, [](std::uint64_t i) { record(WithSymbol{i, name}); });
}

void event_interned_text(benchmark::State& state) {
  run_batches(state, [](std::uint64_t i) { record(WithSymbol{i, "gold"}); });
}

void event_text(benchmark::State& state) {
  run_batches(state, [](std::uint64_t i) { record(WithText{i, "gold"}); });
}

void span_enter_exit(benchmark::State& state) {
  run_batches(state, [](std::uint64_t i) { const span<TwoFields> scope({i, i}); });
}

// The task keeps the span's times: its poll goes on around.
void span_in_poll(benchmark::State& state) {
  static Symbol place{"bench"};
  static const runtime::RuntimeId runtime = runtime::register_runtime("bench");
  const runtime::PollScope poll(runtime, {runtime::new_task_id(), &place});
  run_batches(state, [](std::uint64_t i) { const span<TwoFields> scope({i, i}); });
}

void label_begin_end(benchmark::State& state) {
  run_batches(state, [](std::uint64_t) { const label scope("tenant", "gold"); });
}

// As while perf samples: each begin and each end is an event.
void label_told(benchmark::State& state) {
  internal::watch_labels(internal::LabelWatcher::kCpuSamples);
  label_begin_end(state);
  internal::unwatch_labels(internal::LabelWatcher::kCpuSamples);
}

void bytes_per_event(benchmark::State& state) {
  const std::uint64_t before = bench().core->status().bytes_written;
  std::uint64_t events = 0;
  for (auto _ : state) {
    for (std::uint64_t i = 0; i < kBatch; ++i) {
      record(ThreeFields{i, static_cast<std::uint32_t>(i), 3});
    }
    bench().core->rotate(std::chrono::seconds(1));
    events += kBatch;
  }
  const std::uint64_t bytes = bench().core->status().bytes_written - before;
  state.counters["bytes"] = static_cast<double>(bytes) / static_cast<double>(events);
}

BENCHMARK(empty_loop)->UseManualTime();
BENCHMARK(rdtsc)->UseManualTime();
BENCHMARK(clock_gettime_read)->UseManualTime();
BENCHMARK(now)->UseManualTime();
BENCHMARK(rdtsc_and_store)->UseManualTime();
BENCHMARK(rdtsc_and_store)->UseManualTime()->Threads(2);
BENCHMARK(event_three_fields)->UseManualTime();
BENCHMARK(event_three_fields)->UseManualTime()->Threads(2);
BENCHMARK(event_off)->UseManualTime();
BENCHMARK(event_shared_stamp)->UseManualTime();
BENCHMARK(event_symbol)->UseManualTime();
BENCHMARK(event_interned_text)->UseManualTime();
BENCHMARK(event_text)->UseManualTime();
BENCHMARK(span_enter_exit)->UseManualTime();
BENCHMARK(span_in_poll)->UseManualTime();
BENCHMARK(label_begin_end)->UseManualTime();
BENCHMARK(label_told)->UseManualTime();
BENCHMARK(bytes_per_event)->Iterations(50);

}  // namespace
}  // namespace dial9

BENCHMARK_MAIN();
