// The cost of one stack by each way, beside libgcc's walk of the same stack in the same run. The
// counter `frames` says how deep; an item is a frame, so items_per_second is what to compare. Run:
//   unwind_bench --benchmark_min_time=0.2
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <link.h>
#include <ucontext.h>
#include <unwind.h>

#include <array>
#include <cstdint>
#include <functional>
#include <thread>

#include "unwind/arch.h"
#include "unwind/modules.h"
#include "unwind/tables.h"
#include "unwind/unwind.h"

namespace {

using dial9::unwind::Options;
using dial9::unwind::Strategy;

std::array<std::uint64_t, 512> g_frames;

[[gnu::noinline]] void at_depth(int depth, const std::function<void()>& work) {
  volatile int here = depth;
  if (depth == 0) {
    work();
  } else {
    at_depth(depth - 1, work);
  }
  here = here + 1;
}

// Runs `walk` below `depth` frames on a thread of its own, whose stack isn't the main thread's.
template <class Walk>
void measure(benchmark::State& state, Walk walk) {
  dial9::unwind::prepare();
  std::uint64_t frames = 0;
  std::thread([&] {
    at_depth(static_cast<int>(state.range(0)), [&] {
      ucontext_t context;
      getcontext(&context);
      frames = walk(context);
      for (auto _ : state) {
        benchmark::DoNotOptimize(walk(context));
      }
    });
  }).join();
  state.counters["frames"] = static_cast<double>(frames);
  state.SetItemsProcessed(static_cast<std::int64_t>(frames) * state.iterations());
}

void walk_with(benchmark::State& state, const Options& options) {
  measure(state, [&](const ucontext_t& context) {
    return dial9::unwind::unwind(&context, g_frames, options).count;
  });
}

void tables(benchmark::State& state) { walk_with(state, {}); }
void tables_kernel_copies(benchmark::State& state) { walk_with(state, {.distrust_stack = true}); }
void frame_pointers(benchmark::State& state) {
  walk_with(state, {.strategy = Strategy::kFramePointers});
}

_Unwind_Reason_Code count_frame(_Unwind_Context* context, void* count) {
  auto& n = *static_cast<std::uint32_t*>(count);
  if (n == g_frames.size()) {
    return _URC_END_OF_STACK;
  }
  g_frames[n++] = _Unwind_GetIP(context);
  return _URC_NO_REASON;
}

void libgcc(benchmark::State& state) {
  measure(state, [](const ucontext_t&) {
    std::uint32_t count = 0;
    _Unwind_Backtrace(count_frame, &count);
    return count;
  });
}

// Each address of libc's code once: what a sample at an address never seen before costs more.
void first_look(benchmark::State& state) {
  dial9::unwind::prepare();
  std::uint64_t pc = reinterpret_cast<std::uint64_t>(&std::qsort);
  for (auto _ : state) {
    dial9::unwind::ProcessTables fresh(dial9::unwind::X86_64::kNumbers);
    pc += 7;
    benchmark::DoNotOptimize(fresh.row(pc));
  }
}

}  // namespace

BENCHMARK(tables)->Arg(10)->Arg(50);
BENCHMARK(tables_kernel_copies)->Arg(10)->Arg(50);
BENCHMARK(frame_pointers)->Arg(10)->Arg(50);
BENCHMARK(libgcc)->Arg(10)->Arg(50);
BENCHMARK(first_look)->Iterations(10000);
BENCHMARK_MAIN();
